// What a process knows of the limits that it shares, on a clock that the test holds.

import { expect, it } from 'vitest';
import { SharedLimiter } from '../../src/shared/shared-limiter.js';
import { memoryStore } from '../../src/shared/shared-store.js';
import { seeded } from '../support/seeded.js';
import { virtualClock } from '../waiting/virtual-clock.js';

const LANE = 'videos.create';

it('a process shows the slots in use, its calls that wait and when the next slot is free, as far as it knows them', async () => {
  const clock = virtualClock();
  const store = memoryStore(clock);
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
  const release = await clock.until(other.acquire(LANE));
  await clock.until(one.acquire(LANE));
  expect(lane()).toMatchObject({ inUse: 2, queued: 0 });
  const waiting = one.acquire(LANE);
  await clock.advance(1_000);
  expect(lane()).toMatchObject({ inUse: 2, queued: 1, nextFreeMs: expect.any(Number) });
  expect(lane()?.nextFreeMs).toBeGreaterThan(0);
  release();
  await clock.until(waiting);
  expect(lane()).toMatchObject({ queued: 0 });
});
