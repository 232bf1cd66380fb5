import type { World } from '../world/world.js';
import { Refusal } from './refusal.js';

/** Counts a request against its account's lane; throws `rate_limited` with the seconds until there is room. */
export function takeSlot(world: World, account: string, lane: string): void {
  const rule = world.settings.limits[lane];
  if (rule === undefined) return;
  const now = world.timeline.now();
  const isFixed = world.settings.limitWindow === 'fixed';
  const from = isFixed ? now - (now % rule.windowMs) : now - rule.windowMs + 1;
  const name = `${account} ${lane}`;
  const stamps = world.state.windows.get(name) ?? [];
  while (stamps[0] !== undefined && stamps[0] < from) stamps.shift();
  if (stamps.length >= rule.limit) {
    const freeAt = isFixed ? from + rule.windowMs : (stamps[0] ?? now) + rule.windowMs;
    const retryAfterS = world.wireSeconds(freeAt - now);
    throw new Refusal('rate_limited', `More than ${rule.limit} requests in ${rule.windowMs / 1000} s.`, {
      retryAfterS,
      data: { retry_after: retryAfterS },
    });
  }
  stamps.push(now);
  world.state.windows.set(name, stamps);
}
