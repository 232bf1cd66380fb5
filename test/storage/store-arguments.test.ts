// What a store cannot be made with, and what is shown of it: never a secret.
import { describe, expect, it } from 'vitest';
import { asStorageError, objectJob } from '../../src/adapters/storage/destination.js';
import { type OutputDestination, r2, s3 } from '../../src/adapters/storage/index.js';
import type { S3Options } from '../../src/adapters/storage/s3-options.js';

const CREDENTIALS = { accessKeyId: 'AKID', secretAccessKey: 'pa55' };
const RIGHT = { bucket: 'media', key: 'fox.mp4', credentials: CREDENTIALS };

describe('s3', () => {
  const BUCKET = 'bucket must be the name of a bucket, not';
  const KEY = 'key must be a non-empty string of whole characters, without "." and ".." in its path, not';
  const PAIR = 'credentials must be an object with accessKeyId and secretAccessKey, or a function that gives one.';
  const ENDPOINT = 'endpoint must be an absolute http(s) URL without credentials, query and hash.';
  const HEADERS = 'headers has a name or a value that HTTP does not allow.';
  const named = (part: string) => `endpoint contains the bucket "media", which is added by itself: leave ${part} off.`;

  it.each<[object, string]>([
    [{ bucket: undefined }, `${BUCKET} undefined.`],
    [{ bucket: '' }, `${BUCKET} "".`],
    [{ bucket: 7 }, `${BUCKET} 7.`],
    [{ bucket: 'a/b' }, `${BUCKET} "a/b".`],
    [{ bucket: 'a b' }, `${BUCKET} "a b".`],
    [{ bucket: 'a?b' }, `${BUCKET} "a?b".`],
    [{ bucket: 'a#b' }, `${BUCKET} "a#b".`],
    [{ key: undefined }, `${KEY} undefined.`],
    [{ key: '' }, `${KEY} "".`],
    [{ key: '..' }, `${KEY} "..".`],
    [{ key: './a' }, `${KEY} "./a".`],
    [{ key: 'a/..' }, `${KEY} "a/..".`],
    [{ key: 'a/./b' }, `${KEY} "a/./b".`],
    [{ key: '\ud83e' }, `${KEY} "\\ud83e".`],
    [{ region: '' }, 'region must be a non-empty string, not "".'],
    [{ region: 7 }, 'region must be a non-empty string, not 7.'],
    [{ headers: 'x' }, 'headers must be an object, not a string.'],
    [{ fetch: 'x' }, 'fetch must be a function, not a string.'],
    [{ credentials: undefined }, PAIR],
    [{ credentials: null }, PAIR],
    [{ credentials: 'pa55' }, PAIR],
    [{ credentials: { accessKeyId: 'AKID' } }, PAIR],
    [{ credentials: { secretAccessKey: 'pa55' } }, PAIR],
    [{ credentials: { ...CREDENTIALS, accessKeyId: '' } }, PAIR],
    [{ credentials: { ...CREDENTIALS, secretAccessKey: 7 } }, PAIR],
    [{ credentials: { ...CREDENTIALS, sessionToken: '' } }, PAIR],
    [{ endpoint: 'store.test' }, ENDPOINT],
    [{ endpoint: 'store.test:9000' }, ENDPOINT],
    [{ endpoint: 'ftp://store.test' }, ENDPOINT],
    [{ endpoint: 'https://ann@store.test' }, ENDPOINT],
    [{ endpoint: 'https://:pa55@store.test' }, ENDPOINT],
    [{ endpoint: 'https://store.test?token=pa55' }, ENDPOINT],
    [{ endpoint: 'https://store.test/#pa55' }, ENDPOINT],
    [{ endpoint: null }, ENDPOINT],
    [{ endpoint: 'https://store.test/media' }, named('"/media" at the end')],
    [{ endpoint: 'https://store.test/a/media/' }, named('"/media" at the end')],
    [{ endpoint: 'https://media.s3.amazonaws.com' }, named('"media." at the beginning')],
    [{ endpoint: 'https://media.s3-eu-west-1.amazonaws.com' }, named('"media." at the beginning')],
    [{ headers: { 'x y': '1' } }, HEADERS],
    [{ headers: { x: 'pa55\0' } }, HEADERS],
  ])('is refused for %j: %s', (wrong, message) => {
    expect(() => s3({ ...RIGHT, ...wrong } as S3Options)).toThrow(
      expect.objectContaining({ name: 'GenError', message }),
    );
  });

  it.each<object>([
    {},
    { bucket: 'my.media-1_2' },
    { key: '...' },
    { key: 'a.b/..c/d..' },
    { key: '🦊.mp4' },
    { region: 'auto', headers: {}, fetch: globalThis.fetch },
    { credentials: () => CREDENTIALS },
    { credentials: { ...CREDENTIALS, sessionToken: undefined } },
    { credentials: { ...CREDENTIALS, sessionToken: 'token' } },
    { endpoint: 'http://127.0.0.1:9000' },
    { endpoint: new URL('https://store.test/base/') },
    { endpoint: 'https://store.test/media/base' },
    { endpoint: 'https://media.store.test' },
    { endpoint: 'https://old-media.s3.amazonaws.com' },
  ])('takes %j', (right) => {
    expect(s3({ ...RIGHT, ...right } as S3Options).store).toBe('s3');
  });
});

describe('r2', () => {
  const bucket = { head: async () => null, get: async () => null, put: async () => null };
  const METHODS = 'bucket must be an object with the methods head, get, put, not';
  it.each<[unknown, unknown, string]>([
    [undefined, 'fox.mp4', 'r2(bucket, key): bucket is undefined. Bind it in wrangler.jsonc: r2_buckets.'],
    [null, 'fox.mp4', `${METHODS} null.`],
    ['media', 'fox.mp4', `${METHODS} a string.`],
    [{ ...bucket, put: undefined }, 'fox.mp4', `${METHODS} an object.`],
    [{ ...bucket, get: undefined }, 'fox.mp4', `${METHODS} an object.`],
    [{ ...bucket, head: undefined }, 'fox.mp4', `${METHODS} an object.`],
    [bucket, undefined, 'key must be a non-empty string, not undefined.'],
    [bucket, '', 'key must be a non-empty string, not "".'],
    [bucket, 7, 'key must be a non-empty string, not 7.'],
  ])('is refused for %j and %j: %s', (given, key, message) => {
    expect(() => r2(given as never, key as never)).toThrow(expect.objectContaining({ name: 'GenError', message }));
  });

  it('takes a bucket and a key', () => {
    expect(r2(bucket, 'fox.mp4').store).toBe('r2');
  });
});

describe('what a store throws', () => {
  it.each<[unknown, object]>([
    [
      new Error('away'),
      { code: 'put_failed', status: undefined, message: 'The store "mine" failed to take the file: away' },
    ],
    ['away', { code: 'put_failed', status: undefined, message: 'The store "mine" failed to take the file: away' }],
    [undefined, { code: 'put_failed', message: 'The store "mine" failed to take the file: undefined' }],
    [Object.assign(new Error('no'), { code: 'Denied' }), { code: 'Denied', status: undefined }],
    [Object.assign(new Error('no'), { code: 7 }), { code: 'put_failed', status: undefined }],
    [Object.assign(new Error('no'), { code: 'Denied', status: 403 }), { code: 'Denied', status: 403 }],
    [{ status: 403 }, { code: 'http_403', status: 403 }],
    [{ status: '404' }, { code: 'http_404', status: 404 }],
    [{ statusCode: 503 }, { code: 'http_503', status: 503 }],
    [
      { statusCode: 503, status: 403 },
      { code: 'http_503', status: 503 },
    ],
    [{ $metadata: { httpStatusCode: 400 } }, { code: 'http_400', status: 400 }],
    [{ response: { status: 401 } }, { code: 'http_401', status: 401 }],
    [
      { response: { status: 401 }, $metadata: { httpStatusCode: 400 } },
      { code: 'http_400', status: 400 },
    ],
    [
      { status: 'error', response: { status: 599 } },
      { code: 'http_599', status: 599 },
    ],
    [{ status: 99 }, { code: 'put_failed', status: undefined }],
    [{ status: 600 }, { code: 'put_failed', status: undefined }],
    [{ status: 4030 }, { code: 'put_failed', status: undefined }],
    [{ status: 1403 }, { code: 'put_failed', status: undefined }],
    [
      { $metadata: 'x', response: 7 },
      { code: 'put_failed', status: undefined },
    ],
  ])('%j becomes a StorageError with %j', (thrown, expected) => {
    const error = asStorageError(thrown, 'mine', 'to take the file');
    expect(error).toMatchObject({ name: 'StorageError', store: 'mine', ...expected });
    expect(error.cause).toBe(thrown);
    expect(asStorageError(error, 'other', 'to do')).toBe(error);
  });
});

it.each<[Awaited<ReturnType<NonNullable<OutputDestination['head']>>>, string | undefined]>([
  [{ sizeBytes: 1 }, undefined],
  [{ sizeBytes: 1, metadata: {} }, undefined],
  [{ sizeBytes: 1, metadata: { other: 'x', 'gen-job': 'job_1' } }, 'job_1'],
  [{ sizeBytes: 1, metadata: { 'Gen-Job': 'job_1' } }, 'job_1'],
  [{ sizeBytes: 1, metadata: { 'x-gen-job': 'job_1' } }, undefined],
])('the object %j is that of %s', (object, job) => {
  expect(object && objectJob(object)).toBe(job);
});
