import { getEventListeners } from 'node:events';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GenError } from '../../src/errors/index.js';
import { InProcessLimiter } from '../../src/store/in-process-limiter.js';
import type { LaneWait, Release } from '../../src/store/rate-limiter.js';
import { seeded } from '../support/seeded.js';
import { settle, virtualClock } from '../waiting/virtual-clock.js';

const LANE = 'videos.create';
const limits = (limit: number, windowMs: number) => ({ limits: { [LANE]: { limit, windowMs } } });

/** The most calls that a server counted within any window, sliding and fixed ones of any offset. */
function fullest(counted: readonly number[], windowMs: number): number {
  const times = counted.toSorted((a, b) => a - b);
  let most = 0;
  for (let first = 0, last = 0; last < times.length; last++) {
    while ((times[last] ?? 0) - (times[first] ?? 0) >= windowMs) first++;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

interface Run {
  readonly calls: number;
  readonly limit: number;
  readonly windowMs: number;
  readonly delay: () => { readonly thereMs: number; readonly backMs: number };
  readonly gapMs?: () => number;
}

/** Sends calls through the limiter to a server that counts each when it arrives; gives the times of counting. */
async function campaign({ calls, limit, windowMs, delay, gapMs = () => 0 }: Run) {
  const clock = virtualClock();
  const limiter = new InProcessLimiter(limits(limit, windowMs), clock);
  const counted: number[] = [];
  const pause = (ms: number) => new Promise<void>((resolve) => void clock.after(ms, resolve));
  const call = async () => {
    const release = await limiter.acquire(LANE);
    const { thereMs, backMs } = delay();
    await pause(thereMs);
    counted.push(clock.now());
    await pause(backMs);
    release();
  };
  const all: Promise<void>[] = [];
  for (let made = 0; made < calls; made++) {
    const gap = gapMs();
    if (gap > 0) await clock.advance(gap);
    all.push(call());
  }
  await clock.until(Promise.all(all));
  return { counted, timers: clock.timers };
}

describe('a limit against the server that counts it', () => {
  it('holds in every window, fixed or sliding, whatever the network delays', async () => {
    const property = fc.asyncProperty(
      fc.integer({ min: 1, max: 25 }),
      fc.integer({ min: 50, max: 60_000 }),
      fc.integer({ min: 0, max: 90_000 }),
      fc.integer(),
      async (limit, windowMs, slowestMs, seed) => {
        const random = seeded(seed);
        const delay = () => ({ thereMs: random() ** 3 * slowestMs, backMs: random() ** 3 * slowestMs });
        const gapMs = () => (random() < 0.3 ? random() * windowMs : 0);
        const { counted, timers } = await campaign({ calls: 80, limit, windowMs, delay, gapMs });
        expect(counted).toHaveLength(80);
        expect(fullest(counted, windowMs)).toBeLessThanOrEqual(limit);
        expect(timers).toBe(0);
      },
    );
    await fc.assert(property, { numRuns: 60 });
  });

  it('lets 200 creates through at 0.95 of the allowed rate and more, with answers that take a second', async () => {
    const random = seeded(1);
    const delay = () => ({ thereMs: 50 + random() * 100, backMs: 500 + random() * 500 });
    const { counted } = await campaign({ calls: 200, limit: 20, windowMs: 60_000, delay });
    const took = Math.max(...counted) - Math.min(...counted);
    // 200 calls fill ten windows; the last begins nine windows after the first.
    expect((9 * 60_000) / took).toBeGreaterThan(0.95);
    expect(fullest(counted, 60_000)).toBe(20);
  });
});

function setup(limit = 2, perRequest = false) {
  const clock = Object.assign(virtualClock(), { perRequest });
  return { clock, limiter: new InProcessLimiter(limits(limit, 1000), clock) };
}

/** On Workers a promise ends with its request, so no call may wait for what another one does. */
describe.each([
  ['a full lane', false],
  ['a full lane whose calls wait each by itself', true],
])('%s', (_, perRequest) => {
  it('lets calls in first come first served', async () => {
    const { clock, limiter } = setup(1, perRequest);
    const order: number[] = [];
    const all = Array.from({ length: 50 }, async (_, at) => {
      const release = await limiter.acquire(LANE);
      order.push(at);
      release();
    });
    await clock.until(Promise.all(all));
    expect(order).toEqual(Array.from({ length: 50 }, (_, at) => at));
  });

  it('frees a slot one window after the answer and not after the sending', async () => {
    const { clock, limiter } = setup(1, perRequest);
    const release = await limiter.acquire(LANE);
    let through = false;
    const second = limiter.acquire(LANE).then(() => {
      through = true;
    });
    await clock.advance(5000);
    release();
    await clock.advance(1000);
    expect(through).toBe(false);
    await clock.advance(10);
    expect(through).toBe(true);
    await second;
  });

  it('keeps the slot of a call that takes a minute and a half', async () => {
    const { clock, limiter } = setup(1, perRequest);
    const release = await limiter.acquire(LANE);
    let through = false;
    const second = limiter.acquire(LANE).then(() => {
      through = true;
    });
    await clock.advance(90_000);
    expect(through).toBe(false);
    release();
    await clock.until(second);
  });

  it('gives a slot that was not used to the next call at once', async () => {
    const { clock, limiter } = setup(1, perRequest);
    const release = await limiter.acquire(LANE);
    const second = limiter.acquire(LANE);
    await settle();
    const before = clock.now();
    release('unused');
    (await clock.until(second))();
    expect(clock.now() - before).toBeLessThan(1000);
    expect(limiter.snapshot()[LANE]).toMatchObject({ inUse: 1, queued: 0 });
  });

  it('takes a double release for one', async () => {
    const { clock, limiter } = setup(1, perRequest);
    const release = await limiter.acquire(LANE);
    release();
    release();
    await clock.advance(1100);
    expect(typeof limiter.tryAcquire(LANE)).toBe('function');
    expect(limiter.tryAcquire(LANE)).toBeGreaterThan(0);
  });

  it('rejects an aborted call at once with the signal’s own reason and keeps no listener and no timer', async () => {
    const { clock, limiter } = setup(1, perRequest);
    (await limiter.acquire(LANE))();
    const abort = new AbortController();
    const middle = limiter.acquire(LANE, abort.signal);
    const last = limiter.acquire(LANE);
    expect(getEventListeners(abort.signal, 'abort')).toHaveLength(1);
    abort.abort('enough');
    await expect(middle).rejects.toBe('enough');
    expect(getEventListeners(abort.signal, 'abort')).toEqual([]);
    expect(limiter.snapshot()[LANE]?.queued).toBe(1);
    (await clock.until(last))();
    expect(clock.timers).toBe(0);
    await expect(limiter.acquire(LANE, AbortSignal.abort('before'))).rejects.toBe('before');
  });

  it('leaves no listener on a signal after a call that went through', async () => {
    const { clock, limiter } = setup(1, perRequest);
    const { signal } = new AbortController();
    (await limiter.acquire(LANE, signal))();
    (await clock.until(limiter.acquire(LANE, signal)))();
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('tells once what a call waits for', async () => {
    const { clock, limiter } = setup(1, perRequest);
    const seen: LaneWait[] = [];
    const tell = (wait: LaneWait) => void seen.push(wait);
    (await limiter.acquire(LANE, undefined, tell))();
    void limiter.acquire(LANE, undefined, tell);
    void limiter.acquire(LANE, undefined, tell);
    expect(seen.map(({ lane, queued, reason }) => ({ lane, queued, reason }))).toEqual([
      { lane: LANE, queued: 1, reason: 'limit' },
      { lane: LANE, queued: 2, reason: 'limit' },
    ]);
    expect(seen[0]?.waitMs).toBeCloseTo(1001.5);
    expect(seen[1]?.waitMs).toBeGreaterThan(2000);
    await clock.advance(5000);
    expect(seen).toHaveLength(2);
  });

  it('gives the milliseconds to wait instead of a slot when asked not to queue, and lets nobody pass the queue', async () => {
    const { clock, limiter } = setup(1, perRequest);
    (await limiter.acquire(LANE))();
    expect(limiter.tryAcquire(LANE)).toBeCloseTo(1001.5);
    const queued = limiter.acquire(LANE);
    await clock.advance(1001);
    expect(limiter.tryAcquire(LANE)).toBeGreaterThan(0);
    (await clock.until(queued))();
  });

  it('shows slots in use, calls that queue and when the next slot is free', async () => {
    const { clock, limiter } = setup(2, perRequest);
    expect(limiter.snapshot()[LANE]).toEqual({ inUse: 0, queued: 0, nextFreeMs: 0, limit: 2, windowMs: 1000 });
    const release = await limiter.acquire(LANE);
    expect(limiter.snapshot()[LANE]).toMatchObject({ inUse: 1, queued: 0, nextFreeMs: 0 });
    release();
    void (await limiter.acquire(LANE));
    void limiter.acquire(LANE);
    await clock.advance(500);
    const state = limiter.snapshot()[LANE];
    expect(state).toMatchObject({ inUse: 2, queued: 1 });
    expect(state?.nextFreeMs).toBeCloseTo(501.5);
    expect(Object.keys(limiter.snapshot())).toContain('jobs.output');
  });

  it('takes a double release for one, and counts the call once', async () => {
    const { clock, limiter } = setup(2, perRequest);
    const release = await limiter.acquire(LANE);
    release();
    release();
    expect(limiter.snapshot()[LANE]).toMatchObject({ inUse: 1, nextFreeMs: 0 });
    const taken = limiter.tryAcquire(LANE) as Release;
    taken('unused');
    taken();
    await clock.advance(1100);
    expect(limiter.snapshot()[LANE]).toMatchObject({ inUse: 0 });
  });

  it('tells a call that waits for a pause so', async () => {
    const { clock, limiter } = setup(1, perRequest);
    limiter.pause(LANE, 3000);
    const seen: LaneWait[] = [];
    const through = limiter.acquire(LANE, undefined, (wait) => seen.push(wait));
    expect(seen).toMatchObject([{ lane: LANE, queued: 1, reason: 'pause' }]);
    await clock.until(through);
  });

  it('rejects a call whose listener throws, with that error, and goes on with the next', async () => {
    const { clock, limiter } = setup(1, perRequest);
    (await limiter.acquire(LANE))();
    const { signal } = new AbortController();
    const failed = limiter.acquire(LANE, signal, () => {
      throw new Error('the listener');
    });
    const next = limiter.acquire(LANE);
    await expect(failed).rejects.toThrow('the listener');
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    expect(limiter.snapshot()[LANE]?.queued).toBe(1);
    (await clock.until(next))();
    expect(clock.timers).toBe(0);
  });

  it('goes on when the wall clock is set back an hour, or forward', async () => {
    for (const step of [-3_600_000, 3_600_000]) {
      const { clock, limiter } = setup(1, perRequest);
      (await limiter.acquire(LANE))();
      const next = limiter.acquire(LANE);
      clock.step(step);
      await clock.advance(1100);
      (await next)();
      await clock.advance(1100);
      expect(limiter.snapshot()[LANE]).toMatchObject({ inUse: 0, queued: 0, nextFreeMs: 0 });
    }
  });
});

it.each([
  ['on Workers, where its request may have ended without notice, is free again after two minutes', true],
  ['is kept in a process for as long as it takes', false],
])('a slot that is never released %s', async (_, perRequest) => {
  const { clock, limiter } = setup(2, perRequest);
  await limiter.acquire(LANE);
  expect(typeof limiter.tryAcquire(LANE)).toBe('function');
  await clock.advance(118_000);
  expect(limiter.tryAcquire(LANE)).toBeGreaterThan(0);
  await clock.advance(5_000);
  expect([typeof limiter.tryAcquire(LANE), limiter.snapshot()[LANE]?.inUse]).toEqual(
    perRequest ? ['function', 1] : ['number', 2],
  );
});

it('a call that waits for the answers of others sets no timer', async () => {
  const { clock, limiter } = setup(1);
  const release = await limiter.acquire(LANE);
  const waiting = limiter.acquire(LANE);
  await settle();
  expect(clock.timers).toBe(0);
  release();
  await clock.until(waiting);
});

describe('a long queue', () => {
  it('of 20,000 calls is filled and emptied without a scan of the queue', async () => {
    const { clock, limiter } = setup(1);
    const hold = await limiter.acquire(LANE);
    const timed = async (calls: number) => {
      const aborts = Array.from({ length: calls }, () => new AbortController());
      const started = performance.now();
      const all = aborts.map(({ signal }) => limiter.acquire(LANE, signal).catch(() => {}));
      for (const abort of aborts) abort.abort();
      await Promise.all(all);
      return performance.now() - started;
    };
    const few = Math.max(await timed(1_000), await timed(1_000), await timed(1_000));
    // Twenty times as many take about twenty times as long; with a scan for each it would be four hundred.
    expect((await timed(20_000)) / few).toBeLessThan(150);
    hold();
    await settle();
    expect(limiter.snapshot()[LANE]).toMatchObject({ queued: 0 });
    expect(clock.timers).toBe(0);
  });
});

describe('a paused lane', () => {
  it('lets nobody out until the pause has passed, with at most a tenth added', async () => {
    const clock = virtualClock();
    const limiter = new InProcessLimiter({}, clock);
    limiter.pause('jobs.get', 5000);
    let through = 0;
    const all = Array.from({ length: 3 }, () => limiter.acquire('jobs.get').then(() => through++));
    await clock.advance(4999);
    expect(through).toBe(0);
    await clock.advance(502);
    expect(through).toBe(3);
    await Promise.all(all);
  });

  it('is never shortened by a shorter pause, and a nonsensical one is ignored', () => {
    const limiter = new InProcessLimiter({}, virtualClock());
    limiter.pause('jobs.get', 60_000);
    for (const ms of [10, 0, -5, Number.NaN, Number.POSITIVE_INFINITY]) limiter.pause('jobs.get', ms);
    const { nextFreeMs } = limiter.snapshot()['jobs.get']!;
    expect(nextFreeMs).toBeGreaterThanOrEqual(60_000);
    expect(nextFreeMs).toBeLessThan(61_001);
  });

  it('can be a lane that has no limit, whatever its name', async () => {
    const clock = virtualClock();
    const limiter = new InProcessLimiter({}, clock);
    for (const lane of ['voices', '__proto__', 'constructor']) {
      expect(typeof limiter.tryAcquire(lane)).toBe('function');
      const seen: LaneWait[] = [];
      limiter.pause(lane, 1000);
      const wait = limiter.acquire(lane, undefined, (told) => seen.push(told));
      expect(seen).toMatchObject([{ lane, reason: 'pause' }]);
      await clock.until(wait);
      expect(typeof limiter.tryAcquire(lane)).toBe('function');
    }
  });
});

describe('the limits themselves', () => {
  it.each([
    ['uploads.create', 60],
    ['uploads.put', 60],
    ['uploads.delete', 60],
    ['videos.create', 20],
    ['jobs.get', 120],
    ['jobs.output', 300],
  ])('are the documented ones unless set: %s %i a minute', (lane, limit) => {
    const limiter = new InProcessLimiter({ limits: { other: { limit: 1, windowMs: 1 } } }, virtualClock());
    for (let call = 0; call < limit; call++) expect(typeof limiter.tryAcquire(lane)).toBe('function');
    expect(limiter.tryAcquire(lane)).toBeGreaterThan(59_999);
  });

  it.each([
    [{ limit: 0, windowMs: 1 }, /limits\.x\.limit must be a whole number of at least 1, or Infinity, not 0/],
    [{ limit: 1.5, windowMs: 1 }, /limit must be/],
    [{ limit: Number.NaN, windowMs: 1 }, /limit must be/],
    [{ limit: 1, windowMs: 0 }, /limits\.x\.windowMs must be a positive number of milliseconds, not 0/],
    [{ limit: 1, windowMs: Number.POSITIVE_INFINITY }, /windowMs must be/],
  ])('are checked: %o', (limit, message) => {
    const make = () => new InProcessLimiter({ limits: { x: limit } });
    expect(make).toThrow(GenError);
    expect(make).toThrow(message);
  });

  it.each([
    [{ limits: 5 }, 'limits must be an object, not 5.'],
    [{ limit: 5 }, 'InProcessLimiter has no option "limit". Did you mean "limits"?'],
    [{ limits: { x: 5 } }, 'limits.x must be an object { limit, windowMs }, not 5.'],
  ])('are checked for what they are: %o', (options, message) => {
    expect(() => new InProcessLimiter(options as object)).toThrow(new GenError(message));
  });

  it('can be taken away', () => {
    const limiter = new InProcessLimiter(limits(Number.POSITIVE_INFINITY, 1000), virtualClock());
    for (let call = 0; call < 1000; call++) expect(typeof limiter.tryAcquire(LANE)).toBe('function');
  });
});
