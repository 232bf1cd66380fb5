import type { Clock } from '../../src/runtime/clock.js';

/** For vi.mock: the clock module with instant pauses and unchanged deadlines. */
export async function quickClock(load: () => Promise<typeof import('../../src/runtime/clock.js')>) {
  const real = await load();
  const after: Clock['after'] = (ms, fire) => real.systemClock.after(ms < 10_000 ? 0 : ms, fire);
  return { ...real, systemClock: { ...real.systemClock, after } };
}
