// What a run does after each event, wherever it stands; what a budget answers; how long a queue waits.
import { describe, expect, it } from 'vitest';
import { takeBudgetStep } from '../../src/rules/budget.js';
import { type BudgetState, type BudgetStep, EMPTY_BUDGET, type ReserveStep } from '../../src/rules/budget-state.js';
import type { Fate } from '../../src/rules/fate.js';
import { refuseField, refuseTwins, undocumentedFields } from '../../src/rules/fields.js';
import { queuedReadMs } from '../../src/rules/read-order.js';
import { nextStep } from '../../src/rules/run.js';
import {
  anotherRun,
  type JobRunState,
  type RunEvent,
  type RunRules,
  type RunStep,
  startRun,
} from '../../src/rules/run-state.js';
import type { Job } from '../../src/schemas/job.js';

const RULES: RunRules = {
  timeoutMs: null,
  resubmitPending: true,
  recover: {},
  persistent: true,
  stores: false,
  pollMs: null,
  retryMs: null,
};
const start = (rules: Partial<RunRules> = {}) => startRun({ key: 'k', shortKey: 's', rules: { ...RULES, ...rules } });
const ID = 'job_1';
const job = (status: string, more: Partial<Job> = {}): RunEvent => ({
  type: 'job',
  job: { id: ID, status, ...(status === 'completed' && { providerOutputUrl: 'https://x.example' }), ...more },
});
const failed = (kind: Fate, retryAfterMs: number | null = null, name = 'GenError', keyIsUnused = false): RunEvent => ({
  type: 'failed',
  failure: { kind, retryAfterMs, error: { name, message: kind }, ...(keyIsUnused && { keyIsUnused }) },
});
const passed: RunEvent = { type: 'waited', woken: false };
const woken: RunEvent = { type: 'waited', woken: true };
const stored: RunEvent = { type: 'stored' };
const proceed = (state: JobRunState, ...events: readonly RunEvent[]) => events.reduce(nextStep, state);
const stepOf = (state: JobRunState, ...events: readonly RunEvent[]) => proceed(state, ...events).step;

const create = { type: 'create', key: 'k', model: null, isSecondKey: false };
const read = { type: 'read', jobId: ID };
const waitsForJob = { type: 'wait', jobId: ID, next: read, late: null };

describe('the next step of a run', () => {
  const waiting = () => proceed(start(), job('processing'));
  const storing = () => proceed(start({ stores: true }), job('completed'));
  const states: Readonly<Record<string, () => JobRunState>> = {
    create: start,
    read: () => proceed(waiting(), passed),
    wait: waiting,
    store: storing,
    end: () => proceed(start(), job('completed')),
    fail: () => proceed(start(), failed('refused')),
  };

  it.each<[string, string, RunEvent, object]>([
    ['create', 'a job that runs', job('processing'), waitsForJob],
    ['create', 'a job that is done', job('completed'), { type: 'end', error: null, again: null }],
    ['create', 'no answer', failed('lost'), { type: 'wait', jobId: null, ms: 10_000, next: create }],
    ['read', 'its job', job('completed'), { type: 'end', job: { id: ID } }],
    ['read', 'another job', job('completed', { id: 'job_2' }), waitsForJob],
    ['read', 'no answer', failed('lost'), waitsForJob],
    ['wait', 'its job', job('completed'), { type: 'end', job: { id: ID } }],
    ['wait', 'the end of its time', passed, read],
    ['wait', 'a webhook', woken, read],
    ['store', 'the stored file', stored, { type: 'end', job: { id: ID }, error: null, again: null }],
    ['store', 'a store that is away', failed('lost'), { type: 'wait', jobId: null, leftMs: null, late: null }],
    ['store', 'a store that refuses', failed('refused'), { type: 'fail', reason: 'refused', again: read }],
  ])('%s, after %s', (state, _, event, step) => {
    expect(stepOf((states[state] as () => JobRunState)(), event)).toMatchObject(step);
  });

  it.each<[string, RunEvent[]]>([
    ['create', [passed, woken, stored]],
    ['read', [passed, woken, stored]],
    ['wait', [failed('lost'), stored, job('completed', { id: 'job_2' })]],
    ['store', [passed, woken, job('completed')]],
    ['end', [passed, woken, stored, job('failed'), failed('lost')]],
    ['fail', [passed, woken, stored, job('failed'), failed('lost')]],
  ])('%s stays where what was seen has nothing to do with it', (state, events) => {
    const before = (states[state] as () => JobRunState)();
    for (const event of events) expect(stepOf(before, event)).toEqual(before.step);
  });
});

describe('a create that failed', () => {
  it.each<[string, Partial<RunRules>, RunEvent, object]>([
    ['without a connection', {}, failed('unsent', null, 'ConnectionError'), { type: 'wait', next: create }],
    ['as a wrong call', {}, failed('unsent'), { type: 'fail', reason: 'unsent', again: create }],
    [
      'without a connection, in a run that leaves repeating to its calls',
      { persistent: false },
      failed('unsent', null, 'ConnectionError'),
      { type: 'fail', error: { name: 'ConnectionError' } },
    ],
    ['at a full rate limit', {}, failed('full'), { type: 'wait', ms: 3_000, next: create }],
    ['at a limit that is free very soon', {}, failed('full', 200), { type: 'wait', ms: 1_000 }],
    ['at a limit that says when', {}, failed('full', 40_000), { type: 'wait', ms: 40_000 }],
    ['without an answer, and is asked to wait', {}, failed('lost', 5_000), { type: 'wait', ms: 5_000 }],
    ['without an answer, and is asked to hurry', {}, failed('lost', 100), { type: 'wait', ms: 1_000 }],
    ['as refused', {}, failed('refused'), { type: 'fail', again: { key: 'k:w1', isSecondKey: true } }],
    ['before its key was seen', {}, failed('refused', null, 'GenError', true), { type: 'fail', again: create }],
    ['for a review', {}, failed('review'), { type: 'wait', ms: 15_000, jobId: null, next: create }],
    ['for a review that is short', {}, failed('review', 10), { type: 'wait', ms: 1_000 }],
    ['for a review, where none is waited for', { resubmitPending: false }, failed('review'), { again: create }],
  ])('%s', (_, rules, event, step) => {
    expect(stepOf(start(rules), event)).toMatchObject(step);
  });

  it('for a review is sent again twenty times, not more', () => {
    let run = start();
    for (let at = 1; at <= 20; at++) {
      run = proceed(run, failed('review', 1_000 + at));
      expect(run.step.type).toBe('wait');
      run = proceed(run, passed);
    }
    expect(stepOf(run, failed('review', 1))).toMatchObject({ type: 'fail', reason: 'review', again: create });
  });

  it('for a review is never hurried by a webhook, but fifty wakes are all that cost no time', () => {
    let run = proceed(start(), failed('review', 20_000));
    for (let at = 0; at < 50; at++) run = proceed(run, woken);
    expect(run.step.type).toBe('wait');
    expect(stepOf(run, woken)).toEqual(create);
  });

  it('waits longer after each failure, up to a million seconds', () => {
    let run = start({ retryMs: 1e12 });
    for (let at = 0; at < 30; at++) run = proceed(run, failed('lost'), passed);
    expect(stepOf(run, failed('lost'))).toMatchObject({ ms: 1_000 * 2 ** 20 });
  });
});

describe('a read', () => {
  const reading = (rules: Partial<RunRules> = {}, passedMs = 0) =>
    proceed(start(rules), job('processing'), { ...passed, passedMs });

  it.each<[string, RunEvent, object]>([
    ['finds the rate limit full', failed('full', 40_000), { ...waitsForJob, ms: 40_000 }],
    ['finds it full for a moment', failed('full', 1), { ...waitsForJob, ms: 10_000 }],
    ['gets no answer', failed('lost'), { ...waitsForJob, ms: 10_000 }],
    ['gets no answer and is asked to wait', failed('lost', 20_000), { ...waitsForJob, ms: 20_000 }],
    ['is refused', failed('refused'), { type: 'fail', reason: 'refused', again: read }],
    ['cannot be sent', failed('unsent'), { type: 'fail', reason: 'unsent', again: read }],
  ])('that %s', (_, event, step) => {
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
  ])('with %j that finds the job running after %i ms is followed by the next in %i ms', (rules, passedMs, ms) => {
    expect(stepOf(reading(rules, passedMs), job('processing'))).toMatchObject({ ...waitsForJob, ms });
  });
});

describe('a failed job', () => {
  const recover = { generation_failed: 1, generation_unavailable: { models: ['m'] } };
  const endedFor = (errorCode: string, retryAfter?: unknown, status = 'failed') =>
    stepOf(start({ recover }), job(status, { errorCode, errorData: { retry_after: retryAfter } as never }));

  it.each<[string, RunStep, object]>([
    [
      'a reference under review',
      endedFor('reference_asset_pending', 30),
      { type: 'wait', ms: 30_000, next: { key: 'k:r2' } },
    ],
    ['one of unknown time', endedFor('reference_asset_pending', 'soon'), { type: 'wait', ms: 15_000 }],
    ['one without time', endedFor('reference_asset_pending', 0), { type: 'wait', ms: 15_000 }],
    ['one of a canceled job', endedFor('reference_asset_pending', 30, 'canceled'), { type: 'end' }],
    ['what may be tried again', endedFor('generation_failed'), { type: 'create', key: 'k:r2', model: null }],
    ['what may be tried again later', endedFor('generation_failed', 5), { type: 'wait', ms: 5_000 }],
    ['a model that has a substitute', endedFor('generation_unavailable'), { type: 'create', key: 'k:r2', model: 'm' }],
    ['what no rule is for', endedFor('generation_timeout'), { type: 'end', again: { key: 'k:r2' } }],
  ])('because of %s', (_, step, expected) => {
    expect(step).toMatchObject(expected);
  });

  it('is not followed by another one when the time of the run ends during the pause', () => {
    const pending = (seconds: number) =>
      job('failed', { errorCode: 'reference_asset_pending', errorData: { retry_after: seconds } });
    const run = proceed(start({ timeoutMs: 60_000 }), job('processing'));
    expect(stepOf(run, pending(60))).toMatchObject({ type: 'end' });
    const paused = proceed(run, pending(59));
    expect(paused.step).toMatchObject({ type: 'wait', ms: 59_000, leftMs: 60_000 });
    expect(stepOf(paused, { ...passed, passedMs: 59_999 })).toMatchObject({ type: 'create', key: 'k:r2' });
    expect(stepOf(paused, { ...passed, passedMs: 60_000 })).toMatchObject({ type: 'end', job: { id: ID } });
  });

  it('is told with its code and its model among the tries', () => {
    const run = proceed(start(), job('failed', { modelId: 'm', errorCode: 'x' }));
    expect(run.tries).toStrictEqual([{ jobId: ID, idempotencyKey: 'k', status: 'failed', model: 'm', errorCode: 'x' }]);
    expect(proceed(start(), job('processing')).tries).toStrictEqual([
      { jobId: ID, idempotencyKey: 'k', status: 'processing' },
    ]);
  });
});

it('a run that has completed and is asked for anew creates under the next key, with its tries and nothing else', () => {
  const done = proceed(start(), failed('review', 5), passed, job('completed'));
  const { rules: _, ...fresh } = start();
  const again = anotherRun(done);
  expect(again).toEqual({ ...fresh, tries: done.tries, failedJobs: 1, step: { ...create, key: 'k:r2' } });
  expect(anotherRun(again).step).toEqual({ ...create, key: 'k:r3' });
});

describe('a budget of 100 tokens answers a create', () => {
  const scope = { maxTokens: 100, per: 'total' } as const;
  const reserve = (key: string, knownTokens: number | null, more: Partial<ReserveStep> = {}): BudgetStep => ({
    op: 'reserve',
    key,
    holder: key,
    priceClass: key,
    teaches: true,
    knownTokens,
    guessedTokens: null,
    refusesUnknown: false,
    ...more,
  });
  const guess = (key: string, guessedTokens: number) => reserve(key, null, { guessedTokens });
  const lost = (key: string): BudgetStep => ({ op: 'fail', key, holder: key, fate: 'lost' });
  const spent = (key: string, quotedTokens: number | null): BudgetStep => ({
    op: 'settle',
    key,
    jobId: key,
    priceClass: key,
    teaches: true,
    quotedTokens,
    isUncharged: false,
  });

  it.each<[string, BudgetStep[], string]>([
    ['that costs all of it', [reserve('a', 100)], 'reserved'],
    ['that costs more', [reserve('a', 101)], 'refused'],
    ['that costs what is left', [spent('s', 40), reserve('a', 60)], 'reserved'],
    ['that costs more than is left', [spent('s', 40), reserve('a', 61)], 'refused'],
    ['of an unknown price, alone', [spent('s', 99), reserve('a', null)], 'reserved'],
    ['of an unknown price when nothing is left', [spent('s', 100), reserve('a', null)], 'refused'],
    ['of an unknown price that may not be', [reserve('a', null, { refusesUnknown: true })], 'unknown'],
    ['of a known price where an unknown one may not be', [reserve('a', 1, { refusesUnknown: true })], 'reserved'],
    ['of an unknown price after a job without a price', [spent('s', null), reserve('a', null)], 'unknown'],
    ['beside one of an unknown price', [reserve('x', null), reserve('a', 1)], 'wait'],
    [
      'after one of an unknown price whose answer was lost',
      [reserve('x', null), lost('x'), reserve('a', 1)],
      'unknown',
    ],
    [
      'after such a one, beside one of a known price',
      [reserve('y', 1), reserve('x', null), lost('x'), reserve('a', 1)],
      'unknown',
    ],
    ['that is guessed, beside a guess', [guess('x', 1), guess('a', 1)], 'wait'],
    ['that is guessed, after a guess whose answer was lost', [guess('x', 1), lost('x'), guess('a', 1)], 'unknown'],
    ['that is guessed, beside a small one', [reserve('x', 10), guess('a', 90)], 'reserved'],
    ['that is guessed, beside a larger one', [reserve('x', 11), guess('a', 1)], 'wait'],
    ['beside one, when ten times both are in it', [reserve('x', 5), reserve('a', 5)], 'reserved'],
    ['beside one, when ten times both are more', [reserve('x', 5), reserve('a', 6)], 'wait'],
    ['that is large, after one whose answer was lost', [reserve('x', 50), lost('x'), reserve('a', 50)], 'reserved'],
    ['that is small, after a job without a price', [spent('s', null), reserve('a', 10)], 'reserved'],
    ['that is large, after a job without a price', [spent('s', null), reserve('a', 11)], 'unknown'],
    ['that it has answered', [reserve('a', 5), spent('a', 5), reserve('a', 5)], 'held'],
    ['under the key of one that is under way', [reserve('a', 5), reserve('a', 5, { holder: 'b' })], 'held'],
  ])('%s: %s', (_, steps, outcome) => {
    let state: BudgetState = EMPTY_BUDGET;
    let last = '';
    for (const step of steps) {
      const taken = takeBudgetStep(state, { scope, step, nowMs: 0 });
      state = taken.state;
      last = taken.reply.outcome;
    }
    expect(last).toBe(outcome);
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
  ['videos', 70, { limit: 0 }, 0, 40_000],
  ['videos', 70, { windowMs: 0 }, 0, 40_000],
] as const)(
  'a queue reads %s, of %i jobs with the limit %j, by a chance of %i after %i ms',
  (call, jobs, lane, random, ms) => {
    expect(queuedReadMs(call, jobs, lane, random)).toBe(ms);
  },
);

describe('a field that is not documented', () => {
  it.each<[Parameters<typeof refuseField>, string | undefined]>([
    [['videos', 'generateAudio'], 'generateAudio: the service ignores this name; write generate_audio.'],
    [['images', 'aspectRatio'], 'aspectRatio: the service ignores this name; write ratio.'],
    [['videos', 'aspectRatio', { isEdit: true }], 'aspectRatio: the service ignores this name; write ratio.'],
    [['images', 'size'], 'size: images.create ignores this name; write ratio.'],
    [['videoEdits', 'seconds'], 'seconds: videoEdits.create ignores this name; write duration.'],
    [['registration', 'image'], 'image: characters.register ignores this name; write upload_id.'],
    [['images', 'seed'], 'seed: it is a field of videos.create, and images.create does not take it.'],
    [
      ['characters', 'camera_fixed'],
      'camera_fixed: it is a field of videos.create, and characters.create does not take it.',
    ],
    [['videos', 'newer'], undefined],
    [
      ['videos', 'newer', { isStrict: true }],
      "newer: videos.create documents no such field, and preflight is 'strict'.",
    ],
  ])('%j', (given, message) => {
    const refusing = () => refuseField(...given);
    if (message === undefined) expect(refusing).not.toThrow();
    else expect(refusing).toThrow(expect.objectContaining({ message, code: 'http_400', param: given[1] }));
  });

  it('is any that the call does not list; a video with the intent of an edit has the fields of both', () => {
    expect(undocumentedFields('images', { prompt: 'a', seed: 1, newer: undefined })).toEqual(['seed']);
    const edit = { edit_mode: 'x', seed: 1, newer: 2 };
    expect(undocumentedFields('videos', edit)).toEqual(['edit_mode', 'newer']);
    expect(undocumentedFields('videos', { ...edit, intent: 'video_edit' })).toEqual(['newer']);
    expect(undocumentedFields('images', { ...edit, intent: 'video_edit' })).toEqual([
      'edit_mode',
      'seed',
      'newer',
      'intent',
    ]);
  });

  it('is refused in an item of a list only where it has a documented twin', () => {
    expect(() => refuseTwins({ imageUrl: 'x' })).toThrow('imageUrl: the service ignores this name; write image_url.');
    expect(() => refuseTwins({ imageUrl: undefined, image_url: 'x', newName: 'x' })).not.toThrow();
  });
});
