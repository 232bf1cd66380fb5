import { describe, expect, it, vi } from 'vitest';
import {
  ConnectionError,
  JobBlockedError,
  JobCanceledError,
  JobFailedError,
  WaitTimeoutError,
} from '../../src/errors/index.js';
import type { Job } from '../../src/schemas/job.js';
import { rejection } from '../transport/support.js';
import { hint, running, startProcess } from './processes.js';

/** Sets up waits with scripted poll results. A job's last one repeats. */
function setup(script: Record<string, (Partial<Job> | Error | 'hangs')[]>, warn?: (message: string) => void) {
  const read = async (id: string, _atMs: number, signal: AbortSignal): Promise<Job> => {
    const results = script[id] ?? [];
    const result = results.length > 1 ? results.shift() : results[0];
    if (result === 'hangs')
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    if (result instanceof Error) throw result;
    return { ...running(id), ...(result as Partial<Job>) };
  };
  return startProcess(read, { warn });
}

const DONE = { status: 'completed', providerOutputUrl: 'https://x.example/output' };

describe('a wait', () => {
  it('resolves immediately with a final job, without a poll', async () => {
    const { jobWaits, polledIds } = setup({});
    const job = { ...running('a'), ...DONE };
    await expect(jobWaits.waitForJob(job)).resolves.toBe(job);
    expect(polledIds).toEqual([]);
  });

  it('first polls a job when it could have finished, then about every eleven seconds', async () => {
    const { jobWaits, clock, pollTimes } = setup({ a: [{}, {}, {}, DONE] });
    await clock.until(jobWaits.waitForJob(running('a')));
    expect(pollTimes).toEqual([11_000, 22_000, 33_000, 44_000]);
  });

  it('polls images sooner and more often', async () => {
    const { jobWaits, clock, pollTimes } = setup({ a: [{ mediaType: 'image' }, { mediaType: 'image' }, DONE] });
    await clock.until(jobWaits.waitForJob({ ...running('a'), mediaType: 'image' }));
    expect(pollTimes).toEqual([2200, 4950, 7700]);
  });

  it('immediately polls a bare ID or a job old enough to have finished', async () => {
    const { jobWaits, clock, pollTimes } = setup({ a: [DONE], b: [DONE] });
    await clock.until(jobWaits.waitForJob('a'));
    const old = new Date(clock.now() - 60_000).toISOString();
    await clock.until(jobWaits.waitForJob({ ...running('b'), createdAt: old }));
    expect(pollTimes).toEqual([0, 0]);
  });

  it('polls a bare ID immediately, whatever its pollIntervalMs', async () => {
    const { jobWaits, clock, pollTimes } = setup({ a: [{}, DONE] });
    await clock.until(jobWaits.waitForJob('a', { pollIntervalMs: 60_000 }));
    expect(pollTimes).toEqual([0, 60_000]);
  });

  it("uses the shortest pollIntervalMs of a job's waits, even for the first poll", async () => {
    const { jobWaits, clock, pollTimes } = setup({ a: [{}, {}, DONE] });
    const slow = jobWaits.waitForJob(running('a'), { pollIntervalMs: 4000 });
    const fast = jobWaits.waitForJob(running('a'), { pollIntervalMs: 1000 });
    await clock.until(Promise.all([slow, fast]));
    expect(pollTimes).toEqual([1000, 2000, 3000]);
  });

  it("stays within the account's share of polls even with an interval of one millisecond", async () => {
    const { jobWaits, clock, polledIds } = setup({ a: [{}] });
    const wait = jobWaits.waitForJob('a', { pollIntervalMs: 1, timeoutMs: 60_000 });
    await expect(clock.until(wait)).rejects.toThrow(WaitTimeoutError);
    expect(polledIds.length).toBeLessThan(118);
  });

  it('treats an unknown status as running', async () => {
    const { jobWaits, clock, polledIds } = setup({ a: [{ status: 'dreaming' }, { status: 'COMPLETED' }, DONE] });
    await expect(clock.until(jobWaits.waitForJob('a'))).resolves.toMatchObject(DONE);
    expect(polledIds).toHaveLength(3);
  });

  it('shares its polls with all other waits on its job', async () => {
    const { jobWaits, clock, polledIds } = setup({ a: [{}, DONE] });
    const waits = Array.from({ length: 50 }, () => jobWaits.waitForJob('a'));
    await clock.until(Promise.all(waits));
    expect(polledIds).toHaveLength(2);
  });

  it.each<[string, thrown: unknown, message: string]>([
    ['an error', new Error('no screen'), 'no screen'],
    ['an object without a prototype', Object.create(null), ''],
    ['a symbol', Symbol('odd'), ''],
    ["an error that can't be converted to a string", Object.assign(new Error('odd'), { toString: () => ({}) }), ''],
  ])('calls onUpdate for each poll, and continues if it throws %s', async (_, thrown, message) => {
    const warn = vi.fn();
    const { jobWaits, clock } = setup({ a: [{}, DONE] }, warn);
    const onUpdate = vi.fn(() => {
      throw thrown;
    });
    await clock.until(Promise.all([jobWaits.waitForJob('a', { onUpdate }), jobWaits.waitForJob('a')]));
    expect(onUpdate.mock.calls.map(([job]: [Job?]) => job?.status)).toEqual(['processing', 'completed']);
    const warning = `onUpdate failed, and the wait for job a continues: ${message}`;
    expect(warn).toHaveBeenCalledWith(expect.stringContaining(warning));
  });

  it.each([
    [{ status: 'failed' }, JobFailedError, 'Job a failed.'],
    [{ status: 'canceled' }, JobCanceledError, 'Job a was canceled.'],
    [{ status: 'blocked', errorMessage: 'No.' }, JobBlockedError, 'Job a was blocked (No).'],
    [
      { status: 'failed', errorCode: 'generation_rejected', errorMessage: 'too dark' },
      JobFailedError,
      'Job a failed (generation_rejected: too dark). Change the prompt, references, or options.',
    ],
    [
      { status: 'failed', errorCode: 'generation_timeout' },
      JobFailedError,
      'Job a failed (generation_timeout). Send it again under a new idempotency key.',
    ],
  ])('throws the error for %j, which contains the job and says why it failed', async (final, errorClass, message) => {
    const { jobWaits, clock } = setup({ a: [final] });
    const error = await clock.until(rejection(jobWaits.waitForJob('a')));
    expect(error).toBeInstanceOf(errorClass);
    expect(error).toMatchObject({ message, job: final });
    await expect(jobWaits.waitForJob({ id: 'a', ...final })).rejects.toThrow(errorClass);
    await expect(clock.until(jobWaits.waitForJob('a', { throwOnFailure: false }))).resolves.toMatchObject(final);
  });

  const ACCEPTED = 'waitForJob accepts a job or its ID.';
  const PASS_JOB = "Pass the `job` property of create's result: waitForJob(created.job).";
  it.each<[string, unknown, string]>([
    ['an empty ID', '', ACCEPTED],
    ['undefined', undefined, ACCEPTED],
    ['null', null, ACCEPTED],
    ['a number', 7, ACCEPTED],
    ['an object without an ID', { status: 'processing' }, ACCEPTED],
    ['an ID that is not a string', { id: 7 }, ACCEPTED],
    ['a job with an empty ID', { id: '' }, ACCEPTED],
    ["a create's result", { job: { id: 'job_1' } }, `${ACCEPTED} ${PASS_JOB}`],
    ["a create's promise", Promise.resolve(), `${ACCEPTED} Await the create first. ${PASS_JOB}`],
  ])('rejects %s and says what to pass', async (_, target, message) => {
    const { jobWaits, polledIds } = setup({});
    expect(await rejection(jobWaits.waitForJob(target as string))).toMatchObject({ name: 'GenError', message });
    expect(polledIds).toEqual([]);
  });
});

describe('the end of a wait', () => {
  it('comes after its timeout, with the last known job, and leaves no timer, listener, or poll', async () => {
    const { jobWaits, clock, signals, scheduler, elapsed } = setup({ a: [{}, 'hangs'] });
    const abort = new AbortController();
    const removed = vi.spyOn(abort.signal, 'removeEventListener');
    const wait = jobWaits.waitForJob('a', { timeoutMs: 15_000, signal: abort.signal });
    const error = await clock.until(rejection(wait));
    // Plus five seconds for the poll in flight.
    expect(elapsed()).toBe(20_000);
    expect(error).toMatchObject({
      name: 'WaitTimeoutError',
      jobId: 'a',
      timeoutMs: 15_000,
      job: { status: 'processing' },
    });
    expect(String(error)).toContain(
      'Job a did not finish within 15000 ms (timeoutMs). Its last status was processing.',
    );
    expect(signals.at(-1)?.aborted).toBe(true);
    expect(removed).toHaveBeenCalledOnce();
    expect(scheduler.busy).toBe(false);
    expect(clock.timers).toBe(0);
  });

  it('comes after half an hour by default, and never with timeoutMs: false', async () => {
    const { jobWaits, clock, elapsed } = setup({ a: [{}], b: [{}] });
    const onSettled = vi.fn();
    jobWaits.waitForJob('b', { timeoutMs: false }).then(onSettled, onSettled);
    await expect(clock.until(jobWaits.waitForJob('a'))).rejects.toThrow('within 1800000 ms');
    expect(elapsed()).toBe(1_800_000);
    await clock.advance(86_400_000);
    expect(onSettled).not.toHaveBeenCalled();
  });

  it("comes immediately on an abort, with the signal's reason, without affecting other waits on the job", async () => {
    const { jobWaits, clock, polledIds, signals } = setup({ a: ['hangs', 'hangs', DONE] });
    const abort = new AbortController();
    const aborted = jobWaits.waitForJob('a', { signal: abort.signal });
    const other = new AbortController();
    const last = jobWaits.waitForJob('a', { signal: other.signal });
    await clock.advance(100);
    abort.abort('enough');
    await expect(aborted).rejects.toBe('enough');
    await clock.advance(0);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
    other.abort('both');
    await expect(last).rejects.toBe('both');
    expect(signals[1]?.aborted).toBe(true);
    expect(clock.timers).toBe(0);
    await expect(jobWaits.waitForJob('a', { signal: AbortSignal.abort('before') })).rejects.toBe('before');
    expect(polledIds).toHaveLength(2);
  });

  it('removes the one listener that all waits share on a signal', async () => {
    const { jobWaits, clock } = setup({ a: [DONE] });
    const { signal } = new AbortController();
    const added = vi.spyOn(signal, 'addEventListener');
    const removed = vi.spyOn(signal, 'removeEventListener');
    await clock.until(Promise.all(Array.from({ length: 50 }, () => jobWaits.waitForJob('a', { signal }))));
    expect(added).toHaveBeenCalledOnce();
    expect(removed).toHaveBeenCalledOnce();
  });

  it('comes after its timeout even if the key function hangs', async () => {
    const { jobWaits, clock } = startProcess((id) => running(id), { scheduling: () => new Promise(() => {}) });
    await expect(clock.until(jobWaits.waitForJob('a', { timeoutMs: 500 }))).rejects.toThrow('No poll succeeded');
    expect(clock.timers).toBe(0);
  });
});

describe('a failing poll', () => {
  it('is retried with growing pauses, up to a minute, and is the cause of the timeout error', async () => {
    const failure = new ConnectionError('lost');
    const { jobWaits, clock, pollTimes } = setup({ a: [failure] });
    const error = await clock.until(rejection(jobWaits.waitForJob('a', { timeoutMs: 300_000 })));
    expect(error).toMatchObject({ cause: failure, job: undefined });
    expect(String(error)).toContain('No poll succeeded');
    expect(pollTimes).toEqual([0, 11_000, 33_000, 77_000, 137_000, 197_000, 257_000, 300_000]);
  });

  it('delays no other job, even if it hangs', async () => {
    const { jobWaits, clock, elapsed } = setup({ a: ['hangs'], b: ['hangs'], c: [DONE] });
    const hanging = [jobWaits.waitForJob('a', { timeoutMs: 60_000 }), jobWaits.waitForJob('b', { timeoutMs: 60_000 })];
    for (const wait of hanging) wait.catch(() => {});
    await clock.until(jobWaits.waitForJob('c'));
    expect(elapsed()).toBe(0);
    await clock.until(Promise.allSettled(hanging));
  });
});

describe('a webhook', () => {
  it('wakes the waits on its job immediately, and one poll confirms it', async () => {
    const { jobWaits, clock, pollTimes } = setup({ a: [DONE] });
    const wait = jobWaits.waitForJob(running('a'));
    await clock.advance(3000);
    jobWaits.notify(hint('a'));
    await expect(clock.until(wait)).resolves.toMatchObject(DONE);
    expect(pollTimes).toEqual([3000]);
  });

  it('causes more polls at short intervals if the job is still running', async () => {
    const { jobWaits, clock, pollTimes } = setup({ a: [{}, {}, DONE] });
    const wait = jobWaits.waitForJob(running('a'));
    await clock.advance(1000);
    jobWaits.notify(hint('a'));
    await clock.until(wait);
    expect(pollTimes).toEqual([1000, 3000, 7000]);
  });

  it('makes a later wait poll immediately', async () => {
    const { jobWaits, clock, pollTimes } = setup({ a: [DONE] });
    jobWaits.notify(hint('a'));
    await clock.until(jobWaits.waitForJob(running('a')));
    expect(pollTimes).toEqual([0]);
  });

  it.each([undefined, null, 'job_1', 7])('that is %o makes notify throw and say what to pass', (invalid) => {
    const { jobWaits } = setup({});
    expect(() => jobWaits.notify(invalid as never)).toThrow('notify accepts an event from verifyWebhook');
  });

  it('is ignored if no wait matches its job, or if it is malformed', async () => {
    const { jobWaits, clock, polledIds } = setup({});
    for (const malformed of [{}, { data: null }, { data: { job: { id: 7 } } }]) jobWaits.notify(malformed as never);
    jobWaits.notify(hint('without_wait'));
    await clock.advance(1000);
    expect(polledIds).toEqual([]);
    const keyless = startProcess((id) => running(id), { scheduling: () => Promise.reject(new Error('no key')) });
    keyless.jobWaits.notify(hint('a'));
    await clock.advance(0);
  });
});

it('uses bounded memory for 10,000 jobs, and releases it', async () => {
  const { jobWaits, clock, scheduler } = setup({});
  const abort = new AbortController();
  const initialHeap = process.memoryUsage().heapUsed;
  const waits = Array.from({ length: 10_000 }, (_, at) =>
    jobWaits.waitForJob(running(`job_${at}`), { signal: abort.signal }),
  );
  for (const wait of waits) wait.catch(() => {});
  await clock.advance(60_000);
  expect(process.memoryUsage().heapUsed - initialHeap).toBeLessThan(100e6);
  abort.abort();
  await Promise.allSettled(waits);
  expect(scheduler.busy).toBe(false);
  expect(clock.timers).toBe(0);
});
