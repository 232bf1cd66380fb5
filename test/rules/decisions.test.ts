// Rules as tables: the responses of object stores, and the responses to pages.
import { describe, expect, it } from 'vitest';
import * as store from '../../src/adapters/storage/store-responses.js';
import { ConnectionError, DownloadError, GenError, StorageError } from '../../src/index.js';

describe('a response of an object store', () => {
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
  ])('%s %s can be retried: %s', (status, code, passes) => {
    expect(store.isRetryableStoreError(failed(status, code))).toBe(passes);
  });

  it("that was never requested, because the call was invalid, can't be retried", () => {
    expect(store.isRetryableStoreError(failed(undefined, 'put_failed', new GenError('wrong')))).toBe(false);
    expect(store.isRetryableStoreError(failed(undefined, 'put_failed', failed(500)))).toBe(true);
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
  ])('a copy that ended with %s can succeed later: %s', (_, error, later) => {
    expect(store.mayCopyLater(error)).toBe(later);
  });

  it("shows whether the object exists, may exist, or can't be checked", () => {
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
    const responses = [
      { status: 404, code: '' },
      { status: 404, code: 'NoSuchBucket' },
      { status: 403, code: '' },
    ];
    expect(responses.map(store.isAbsent)).toEqual([true, false, false]);
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
