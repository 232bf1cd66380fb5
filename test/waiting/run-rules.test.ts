import { describe, expect, it } from 'vitest';
import {
  APIError,
  ConflictError,
  ConnectionError,
  GenError,
  JobFailedError,
  PreflightError,
  RateLimitError,
  ResponseError,
  TimeoutError,
} from '../../src/errors/index.js';
import { callFailure, type Fate } from '../../src/rules/fate.js';
import { nextStep } from '../../src/rules/run.js';
import { type JobRunState, type RunEvent, type RunRules, resumeRun, startRun } from '../../src/rules/run-state.js';
import type { Job } from '../../src/schemas/job.js';

const RULES: RunRules = {
  timeoutMs: 1_800_000,
  resubmitPending: true,
  recover: {},
  persistent: true,
  stores: false,
  pollMs: null,
  retryMs: null,
};
const start = (rules: Partial<RunRules> = {}, key = 'k') =>
  startRun({ key, shortKey: `${key.slice(0, 128)}-0123456789abcdef`, rules: { ...RULES, ...rules } });
const LINK = { providerOutputUrl: 'https://x.example/v1/jobs/job_1/output' };
const job = (status: string, more: Partial<Job> = {}): RunEvent => ({
  type: 'job',
  job: { id: 'job_1', status, ...(status === 'completed' && LINK), ...more },
});
const failedJob = (errorCode: string, errorData: Job['errorData'] = null, id = 'job_1') =>
  job('failed', { id, errorCode, errorData });
const failed = (kind: Fate, retryAfterMs: number | null = null): RunEvent => ({
  type: 'failed',
  failure: { kind, retryAfterMs, error: { name: 'GenError', message: kind } },
});
const passed: RunEvent = { type: 'waited', woken: false };
const woken: RunEvent = { type: 'waited', woken: true };
const proceed = (state: JobRunState, ...events: readonly RunEvent[]) => events.reduce(nextStep, state);

describe('a create', () => {
  it('goes out under the key itself, then its job is waited for and read', () => {
    const run = start();
    expect(run.step).toMatchObject({ type: 'create', key: 'k', model: null });
    const waiting = proceed(run, job('processing'));
    expect(waiting.step).toMatchObject({ type: 'wait', jobId: 'job_1', ms: 10_000 });
    expect(proceed(waiting, passed).step).toEqual({ type: 'read', jobId: 'job_1' });
    expect(proceed(waiting, passed, job('completed')).step).toMatchObject({
      type: 'end',
      job: { status: 'completed' },
    });
  });

  it('that got no answer goes out again under the same key, later each time', () => {
    let run = start({ retryMs: 30_000 });
    const waits: number[] = [];
    for (let miss = 0; miss < 7; miss++) {
      run = proceed(run, failed('lost'));
      if (run.step.type === 'wait') waits.push(run.step.ms);
      run = proceed(run, passed);
      expect(run.step).toMatchObject({ type: 'create', key: 'k' });
    }
    expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  });

  it('that got no answer ends a run that leaves repeating to its calls', () => {
    expect(proceed(start({ persistent: false }), failed('lost')).step).toMatchObject({ type: 'fail', reason: 'lost' });
  });

  it('waits for a slot of the rate limit without a call, and its time does not count', () => {
    let run = start({ timeoutMs: 60_000 });
    for (let turn = 0; turn < 10; turn++) {
      run = proceed(run, failed('full', 59_000));
      expect(run.step).toMatchObject({ type: 'wait', jobId: null, ms: 59_000 });
      run = proceed(run, passed);
    }
    expect(run.elapsedMs).toBeNull();
    expect(proceed(run, job('processing')).step).toMatchObject({ leftMs: 60_000 });
  });

  it.each([
    ['a wrong key', 401, 'invalid_api_key'],
    ['a missing scope', 403, 'missing_scope'],
  ])('refused for %s after an answer was lost keeps its key when the run is tried again', (_, status, code) => {
    const details = { code, recovery: 'fix_credentials', status, method: 'POST', url: 'https://x' } as const;
    const failure = callFailure(new APIError('x', details));
    expect(failure).toMatchObject({ kind: 'refused', keyIsUnused: true });
    if (!failure) return;
    const run = proceed(start(), failed('lost'), passed, { type: 'failed', failure });
    expect(run.step).toMatchObject({ type: 'fail', again: { type: 'create', key: 'k' } });
    expect(resumeRun(run).step).toMatchObject({ type: 'create', key: 'k' });
  });

  it('that is refused each time it is started again sends its own key first, and a new one when that is refused again', () => {
    let run = proceed(start(), failed('refused'));
    const keys: unknown[] = [];
    for (let retry = 0; retry < 3; retry++) {
      run = resumeRun(run);
      while (run.step.type === 'create') {
        keys.push(run.step.key);
        run = proceed(run, failed('refused'));
      }
    }
    expect(keys).toEqual(['k', 'k:w1', 'k', 'k:w2', 'k', 'k:w3']);
  });

  it('that is refused in other words when it is started again sends no new key', () => {
    const refusal = (code: string): RunEvent => ({
      type: 'failed',
      failure: { kind: 'refused', retryAfterMs: null, error: { name: 'APIError', message: 'no', code } },
    });
    const run = resumeRun(proceed(start(), refusal('insufficient_balance')));
    const other = proceed(run, refusal('person_match_prompt_unsafe'));
    expect(other.step).toMatchObject({ type: 'fail', again: { key: 'k', isSecondKey: false } });
    const same = proceed(resumeRun(other), refusal('person_match_prompt_unsafe'));
    expect(same.step).toMatchObject({ type: 'create', key: 'k:w1', isSecondKey: true });
  });

  it('that is refused, or is not sent, ends the run', () => {
    expect(proceed(start(), failed('refused')).step).toMatchObject({ type: 'fail', reason: 'refused' });
    expect(proceed(start(), failed('unsent')).step).toMatchObject({ type: 'fail', reason: 'unsent' });
  });

  it('is not sent when its time is over before its turn', () => {
    const pending = proceed(start({ timeoutMs: 60_000 }), failedJob('reference_asset_pending', { retry_after: 30 }));
    expect(pending.step).toMatchObject({ type: 'wait', ms: 30_000 });
    // A queue that was paused, a machine that slept.
    const late = proceed(pending, { ...passed, passedMs: 3_600_000 });
    expect(late.step).toMatchObject({ type: 'end', job: { errorCode: 'reference_asset_pending' } });
  });
});

describe('a pending reference', () => {
  it('is submitted again under :r2, :r3 as late as the service asks, however late that is', () => {
    let run = proceed(start({ timeoutMs: null }), failedJob('reference_asset_pending', { retry_after: 600 }));
    expect(run.step).toMatchObject({ type: 'wait', jobId: null, ms: 600_000 });
    run = proceed(run, passed);
    expect(run.step).toMatchObject({ type: 'create', key: 'k:r2' });
    run = proceed(run, failedJob('reference_asset_pending', { retry_after: 7200 }, 'job_2'));
    expect(run.step).toMatchObject({ ms: 7_200_000 });
    expect(proceed(run, passed).step).toMatchObject({ type: 'create', key: 'k:r3' });
  });

  it.each([{}, null, { retry_after: 0 }, { retry_after: -5 }, { retry_after: 'soon' }, { retry_after: null }])(
    'waits 15 s where the service says %o',
    (errorData) => {
      expect(proceed(start(), failedJob('reference_asset_pending', errorData)).step).toMatchObject({ ms: 15_000 });
    },
  );

  it('is submitted again 20 times at most, and not at all when that is switched off', () => {
    let run = start({ timeoutMs: null });
    let creates = 0;
    while (run.step.type !== 'end') {
      if (run.step.type === 'create') creates++;
      run = proceed(run, run.step.type === 'create' ? failedJob('reference_asset_pending') : passed);
    }
    expect(creates).toBe(21);
    const off = proceed(start({ resubmitPending: false }), failedJob('reference_asset_pending'));
    expect(off.step).toMatchObject({ type: 'end', job: { errorCode: 'reference_asset_pending' } });
  });

  it('is not waited for beyond the time limit', () => {
    const run = proceed(start({ timeoutMs: 20_000 }), failedJob('reference_asset_pending', { retry_after: 30 }));
    expect(run.step).toMatchObject({ type: 'end', job: { errorCode: 'reference_asset_pending' } });
  });
});

describe('a character under review', () => {
  const refused = (ms: number | null) => failed('review', ms);

  it('is tried under the own key again, and under a new key at once when the refusal is repeated as it was', () => {
    let run = proceed(start(), refused(20_000));
    expect(run.step).toMatchObject({ type: 'wait', jobId: null, ms: 20_000 });
    run = proceed(run, passed);
    expect(run.step).toMatchObject({ type: 'create', key: 'k', isSecondKey: false });
    run = proceed(run, refused(20_000));
    expect(run.step).toMatchObject({ type: 'create', key: 'k:w1', isSecondKey: true });
    run = proceed(run, refused(20_000), passed, refused(20_000));
    expect(run.step).toMatchObject({ type: 'create', key: 'k:w2', isSecondKey: true });
  });

  it('is not tried under a new key when the refusal of the own key is a new one', () => {
    const run = proceed(start(), refused(20_000), passed, refused(5000));
    expect(run.step).toMatchObject({ type: 'wait', ms: 5000, next: { key: 'k' } });
  });

  it('never waits for a slot between the two keys', () => {
    const run = proceed(start({ persistent: false }), refused(null), passed, refused(null), failed('full', 40_000));
    expect(run.step).toMatchObject({ type: 'wait', ms: 40_000, next: { type: 'create', key: 'k' } });
  });

  it('has its second key settled before any other goes out', () => {
    const run = proceed(start(), refused(null), passed, refused(null), failed('lost'), passed);
    expect(run.step).toMatchObject({ type: 'create', key: 'k:w1' });
  });

  it('has its second key settled before any other goes out when the rate limit is full after a lost answer', () => {
    const lost = proceed(start(), refused(null), passed, refused(null), failed('lost'), passed);
    expect(proceed(lost, failed('full', 5000)).step).toMatchObject({ type: 'wait', ms: 5000, next: { key: 'k:w1' } });
  });

  it('has its second key settled too when a worker may have died before it recorded the answer', () => {
    const restarted = proceed(start(), refused(null), passed, refused(null), failed('full', 5000));
    expect(restarted.step).toMatchObject({ type: 'wait', ms: 5000, next: { key: 'k:w1' } });
  });

  it('counts its keys anew for each job', () => {
    const run = proceed(start(), refused(null), passed, refused(null), failedJob('reference_asset_pending'), passed);
    expect(run.step).toMatchObject({ type: 'create', key: 'k:r2' });
    const again = proceed(run, refused(null), passed, refused(null));
    expect(again.step).toMatchObject({ type: 'create', key: 'k:r2:w1' });
  });

  it('is not hurried by a wake: there is no webhook for a review', () => {
    const run = proceed(start(), refused(20_000), woken);
    expect(run.step).toMatchObject({ type: 'wait', jobId: null, ms: 20_000 });
  });
});

describe('recovery', () => {
  it('creates again under the next key as often as the rule for the error says', () => {
    let run = start({ recover: { generation_timeout: 2, generation_failed: 1 } });
    run = proceed(run, failedJob('generation_timeout'));
    expect(run.step).toMatchObject({ type: 'create', key: 'k:r2', model: null });
    run = proceed(run, failedJob('generation_failed', null, 'job_2'));
    expect(run.step).toMatchObject({ type: 'create', key: 'k:r3' });
    run = proceed(run, failedJob('generation_timeout', null, 'job_3'));
    expect(run.step).toMatchObject({ type: 'create', key: 'k:r4' });
    run = proceed(run, failedJob('generation_timeout', null, 'job_4'));
    expect(run.step).toMatchObject({ type: 'end', job: { id: 'job_4', errorCode: 'generation_timeout' } });
    expect(run.tries.map(({ jobId, idempotencyKey }) => [jobId, idempotencyKey])).toEqual([
      ['job_1', 'k'],
      ['job_2', 'k:r2'],
      ['job_3', 'k:r3'],
      ['job_4', 'k:r4'],
    ]);
  });

  it('tries each of the models once, and fails with the last error when none is left', () => {
    let run = start({ recover: { generation_unavailable: { models: ['svc-video-mini', 'svc-video-fast'] } } });
    run = proceed(run, failedJob('generation_unavailable'));
    expect(run.step).toMatchObject({ type: 'create', key: 'k:r2', model: 'svc-video-mini' });
    run = proceed(run, failedJob('generation_unavailable', null, 'job_2'));
    expect(run.step).toMatchObject({ type: 'create', key: 'k:r3', model: 'svc-video-fast' });
    run = proceed(run, failedJob('generation_unavailable', null, 'job_3'));
    expect(run.step).toMatchObject({ type: 'end', job: { id: 'job_3' } });
  });

  it('waits before a model that is unavailable is asked again, as long as the service says', () => {
    const run = start({ recover: { generation_unavailable: 1 } });
    expect(proceed(run, failedJob('generation_unavailable')).step).toMatchObject({ type: 'wait', ms: 15_000 });
    const asked = proceed(run, failedJob('generation_unavailable', { retry_after: 90 }));
    expect(asked.step).toMatchObject({ type: 'wait', ms: 90_000, next: { key: 'k:r2' } });
  });

  it('follows a failure that was read, and nothing else', () => {
    const recover = { generation_timeout: 5, generation_failed: 5 };
    const waiting = proceed(start({ recover }), job('processing'));
    const end = proceed(waiting, passed, job('canceled', { errorCode: 'generation_failed' }));
    expect(end.step).toMatchObject({ type: 'end', job: { status: 'canceled' } });
    expect(proceed(waiting, woken, failed('lost')).step).toMatchObject({ type: 'wait', jobId: 'job_1' });
    expect(proceed(waiting, passed, failedJob('generation_failed', null, 'job_9')).step).toMatchObject({
      jobId: 'job_1',
    });
    expect(proceed(waiting, passed, failedJob('toString')).step).toMatchObject({ type: 'end' });
  });

  it('has the time of the run, not of a try', () => {
    let run = proceed(start({ timeoutMs: 60_000, recover: { generation_timeout: 5 } }), job('processing'));
    run = proceed(run, { ...passed, passedMs: 59_000 }, failedJob('generation_timeout'));
    expect(run.step).toMatchObject({ type: 'create', key: 'k:r2' });
    run = proceed(run, job('processing', { id: 'job_2' }));
    expect(run.step).toMatchObject({ type: 'wait', ms: 1000, leftMs: 1000 });
    const late = proceed(run, passed, failedJob('generation_timeout', null, 'job_2'));
    expect(late.step).toMatchObject({ type: 'end', job: { id: 'job_2' } });
  });
});

describe('a wait', () => {
  it('grows from 10 s to five minutes, so that half an hour takes 60 steps at most', () => {
    let run = proceed(start(), job('processing'));
    const waits: number[] = [];
    let steps = 1;
    while (run.step.type !== 'fail') {
      if (run.step.type === 'wait') waits.push(run.step.ms);
      steps++;
      run = proceed(run, run.step.type === 'wait' ? passed : job('processing'));
    }

    expect(steps).toBeLessThanOrEqual(58);
    expect(waits[0]).toBe(10_000);
    expect(waits.slice(0, -1)).toEqual([...waits.slice(0, -1)].sort((a, b) => a - b));
    expect(waits.reduce((sum, ms) => sum + ms)).toBe(1_800_000);
    expect(run.step).toMatchObject({ reason: 'timeout', error: { name: 'WaitTimeoutError', jobId: 'job_1' } });
  });

  it('ends with a last read, so that a job which is done in time is never given up', () => {
    const run = proceed(start({ timeoutMs: 10_000 }), job('processing'), { ...passed, passedMs: 86_400_000 });
    expect(run.step).toEqual({ type: 'read', jobId: 'job_1' });
    expect(proceed(run, job('completed')).step).toMatchObject({ type: 'end' });
    expect(proceed(run, job('processing')).step).toMatchObject({ type: 'fail', reason: 'timeout' });
    expect(proceed(run, failed('lost')).step).toMatchObject({ type: 'fail', reason: 'timeout' });
  });

  it('that a webhook ended takes no time, and the next read is soon', () => {
    let run = proceed(start({ timeoutMs: null }), job('processing'));
    for (let turn = 0; turn < 30; turn++) run = proceed(run, passed, job('processing'));
    const before = run.elapsedMs;
    run = proceed(run, woken, job('processing'));
    expect(run.elapsedMs).toBe(before);
    expect(run.step).toMatchObject({ type: 'wait', ms: 10_000 });
    run = proceed(run, passed, job('processing'));
    expect(run.step).toMatchObject({ type: 'wait', ms: 300_000 });
  });

  it('comes to its end also when an engine wakes it for ever', () => {
    let run = proceed(start(), job('processing'));
    let wakes = 0;
    for (; run.step.type !== 'fail' && wakes < 1000; wakes++) run = proceed(run, woken, job('processing'));
    expect(run.step).toMatchObject({ reason: 'timeout' });
    expect(wakes).toBeLessThan(300);
  });

  it('is not made long by a clock that is set back, nor by one read that asks for a day', () => {
    let run = proceed(start({ timeoutMs: 30_000 }), job('processing'));
    for (let turn = 0; turn < 3; turn++) run = proceed(run, { ...passed, passedMs: -3_600_000 }, job('processing'));
    expect(run.step).toMatchObject({ reason: 'timeout' });
    const blind = proceed(start(), job('processing'), passed, failed('lost', 86_400_000));
    expect(blind.step).toMatchObject({ type: 'wait', ms: 300_000 });
  });

  it('reads what was announced soon after a read that got no answer', () => {
    const quick = { pollMs: 60_000, retryMs: 30_000 };
    const run = proceed(start(quick), job('processing'), woken, failed('lost'));
    expect(run.step).toMatchObject({ type: 'wait', ms: 1000 });
    expect(proceed(start(quick), job('processing'), passed, failed('lost')).step).toMatchObject({ ms: 60_000 });
  });

  it('goes on until a completed job has its link', () => {
    const run = proceed(start(), job('completed', { providerOutputUrl: null }));
    expect(run.step).toMatchObject({ type: 'wait', jobId: 'job_1' });
    expect(proceed(run, passed, job('completed')).step).toMatchObject({ type: 'end' });
  });

  it('does not end by a read that fails for the moment, but by a refusal', () => {
    const reading = proceed(start(), job('processing'), passed);
    for (const kind of ['lost', 'full'] as const) {
      expect(proceed(reading, failed(kind)).step).toMatchObject({ type: 'wait', jobId: 'job_1' });
    }
    expect(proceed(reading, failed('refused')).step).toMatchObject({ type: 'fail', again: { type: 'read' } });
  });
});

describe('the file', () => {
  it('is stored before the run ends, tried again while that may help', () => {
    let run = proceed(start({ stores: true, timeoutMs: 10_000 }), job('completed'));
    expect(run.step).toMatchObject({ type: 'store', job: { id: 'job_1' } });
    for (let turn = 0; turn < 10; turn++) {
      run = proceed(run, failed('lost'));
      expect(run.step).toMatchObject({ type: 'wait', jobId: null });
      run = proceed(run, passed);
    }
    expect(proceed(run, { type: 'stored' }).step).toMatchObject({ type: 'end', job: { id: 'job_1' } });
    expect(proceed(run, failed('lost')).step).toMatchObject({ type: 'fail', reason: 'lost' });
    expect(proceed(start({ stores: true }), job('completed'), failed('refused')).step).toMatchObject({ type: 'fail' });
  });
});

describe('a run that is tried again', () => {
  it('takes up the job that it was waiting for, with its time anew', () => {
    let run = proceed(start({ timeoutMs: 10_000 }), job('processing'), passed, job('processing'));
    expect(run.step).toMatchObject({ type: 'fail', reason: 'timeout' });
    run = resumeRun(run);
    expect(run.step).toEqual({ type: 'read', jobId: 'job_1' });
    expect(proceed(run, job('processing')).step).toMatchObject({ type: 'wait', leftMs: 10_000 });
  });

  it.each(['failed', 'canceled', 'blocked'])('makes a new job after one that is %s', (status) => {
    const run = resumeRun(proceed(start(), job(status)));
    expect(run.step).toMatchObject({ type: 'create', key: 'k:r2', model: null });
    expect(run.tries).toHaveLength(1);
  });

  it('finds the job under its own key when the refusal was not held against it', () => {
    let run = resumeRun(proceed(start(), failed('refused')));
    expect(run.step).toMatchObject({ type: 'create', key: 'k', isSecondKey: false });
    run = proceed(run, job('processing'));
    expect(run.tries).toMatchObject([{ jobId: 'job_1', idempotencyKey: 'k' }]);
  });

  it('settles its second key before any other goes out', () => {
    const run = proceed(resumeRun(proceed(start(), failed('refused'))), failed('refused'));
    expect(proceed(run, failed('full', 5000), passed).step).toMatchObject({ key: 'k:w1' });
  });

  it('keeps the key of a create that was not sent, or that got no answer', () => {
    expect(resumeRun(proceed(start(), failed('unsent'))).step).toMatchObject({ type: 'create', key: 'k' });
    expect(resumeRun(proceed(start({ persistent: false }), failed('lost'))).step).toMatchObject({ key: 'k' });
  });

  it('has nothing to do when the job is complete or the run goes on', () => {
    for (const run of [proceed(start(), job('completed')), proceed(start(), job('processing'))]) {
      expect(resumeRun(run)).toBe(run);
    }
  });
});

describe('keys', () => {
  it.each([250, 252, 253, 254, 255])(
    'of %i characters are extended within the 255 that a header may have',
    (length) => {
      const key = 'x'.repeat(length);
      const seen = new Set([key]);
      let run = proceed(start({ timeoutMs: null }, key), failedJob('reference_asset_pending'), passed);
      for (let turn = 2; turn < 12; turn++) {
        if (run.step.type !== 'create') throw new Error('not a create');
        expect(run.step.key.length).toBeLessThanOrEqual(255);
        expect(run.step.key).toMatch(new RegExp(`:r${turn}$`));
        expect(seen.has(run.step.key)).toBe(false);
        seen.add(run.step.key);
        run = proceed(run, failedJob('reference_asset_pending', null, `job_${turn}`), passed);
      }
    },
  );
});

describe('what an error means', () => {
  const wire = { recovery: 'none', method: 'POST', url: 'https://x.example' } as const;
  const api = (status: number, code = 'x') => new APIError('no', { ...wire, status, code });
  it.each([
    ['review', new ConflictError('no', { ...wire, status: 409, code: 'character_pending' })],
    ['refused', api(400)],
    ['refused', api(402, 'insufficient_balance')],
    ['refused', api(404)],
    ['lost', api(409, 'key_in_use')],
    ['full', api(429)],
    ['lost', api(500)],
    ['full', api(503, 'dispatch_disabled')],
    ['lost', api(200, 'internal_error')],
    ['full', new RateLimitError('full', { ...wire, status: 429, code: 'rate_limited', attempts: 0 })],
    ['full', new RateLimitError('429', { ...wire, status: 429, code: 'rate_limited', attempts: 1 })],
    ['lost', new ConnectionError('no')],
    ['lost', new TimeoutError('no')],
    ['lost', new ResponseError('no')],
    ['unsent', new PreflightError('no', { code: 'prompt_required', param: 'prompt' })],
    ['unsent', new GenError('apiKey is missing')],
  ])('%s: %s', (kind, error) => {
    expect(callFailure(error)?.kind).toBe(kind);
  });

  it('is nothing where the error is not of this package', () => {
    expect(callFailure(new Error('boom'))).toBeUndefined();
    expect(callFailure('enough')).toBeUndefined();
  });

  it('is told as JSON, without what only a process has', () => {
    const asked = new APIError('busy', {
      ...wire,
      status: 503,
      code: 'dispatch_disabled',
      retryAfterMs: 0,
      idempotencyKey: 'k',
    });
    expect(callFailure(asked)).toEqual({
      kind: 'full',
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
});
