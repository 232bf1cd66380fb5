// Decisions about object stores' responses, as tables.
import { describe, expect, it } from 'vitest';
import * as store from '../../src/adapters/storage/store-responses.js';
import { ConnectionError, DownloadError, GenError, StorageError } from '../../src/index.js';

describe("an object store's response", () => {
  const storageError = (status: number | undefined, code = 'put_failed', cause?: unknown) =>
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
  ])('with status %s and code %s can be retried: %s', (status, code, isRetryable) => {
    expect(store.isRetryableStoreError(storageError(status, code))).toBe(isRetryable);
  });

  it("can't be retried if the call was invalid and never sent", () => {
    expect(store.isRetryableStoreError(storageError(undefined, 'put_failed', new GenError('wrong')))).toBe(false);
    expect(store.isRetryableStoreError(storageError(undefined, 'put_failed', storageError(500)))).toBe(true);
  });

  const download = (code: string) => new DownloadError('no', { code } as never);
  it.each<[string, GenError, boolean]>([
    ['an interrupted download', download('interrupted'), true],
    ['a file that changed during the download', download('file_changed'), true],
    ['an expired file', download('output_expired'), false],
    ['a store that timed out', storageError(undefined, 'timeout'), true],
    ['an unreachable store', storageError(undefined, 'unreachable'), true],
    ['a put that failed without a response', storageError(undefined, 'put_failed'), true],
    ['an invalid name', storageError(undefined, 'invalid_name'), false],
    ['a 503 from the store', storageError(503), true],
    ['a 403 from the store', storageError(403), false],
    ['a lost connection to the service', new ConnectionError('lost', { attempts: 1 }), true],
    ['no connection to the service', new ConnectionError('none', { attempts: 0 }), true],
    ['a page instead of the file', download('not_media'), true],
    ['an invalid call', new GenError('wrong'), false],
  ])('lets a copy that ended with %s be retried later: %s', (_, error, mayCopyLater) => {
    expect(store.mayCopyLater(error)).toBe(mayCopyLater);
  });

  it('indicates if the object exists or may exist', () => {
    const conflicts = [409, 412, 200, undefined].map((status) => store.isConflict(storageError(status)));
    expect(conflicts).toEqual([true, true, false, false]);
    const failures = [
      storageError(500),
      storageError(undefined, 'timeout'),
      storageError(undefined, 'unreachable'),
      storageError(400),
    ];
    expect(failures.map(store.mayHaveStored)).toEqual([true, true, true, false]);
  });

  const response = (status: number, code = '') => ({ status, code });
  it.each([
    ['isAbsent', store.isAbsent, [response(404)], [response(404, 'NoSuchBucket'), response(403)]],
    [
      'isUnknown',
      store.isUnknown,
      [response(403, 'AccessDenied'), response(403, 'xInvalidToken')],
      [response(403, 'SignatureDoesNotMatch'), response(403, 'InvalidAccessKeyId'), response(404)],
    ],
    ['rejectsCondition', store.rejectsCondition, [response(501), response(400, 'NotImplemented')], [response(400)]],
  ] as const)('is recognized by %s', (_, isMatch, matches, others) => {
    expect(matches.filter((candidate) => !isMatch(candidate))).toEqual([]);
    expect(others.filter((candidate) => isMatch(candidate))).toEqual([]);
  });

  it('is a temporary redirect if its status is 307 or 308', () => {
    expect([307, 308, 302].map(store.isTemporaryRedirect)).toEqual([true, true, false]);
  });
});
