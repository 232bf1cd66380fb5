// Processes that share an account's rate limits through a store, on a manual clock.
import type { Rate } from '../../src/rules/limits.js';
import { CLOCK, type Clock, type Random, steady } from '../../src/runtime/clock.js';
import type { RateLimitWait, Release } from '../../src/store/rate-limit.js';
import { RateLimits } from '../../src/store/rate-limits.js';
import { openSharedLimits } from '../../src/store/shared-limits.js';
import { memoryStoreOn, type Store } from '../../src/store/store.js';
import { seeded } from '../support/seeded.js';
import { type VirtualClock, virtualClock } from '../waiting/virtual-clock.js';

export const LIMIT_NAME = 'videos.create';
export const MINUTE: Rate = { limit: 20, windowMs: 60_000 };

/** Hooks for store requests. They can throw to simulate failures. */
export interface Faults {
  beforeRead?: () => unknown;
  /** Called before the response to a read arrives. */
  afterRead?: () => unknown;
  beforeWrite?: () => unknown;
  /** Called before the response to a write arrives. */
  afterWrite?: () => unknown;
}

export interface ProcessOptions {
  readonly clock?: VirtualClock;
  readonly timeoutMs?: number;
  /** Failures of this process only. */
  readonly faults?: Faults;
}

export interface LimitedProcess {
  readonly limits: RateLimits;
  acquire(signal?: AbortSignal, onWait?: (wait: RateLimitWait) => void): Promise<Release>;
  tryAcquire(run?: string, isUrgent?: boolean): Promise<Release | number>;
}

function processOn(limits: RateLimits, warn: (message: string) => void): LimitedProcess {
  return {
    limits,
    acquire: (signal, onWait) => limits.acquire(LIMIT_NAME, { signal, onWait, warn }),
    tryAcquire: (id, isUrgent = false) =>
      limits.tryAcquire(LIMIT_NAME, { warn }, id === undefined ? undefined : { id, isUrgent }),
  };
}

/** Opens a single process's in-memory rate limits. */
export function inMemory(limit: Rate = MINUTE, perRequest = false) {
  const clock = Object.assign(virtualClock(), { perRequest });
  const backends = new Map();
  let ids = 0;
  const random: Random = { next: () => 0.5, uuid: () => `call-${++ids}` };
  /** Opens a client of the same account with its own limit. */
  const open = (rate: Rate) => {
    const limits = { [LIMIT_NAME]: rate };
    return processOn(new RateLimits({ limits, shared: undefined, clock, random, backends }), () => {});
  };
  return { clock, open, ...open(limit) };
}

/** Returns the release function of a granted slot. Throws if none is free. */
export async function granted(attempt: Promise<Release | number>): Promise<Release> {
  const release = await attempt;
  if (typeof release === 'number') throw new Error(`no slot is free for ${release} ms`);
  return release;
}

/** Opens a store that responds after a delay and counts its requests. Its `process` opens a process on the store. */
export function world(limit: Rate = MINUTE, { delayMs = 1, next = seeded(7) } = {}) {
  const clock = virtualClock();
  const store = memoryStoreOn(clock);
  let ids = 0;
  const random: Random = { next, uuid: () => `process-${++ids}` };
  const startMs = clock.now();
  const requests: { readonly what: 'read' | 'write'; readonly atMs: number }[] = [];
  const pause = () => new Promise<void>((resolve) => void clock.after(next() * delayMs, resolve));
  const faults: Faults = {};
  const storeOf = (processFaults: Faults): Store & { readonly [CLOCK]: Clock } => ({
    [CLOCK]: clock,
    async read(group, keys) {
      requests.push({ what: 'read', atMs: clock.now() - startMs });
      await pause();
      await faults.beforeRead?.();
      await processFaults.beforeRead?.();
      const stored = await store.read(group, keys);
      await pause();
      await processFaults.afterRead?.();
      return stored;
    },
    async write(group, version, changes) {
      requests.push({ what: 'write', atMs: clock.now() - startMs });
      await pause();
      await faults.beforeWrite?.();
      const isWritten = await store.write(group, version, changes);
      await pause();
      await faults.afterWrite?.();
      return isWritten;
    },
  });
  const warnings: string[] = [];
  const process = (options: ProcessOptions = {}): LimitedProcess => {
    const store = { ...storeOf(options.faults ?? {}), timeoutMs: options.timeoutMs };
    const steadyClock = steady(options.clock ?? clock);
    const settings = {
      limits: { [LIMIT_NAME]: limit },
      shared: openSharedLimits({ store, account: 'account', clock: steadyClock, random }),
      clock: steadyClock,
      random,
      backends: new Map(),
    };
    return processOn(new RateLimits(settings), (message) => void warnings.push(message));
  };
  const pauseMs = (ms: number) => new Promise<void>((resolve) => void clock.after(ms, resolve));
  /** Milliseconds since the start. */
  const atMs = () => clock.now() - startMs;
  return { clock, store, faults, process, warnings, requests, atMs, pauseMs, requestCount: () => requests.length };
}
