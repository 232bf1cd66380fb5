// What a process knows of the limits that it shares, on a clock that the test holds.

import { expect, it } from 'vitest';
import { SharedLimiter } from '../../src/store/shared-limiter.js';
import { memoryStoreOn } from '../../src/store/store.js';
import { seeded } from '../support/seeded.js';
import { virtualClock } from '../waiting/virtual-clock.js';
import { LANE, world } from './world.js';

it('a process shows the slots in use, its calls that wait and when the next slot is free, as far as it knows them', async () => {
  const clock = virtualClock();
  const store = memoryStoreOn(clock);
  const limits = { [LANE]: { limit: 2, windowMs: 60_000 } };
  const process = (seed: number) => {
    const next = seeded(seed);
    const random = { next, uuid: () => `process-${next()}` };
    const settings = {
      store,
      account: 'account',
      limits,
      onUnavailable: 'local',
      clock,
      random,
      pool: new Map(),
    } as const;
    return new SharedLimiter(settings).for(() => {});
  };
  const [one, other] = [process(1), process(2)];
  const lane = () => one.snapshot?.()[LANE];
  expect(lane()).toEqual({ inUse: 0, queued: 0, nextFreeMs: 0, limit: 2, windowMs: 60_000 });
  const release = await clock.until(one.acquire(LANE));
  expect(lane()).toMatchObject({ inUse: 1, queued: 0, nextFreeMs: 0 });
  (await clock.until(other.acquire(LANE)))();
  const waiting = one.acquire(LANE);
  await clock.advance(1_000);
  expect(lane()).toMatchObject({ inUse: 2, queued: 1, nextFreeMs: 59_031 });
  release();
  const own = await clock.until(waiting);
  expect(lane()).toMatchObject({ queued: 0 });
  own('unused');
  await clock.advance(59_900);
  // What the store has shown counts for a window.
  expect(lane()).toMatchObject({ inUse: 1, queued: 0, nextFreeMs: 0 });
  await clock.advance(60_000);
  expect(lane()).toEqual({ inUse: 0, queued: 0, nextFreeMs: 0, limit: 2, windowMs: 60_000 });
  expect(one.snapshot?.()).toHaveProperty(['jobs.get', 'limit'], 120);
});

it('what the store has shown of other processes counts for a window', async () => {
  const { clock, process } = world({ limit: 2, windowMs: 60_000 }, { delayMs: 0, next: () => 0.5 });
  const [one, other] = [process(), process()];
  await clock.until(other.acquire(LANE));
  const slot = await clock.until(one.acquire(LANE));
  slot('unused');
  await clock.advance(0);
  const inUse = () => one.snapshot?.()[LANE]?.inUse;
  expect(inUse()).toBe(2);
  await clock.advance(250);
  expect(inUse()).toBe(1);
  await clock.advance(59_999);
  expect(inUse()).toBe(1);
  await clock.advance(1);
  expect(inUse()).toBe(0);
});

it('a pause that is no time is none', async () => {
  const { clock, process, asks } = world();
  const one = process();
  for (const ms of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) one.pause(LANE, ms);
  await clock.advance(1_000);
  expect(asks()).toBe(0);
  expect(one.snapshot?.()[LANE]).toMatchObject({ nextFreeMs: 0 });
});
