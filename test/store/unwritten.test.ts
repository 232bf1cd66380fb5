// Pending writes of a store, and the process that made them.
import { expect, it } from 'vitest';
import { LedgerSteps } from '../../src/ledger/steps.js';
import type { Clock } from '../../src/runtime/clock.js';
import { settle } from '../waiting/virtual-clock.js';

/** Steps on a store that is away, and which of the timers that are set keep the process alive. */
function stepsOnAStoreThatIsAway() {
  const timers = new Set<{ readonly keepsAlive: boolean }>();
  const clock: Clock = {
    now: () => 0,
    after(_ms, _fire, { isIdle = false } = {}) {
      const timer = { keepsAlive: !isIdle };
      timers.add(timer);
      return () => timers.delete(timer);
    },
  };
  const store = {
    read: () => Promise.reject(new Error('away')),
    write: () => Promise.reject(new Error('away')),
  };
  const steps = new LedgerSteps(
    store,
    clock,
    () => expect.fail('nothing can be read'),
    () => {},
  );
  return { steps, keepsAlive: () => [...timers].map((timer) => timer.keepsAlive) };
}

it('a pending write keeps no process alive', async () => {
  const { steps, keepsAlive } = stepsOnAStoreThatIsAway();
  steps.record(() => {}).catch(() => {});
  await settle();
  expect(keepsAlive()).toEqual([false]);
});

it('a request that a call waits for does', async () => {
  const { steps, keepsAlive } = stepsOnAStoreThatIsAway();
  steps.transact(() => {}).catch(() => {});
  await settle();
  expect(keepsAlive()).toEqual([true]);
});
