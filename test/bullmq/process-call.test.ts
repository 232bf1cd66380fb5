// How a worker ends a call, without Redis and on a manual clock.
import { DelayedError, UnrecoverableError } from 'bullmq';
import { describe, expect, it } from 'vitest';
import type { GenJobData } from '../../src/adapters/bullmq/call-record.js';
import { createProcessor } from '../../src/adapters/bullmq/process-call.js';
import { createSandbox } from '../../src/sandbox/index.js';

const NOW = Date.parse('2026-11-22T12:00:00Z');
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const FAILING = { params: { prompt: 'a fox [fail:generation_rejected]' } };
const RULES = { timeoutMs: null, resubmitPending: true, recover: {}, stores: false, pollMs: null, retryMs: 30_000 };

/** Sets up a worker with one call and a sandbox. */
function setup(data: Partial<GenJobData>, { stalledCounter = 0, context = {} } = {}) {
  const sandbox = createSandbox({ clock: 'manual', limits: 'off' });
  const noop = async () => {};
  const queueJob = {
    id: 'order-1',
    opts: {},
    priority: 0,
    stalledCounter,
    data: { call: 'images', params: { prompt: 'a fox' }, ...data } as GenJobData,
    extendLock: async () => true,
    moveToDelayed: noop,
    updateProgress: noop,
    log: noop,
    async updateData(value: GenJobData) {
      this.data = value;
    },
    changePriority: noop,
  };
  const never = async () => false;
  const jobIndex = { add: noop, remove: noop, size: async () => 1, consumeWake: never, hasWake: never };
  const process = createProcessor({
    rules: RULES,
    client: sandbox.client({ rateLimit: 'off' }),
    jobIndex,
    lockMs: 30_000,
    pollIntervalMs: 5_000,
    queue: { qualifiedName: 'bull:gen' },
    clock: { now: () => NOW },
    closing: new AbortController().signal,
    onError: ({ message }: Error) => expect.unreachable(message),
    ...context,
  } as never);
  /** Processes the call. Returns its result, or the error that BullMQ receives. */
  const work = () => process(queueJob as never, 'lock-1').catch((error: unknown) => error);
  return { sandbox, queueJob, work };
}

describe('a failed call, if the worker crashed before BullMQ stored the failure', () => {
  const data = { failure: { name: 'JobFailedError', message: 'The prompt was rejected.' }, stalls: 0 };

  it('fails with its stored error without creating a job', async () => {
    const { sandbox, work } = setup(data, { stalledCounter: 1 });
    expect(await work()).toMatchObject({
      name: 'UnrecoverableError',
      message: 'JobFailedError: The prompt was rejected.',
    });
    expect(sandbox.requests).toEqual([]);
  });

  it('continues if an operator restarts it', async () => {
    const { sandbox, work } = setup(data);
    await work();
    expect(sandbox.jobs).toHaveLength(1);
  });
});

describe('a queued call', () => {
  it('retries a throwing onFailed for a day, or until it throws an UnrecoverableError', async () => {
    let now = NOW;
    let thrown: Error = new Error('the log is down');
    const context = { clock: { now: () => now }, onFailed: () => Promise.reject(thrown) };
    const { sandbox, queueJob, work } = setup(FAILING, { context });
    await work();
    await sandbox.advance(HOUR_MS);
    expect(await work()).toBeInstanceOf(DelayedError);
    expect(queueJob.data.failure).toBeUndefined();
    now = NOW + DAY_MS - 1;
    expect(await work()).toBeInstanceOf(DelayedError);
    const data = queueJob.data;
    thrown = new UnrecoverableError('give up');
    expect(await work()).toBeInstanceOf(UnrecoverableError);
    Object.assign(queueJob, { data });
    thrown = new Error('the log is down');
    now = NOW + DAY_MS;
    expect(await work()).toMatchObject({ message: expect.stringMatching(/^JobFailedError: /) });
  });
});
