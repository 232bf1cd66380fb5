// Rules that are tables of cases: what a journal amounts to, what an object store's answer means, what a page is told.
import { describe, expect, it } from 'vitest';
import { ConnectionError, DownloadError, GenError, StorageError, TimeoutError } from '../../src/index.js';
import { takeBudgetStep } from '../../src/rules/budget.js';
import { type BudgetState, type BudgetStep, EMPTY_BUDGET } from '../../src/rules/budget-state.js';
import { refusalKind } from '../../src/rules/fate.js';
import { pageAnswer } from '../../src/rules/files.js';
import { foldJournal, isDone, isEntry } from '../../src/rules/journal.js';
import * as store from '../../src/rules/object-storage.js';
import { learned, newModel } from '../../src/rules/read-order.js';

const AT = '2026-01-01T00:00:00.000Z';
const opened = { key: 'a', call: 'videos', params: { prompt: 'a fox' }, at: AT };
const accepted = { phase: 'accepted', key: 'a', jobId: 'job_1', at: AT };
const UNSENT = { phase: 'closed', key: 'a', reason: 'unsent', at: AT };
const final = { phase: 'final', jobId: 'job_1', status: 'completed', at: AT };

describe('the entries of a journal amount to', () => {
  it.each<[string, unknown[], object]>([
    ['an open create', [opened], { state: 'open' }],
    ['a create with its label', [{ ...opened, label: 'user-7' }], { state: 'open', label: 'user-7' }],
    [
      'an accepted one with its quote',
      [opened, { ...accepted, quotedTokens: 12 }],
      { state: 'accepted', jobId: 'job_1', quotedTokens: 12 },
    ],
    [
      'a completed one with its charge',
      [opened, accepted, { ...final, chargedTokens: 0 }],
      { state: 'completed', jobId: 'job_1', chargedTokens: 0 },
    ],
    [
      'a failed one with its code',
      [opened, accepted, { ...final, status: 'failed', errorCode: 'x', model: 'm' }],
      { state: 'failed', jobId: 'job_1', errorCode: 'x', model: 'm' },
    ],
    [
      'one that is being stored',
      [opened, accepted, final, { phase: 'storing', jobId: 'job_1', places: ['s3://a'], at: AT }],
      { state: 'completed', jobId: 'job_1', places: ['s3://a'] },
    ],
    [
      'a stored one',
      [opened, accepted, final, { phase: 'stored', jobId: 'job_1', places: ['b'], at: AT }],
      { state: 'stored', jobId: 'job_1', places: ['b'] },
    ],
    ['one whose end came before its acceptance', [opened, final, accepted], { state: 'completed', jobId: 'job_1' }],
    ['a closed one', [opened, { phase: 'closed', key: 'a', reason: 'unsent', at: AT }], { state: 'closed' }],
    [
      'an open one, of two attempts of which one was not sent',
      [opened, opened, { phase: 'closed', key: 'a', reason: 'unsent', at: AT }],
      { state: 'open' },
    ],
    [
      'a closed one, of two attempts of which the last was refused',
      [opened, opened, { phase: 'closed', key: 'a', reason: 'refused', at: AT }],
      { state: 'closed' },
    ],
    [
      'an open one that was sent after its other attempts had come to nothing',
      [opened, UNSENT, UNSENT, opened],
      { state: 'open' },
    ],
    ['one as it was first sent', [opened, { ...opened, params: {}, label: 'later' }], { state: 'open' }],
    [
      'one that is stored before its end is read',
      [opened, accepted, { phase: 'stored', jobId: 'job_1', at: AT }],
      { state: 'stored', jobId: 'job_1' },
    ],
    [
      'one that goes on',
      [opened, accepted, { phase: 'final', jobId: 'job_2', status: 'failed', at: AT }],
      { state: 'accepted', jobId: 'job_1' },
    ],
  ])('%s', (_, entries, create) => {
    // Strictly: what no entry says is no field of it.
    expect(foldJournal(entries)).toStrictEqual([{ ...opened, ...create }]);
  });

  it('nothing where the first entry is missing, and where nothing is an entry', () => {
    expect(
      foldJournal([accepted, final, null, 7, {}, { phase: 'accepted', key: 'a' }, { phase: 'new', jobId: 'x' }]),
    ).toEqual([]);
    expect(
      [{ ...opened, call: 7 }, { ...opened, params: 'x' }, { phase: 'closed' }, { phase: 'final', jobId: 'x' }].map(
        isEntry,
      ),
    ).toEqual([false, false, false, false]);
  });

  it.each<[object, readonly string[]]>([
    [{ key: 'a', call: 'videos', params: {} }, ['key', 'call', 'params']],
    [{ phase: 'accepted', key: 'a', jobId: 'j' }, ['key', 'jobId']],
    [{ phase: 'closed', key: 'a' }, ['key']],
    [{ phase: 'final', jobId: 'j', status: 'failed' }, ['jobId', 'status']],
    [{ phase: 'storing', jobId: 'j', places: [] }, ['jobId', 'places']],
    [{ phase: 'stored', jobId: 'j' }, ['jobId']],
  ])('%j is an entry, and none without each of %j', (entry, needed) => {
    expect(isEntry(entry)).toBe(true);
    for (const name of needed) {
      expect(isEntry({ ...entry, [name]: undefined })).toBe(false);
      expect(isEntry({ ...entry, [name]: 7 })).toBe(false);
    }
    expect([isEntry({ ...entry, phase: 'newer' }), isEntry(JSON.stringify(entry))]).toEqual([false, false]);
  });

  it.each([
    ['open', false],
    ['accepted', false],
    ['completed', false],
    ['stored', true],
    ['failed', true],
    ['closed', true],
  ] as const)('a create that is %s: done is %s', (state, done) => {
    expect(isDone({ state })).toBe(done);
  });
});

describe('an answer of an object store', () => {
  const failed = (status: number | undefined, code = 'put_failed', cause?: unknown) =>
    new StorageError('no', { code, status, store: 's3', cause } as never);

  it.each<[number | undefined, string, boolean]>([
    [undefined, 'unreachable', true],
    [500, 'put_failed', true],
    [503, 'put_failed', true],
    [408, 'put_failed', true],
    [409, 'put_failed', true],
    [425, 'put_failed', true],
    [429, 'put_failed', true],
    [400, 'RequestTimeout', true],
    [400, 'put_failed', false],
    [403, 'put_failed', false],
    [404, 'put_failed', false],
  ])('%s %s may pass: %s', (status, code, passes) => {
    expect(store.isPassingStore(failed(status, code))).toBe(passes);
  });

  it('that was never asked for because of a wrong call does not pass', () => {
    expect(store.isPassingStore(failed(undefined, 'put_failed', new GenError('wrong')))).toBe(false);
    expect(store.isPassingStore(failed(undefined, 'put_failed', failed(500)))).toBe(true);
  });

  const download = (code: string) => new DownloadError('no', { code } as never);
  it.each<[string, GenError, boolean]>([
    ['a download that broke', download('interrupted'), true],
    ['a file that changed on the way', download('file_changed'), true],
    ['a file that has expired', download('output_expired'), false],
    ['a store that did not answer in time', failed(undefined, 'timeout'), true],
    ['a store that is away', failed(undefined, 'unreachable'), true],
    ['a put that failed without an answer', failed(undefined, 'put_failed'), true],
    ['a wrong name', failed(undefined, 'invalid_name'), false],
    ['a store in trouble', failed(503), true],
    ['a store that refuses', failed(403), false],
    ['a service that is away', new ConnectionError('away', { attempts: 1 }), true],
    ['a service that was never reached', new ConnectionError('away', { attempts: 0 }), false],
    ['a wrong call', new GenError('wrong'), false],
  ])('a copy ended by %s may be made later: %s', (_, error, later) => {
    expect(store.mayCopyLater(error)).toBe(later);
  });

  it('says whether the object is there, may be there, or is not to be known', () => {
    expect([409, 412, 200, undefined].map((status) => store.isTaken(failed(status)))).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(
      [failed(500), failed(undefined, 'timeout'), failed(undefined, 'unreachable'), failed(400)].map(
        store.mayHaveStored,
      ),
    ).toEqual([true, true, true, false]);
    const answers = [
      { status: 404, code: '' },
      { status: 404, code: 'NoSuchBucket' },
      { status: 403, code: '' },
    ];
    expect(answers.map(store.isAbsent)).toEqual([true, false, false]);
    const refusals = ['AccessDenied', 'SignatureDoesNotMatch', 'InvalidAccessKeyId', 'xInvalidToken'];
    expect(refusals.map((code) => store.isUnknown({ status: 403, code }))).toEqual([true, false, false, true]);
    expect(store.isUnknown({ status: 404, code: '' })).toBe(false);
    expect([307, 308, 302].map(store.isTemporaryRedirect)).toEqual([true, true, false]);
    expect([403, 401].map((status) => store.isDenied({ status }))).toEqual([true, false]);
    const unknown = [
      { status: 501, code: '' },
      { status: 400, code: 'NotImplemented' },
      { status: 400, code: '' },
    ];
    expect(unknown.map(store.refusesCondition)).toEqual([true, true, false]);
  });
});

it.each<[string, unknown, object]>([
  [
    'a file that has expired',
    new DownloadError('no', { code: 'output_expired' } as never),
    { status: 410, isReported: false },
  ],
  [
    'a job that goes on',
    new DownloadError('no', { code: 'job_not_finished' } as never),
    { status: 409, isReported: false },
  ],
  [
    'a download that broke',
    new DownloadError('no', { code: 'interrupted' } as never),
    { status: 502, isReported: true },
  ],
  ['a service that is slow', new TimeoutError('late', { timeoutMs: 1 }), { status: 504, isReported: true }],
  ['a service that is away', new ConnectionError('away'), { status: 502, isReported: true }],
  ['anything else', new TypeError('x'), { status: 500, isReported: true }],
])('a page is told of %s', (_, error, answer) => {
  expect(pageAnswer(error)).toEqual(answer);
});

it.each([
  [200, 'none'],
  [299, 'none'],
  [300, 'change_request'],
  [418, 'change_request'],
  [599, 'retry'],
] as const)('a refusal of the status %i without a code has the recovery %s', (status, recovery) => {
  expect(refusalKind(status)[1]).toBe(recovery);
});

it('a model is known by its shortest job, and until one has completed by the oldest that runs', () => {
  const model = newModel(undefined);
  const running = learned(learned(model, 5_000, false), 3_000, false);
  expect(running).toEqual({ ...model, runningMs: 5_000 });
  const ended = learned(learned(running, 40_000, true), 50_000, true);
  expect(ended).toEqual({ ...running, shortestMs: 40_000 });
  expect(learned(ended, 30_000, true)).toEqual({ ...running, shortestMs: 30_000 });
  expect(learned(ended, 60_000, false)).toBe(ended);
  // No job of the kind is done before it may be done at all.
  expect(learned(ended, 0, true)).toEqual({ ...running, shortestMs: 10_000 });
});

describe('a budget', () => {
  const scope = { maxTokens: 100, per: 'total' } as const;
  const taken = (...steps: BudgetStep[]) => {
    let state: BudgetState = EMPTY_BUDGET;
    let reply = takeBudgetStep(state, { scope, step: { op: 'look' }, nowMs: 0 }).reply;
    for (const step of steps) ({ state, reply } = takeBudgetStep(state, { scope, step, nowMs: 0 }));
    return { state, reply };
  };
  const settle = {
    op: 'settle',
    key: 'a',
    jobId: 'job_1',
    priceClass: 'video',
    teaches: true,
    quotedTokens: null,
    isUncharged: false,
  } as const;

  it('learns a price from the charge of a job that had none', () => {
    const charge = { op: 'charge', key: 'a', jobId: 'job_1', tokens: 12 } as const;
    const { state, reply } = taken(settle, charge);
    expect(reply.spentTokens).toBe(12);
    expect([...state.prices]).toEqual([['video', 12]]);
    expect(taken(settle, { ...charge, tokens: 0 }).state.prices.size).toBe(0);
    expect(taken({ ...settle, quotedTokens: 5 }, charge).state.prices.get('video')).toBe(5);
  });

  it('gives back a create without a price by its key, and nothing of one that has a price', () => {
    expect(taken(settle).state.unpriced.size).toBe(1);
    expect(taken(settle, { op: 'release', key: 'a' }).state.unpriced.size).toBe(0);
    expect(taken({ ...settle, quotedTokens: 5 }, { op: 'release', key: 'a' }).reply.spentTokens).toBe(5);
  });

  it('says of an answer that it has seen before what it has counted', () => {
    const { reply } = taken({ ...settle, quotedTokens: 5 }, settle);
    expect(reply).toMatchObject({ outcome: 'done', tokens: 5, spentTokens: 5 });
  });
});
