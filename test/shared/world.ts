// Processes that share the limits of one account over a store, on a clock that the test holds.

import type { LaneLimit } from '../../src/rules/limits.js';
import type { Random } from '../../src/runtime/clock.js';
import { InProcessLimiter, type LanePool } from '../../src/store/in-process-limiter.js';
import type { AnyLimiter, Release } from '../../src/store/rate-limiter.js';
import { SharedLimiter } from '../../src/store/shared-limiter.js';
import { memoryStoreOn, type Store } from '../../src/store/store.js';
import { seeded } from '../support/seeded.js';
import { type VirtualClock, virtualClock } from '../waiting/virtual-clock.js';

export const LANE = 'videos.create';
export const MINUTE: LaneLimit = { limit: 20, windowMs: 60_000 };

/** What happens at the store. */
export interface Faults {
  read?: () => unknown;
  /** Before the answer to a read arrives. */
  answer?: () => unknown;
  write?: () => unknown;
}

export interface ProcessOptions {
  readonly onUnavailable?: 'local' | 'throw';
  readonly clock?: VirtualClock;
  readonly timeoutMs?: number | undefined;
  /** What goes wrong for this process only. */
  readonly faults?: Faults;
  /** The lanes of the account in the process. */
  readonly pool?: LanePool;
}

function randomOf(next: () => number): Random {
  let processes = 0;
  return { next, uuid: () => `process-${++processes}` };
}

/** A store that answers after a delay, and counts what it is asked. */
export function world(limit: LaneLimit = MINUTE, { delayMs = 1, next = seeded(7) } = {}) {
  const clock = virtualClock();
  const store = memoryStoreOn(clock);
  const random = randomOf(next);
  const startMs = clock.now();
  const asked: { readonly what: 'read' | 'write'; readonly atMs: number }[] = [];
  const pause = () => new Promise<void>((resolve) => void clock.after(random.next() * delayMs, resolve));
  const faults: Faults = {};
  const storeOf = (own: Faults): Store => ({
    async read(group, keys) {
      asked.push({ what: 'read', atMs: clock.now() - startMs });
      await pause();
      await faults.read?.();
      await own.read?.();
      const seen = await store.read(group, keys);
      await pause();
      await own.answer?.();
      return seen;
    },
    async write(group, version, changes) {
      asked.push({ what: 'write', atMs: clock.now() - startMs });
      await pause();
      await faults.write?.();
      const isWritten = await store.write(group, version, changes);
      await pause();
      return isWritten;
    },
  });
  const warnings: string[] = [];
  const limiter = (options: ProcessOptions = {}) =>
    new SharedLimiter({
      store: { ...storeOf(options.faults ?? {}), timeoutMs: options.timeoutMs },
      account: 'account',
      limits: { [LANE]: limit },
      onUnavailable: options.onUnavailable ?? 'local',
      clock: options.clock ?? clock,
      random,
      pool: options.pool ?? new Map(),
    });
  const process = (options: ProcessOptions = {}): AnyLimiter =>
    limiter(options).for((message) => void warnings.push(message));
  /** The limiter of a client of the process that does not share its limits. */
  const alone = (pool: LanePool) => new InProcessLimiter({ limits: { [LANE]: limit } }, clock, { random, pool });
  /** When a call that waits goes out, in milliseconds from the start. */
  const sentMs = (slot: Promise<Release>) => clock.until(slot.then(() => clock.now() - startMs));
  /** The milliseconds from the start at which the store was read. */
  const reads = () => asked.filter(({ what }) => what === 'read').map(({ atMs }) => atMs);
  const atMs = () => clock.now() - startMs;
  return {
    clock,
    store,
    faults,
    limiter,
    process,
    alone,
    warnings,
    asked,
    reads,
    sentMs,
    atMs,
    asks: () => asked.length,
  };
}

/** What a call gets that does not queue. */
export function tried(limiter: AnyLimiter): Promise<Release | number> {
  return limiter.tryShared?.(LANE) ?? Promise.reject(new TypeError('the limiter is not shared'));
}
