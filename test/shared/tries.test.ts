// Calls that do not queue, at limits that many processes share: with the store, and while it is unavailable.

import { describe, expect, it } from 'vitest';
import { ConnectionError } from '../../src/errors/index.js';
import type { LanePool } from '../../src/store/in-process-limiter.js';
import type { LaneWait, Release } from '../../src/store/rate-limiter.js';
import { LANE, tried, world } from './world.js';

const away = () => Promise.reject(new Error('the store is gone'));
const exact = { delayMs: 0, next: () => 0.5 };
const ONE = { limit: 1, windowMs: 10_000 };
/** How long a slot of it rests: a window, what clocks may drift, and a millisecond. */
const REST_MS = 10_006;
const released = (slot: Release | number) => (typeof slot === 'function' ? slot() : expect.unreachable());

describe('calls that do not queue', () => {
  it('take what is free in one turn, and the others learn when the next slot is', async () => {
    const { clock, process, asked } = world({ limit: 2, windowMs: 10_000 }, exact);
    const one = process();
    const all = await clock.until(Promise.all([1, 2, 3, 4].map(() => tried(one))));
    expect(all).toEqual([expect.any(Function), expect.any(Function), REST_MS, REST_MS]);
    expect(asked.map(({ what }) => what)).toEqual(['read', 'write']);
  });

  it('give their slots to the store for a window after the answer, or at once where they were not used', async () => {
    const { clock, process } = world(ONE, exact);
    const [one, other] = [process(), process()];
    const slot = await clock.until(tried(one));
    if (typeof slot === 'function') slot('unused');
    await clock.advance(300);
    released(await clock.until(tried(other)));
    await clock.advance(300);
    expect(await clock.until(tried(one))).toBe(REST_MS - 300);
  });

  it('on a lane without a limit go out without a look at the store', async () => {
    const { process, asks } = world(ONE, exact);
    expect(typeof (await process().tryShared?.('voices'))).toBe('function');
    (await process().acquire('voices'))();
    expect(asks()).toBe(0);
  });

  it('on a lane whose limit was taken away do so, too, also after a pause', async () => {
    const { clock, process, asks } = world({ limit: Number.POSITIVE_INFINITY, windowMs: 1_000 }, exact);
    const one = process();
    for (let call = 0; call < 3; call++) released(await clock.until(tried(one)));
    one.pause(LANE, 1_000);
    one.pause('voices', 1_000);
    expect([await tried(one), await one.tryShared?.('voices'), asks()]).toEqual([1_050, 1_050, 0]);
  });

  it('wait for a slot that clients without the store use in the same process, and give up on abort', async () => {
    const pool: LanePool = new Map();
    const { clock, process, alone, atMs } = world(ONE, exact);
    const [one, other] = [process({ pool }), process()];
    const held = alone(pool).tryAcquire(LANE);
    const aborted = new AbortController();
    const first = one.acquire(LANE, aborted.signal);
    const failed = expect(first).rejects.toThrow('enough');
    await clock.advance(1_000);
    aborted.abort(new Error('enough'));
    await failed;
    // The store has its slot back at once, for any process.
    const slot = await clock.until(other.acquire(LANE));
    expect(atMs()).toBeLessThan(1_500);
    slot('unused');
    await clock.advance(1_000);
    let isThrough = false;
    const second = one.acquire(LANE).then((release) => {
      isThrough = true;
      return release;
    });
    await clock.advance(1_000);
    expect(isThrough).toBe(false);
    released(held);
    const answeredMs = atMs();
    const release = await clock.until(second);
    expect(atMs() - answeredMs).toBe(REST_MS);
    release();
    await clock.advance(1_000);
    // Both have counted it.
    expect(alone(pool).tryAcquire(LANE)).toBe(REST_MS - 1_000);
    expect(await clock.until(tried(other))).toBe(REST_MS - 1_000);
  });
});

describe('while the store is unavailable, calls that do not queue', () => {
  it('take what the process has free by its own count, with one warning, and learn when the next slot is', async () => {
    const { clock, process, faults, warnings, asks } = world(ONE, exact);
    const one = process();
    faults.read = away;
    expect(await clock.until(Promise.all([tried(one), tried(one)]))).toEqual([expect.any(Function), REST_MS]);
    expect(warnings).toEqual([
      'The store is unavailable (the store is gone). Until it answers, this process keeps the limits by itself.',
    ]);
    expect(asks()).toBe(1);
    expect(await clock.until(tried(one))).toBe(REST_MS);
    expect([warnings.length, asks()]).toEqual([1, 1]);
  });

  it('are told to the store when it is back', async () => {
    const { clock, process, faults } = world(ONE, exact);
    const [one, other] = [process(), process()];
    faults.read = away;
    released(await clock.until(tried(one)));
    delete faults.read;
    await clock.advance(6_000);
    expect(await clock.until(tried(other))).toBe(REST_MS - 6_000);
  });

  it('pass no call that waits', async () => {
    const { clock, process, faults } = world(ONE, exact);
    const one = process();
    faults.read = away;
    released(await clock.until(tried(one)));
    const waiting = one.acquire(LANE);
    await clock.advance(3_000);
    expect(await tried(one)).toBe(REST_MS - 3_000);
    released(await clock.until(waiting));
  });

  it('reject with a ConnectionError under onUnavailable "throw"', async () => {
    const { clock, process, faults, warnings } = world(ONE, exact);
    faults.read = away;
    const error = await clock.until(tried(process({ onUnavailable: 'throw' })).catch((reason: unknown) => reason));
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error).toMatchObject({
      message: 'The store is unavailable, and onUnavailable is "throw"',
      cause: { message: 'the store is gone' },
    });
    expect(warnings).toEqual([]);
  });
});

describe('while the store is unavailable, calls that wait', () => {
  const seen = () => {
    const waits: LaneWait[] = [];
    return { waits, note: (wait: LaneWait) => void waits.push(wait) };
  };

  it('say once how long and behind how many of their process they do', async () => {
    const { clock, process, faults } = world(ONE, exact);
    const { waits, note } = seen();
    const one = process();
    faults.read = away;
    (await clock.until(one.acquire(LANE, undefined, note)))();
    const all = [one.acquire(LANE, undefined, note), one.acquire(LANE, undefined, note)];
    await clock.advance(1_000);
    expect(waits).toEqual([
      { lane: LANE, waitMs: REST_MS, queued: 1, reason: 'limit' },
      { lane: LANE, waitMs: 2 * REST_MS, queued: 2, reason: 'limit' },
    ]);
    for (const slot of all) (await clock.until(slot))();
    expect(waits).toHaveLength(2);
  });

  it('say that they wait for a pause, where the service has asked for one', async () => {
    const { clock, process, faults, sentMs } = world(ONE, exact);
    const { waits, note } = seen();
    const one = process();
    faults.read = away;
    released(await clock.until(tried(one)));
    one.pause(LANE, 60_000);
    const paused = one.acquire(LANE, undefined, note);
    await clock.advance(0);
    // A tenth is added, and a second at most: half of it here.
    expect(waits).toEqual([{ lane: LANE, waitMs: 60_500, queued: 1, reason: 'pause' }]);
    expect(await sentMs(paused)).toBe(60_500);
  });

  it('warn each client of the process', async () => {
    const { clock, process, faults, warnings } = world({ limit: 3, windowMs: 10_000 }, exact);
    faults.read = away;
    const one = process();
    const all = await clock.until(Promise.all([one.acquire(LANE), one.acquire(LANE)]));
    for (const release of all) release();
    expect(warnings).toHaveLength(1);
    (await clock.until(process().acquire(LANE)))();
    expect(warnings).toHaveLength(2);
  });
});
