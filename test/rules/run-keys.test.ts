// The keys and waits of runs across several events. For single steps, see run-steps.
import { describe, expect, it } from 'vitest';
import { APIError, JobFailedError } from '../../src/errors/index.js';
import { nextDetachedStep } from '../../src/rules/detached-run.js';
import { callFailure } from '../../src/rules/failure-kind.js';
import { nextStep } from '../../src/rules/run.js';
import { type JobRunState, type RunEvent, type RunRules, resumeRun } from '../../src/rules/run-state.js';
import type { Job } from '../../src/schemas/job.js';
import { applyEvents, failed, job, start as startWithoutTimeout, waitElapsed, woken } from './run-events.js';

const start = (rules: Partial<RunRules> = {}, key = 'k') =>
  startWithoutTimeout({ timeoutMs: 1_800_000, ...rules }, key);
const failedJob = (errorCode: string, errorData: Job['errorData'] = null, id = 'job_1') =>
  job('failed', { id, errorCode, errorData });

/** Returns the keys that a run sends if each event follows a create, every wait elapses, and an ended run is resumed. */
function keysSent(start: JobRunState, events: readonly RunEvent[], next = nextDetachedStep): string[] {
  const keys: string[] = [];
  let run = start;
  for (const event of events) {
    if (run.step.type === 'wait') run = next(run, waitElapsed);
    if (run.step.type === 'end' || run.step.type === 'fail') run = resumeRun(run);
    if (run.step.type === 'create') keys.push(run.step.key);
    run = next(run, event);
  }
  return run.step.type === 'create' ? [...keys, run.step.key] : keys;
}

const review = (ms: number | null = 20_000) => failed('review', ms);
const rejection = (code: string): RunEvent => ({
  type: 'failed',
  failure: { kind: 'refused', retryAfterMs: null, error: { name: 'APIError', message: 'no', code } },
});
const pending = (id = 'job_1') => failedJob('reference_asset_pending', null, id);
const [lost, throttled, rejected] = [failed('lost'), failed('throttled', 5_000), failed('refused')];

describe('the keys of a run', () => {
  it.each<[string, Partial<RunRules>, RunEvent[], string[]]>([
    ['unchanged after lost responses', {}, [lost, lost], ['k', 'k']],
    ['suffixed with :r2 after a pending reference', { timeoutMs: null }, [pending(), pending('job_2')], ['k', 'k:r2']],
    ['replaced by a second key after an unchanged review', {}, [review(), review()], ['k', 'k', 'k:w1']],
    ['unchanged after a different review', {}, [review(), review(5_000), lost], ['k', 'k', 'k']],
    ['numbered for each second key', {}, [review(), review(), review(), review()], ['k', 'k', 'k:w1', 'k', 'k:w2']],
    [
      'the second key until it is settled',
      {},
      [review(), review(), lost, throttled, lost],
      ['k', 'k', 'k:w1', 'k:w1', 'k:w1'],
    ],
    [
      'the second key even after a possible crash',
      {},
      [review(), review(), throttled, lost],
      ['k', 'k', 'k:w1', 'k:w1'],
    ],
    [
      'numbered separately for each job',
      {},
      [review(), review(), pending(), review(), review()],
      ['k', 'k', 'k:w1', 'k:r2', 'k:r2', 'k:r2:w1'],
    ],
    [
      'the original key first after a rejected create restarts',
      {},
      [rejected, rejected, rejected, rejected, rejected],
      ['k', 'k', 'k:w1', 'k', 'k:w2'],
    ],
    [
      'unchanged if the rejection differs',
      {},
      [rejection('a'), rejection('b'), rejection('b')],
      ['k', 'k', 'k', 'k:w1'],
    ],
    [
      'the second key until it is settled after restarts',
      {},
      [rejected, rejected, throttled, lost],
      ['k', 'k', 'k:w1', 'k:w1'],
    ],
    ['unchanged after an unsent create', {}, [failed('unsent'), lost], ['k', 'k']],
    ['the next key after a failed job restarts', {}, [job('canceled'), lost], ['k', 'k:r2']],
  ])('are %s', (_, rules, events, keys) => {
    expect(keysSent(start(rules), events)).toEqual(keys);
  });

  it('start over if a waiting call has no slot for the second key', () => {
    const keys = keysSent(start(), [review(), review(), throttled, lost], nextStep);
    expect(keys).toEqual(['k', 'k', 'k:w1', 'k']);
  });

  it.each([
    ['an invalid API key', 401, 'invalid_api_key'],
    ['a missing scope', 403, 'missing_scope'],
  ])("don't change if a create is rejected for %s after a lost response", (_, status, code) => {
    const details = { code, recovery: 'fix_credentials', status, method: 'POST', url: 'https://x' } as const;
    const failure = callFailure(new APIError('x', details));
    expect(failure).toMatchObject({ kind: 'refused', keyIsUnused: true });
    if (failure) expect(keysSent(start(), [lost, { type: 'failed', failure }, lost])).toEqual(['k', 'k', 'k']);
  });

  it.each([250, 252, 253, 254, 255])('stay within 255 characters if the first key has %i', (length) => {
    const jobs = Array.from({ length: 11 }, (_, at) => pending(`job_${at}`));
    const keys = keysSent(start({ timeoutMs: null }, 'x'.repeat(length)), jobs);
    expect(new Set(keys).size).toBe(11);
    for (const [at, key] of keys.entries()) {
      expect(key.length).toBeLessThanOrEqual(255);
      if (at > 0) expect(key).toMatch(new RegExp(`:r${at + 1}$`));
    }
  });
});

describe('recovery', () => {
  it("creates another job as often as the error's rule allows, and lists the earlier jobs", () => {
    const recover = { generation_timeout: 2, generation_failed: 1 };
    const codes = ['generation_timeout', 'generation_failed', 'generation_timeout', 'generation_timeout'];
    const run = applyEvents(start({ recover }), ...codes.map((code, at) => failedJob(code, null, `job_${at + 1}`)));
    expect(run.step).toMatchObject({ type: 'end', job: { id: 'job_4', errorCode: 'generation_timeout' } });
    expect(run.tries.map(({ jobId, idempotencyKey }) => [jobId, idempotencyKey])).toEqual([
      ['job_1', 'k'],
      ['job_2', 'k:r2'],
      ['job_3', 'k:r3'],
      ['job_4', 'k:r4'],
    ]);
  });

  it('uses each model once, and fails with the last error if none is left', () => {
    let run = start({ recover: { generation_unavailable: { models: ['svc-video-mini', 'svc-video-fast'] } } });
    for (const model of ['svc-video-mini', 'svc-video-fast']) {
      run = applyEvents(run, failedJob('generation_unavailable', null, `before ${model}`));
      expect(run.step).toMatchObject({ type: 'create', model });
    }
    run = applyEvents(run, failedJob('generation_unavailable', null, 'job_3'));
    expect(run.step).toMatchObject({ type: 'end', job: { id: 'job_3' } });
  });

  it('has the timeout of the run, not of a single job', () => {
    let run = applyEvents(start({ timeoutMs: 60_000, recover: { generation_timeout: 5 } }), job('processing'));
    run = applyEvents(run, { ...waitElapsed, passedMs: 59_000 }, failedJob('generation_timeout'));
    run = applyEvents(run, job('processing', { id: 'job_2' }));
    expect(run.step).toMatchObject({ type: 'wait', ms: 1000, leftMs: 1000 });
    const timedOut = applyEvents(run, waitElapsed, failedJob('generation_timeout', null, 'job_2'));
    expect(timedOut.step).toMatchObject({ type: 'end', job: { id: 'job_2' } });
  });
});

describe('a wait', () => {
  it('grows after lost responses, and uses none of the timeout at a rate limit', () => {
    let run = start({ timeoutMs: 60_000, retryMs: 30_000 });
    for (let turn = 0; turn < 10; turn++) run = applyEvents(run, failed('throttled', 59_000), waitElapsed);
    expect(run.elapsedMs).toBeNull();
    expect(applyEvents(run, job('processing')).step).toMatchObject({ leftMs: 60_000 });
    const waits: unknown[] = [];
    run = start({ retryMs: 30_000 });
    for (let failure = 0; failure < 7; failure++) {
      run = applyEvents(run, lost);
      waits.push(run.step.type === 'wait' && run.step.ms);
      run = applyEvents(run, waitElapsed);
    }
    expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  });

  it('for a reference under review uses its retry_after, fits within the timeout, and is repeated at most twenty times', () => {
    const requested = applyEvents(
      start({ timeoutMs: null }),
      failedJob('reference_asset_pending', { retry_after: 7_200 }),
    );
    expect(requested.step).toMatchObject({ type: 'wait', jobId: null, ms: 7_200_000 });
    const ended = { type: 'end', job: { errorCode: 'reference_asset_pending' } };
    const tooLong = applyEvents(
      start({ timeoutMs: 20_000 }),
      failedJob('reference_asset_pending', { retry_after: 30 }),
    );
    expect(tooLong.step).toMatchObject(ended);
    // After a paused queue, or a suspended machine.
    const suspended = applyEvents(start({ timeoutMs: 60_000 }), pending(), { ...waitElapsed, passedMs: 3_600_000 });
    expect(suspended.step).toMatchObject(ended);
    const events = Array.from({ length: 30 }, () => [pending(), waitElapsed]).flat();
    expect(applyEvents(start({ timeoutMs: null }), ...events).failedJobs).toBe(21);
    expect(applyEvents(start({ resubmitPending: false }), pending()).step).toMatchObject(ended);
  });

  it('grows from 10 s, so that half an hour takes at most 58 steps', () => {
    let run = applyEvents(start(), job('processing'));
    const waits: number[] = [];
    let steps = 1;
    while (run.step.type !== 'fail') {
      if (run.step.type === 'wait') waits.push(run.step.ms);
      steps++;
      run = applyEvents(run, run.step.type === 'wait' ? waitElapsed : job('processing'));
    }
    expect(steps).toBeLessThanOrEqual(58);
    expect(waits[0]).toBe(10_000);
    expect(waits.slice(0, -1)).toEqual([...waits.slice(0, -1)].sort((a, b) => a - b));
    expect(waits.reduce((sum, ms) => sum + ms)).toBe(1_800_000);
    expect(run.step).toMatchObject({ reason: 'timeout', error: { name: 'WaitTimeoutError', jobId: 'job_1' } });
  });

  it('ends with a last poll, so a job that finishes in time always counts', () => {
    const run = applyEvents(start({ timeoutMs: 10_000 }), job('processing'), { ...waitElapsed, passedMs: 86_400_000 });
    expect(run.step).toEqual({ type: 'read', jobId: 'job_1' });
    expect(applyEvents(run, job('completed')).step).toMatchObject({ type: 'end' });
    expect(applyEvents(run, job('processing')).step).toMatchObject({ type: 'fail', reason: 'timeout' });
    expect(applyEvents(run, failed('lost')).step).toMatchObject({ type: 'fail', reason: 'timeout' });
  });

  it('that a webhook ends adds no elapsed time, and the next poll follows soon', () => {
    let run = applyEvents(start({ timeoutMs: null }), job('processing'));
    for (let turn = 0; turn < 30; turn++) run = applyEvents(run, waitElapsed, job('processing'));
    const elapsedBeforeMs = run.elapsedMs;
    run = applyEvents(run, woken, job('processing'));
    expect(run.elapsedMs).toBe(elapsedBeforeMs);
    expect(run.step).toMatchObject({ type: 'wait', ms: 10_000 });
    run = applyEvents(run, waitElapsed, job('processing'));
    expect(run.step).toMatchObject({ type: 'wait', ms: 300_000 });
  });

  it('ends even if an engine keeps waking it', () => {
    let run = applyEvents(start(), job('processing'));
    let wakes = 0;
    for (; run.step.type !== 'fail' && wakes < 1000; wakes++) run = applyEvents(run, woken, job('processing'));
    expect(run.step).toMatchObject({ reason: 'timeout' });
    expect(wakes).toBeLessThan(300);
  });

  it("isn't extended by a clock that is set back, or by a Retry-After of a day", () => {
    let run = applyEvents(start({ timeoutMs: 30_000 }), job('processing'));
    for (let turn = 0; turn < 3; turn++)
      run = applyEvents(run, { ...waitElapsed, passedMs: -3_600_000 }, job('processing'));
    expect(run.step).toMatchObject({ reason: 'timeout' });
    const delayed = applyEvents(start(), job('processing'), waitElapsed, failed('lost', 86_400_000));
    expect(delayed.step).toMatchObject({ type: 'wait', ms: 300_000 });
  });

  it('polls again soon if the poll after a webhook gets no response', () => {
    const quick = { pollMs: 60_000, retryMs: 30_000 };
    const run = applyEvents(start(quick), job('processing'), woken, failed('lost'));
    expect(run.step).toMatchObject({ type: 'wait', ms: 1000 });
    expect(applyEvents(start(quick), job('processing'), waitElapsed, failed('lost')).step).toMatchObject({
      ms: 60_000,
    });
  });
});

describe('a resumed run', () => {
  it('waits for the same job again, with a new timeout', () => {
    const timedOut = applyEvents(start({ timeoutMs: 10_000 }), job('processing'), waitElapsed, job('processing'));
    const run = resumeRun(timedOut);
    expect(run.step).toEqual({ type: 'read', jobId: 'job_1' });
    expect(applyEvents(run, job('processing')).step).toMatchObject({ type: 'wait', leftMs: 10_000 });
  });

  it("isn't changed if its job is complete or it is still running", () => {
    for (const run of [applyEvents(start(), job('completed')), applyEvents(start(), job('processing'))]) {
      expect(resumeRun(run)).toBe(run);
    }
  });
});

it('callFailure returns an error as plain data, without its request', () => {
  const request = { method: 'POST', url: 'https://x.example', recovery: 'none' } as const;
  const details = { ...request, status: 503, code: 'dispatch_disabled', retryAfterMs: 0, idempotencyKey: 'k' };
  expect(callFailure(new APIError('busy', details))).toEqual({
    kind: 'throttled',
    retryAfterMs: null,
    error: { name: 'APIError', message: 'busy', code: 'dispatch_disabled', recovery: 'none', idempotencyKey: 'k' },
  });
  const error = new JobFailedError('no', { job: { id: 'job_7', status: 'failed', errorCode: 'generation_failed' } });
  expect(callFailure(error)?.error).toEqual({
    name: 'JobFailedError',
    message: 'no',
    code: 'generation_failed',
    recovery: 'retry_with_new_key',
    jobId: 'job_7',
  });
});
