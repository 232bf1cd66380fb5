// When a process asks the shared store about a limit: to the millisecond, on a clock that the test holds.

import { describe, expect, it } from 'vitest';
import type { VirtualClock } from '../waiting/virtual-clock.js';
import { LANE, MINUTE, tried, world } from './world.js';

const away = () => Promise.reject(new Error('the store is gone'));
/** Each answer comes at once, and chance is always in the middle. */
const exact = { delayMs: 0, next: () => 0.5 };
const ONE = { limit: 1, windowMs: 60_000 };
/** A window, what clocks may drift, and a millisecond. */
const REST_MS = 60_031;

describe('a process', () => {
  it('whose call is under way reads every four seconds, and writes before half of its lease is over', async () => {
    const { clock, process, asked } = world(ONE, exact);
    const release = await clock.until(process().acquire(LANE));
    await clock.advance(18_000);
    release();
    await clock.advance(200_000);
    expect(asked.map(({ what, atMs }) => `${what} ${atMs}`)).toEqual([
      ...['read 0', 'write 0', 'read 4000', 'read 8000', 'write 8000', 'read 12000', 'read 16000', 'write 16000'],
      ...['read 18000', 'write 18000'],
    ]);
  });

  it.each([
    ['3 to 5 s', 0, [0, 3_000, 6_000, 9_000]],
    ['3 to 5 s', 0.999, [0, 4_998, 9_996]],
  ])('does so after %s, by chance %d', async (_, chance, times) => {
    const { clock, process, reads } = world(ONE, { delayMs: 0, next: () => chance });
    await clock.until(process().acquire(LANE));
    await clock.advance(10_000);
    expect(reads()).toEqual(times);
  });

  it('whose call is under way reads as often after a call that did not wait for a slot', async () => {
    const { clock, process, reads } = world({ limit: 2, windowMs: 8_000 }, exact);
    const one = process();
    (await clock.until(one.acquire(LANE)))();
    await clock.until(one.acquire(LANE));
    await clock.advance(1_000);
    // It is told a time at which nobody waits for a slot.
    expect(await clock.until(tried(one))).toBeGreaterThan(7_000);
    await clock.advance(8_500);
    expect(reads().filter((atMs) => atMs >= 1_000)).toEqual([1_000, 5_000, 9_000]);
  });

  it('whose call waits reads as often, but not shortly before its slot is free, and then at that time', async () => {
    const { clock, process, reads, sentMs } = world(ONE, exact);
    const [one, other] = [process(), process()];
    (await clock.until(one.acquire(LANE)))();
    await clock.advance(1_000);
    expect(await sentMs(other.acquire(LANE))).toBe(REST_MS);
    const looks = Array.from({ length: 14 }, (_, at) => 1_000 + 4_000 * at);
    // The answer of the first call is told after 250 ms.
    expect(reads()).toEqual([0, 250, ...looks, REST_MS]);
  });

  it.each([
    ['10 ms in a window of a second', 1_000, 10],
    ['100 ms in a window of ten', 10_000, 100],
    ['250 ms in a window of a minute', 60_000, 250],
  ])('tells of answered calls together, after %s', async (_, windowMs, flushMs) => {
    const { clock, process, reads } = world({ limit: 4, windowMs }, exact);
    const one = process();
    const slots = [];
    for (let slot = 0; slot < 4; slot++) slots.push(await clock.until(one.acquire(LANE)));
    // The first tells at once that it was answered, because the process has been silent for so long.
    await clock.advance(300);
    for (const release of slots) {
      release();
      await clock.advance(1);
    }
    await clock.advance(1_000);
    expect(reads().filter((atMs) => atMs >= 300)).toEqual([300, 300 + flushMs]);
  });

  it('tells of a pause at once, and of a longer one that came while it did', async () => {
    const { clock, process, faults, reads, sentMs } = world(MINUTE, exact);
    const one = process();
    faults.write = () => {
      delete faults.write;
      one.pause(LANE, 60_000);
    };
    one.pause(LANE, 1_000);
    await clock.advance(0);
    expect(reads()).toEqual([0, 0]);
    expect(await sentMs(process().acquire(LANE))).toBe(60_500);
  });

  it('tells the others of no pause that is over', async () => {
    const { clock, process, faults, reads } = world(MINUTE, exact);
    const one = process();
    faults.read = away;
    one.pause(LANE, 1_000);
    await clock.advance(4_000);
    delete faults.read;
    await clock.advance(60_000);
    expect(reads()).toEqual([0, 5_000]);
    expect(typeof (await clock.until(tried(process())))).toBe('function');
    expect(clock.timers).toBe(1);
  });

  it('whose call gives up tells the store of it', async () => {
    const { clock, process, asked } = world(ONE, exact);
    const one = process();
    (await clock.until(one.acquire(LANE)))();
    await clock.advance(1_000);
    const stop = new AbortController();
    const waiting = expect(one.acquire(LANE, stop.signal)).rejects.toThrow();
    await clock.advance(1_000);
    stop.abort();
    await waiting;
    await clock.advance(60_000);
    expect(asked.slice(2).map(({ what, atMs }) => `${what} ${atMs}`)).toEqual([
      ...['read 250', 'write 250', 'read 1000', 'write 1000', 'read 2000', 'write 2000'],
    ]);
  });

  it('lives for as long as it has something to tell, and in an outage for as long as a call waits', async () => {
    const { clock, process, faults } = world(ONE, exact);
    const timers: { readonly ms: number; readonly isIdle: boolean }[] = [];
    const after: VirtualClock['after'] = (ms, fire, options) => {
      if (ms !== 2_000) timers.push({ ms, isIdle: options?.isIdle ?? false });
      return clock.after(ms, fire);
    };
    const one = process({ clock: { ...clock, timers: 0, after } });
    const release = await clock.until(one.acquire(LANE));
    release();
    await clock.advance(0);
    faults.read = away;
    const waiting = one.acquire(LANE);
    await clock.advance(2_000);
    expect(timers).toEqual([
      { ms: 4_000, isIdle: false },
      { ms: 250, isIdle: false },
      { ms: 5_000, isIdle: false },
    ]);
    (await clock.until(waiting))();
  });

  it('on Workers, where calls may not wait for each other, asks for each call and tells of each answer at once', async () => {
    const { clock, process, asked } = world({ limit: 2, windowMs: 60_000 }, exact);
    const one = process({ clock: { ...clock, timers: 0, perRequest: true } });
    const slots = await clock.until(Promise.all([one.acquire(LANE), one.acquire(LANE)]));
    // One of the two came second at the swap, and asked again.
    expect(asked.filter(({ what }) => what === 'read').map(({ atMs }) => atMs)).toEqual([0, 0, 17]);
    await clock.advance(100);
    const before = asked.length;
    for (const release of slots) release();
    await clock.advance(0);
    expect(asked.slice(before, before + 2)).toEqual([
      { what: 'read', atMs: 117 },
      { what: 'read', atMs: 117 },
    ]);
    expect(one.snapshot?.()[LANE]).toMatchObject({ inUse: 2, queued: 0 });
  });

  it('asks a store that failed every five seconds while it has a call under way, and for as long as its answers count', async () => {
    const { clock, process, faults, reads } = world(ONE, exact);
    const release = await clock.until(process().acquire(LANE));
    faults.read = away;
    await clock.advance(10_000);
    release();
    await clock.advance(200_000);
    const tries = Array.from({ length: 15 }, (_, at) => 4_000 + 5_000 * at);
    expect(reads()).toEqual([0, ...tries]);
    expect(clock.timers).toBe(0);
  });
});

describe('processes whose slots are free at the same time', () => {
  it.each([
    ['twice as long as the store takes', 80, 160],
    ['a fiftieth of the window at most', 400, 200],
  ])('come one after the other: the second %s later', async (_, delayMs, laterMs) => {
    const { clock, process, reads } = world({ limit: 3, windowMs: 10_000 }, { delayMs, next: () => 0.5 });
    const all = [process(), process(), process()];
    const before = process();
    for (const slot of await clock.until(Promise.all(all.map(() => tried(before)))))
      if (typeof slot === 'function') slot();
    await clock.advance(1_000);
    const sent: Promise<unknown>[] = [];
    for (const one of all) {
      sent.push(one.acquire(LANE));
      await clock.advance(200);
    }
    await clock.until(Promise.all(sent));
    const [first = 0, second] = reads().filter((at) => at > 10_000);
    expect(second).toBe(first + laterMs);
  });

  it('get their slots from the first of them, so that each of the others only reads', async () => {
    const { clock, process, asked, atMs } = world({ limit: 3, windowMs: 4_000 }, exact);
    const all = [process(), process(), process()];
    const before = process();
    for (const slot of await clock.until(Promise.all(all.map(() => tried(before)))))
      if (typeof slot === 'function') slot();
    await clock.advance(100);
    const sent = await clock.until(Promise.all(all.map((one) => one.acquire(LANE).then(atMs))));
    expect(sent.toSorted((a, b) => a - b)).toEqual([4_003, 4_020, 4_037]);
    expect(asked.filter((ask) => ask.atMs > 4_003)).toEqual([
      { what: 'read', atMs: 4_020 },
      { what: 'read', atMs: 4_037 },
    ]);
  });
});
