// The rate limits of a single process.
import { getEventListeners } from 'node:events';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { RateLimitWait, Release } from '../../src/store/rate-limit.js';
import { maxPerWindow } from '../support/max-per-window.js';
import { seeded } from '../support/seeded.js';
import { settle } from '../waiting/virtual-clock.js';
import { granted, inMemory, LIMIT_NAME } from './world.js';

interface Run {
  readonly calls: number;
  readonly limit: number;
  readonly windowMs: number;
  readonly delay: () => { readonly requestMs: number; readonly responseMs: number };
  readonly gapMs?: () => number;
}

/** Sends calls to a server that counts each on arrival. Returns the arrival times, and the number of timers left. */
async function campaign({ calls, limit, windowMs, delay, gapMs = () => 0 }: Run) {
  const { clock, acquire } = inMemory({ limit, windowMs });
  const counted: number[] = [];
  const pause = (ms: number) => new Promise<void>((resolve) => void clock.after(ms, resolve));
  const call = async () => {
    const release = await acquire();
    const { requestMs, responseMs } = delay();
    await pause(requestMs);
    counted.push(clock.now());
    await pause(responseMs);
    release();
  };
  const all: Promise<void>[] = [];
  for (let at = 0; at < calls; at++) {
    const gap = gapMs();
    if (gap > 0) await clock.advance(gap);
    all.push(call());
  }
  await clock.until(Promise.all(all));
  return { counted, timers: clock.timers };
}

describe('a limit of a server that counts requests on arrival', () => {
  it('is never exceeded in any fixed or sliding window, with any network delay', async () => {
    const property = fc.asyncProperty(
      fc.integer({ min: 1, max: 25 }),
      fc.integer({ min: 50, max: 60_000 }),
      fc.integer({ min: 0, max: 90_000 }),
      fc.integer(),
      async (limit, windowMs, maxMs, seed) => {
        const random = seeded(seed);
        const delay = () => ({ requestMs: random() ** 3 * maxMs, responseMs: random() ** 3 * maxMs });
        const gapMs = () => (random() < 0.3 ? random() * windowMs : 0);
        const { counted, timers } = await campaign({ calls: 80, limit, windowMs, delay, gapMs });
        expect(counted).toHaveLength(80);
        expect(maxPerWindow(counted, windowMs)).toBeLessThanOrEqual(limit);
        expect(timers).toBe(0);
      },
    );
    await fc.assert(property, { numRuns: 20 });
  });

  it('is used to at least 95% by 200 creates with one-second responses', async () => {
    const random = seeded(1);
    const delay = () => ({ requestMs: 50 + random() * 100, responseMs: 500 + random() * 500 });
    const { counted } = await campaign({ calls: 200, limit: 20, windowMs: 60_000, delay });
    const tookMs = Math.max(...counted) - Math.min(...counted);
    // 200 calls fill ten windows. The last starts nine windows after the first.
    expect((9 * 60_000) / tookMs).toBeGreaterThan(0.95);
    expect(maxPerWindow(counted, 60_000)).toBe(20);
  });
});

const setup = (limit = 2, perRequest = false) => inMemory({ limit, windowMs: 1000 }, perRequest);

describe.each([
  ['a full limit', false],
  ['a full limit on Workers, where calls wait separately', true],
])('%s', (_, perRequest) => {
  it('serves calls in order of arrival', async () => {
    const { clock, acquire } = setup(1, perRequest);
    const order: number[] = [];
    const all = Array.from({ length: 50 }, async (_, at) => {
      const release = await acquire();
      order.push(at);
      release();
    });
    await clock.until(Promise.all(all));
    expect(order).toEqual(Array.from({ length: 50 }, (_, at) => at));
  });

  it('releases a slot one window after the response, not after the request', async () => {
    const { clock, acquire } = setup(1, perRequest);
    const release = await acquire();
    const onGranted = vi.fn();
    void acquire().then(onGranted);
    await clock.advance(5000);
    release();
    await clock.advance(1000);
    expect(onGranted).not.toHaveBeenCalled();
    await clock.advance(300);
    expect(onGranted).toHaveBeenCalledOnce();
  });

  it('passes an unused slot to the next call immediately', async () => {
    const { clock, acquire, limits } = setup(1, perRequest);
    const release = await acquire();
    const second = acquire();
    await settle();
    const startMs = clock.now();
    release('unused');
    (await clock.until(second))();
    expect(clock.now() - startMs).toBeLessThan(1000);
    expect(limits.snapshot()[LIMIT_NAME]).toMatchObject({ free: 0, queued: 0 });
  });

  it("rejects an aborted call immediately with the signal's reason, and leaves no listener or timer", async () => {
    const { clock, acquire, limits } = setup(1, perRequest);
    (await acquire())();
    const abort = new AbortController();
    const middle = acquire(abort.signal);
    const last = acquire();
    expect(getEventListeners(abort.signal, 'abort')).toHaveLength(1);
    abort.abort('enough');
    await expect(middle).rejects.toBe('enough');
    expect(getEventListeners(abort.signal, 'abort')).toEqual([]);
    expect(limits.snapshot()[LIMIT_NAME]?.queued).toBe(1);
    (await clock.until(last))();
    expect(clock.timers).toBe(0);
    await expect(acquire(AbortSignal.abort('before'))).rejects.toBe('before');
  });

  it('reports the reason for a wait once per call', async () => {
    const { clock, acquire } = setup(1, perRequest);
    const waits: RateLimitWait[] = [];
    const onWait = (wait: RateLimitWait) => void waits.push(wait);
    (await acquire(undefined, onWait))();
    void acquire(undefined, onWait);
    void acquire(undefined, onWait);
    expect(waits.map(({ limit, queued, reason }) => ({ limit, queued, reason }))).toEqual([
      { limit: LIMIT_NAME, queued: 1, reason: 'limit' },
      { limit: LIMIT_NAME, queued: 2, reason: 'limit' },
    ]);
    expect(waits[0]?.waitMs).toBeCloseTo(1001.5);
    expect(waits[1]?.waitMs).toBeGreaterThan(2000);
    await clock.advance(5000);
    expect(waits).toHaveLength(2);
  });

  it("returns the wait for a slot to a call that doesn't queue, and never lets it overtake others", async () => {
    const { clock, acquire, tryAcquire } = setup(1, perRequest);
    (await acquire())();
    expect(await tryAcquire()).toBeCloseTo(1001.5);
    const queued = acquire();
    await clock.advance(1001);
    expect(await tryAcquire()).toBeGreaterThan(0);
    (await clock.until(queued))();
  });

  it('reports free slots, queued calls, and the pause', async () => {
    const { clock, acquire, limits } = setup(2, perRequest);
    const snapshot = () => limits.snapshot()[LIMIT_NAME];
    expect(snapshot()).toEqual({ limit: 2, windowMs: 1000, free: 2, queued: 0, pausedMs: 0 });
    (await acquire())();
    expect(snapshot()).toMatchObject({ free: 1, queued: 0 });
    await acquire();
    void acquire();
    await clock.advance(500);
    expect(snapshot()).toMatchObject({ free: 0, queued: 1, pausedMs: 0 });
    limits.pause(LIMIT_NAME, 3000);
    expect(snapshot()).toMatchObject({ free: 0, pausedMs: 3150 });
    expect(limits.peek(LIMIT_NAME)).toEqual({ limit: 2, windowMs: 1000, nextFreeMs: 3150 });
    await clock.advance(3150);
    expect(snapshot()).toMatchObject({ pausedMs: 0 });
  });

  it('releases a slot once if its call releases it twice', async () => {
    const { clock, acquire, limits } = setup(2, perRequest);
    const release = await acquire();
    release();
    release();
    expect(limits.snapshot()[LIMIT_NAME]).toMatchObject({ free: 1 });
    const unused = await acquire();
    unused('unused');
    unused();
    await clock.advance(1100);
    expect(limits.snapshot()[LIMIT_NAME]).toMatchObject({ free: 2 });
  });

  it('serves calls on time if the wall clock moves by an hour in either direction', async () => {
    for (const step of [-3_600_000, 3_600_000]) {
      const { clock, acquire, limits } = setup(1, perRequest);
      (await acquire())();
      const next = acquire();
      clock.shiftWallClock(step);
      await clock.advance(1300);
      (await next)();
      await clock.advance(1100);
      expect(limits.snapshot()[LIMIT_NAME]).toMatchObject({ free: 1, queued: 0 });
    }
  });
});

it('an exhausted limit fills and empties a queue of 20,000 calls without scanning it', async () => {
  const { clock, acquire, limits } = setup(1);
  const release = await acquire();
  const measure = async (calls: number) => {
    const aborts = Array.from({ length: calls }, () => new AbortController());
    const startMs = performance.now();
    const all = aborts.map(({ signal }) => acquire(signal, () => {}).catch(() => {}));
    for (const abort of aborts) abort.abort();
    await Promise.all(all);
    return performance.now() - startMs;
  };
  const baselineMs = Math.max(await measure(1_000), await measure(1_000), await measure(1_000));
  // In linear time, 20 times the calls take 20 times as long. A scan for each call would take 400 times as long.
  expect((await measure(20_000)) / baselineMs).toBeLessThan(150);
  release();
  await settle();
  expect(limits.snapshot()[LIMIT_NAME]).toMatchObject({ queued: 0 });
  expect(clock.timers).toBe(0);
});

describe('a paused limit', () => {
  it('allows no call until the pause has ended, and all calls after at most 10% more', async () => {
    const { clock, acquire, limits } = inMemory();
    limits.pause(LIMIT_NAME, 5000);
    const onGranted = vi.fn();
    for (let call = 0; call < 3; call++) void acquire().then(onGranted);
    await clock.advance(4999);
    expect(onGranted).not.toHaveBeenCalled();
    await clock.advance(502);
    expect(onGranted).toHaveBeenCalledTimes(3);
  });

  it('ignores a shorter pause and an invalid duration', () => {
    const { limits } = inMemory();
    limits.pause(LIMIT_NAME, 60_000);
    for (const ms of [10, 0, -5, Number.NaN, Number.POSITIVE_INFINITY]) limits.pause(LIMIT_NAME, ms);
    expect(limits.snapshot()[LIMIT_NAME]?.pausedMs).toBe(60_500);
  });
});

describe('a limit without a number', () => {
  const unlimited = (perRequest: boolean) => inMemory({ limit: Number.POSITIVE_INFINITY, windowMs: 0 }, perRequest);

  it.each([false, true])(
    'allows all calls until a pause, then 1, 2, 4, … as the service accepts each round (on Workers: %s)',
    async (perRequest) => {
      const { clock, acquire, limits } = unlimited(perRequest);
      const slotsBefore = await Promise.all(Array.from({ length: 100 }, () => acquire()));
      expect(limits.snapshot()[LIMIT_NAME]).toEqual({
        ...{ limit: Number.POSITIVE_INFINITY, windowMs: 0, free: Number.POSITIVE_INFINITY, queued: 0, pausedMs: 0 },
      });
      slotsBefore.pop()?.('unused');
      limits.pause(LIMIT_NAME, 1_000);
      const slots: Release[] = [];
      for (let call = 0; call < 40; call++) void acquire().then((release) => void slots.push(release));
      await clock.advance(1_000);
      expect(slots).toHaveLength(0);
      await clock.advance(500);
      expect(slots).toHaveLength(1);
      // Calls from before the pause don't count toward a round.
      for (const release of slotsBefore) release('accepted');
      await clock.advance(5_000);
      expect(slots).toHaveLength(1);
      // Failures don't count either: another call replaces them.
      slots.pop()?.('counted');
      await clock.advance(1_000);
      expect(slots).toHaveLength(1);
      const rounds: number[] = [];
      for (let round = 0; round < 6; round++) {
        rounds.push(slots.length);
        for (const release of slots.splice(0)) release('accepted');
        await clock.advance(1_000);
      }
      expect(rounds).toEqual([1, 2, 4, 8, 16, 8]);
      await clock.advance(60_000);
      expect(limits.snapshot()[LIMIT_NAME]).toMatchObject({ free: Number.POSITIVE_INFINITY, queued: 0 });
    },
  );

  it('starts again with a round of one after another pause', async () => {
    const { clock, acquire, limits } = unlimited(false);
    limits.pause(LIMIT_NAME, 1_000);
    const slots: Release[] = [];
    for (let call = 0; call < 20; call++) void acquire().then((release) => void slots.push(release));
    await clock.advance(1_500);
    for (let round = 0; round < 2; round++) {
      for (const release of slots.splice(0)) release('accepted');
      await clock.advance(10);
    }
    expect(slots).toHaveLength(4);
    limits.pause(LIMIT_NAME, 1_000);
    for (const release of slots.splice(0)) release('unused');
    await clock.advance(1_500);
    expect(slots).toHaveLength(1);
  });

  it('allows all calls again once the service has accepted a round of 512', async () => {
    const { clock, acquire, limits } = unlimited(false);
    limits.pause(LIMIT_NAME, 1_000);
    await clock.advance(1_500);
    for (let call = 0; call < 1_023; call++) (await clock.until(acquire()))('accepted');
    expect(limits.snapshot()[LIMIT_NAME]).toMatchObject({ free: Number.POSITIVE_INFINITY });
  });
});

describe('clients with different limits', () => {
  it("serve each other's waiting calls when one of them releases an unused slot", async () => {
    const { clock, open } = inMemory();
    const [first, second] = [open({ limit: 1, windowMs: 1_000 }), open({ limit: 2, windowMs: 1_000 })];
    const slots = [await first.acquire(), await second.acquire()];
    const onGranted = vi.fn();
    const waiting = first.acquire();
    void waiting.then(onGranted);
    slots[0]?.('unused');
    await settle();
    expect(onGranted).not.toHaveBeenCalled();
    slots[1]?.('unused');
    await settle();
    expect(onGranted).toHaveBeenCalledOnce();
    (await waiting)();
    await clock.advance(2_000);
    expect(clock.timers).toBe(0);
  });

  it('never exceed the larger limit in any window, and leave no call waiting', async () => {
    const { clock, open } = inMemory();
    const clients = [open({ limit: 3, windowMs: 1_000 }), open({ limit: 5, windowMs: 1_000 })];
    const sent: number[] = [];
    const all = Array.from({ length: 60 }, async (_, call) => {
      const release = await clients[call % 2]?.acquire();
      sent.push(clock.now());
      await new Promise<void>((resolve) => void clock.after(20, resolve));
      release?.();
    });
    await clock.until(Promise.all(all));
    expect(sent).toHaveLength(60);
    expect(maxPerWindow(sent, 1_000)).toBeLessThanOrEqual(5);
  });
});

describe('a run that waits outside the process', () => {
  it('retains its position until it retries', async () => {
    const { clock, tryAcquire, acquire } = inMemory({ limit: 2, windowMs: 60_000 });
    for (let call = 0; call < 2; call++) (await acquire())();
    const waits = await Promise.all(['a', 'b', 'c'].map((run) => tryAcquire(run)));
    expect(waits).toEqual([62_031, 62_031, 124_062].map((ms) => expect.closeTo(ms, -1)));
    expect(await tryAcquire('c')).toBeCloseTo(124_062, -1);
    // A later call waits behind them.
    const onGranted = vi.fn();
    void acquire().then(onGranted);
    await clock.advance(62_050);
    expect(onGranted).not.toHaveBeenCalled();
    for (const run of ['b', 'a']) (await granted(tryAcquire(run)))();
    await clock.advance(62_050);
    await granted(tryAcquire('c'));
    await clock.advance(1_000);
    expect(onGranted).toHaveBeenCalledOnce();
  });

  it('precedes queued calls if it is urgent, and urgent runs keep their order', async () => {
    const { clock, acquire, tryAcquire } = inMemory({ limit: 2, windowMs: 60_000 });
    for (let call = 0; call < 2; call++) (await acquire())();
    for (const run of ['a', 'b', 'c', 'd']) await tryAcquire(run);
    const waits = [await tryAcquire('first', true), await tryAcquire('second', true), await tryAcquire('third', true)];
    expect(waits).toEqual([62_031, 62_031, 124_062].map((ms) => expect.closeTo(ms, -1)));
    await clock.advance(62_050);
    expect(typeof (await tryAcquire('a'))).toBe('number');
    for (const run of ['second', 'first']) (await granted(tryAcquire(run, true)))();
    await clock.advance(62_050);
    await granted(tryAcquire('a'));
    expect(typeof (await tryAcquire('b'))).toBe('number');
    await granted(tryAcquire('third', true));
  });
});
