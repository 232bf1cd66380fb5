// A run's next step after each event, and a queue's poll intervals.
import { describe, expect, it } from 'vitest';
import { queuedPollMs } from '../../src/rules/polling.js';
import { nextStep } from '../../src/rules/run.js';
import { type JobRunState, type RunEvent, type RunRules, type RunStep, resumeRun } from '../../src/rules/run-state.js';
import { applyEvents, failed, job, start, stored, waitElapsed, woken } from './run-events.js';

const ID = 'job_1';
const stepOf = (state: JobRunState, ...events: readonly RunEvent[]) => applyEvents(state, ...events).step;

const create = { type: 'create', key: 'k', model: null, isSecondKey: false };
const read = { type: 'read', jobId: ID };
const waitsForJob = { type: 'wait', jobId: ID, next: read, onTimeout: null };

describe('the next step of a run', () => {
  const waiting = () => applyEvents(start(), job('processing'));
  const storing = () => applyEvents(start({ stores: true }), job('completed'));
  const states: Readonly<Record<string, () => JobRunState>> = {
    create: start,
    read: () => applyEvents(waiting(), waitElapsed),
    wait: waiting,
    store: storing,
    end: () => applyEvents(start(), job('completed')),
    fail: () => applyEvents(start(), failed('refused')),
  };

  it.each<[string, string, RunEvent, object]>([
    ['create', 'a running job', job('processing'), waitsForJob],
    ['create', 'a completed job', job('completed'), { type: 'end', error: null, resumeStep: null }],
    ['create', 'a lost response', failed('lost'), { type: 'wait', jobId: null, ms: 10_000, next: create }],
    ['read', 'its job', job('completed'), { type: 'end', job: { id: ID } }],
    ['read', 'another job', job('completed', { id: 'job_2' }), waitsForJob],
    ['read', 'a lost response', failed('lost'), waitsForJob],
    ['wait', 'its job', job('completed'), { type: 'end', job: { id: ID } }],
    ['wait', 'its duration', waitElapsed, read],
    ['wait', 'a webhook', woken, read],
    ['store', 'the stored file', stored, { type: 'end', job: { id: ID }, error: null, resumeStep: null }],
    ['store', 'a store failure', failed('lost'), { type: 'wait', jobId: null, leftMs: null, onTimeout: null }],
    ['store', 'a store rejection', failed('refused'), { type: 'fail', reason: 'refused', resumeStep: read }],
  ])('from %s after %s', (state, _, event, step) => {
    expect(stepOf((states[state] as () => JobRunState)(), event)).toMatchObject(step);
  });

  it.each<[string, RunEvent[]]>([
    ['create', [waitElapsed, woken, stored]],
    ['read', [waitElapsed, woken, stored]],
    ['wait', [failed('lost'), stored, job('completed', { id: 'job_2' })]],
    ['store', [waitElapsed, woken, job('completed')]],
    ['end', [waitElapsed, woken, stored, job('failed'), failed('lost')]],
    ['fail', [waitElapsed, woken, stored, job('failed'), failed('lost')]],
  ])('remains %s after an unrelated event', (state, events) => {
    const before = (states[state] as () => JobRunState)();
    for (const event of events) expect(stepOf(before, event)).toEqual(before.step);
  });
});

describe('a failed create', () => {
  it.each<[string, Partial<RunRules>, RunEvent, object]>([
    ['without a connection', {}, failed('unsent', null, 'ConnectionError'), { type: 'wait', next: create }],
    ['for an invalid call', {}, failed('unsent'), { type: 'fail', reason: 'unsent', resumeStep: create }],
    ['at the rate limit', {}, failed('throttled'), { type: 'wait', ms: 3_000, next: create }],
    ['at a rate limit with a slot soon', {}, failed('throttled', 200), { type: 'wait', ms: 1_000 }],
    ['at a rate limit with a Retry-After', {}, failed('throttled', 40_000), { type: 'wait', ms: 40_000 }],
    ['without a response, but with a Retry-After', {}, failed('lost', 5_000), { type: 'wait', ms: 5_000 }],
    ['without a response, but with a short Retry-After', {}, failed('lost', 100), { type: 'wait', ms: 1_000 }],
    ['because it was rejected', {}, failed('refused'), { type: 'fail', resumeStep: { key: 'k', isSecondKey: false } }],
    [
      'before the service checked its key',
      {},
      failed('refused', null, 'GenError', true),
      { type: 'fail', resumeStep: create },
    ],
    ['for a review', {}, failed('review'), { type: 'wait', ms: 15_000, jobId: null, next: create }],
    ['for a short review', {}, failed('review', 10), { type: 'wait', ms: 1_000 }],
    ['for a review with resubmitPending: false', { resubmitPending: false }, failed('review'), { resumeStep: create }],
  ])('%s leads to the correct step', (_, rules, event, step) => {
    expect(stepOf(start(rules), event)).toMatchObject(step);
  });

  it.each(['unsent', 'throttled', 'lost'] as const)('of kind %s ends a run whose calls retry', (kind) => {
    const { step } = nextStep(start(), failed(kind, null, 'ConnectionError'));
    expect(step).toMatchObject({ type: 'fail', reason: kind, error: { name: 'ConnectionError' }, resumeStep: create });
  });

  it('for a review ignores fifty wakes, and is retried at the fifty-first', () => {
    let run = applyEvents(start(), failed('review', 20_000));
    for (let at = 0; at < 50; at++) run = applyEvents(run, woken);
    expect(run.step.type).toBe('wait');
    expect(stepOf(run, woken)).toEqual(create);
  });

  it('for a review and then permanently sends no second key, because the rejections differ', () => {
    // A second key could be charged twice: a restarted order would find no job under its own key, and create another.
    const run = applyEvents(start(), failed('review'), waitElapsed, failed('refused'));
    expect(run.step).toMatchObject({ type: 'fail', reason: 'refused', resumeStep: create });
    const resumedRun = applyEvents(resumeRun(run), failed('review'));
    expect(resumedRun.step).toMatchObject({ type: 'wait', next: create });
    expect(stepOf(resumedRun, waitElapsed, failed('review'))).toEqual({ ...create, key: 'k:w1', isSecondKey: true });
  });
});

it('a create waits while unsettled creates reserve the budget, and fails if the budget is spent', () => {
  const rejected = (recovery: string): RunEvent => {
    const error = { name: 'BudgetExceededError', message: 'no', code: 'budget_exceeded', recovery };
    return { type: 'failed', failure: { kind: 'unsent', retryAfterMs: null, error } };
  };
  const first = applyEvents(start({ retryMs: 60_000 }), rejected('retry_later'));
  expect(first.step).toMatchObject({ type: 'wait', ms: 1_000, next: create });
  const events = Array.from({ length: 9 }, () => [waitElapsed, rejected('retry_later')]).flat();
  expect(applyEvents(first, ...events).step).toMatchObject({ type: 'wait', ms: 60_000, next: create });
  expect(stepOf(start(), rejected('top_up'))).toMatchObject({ type: 'fail', reason: 'unsent' });
});

it('a create waits if another process has claimed it', () => {
  const error = { name: 'GenError', message: 'Call again with the same key.', recovery: 'retry' } as const;
  const notOwned: RunEvent = { type: 'failed', failure: { kind: 'unsent', retryAfterMs: null, error } };
  expect(stepOf(start(), notOwned)).toMatchObject({ type: 'wait', next: create });
});

describe('a poll', () => {
  const reading = (rules: Partial<RunRules> = {}, passedMs = 0) =>
    applyEvents(start(rules), job('processing'), { ...waitElapsed, passedMs });

  it.each<[string, RunEvent, object]>([
    ['has no slot for 40 s', failed('throttled', 40_000), { ...waitsForJob, ms: 40_000 }],
    ['has no slot for 1 ms', failed('throttled', 1), { ...waitsForJob, ms: 10_000 }],
    ['gets no response', failed('lost'), { ...waitsForJob, ms: 10_000 }],
    ['gets no response, but a Retry-After', failed('lost', 20_000), { ...waitsForJob, ms: 20_000 }],
    ['is rejected', failed('refused'), { type: 'fail', reason: 'refused', resumeStep: read }],
    ['cannot be sent', failed('unsent'), { type: 'fail', reason: 'unsent', resumeStep: read }],
  ])('that %s leads to the correct step', (_, event, step) => {
    expect(stepOf(reading(), event)).toMatchObject(step);
  });

  it.each([
    [{}, 10_000, 10_000],
    [{}, 60_000, 12_000],
    [{}, 123_456, 24_691],
    [{}, 9_000_000, 300_000],
    [{ pollMs: 7_000 }, 123_456, 7_000],
    [{ timeoutMs: 123_456.5 }, 123_456, 1],
    [{ timeoutMs: 130_000 }, 123_456, 6_544],
  ])('with the rules %j and a running job after %i ms is followed by another poll in %i ms', (rules, passedMs, ms) => {
    expect(stepOf(reading(rules, passedMs), job('processing'))).toMatchObject({ ...waitsForJob, ms });
  });
});

describe('a failed job', () => {
  const recover = { generation_failed: 1, generation_unavailable: { models: ['m'] } };
  const stepAfter = (errorCode: string, retryAfter?: unknown, status = 'failed') =>
    stepOf(start({ recover }), job(status, { errorCode, errorData: { retry_after: retryAfter } as never }));

  it.each<[string, RunStep, object]>([
    [
      'a reference under review',
      stepAfter('reference_asset_pending', 30),
      { type: 'wait', ms: 30_000, next: { key: 'k:r2' } },
    ],
    [
      'a review with an invalid retry_after',
      stepAfter('reference_asset_pending', 'soon'),
      { type: 'wait', ms: 15_000 },
    ],
    ['a review without a retry_after', stepAfter('reference_asset_pending', 0), { type: 'wait', ms: 15_000 }],
    ['a review of a canceled job', stepAfter('reference_asset_pending', 30, 'canceled'), { type: 'end' }],
    ['an error with a retry rule', stepAfter('generation_failed'), { type: 'create', key: 'k:r2', model: null }],
    ['an error with a retry rule and a retry_after', stepAfter('generation_failed', 5), { type: 'wait', ms: 5_000 }],
    [
      'an unavailable model with a substitute',
      stepAfter('generation_unavailable'),
      { type: 'create', key: 'k:r2', model: 'm' },
    ],
    ['an error without a rule', stepAfter('generation_timeout'), { type: 'end', resumeStep: { key: 'k:r2' } }],
  ])('because of %s is handled by its rule', (_, step, expected) => {
    expect(step).toMatchObject(expected);
  });

  it("isn't retried if the run times out during the pause", () => {
    const pending = (seconds: number) =>
      job('failed', { errorCode: 'reference_asset_pending', errorData: { retry_after: seconds } });
    const run = applyEvents(start({ timeoutMs: 60_000 }), job('processing'));
    expect(stepOf(run, pending(60))).toMatchObject({ type: 'end' });
    const paused = applyEvents(run, pending(59));
    expect(paused.step).toMatchObject({ type: 'wait', ms: 59_000, leftMs: 60_000 });
    expect(stepOf(paused, { ...waitElapsed, passedMs: 59_999 })).toMatchObject({ type: 'create', key: 'k:r2' });
    expect(stepOf(paused, { ...waitElapsed, passedMs: 60_000 })).toMatchObject({ type: 'end', job: { id: ID } });
  });

  it('is listed among the earlier jobs with its code and model', () => {
    const run = applyEvents(start(), job('failed', { modelId: 'm', errorCode: 'x' }));
    expect(run.tries).toStrictEqual([{ jobId: ID, idempotencyKey: 'k', status: 'failed', model: 'm', errorCode: 'x' }]);
    expect(applyEvents(start(), job('processing')).tries).toStrictEqual([
      { jobId: ID, idempotencyKey: 'k', status: 'processing' },
    ]);
  });
});

it.each([
  ['images', 1, undefined, 0, 3_000],
  ['images', 1, undefined, 1, 4_500],
  ['characters', 1, undefined, 0, 3_000],
  ['videos', 1, undefined, 0, 10_000],
  ['videoEdits', 1, undefined, 1, 15_000],
  ['videos', 70, undefined, 0, 40_000],
  ['videos', 70, undefined, 1, 50_000],
  ['videos', 70, { limit: 240 }, 0, 20_000],
  ['videos', 70, { limit: 120, windowMs: 120_000 }, 0, 80_000],
  ['videos', 70, { limit: Number.POSITIVE_INFINITY, windowMs: 0 }, 0, 10_000],
] as const)(
  'a queue polls %s, with %i jobs, limit %j, and random number %d, after %i ms',
  (call, jobs, limit, random, ms) => {
    expect(queuedPollMs(call, jobs, limit, random)).toBe(ms);
  },
);
