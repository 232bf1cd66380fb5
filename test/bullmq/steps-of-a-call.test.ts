// For how long a worker puts a call to sleep, and when it gives up. Needs no Redis: the clock is the test's.
import { DelayedError, UnrecoverableError } from 'bullmq';
import { describe, expect, it } from 'vitest';
import type { GenJobData } from '../../src/adapters/bullmq/call-record.js';
import { createProcessor } from '../../src/adapters/bullmq/process-call.js';
import { createSandbox } from '../../src/sandbox/index.js';

const NOW = Date.parse('2026-11-22T12:00:00Z');
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const FAILING = { params: { prompt: 'a fox [fail:generation_rejected]' } };
const RULES = {
  ...{ timeoutMs: null, resubmitPending: true, recover: {}, persistent: true, stores: false },
  ...{ pollMs: null, retryMs: 30_000 },
};

interface Setup {
  readonly data?: Partial<GenJobData>;
  readonly opts?: { readonly priority?: number };
  readonly stalledCounter?: number;
  /** Parts of the workplace. */
  readonly at?: Readonly<Record<string, unknown>>;
}

/** A worker with one call on a sandbox, and for how long it puts the call to sleep. */
function place({ data = {}, at = {}, opts = {}, stalledCounter = 0 }: Setup = {}) {
  const sandbox = createSandbox({ clock: 'manual', limits: 'off' });
  const whole = sandbox.client({ rateLimit: 'off' });
  const asleepUntil: number[] = [];
  const nothing = async () => {};
  const queueJob = {
    ...{ id: 'order-1', opts, priority: 0, stalledCounter },
    data: { call: 'images', params: { prompt: 'a fox' }, ...data } as GenJobData,
    extendLock: async () => true,
    moveToDelayed: async (until: number) => void asleepUntil.push(until),
    updateProgress: nothing,
    log: nothing,
    async updateData(value: GenJobData) {
      this.data = value;
    },
    changePriority: nothing,
  };
  const none = async () => false;
  const notes = { own: nothing, forget: nothing, owned: async () => 1, takeWake: none, woken: none };
  const process = createProcessor({
    // As the worker has it: a full limit refuses a call instead of holding it.
    ...{ rules: RULES, client: whole.withoutQueue({ maxRetries: 0 }), uploader: whole, notes },
    ...{ lockMs: 30_000, pollIntervalMs: 5_000, fullUntil: new Map() },
    clock: { now: () => NOW },
    closing: new AbortController().signal,
    onError: ({ message }: Error) => expect.unreachable(message),
    ...at,
  } as never);
  /** The error with which the worker hands the call back to the engine, or its result. */
  const work = () => process(queueJob as never, 'lock-1').catch((error: unknown) => error);
  const asleep = () => asleepUntil.map((until) => until - NOW);
  return { sandbox, queueJob, work, asleep, asleepUntil };
}

/** The record of a call of which the service has made a job, and that waits for it. */
async function waiting(setup: Setup = {}) {
  const on = place(setup);
  await on.work();
  on.asleepUntil.length = 0;
  return on;
}

describe('a call that has failed, and whose worker died before the engine knew', () => {
  const data = { failure: { name: 'JobFailedError', message: 'The prompt was refused.' }, stalls: 0 };

  it('fails as it has failed, and makes no other job', async () => {
    const { sandbox, work } = place({ data, stalledCounter: 1 });
    expect(await work()).toMatchObject({
      name: 'UnrecoverableError',
      message: 'JobFailedError: The prompt was refused.',
    });
    expect(sandbox.requests).toEqual([]);
  });

  it('goes on where an operator has it tried again', async () => {
    const { sandbox, work } = place({ data });
    await work();
    expect(sandbox.jobs).toHaveLength(1);
  });
});

describe('a queued call in trouble', () => {
  const _boom = { onCompleted: () => Promise.reject(new Error('S3 is away')) };

  it('calls onFailed again while it throws, for a day, or until it throws an UnrecoverableError', async () => {
    let now = NOW;
    let thrown: Error = new Error('the log is away');
    const at = { clock: { now: () => now }, onFailed: () => Promise.reject(thrown) };
    const { sandbox, queueJob, work } = await waiting({ data: FAILING, at });
    await sandbox.advance(HOUR_MS);
    expect(await work()).toBeInstanceOf(DelayedError);
    expect(queueJob.data.failure).toBeUndefined();
    now = NOW + DAY_MS - 1;
    expect(await work()).toBeInstanceOf(DelayedError);
    const troubled = queueJob.data;
    thrown = new UnrecoverableError('give up');
    expect(await work()).toBeInstanceOf(UnrecoverableError);
    Object.assign(queueJob, { data: troubled });
    thrown = new Error('the log is away');
    now = NOW + DAY_MS;
    expect(await work()).toMatchObject({ message: expect.stringMatching(/^JobFailedError: /) });
  });
});
