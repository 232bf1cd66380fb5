// Rules that are tables of cases: what an object store's answer means, what a page is told.
import { describe, expect, it } from 'vitest';
import { ConnectionError, DownloadError, GenError, StorageError, TimeoutError } from '../../src/index.js';
import { refusalKind } from '../../src/rules/fate.js';
import { pageAnswer } from '../../src/rules/files.js';
import * as store from '../../src/rules/object-storage.js';
import { learned, newModel } from '../../src/rules/read-order.js';

const AT = '2026-01-01T00:00:00.000Z';
const _opened = { key: 'a', call: 'videos', params: { prompt: 'a fox' }, at: AT };
const _accepted = { phase: 'accepted', key: 'a', jobId: 'job_1', at: AT };
const _UNSENT = { phase: 'closed', key: 'a', reason: 'unsent', at: AT };
const _final = { phase: 'final', jobId: 'job_1', status: 'completed', at: AT };

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
