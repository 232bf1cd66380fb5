// In which order the calls of many processes are served, and what they are told meanwhile.

import { describe, expect, it } from 'vitest';
import type { AnyLimiter, LaneWait } from '../../src/store/rate-limiter.js';
import type { VirtualClock } from '../waiting/virtual-clock.js';
import { LANE, tried, world } from './world.js';

const exact = { delayMs: 0, next: () => 0.5 };
const ONE = { limit: 1, windowMs: 1_000 };
const REST_MS = 1_001.5;

/** Fills the lane, and notes in which order the calls after that get their slots. */
async function full(options?: Parameters<typeof world>[1]) {
  const made = world(ONE, options ?? exact);
  const { clock, process } = made;
  const hold = await clock.until(process().acquire(LANE));
  const order: string[] = [];
  const calls: Promise<void>[] = [];
  const call = (limiter: AnyLimiter, name: string) => {
    const served = limiter.acquire(LANE).then((release) => {
      order.push(name);
      release();
    });
    calls.push(served);
  };
  const all = async () => {
    hold();
    await clock.until(Promise.all(calls));
    return order;
  };
  return { ...made, call, all };
}

/** The clock of a machine whose time differs. */
const ahead = (clock: VirtualClock, ms: () => number): VirtualClock => {
  const now = () => clock.now() + ms();
  return { ...clock, timers: 0, now, elapsed: now };
};

describe('calls of many processes', () => {
  it('that come together are served in turn: one of each process', async () => {
    const { clock, process, call, all } = await full();
    const [one, other] = [process(), process()];
    for (const name of ['one 1', 'one 2']) call(one, name);
    await clock.advance(50);
    for (const name of ['other 1', 'other 2']) call(other, name);
    expect(await all()).toEqual(['one 1', 'other 1', 'one 2', 'other 2']);
  });

  it('that come a moment apart are served first come, first served', async () => {
    const { clock, process, call, all } = await full();
    const [one, other] = [process(), process()];
    for (const name of ['one 1', 'one 2']) call(one, name);
    await clock.advance(150);
    for (const name of ['other 1', 'other 2']) call(other, name);
    expect(await all()).toEqual(['one 1', 'one 2', 'other 1', 'other 2']);
  });

  it.each([3_600_000, -3_600_000])('are served so also where their clocks differ by %i ms', async (byMs) => {
    const { clock, process, call, all } = await full();
    const one = process();
    const other = process({ clock: ahead(clock, () => byMs) });
    for (const [limiter, name] of [
      [one, 'a'],
      [other, 'b'],
      [one, 'c'],
      [other, 'd'],
    ] as const) {
      call(limiter, name);
      await clock.advance(1_000);
    }
    expect(await all()).toEqual(['a', 'b', 'c', 'd']);
  });

  it('keep their places while the clock of their process runs faster than that of the store', async () => {
    const { clock, process, asked } = world({ limit: 1, windowMs: 3_600_000 }, exact);
    (await clock.until(process().acquire(LANE)))();
    let skewMs = 3_600_000;
    const drifting = process({ clock: ahead(clock, () => skewMs) });
    const stop = new AbortController();
    const waiting = expect(drifting.acquire(LANE, stop.signal)).rejects.toThrow();
    await clock.advance(1_000);
    const before = asked.length;
    for (let step = 0; step < 20; step++) {
      skewMs += 100;
      await clock.advance(4_000);
    }
    const writes = asked.slice(before).filter(({ what }) => what === 'write').length;
    // To show that it lives, and once for each second of the difference.
    expect(writes).toBeLessThanOrEqual(10 + 2);
    stop.abort();
    await waiting;
  });

  it('are told once how long they wait, and behind how many of all processes', async () => {
    const { clock, process } = world(ONE, exact);
    const [one, other] = [process(), process()];
    (await clock.until(one.acquire(LANE)))();
    await clock.advance(300);
    const waits: LaneWait[] = [];
    const note = (wait: LaneWait) => void waits.push(wait);
    const calls = [one.acquire(LANE, undefined, note)];
    await clock.advance(150);
    for (let call = 0; call < 2; call++) calls.push(other.acquire(LANE, undefined, note));
    await clock.advance(0);
    const waitMs = REST_MS - 300;
    expect(waits).toEqual([
      { lane: LANE, waitMs: expect.closeTo(waitMs, -1), queued: 1, reason: 'limit' },
      { lane: LANE, waitMs: expect.closeTo(waitMs - 150 + REST_MS, -1), queued: 2, reason: 'limit' },
      { lane: LANE, waitMs: expect.closeTo(waitMs - 150 + 2 * REST_MS, -1), queued: 3, reason: 'limit' },
    ]);
    for (const slot of calls) (await clock.until(slot))();
    expect(waits).toHaveLength(3);
  });

  it('are told so when they wait for a pause', async () => {
    const { clock, process } = world(ONE, exact);
    const one = process();
    one.pause(LANE, 5_000);
    await clock.advance(0);
    const waits: LaneWait[] = [];
    const slot = process().acquire(LANE, undefined, (wait) => void waits.push(wait));
    await clock.advance(0);
    expect(waits).toEqual([{ lane: LANE, waitMs: 5_250, queued: 1, reason: 'pause' }]);
    (await clock.until(slot))();
  });

  it('count once, however often they are released', async () => {
    const { clock, process } = world({ limit: 2, windowMs: 1_000 }, exact);
    const [one, other] = [process(), process()];
    const [slot] = [await clock.until(one.acquire(LANE)), await clock.until(one.acquire(LANE))];
    for (let times = 0; times < 2; times++) slot();
    await clock.advance(1_100);
    const after = await clock.until(Promise.all([tried(other), tried(other)]));
    expect(after.map((taken) => typeof taken)).toEqual(['function', 'number']);
  });
});

describe('while the store is unavailable, a client', () => {
  it('whose call waits is warned by its own logger, also where others of the process were warned before', async () => {
    const { clock, limiter, faults } = world(ONE, exact);
    faults.read = () => Promise.reject(new Error('gone'));
    const warned: string[] = [];
    const shared = limiter();
    const [one, other] = ['one', 'other'].map((name) => shared.for(() => void warned.push(name)));
    (await clock.until(one?.acquire(LANE) ?? Promise.reject(new TypeError('there are two')))).call(undefined);
    expect(warned).toEqual(['one']);
    const waiting = other?.acquire(LANE);
    expect(warned).toEqual(['one', 'other']);
    await clock.until(Promise.resolve(waiting));
    expect(warned).toEqual(['one', 'other']);
  });
});
