// Processes of one account notify each other of finished jobs through their store.
import { describe, expect, it } from 'vitest';
import { memoryStore } from '../../src/ledger/stores.js';
import type { Store } from '../../src/store/store.js';
import { completedEvent } from '../support/completed-event.js';
import {
  BASE_URL,
  done,
  noSlotFor,
  type ProcessOptions,
  running,
  SECRET,
  startProcess,
  verified,
} from './processes.js';
import { type VirtualClock, virtualClock } from './virtual-clock.js';

/** Starts a process that receives webhooks and one that waits. Neither has a free poll slot. */
function startTwoProcesses(secrets: readonly string[], store: Store = memoryStore()) {
  const clock = virtualClock();
  const options = { limits: noSlotFor(() => 60_000), store };
  const receiver = startProcess(done, options, clock);
  const waits = startProcess(done, { ...options, webhookSecrets: () => secrets }, clock);
  return { clock, receiver, waits };
}

/** Starts a process that receives webhooks, and one that waits for job a and can poll at any time. */
async function startReceiverAndWait(options: ProcessOptions = {}) {
  const clock = virtualClock();
  const shared = memoryStore();
  const receiver = startProcess(done, { store: shared }, clock);
  const waits = startProcess(done, { store: shared, ...options }, clock);
  const wait = waits.jobWaits.waitForJob(running('a'));
  await clock.advance(0);
  return { clock, receiver, waits, wait };
}

const completed = (clock: VirtualClock) => verified(completedEvent('a', BASE_URL), clock);

describe('a webhook received by another process', () => {
  it('is verified again by the waiting process, and ends the wait', async () => {
    const { clock, receiver, waits } = startTwoProcesses(['another', SECRET]);
    const wait = waits.jobWaits.waitForJob(running('a'));
    await clock.advance(0);
    receiver.jobWaits.notify(await completed(clock));
    await expect(clock.until(wait)).resolves.not.toHaveProperty('finalTokenCost');
    expect(waits.polledIds).toEqual([]);
  });

  it.each<[string, ProcessOptions]>([
    ['without a secret', { webhookSecrets: () => [] }],
    ['with another secret', { webhookSecrets: () => ['whsec_other'] }],
    ['whose secrets function throws', { webhookSecrets: () => JSON.parse('?') }],
    ['without a base URL', { knownBaseUrl: () => undefined }],
    ['with another base URL', { knownBaseUrl: () => 'https://elsewhere.test' }],
  ])('makes a process %s poll the job immediately', async (_, more) => {
    const { clock, receiver, waits, wait } = await startReceiverAndWait(more);
    const startMs = clock.now();
    receiver.jobWaits.notify(await completed(clock));
    await expect(clock.until(wait)).resolves.toMatchObject({ finalTokenCost: 4 });
    expect(waits.polledIds).toEqual(['a']);
    expect(clock.now()).toBe(startMs);
  });

  it("isn't published if it isn't about a job", async () => {
    const published: string[] = [];
    const shared = { ...memoryStore(), publish: async (_: string, message: string) => void published.push(message) };
    const { jobWaits, clock } = startProcess(done, { store: shared });
    jobWaits.notify(await verified({ id: 'evt_1', type: 'account.updated', data: {} }, clock));
    expect(published).toEqual([]);
    jobWaits.notify(await completed(clock));
    expect(published.map((message) => JSON.parse(message))).toMatchObject([{ id: 'a' }]);
  });

  it('arrives through one subscription, which lasts while the process has a wait', async () => {
    let subscriptions = 0;
    const store = memoryStore();
    const subscribe: typeof store.subscribe = (topic, listener) => {
      subscriptions++;
      const stop = store.subscribe(topic, listener);
      return () => {
        subscriptions--;
        stop();
      };
    };
    const { clock, receiver, waits } = startTwoProcesses([SECRET], { ...store, subscribe });
    const [short, long] = [waits.jobWaits.waitForJob('short'), waits.jobWaits.waitForJob(running('a'))];
    await clock.advance(0);
    expect(subscriptions).toBe(1);
    await clock.until(short);
    expect(subscriptions).toBe(1);
    receiver.jobWaits.notify(await completed(clock));
    await expect(clock.until(long)).resolves.not.toHaveProperty('finalTokenCost');
    expect(subscriptions).toBe(0);
    const later = waits.jobWaits.waitForJob(running('b'));
    await clock.advance(0);
    expect(subscriptions).toBe(1);
    await clock.until(later);
    expect(subscriptions).toBe(0);
  });
});

describe('a store', () => {
  it("that delivers invalid messages doesn't end a wait", async () => {
    const invalid = [
      '',
      'null',
      '7',
      '{',
      '{"id":7}',
      '{"id":""}',
      '{"id":"a","body":1}',
      '{"id":"a","body":{"toString":1}}',
    ];
    const subscribe = (_: string, listener: (message: string) => void) => {
      for (const message of invalid) listener(message);
      return () => {};
    };
    const { clock, waits } = startTwoProcesses([SECRET], { ...memoryStore(), subscribe });
    const wait = waits.jobWaits.waitForJob(running('a'));
    await expect(clock.until(wait)).resolves.toMatchObject({ finalTokenCost: 4 });
  });

  const failWith = (reason: string) => (): never => {
    throw new Error(reason);
  };
  it.each<[string, Partial<Store>, readonly string[]]>([
    ['that throws when it publishes', { publish: failWith('no route') }, ['notify other processes: no route']],
    ['that fails to publish', { publish: async () => failWith('lost')() }, ['notify other processes: lost']],
    [
      'that cannot subscribe',
      { subscribe: failWith('no channel') },
      ['subscribe to notifications from other processes: no channel'],
    ],
    ['that cannot unsubscribe', { subscribe: () => failWith('stuck') }, ['unsubscribe from notifications: stuck']],
    ['without notifications', { publish: undefined, subscribe: undefined } as never, []],
    ['that works', {}, []],
  ])('%s causes one warning per failure, and the waits continue', async (_, part, failures) => {
    const warnings: string[] = [];
    const shared = { ...memoryStore(), ...part };
    const { jobWaits, clock } = startProcess(done, { store: shared, warn: (message) => void warnings.push(message) });
    const wait = jobWaits.waitForJob(running('a'));
    await clock.advance(0);
    jobWaits.notify(await completed(clock));
    await expect(clock.until(wait)).resolves.toMatchObject({ status: 'completed' });
    expect(warnings).toEqual(failures.map((failure) => `the store failed to ${failure}`));
  });
});
