// Pending store writes don't keep their process alive.
import { expect, it } from 'vitest';
import { LedgerSteps } from '../../src/ledger/steps.js';
import type { Clock } from '../../src/runtime/clock.js';
import { settle } from '../waiting/virtual-clock.js';

/** Opens a ledger on an unavailable store. Records which timers keep the process alive. */
function openUnavailableLedger() {
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
    read: () => Promise.reject(new Error('connection lost')),
    write: () => Promise.reject(new Error('connection lost')),
  };
  const steps = new LedgerSteps(
    store,
    clock,
    () => expect.fail('nothing can be read'),
    () => {},
  );
  return { steps, keepsAlive: () => [...timers].map((timer) => timer.keepsAlive) };
}

it("a pending write doesn't keep the process alive", async () => {
  const { steps, keepsAlive } = openUnavailableLedger();
  steps.record(() => {}).catch(() => {});
  await settle();
  expect(keepsAlive()).toEqual([false]);
});

it('a rule that a call waits for keeps the process alive', async () => {
  const { steps, keepsAlive } = openUnavailableLedger();
  steps.transact(() => {}).catch(() => {});
  await settle();
  expect(keepsAlive()).toEqual([true]);
});
