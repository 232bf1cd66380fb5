import { beforeEach, describe, expect, it, vi } from 'vitest';
import { copyOutput, createOutputHandler, StorageError, s3 } from '../../src/adapters/storage/index.js';
import type { S3Options } from '../../src/adapters/storage/s3.js';
import { hash, LoopbackService } from '../files/loopback-service.js';
import { createClient, createMovie, EXPIRED, failure, openPerTest, quickPauses } from '../files/support.js';
import { S3Double, type S3Object } from './s3-double.js';

quickPauses();

const MOVIE = createMovie(1_500_000);
const SHA256 = hash(MOVIE);
const KEY = 'videos/job_1.mp4';

const service = openPerTest(new LoopbackService());
const store = openPerTest(new S3Double());
beforeEach(() => void service.addOutput('job_1', { body: MOVIE }));

const copy = (options: Partial<S3Options> = {}, copyOptions = {}) =>
  copyOutput(createClient(service), 'job_1', s3({ ...store.at(KEY), ...options }), copyOptions);
/** Creates an object that another program stored, with or without a job. */
const objectOf = (bytes: Uint8Array, job?: string): S3Object => ({
  bytes: Buffer.from(bytes),
  etag: '"1"',
  contentType: 'video/mp4',
  modified: new Date(),
  headers: job === undefined ? {} : { 'x-amz-meta-gen-job': job },
});
const OTHER_FILE = Buffer.from('another file');

it('puts the file in one signed request of known length, with the job in its metadata', async () => {
  const stored = await copy();
  const object = store.objects.get(KEY);
  expect(stored).toEqual({
    sizeBytes: MOVIE.length,
    contentType: 'video/mp4',
    sha256: SHA256,
    etag: object?.etag,
    existed: false,
  });
  expect(object?.bytes.equals(MOVIE)).toBe(true);
  expect(object?.contentType).toBe('video/mp4');
  expect(object?.headers).toEqual({ 'x-amz-meta-gen-job': 'job_1' });
  expect(store.requests.map(({ method }) => method)).toEqual(['HEAD', 'PUT']);
  expect(store.sent('PUT')[0]?.headers).toMatchObject({
    'content-length': `${MOVIE.length}`,
    'x-amz-content-sha256': 'UNSIGNED-PAYLOAD',
    'if-none-match': '*',
  });
});

it("sends custom headers, and no cache option with Next.js's fetch", async () => {
  await copy({ headers: { 'Cache-Control': 'max-age=60' } });
  expect(store.objects.get(KEY)?.headers).toMatchObject({ 'cache-control': 'max-age=60' });
  const fetch = vi.fn(async (_url: string, _init: RequestInit) => new Response(null, { status: 404 }));
  const { head } = s3({ ...store.at(KEY), fetch: Object.assign(fetch, { __nextPatched: true }) });
  await head?.({ signal: new AbortController().signal });
  expect(fetch.mock.calls[0]?.[1]).not.toHaveProperty('cache');
});

it.each(["it's ünï/日本 (1)!*+.mp4", 'a//b.mp4', '100%&b=c?d#e~.mp4'])('reaches the key %s', async (key) => {
  await copy({ key });
  expect([...store.objects.keys()]).toEqual([key]);
  expect(await copy({ key })).toMatchObject({ existed: true });
});

describe('a repeated copy', () => {
  it("transfers no bytes and doesn't open the file", async () => {
    await copy();
    const repeated = await copy();
    expect(repeated).toMatchObject({ existed: true, sizeBytes: MOVIE.length, contentType: 'video/mp4' });
    expect(repeated.sha256).toBeUndefined();
    expect([service.downloads.length, store.sent('PUT').length]).toEqual([1, 1]);
  });

  it("is rejected if the object is another job's, and replaces it if overwrite is true", async () => {
    service.addOutput('job_2', { body: new Uint8Array(10) });
    await copyOutput(createClient(service), 'job_2', s3(store.at(KEY)));
    const error = await failure(copy());
    expect(error).toMatchObject({ name: 'StorageError', code: 'object_exists', status: 412, store: 's3' });
    expect(error.message).toContain('overwrite: true');
    expect(service.downloads).toHaveLength(1);
    expect(await copy({}, { overwrite: true })).toMatchObject({ existed: false, sha256: SHA256 });
  });

  it('is rejected if the object has the same job and another size', async () => {
    await copy();
    service.addOutput('job_1', { body: MOVIE.subarray(1) });
    expect(await failure(copy())).toMatchObject({ code: 'object_exists' });
  });

  it('finds the object even after the link has expired', async () => {
    await copy();
    service.addOutput('job_1', { body: MOVIE, rejection: EXPIRED });
    expect(await copy()).toMatchObject({ existed: true });
  });
});

const DENIED = { status: 403, code: 'AccessDenied', always: true } as const;

describe('credentials that can only put', () => {
  const deny = () => store.faults.push({ method: 'HEAD', ...DENIED }, { method: 'GET', ...DENIED });

  it('store the file with a conditional put', async () => {
    deny();
    expect(await copy({}, { retries: 0 })).toMatchObject({ existed: false, sha256: SHA256 });
    expect(store.objects.get(KEY)?.bytes.equals(MOVIE)).toBe(true);
  });

  it('replace an object with overwrite', async () => {
    await copy();
    deny();
    expect(await copy({}, { retries: 0, overwrite: true })).toMatchObject({ existed: false, sha256: SHA256 });
  });

  it("can't replace an existing object without overwrite", async () => {
    await copy();
    deny();
    expect(await failure(copy({}, { retries: 0 }))).toMatchObject({ name: 'StorageError', status: 412 });
  });
});

const XML_ERROR = '<?xml version="1.0"?><Error><Code>InternalError</Code><Message>Try again.</Message></Error>';

describe('an ambiguous response to a put', () => {
  it.each([
    ['a 404 without a body', { status: 404 }],
    ['a 200 with an error in its body', { status: 200, headers: { etag: '"1"' }, body: XML_ERROR }],
    ['a sign-in page', { status: 200, headers: { 'content-type': 'text/html' }, body: '<p>Sign in</p>' }],
  ])('%s is an error if a HEAD finds no object', async (_, response) => {
    store.faults.push({ method: 'PUT', always: true, response });
    const error = await failure(copy({}, { retries: 1 }));
    expect(error).toMatchObject({ name: 'StorageError', store: 's3' });
    expect(store.objects.size).toBe(0);
    expect(store.requests.at(-1)?.method).toBe('HEAD');
  });

  it.each([
    ['a 404 without a body', { status: 404 }],
    ['a sign-in page', { status: 200, headers: { 'content-type': 'text/html' }, body: '<p>Sign in</p>' }],
    ['a 204 without an entity tag', { status: 204 }],
  ])('%s is a success if a HEAD finds the object', async (_, response) => {
    store.faults.push({ method: 'PUT', response: { ...response, isStored: true } });
    const etag = expect.stringMatching(/^"[0-9a-f]{32}"$/);
    expect(await copy({}, { retries: 0 })).toMatchObject({ existed: false, sha256: SHA256, etag });
    expect(store.requests.map(({ method }) => method)).toEqual(['HEAD', 'PUT', 'HEAD']);
  });

  it("isn't a success because of another job's object with the same size", async () => {
    const beforeStore = () => store.objects.set(KEY, objectOf(MOVIE, 'job_2'));
    store.faults.push({ method: 'PUT', beforeStore, response: { status: 200 } });
    expect(await failure(copy({}, { retries: 0 }))).toMatchObject({ code: 'object_exists' });
  });
});

describe('a store without If-None-Match, such as Backblaze B2', () => {
  const rejectConditions = () =>
    store.faults.push({ method: 'PUT', conditional: true, status: 501, code: 'NotImplemented', always: true });

  it('receives the put without the condition, after a HEAD', async () => {
    rejectConditions();
    expect(await copy({}, { retries: 0 })).toMatchObject({ existed: false, sha256: SHA256 });
    expect(store.requests.map(({ method }) => method)).toEqual(['HEAD', 'PUT', 'HEAD', 'PUT']);
    expect(store.sent('PUT')[1]?.headers['if-none-match']).toBeUndefined();
    expect(await copy()).toMatchObject({ existed: true });
  });

  it('retains an object that appears between the two puts', async () => {
    rejectConditions();
    store.faults.splice(0, 1, {
      method: 'PUT',
      conditional: true,
      beforeStore: () => store.objects.set(KEY, objectOf(OTHER_FILE)),
      response: { status: 501, body: '<Error><Code>NotImplemented</Code></Error>' },
    });
    expect(await failure(copy({}, { retries: 0 }))).toMatchObject({ code: 'object_exists' });
    expect(store.objects.get(KEY)?.bytes.equals(OTHER_FILE)).toBe(true);
  });

  it("causes an error that lists the alternatives if the credentials can't read", async () => {
    rejectConditions();
    store.faults.push({ method: 'HEAD', ...DENIED }, { method: 'GET', ...DENIED });
    const error = await failure(copy({}, { retries: 0 }));
    expect(error.code).toBe('cannot_check');
    expect(error.message).toContain('overwrite: true');
    expect(await copy({}, { retries: 0, overwrite: true })).toMatchObject({ existed: false });
  });
});

describe('a concurrent copy', () => {
  it('of the same file is found, and the copy resolves with existed: true', async () => {
    store.faults.push({ method: 'PUT', beforeStore: () => store.objects.set(KEY, objectOf(MOVIE, 'job_1')) });
    expect(await copy()).toMatchObject({ existed: true, etag: '"1"' });
  });

  it('of another file is an error, and nothing is replaced', async () => {
    store.faults.push({ method: 'PUT', beforeStore: () => store.objects.set(KEY, objectOf(OTHER_FILE)) });
    expect(await failure(copy({}, { retries: 0 }))).toMatchObject({ code: 'object_exists' });
    expect(store.objects.get(KEY)?.bytes.equals(OTHER_FILE)).toBe(true);
  });

  it('as one of ten stores a single object, and all ten resolve with its size', async () => {
    const copies = await Promise.all(Array.from({ length: 10 }, () => copy()));
    expect(store.objects.size).toBe(1);
    expect(new Set(copies.map(({ sizeBytes }) => sizeBytes))).toEqual(new Set([MOVIE.length]));
    expect(copies.filter(({ existed }) => !existed)).toHaveLength(1);
  });
});

describe('a failing request', () => {
  it.each([
    ['is overloaded', { status: 503, code: 'SlowDown' }],
    ['has an internal error', { status: 500, code: 'InternalError' }],
    ['timed out', { status: 400, code: 'RequestTimeout' }],
    ['has a conflict', { status: 409, code: 'ConditionalRequestConflict' }],
    ['closes the connection at the first byte', { resetAfter: 0 }],
    ['closes the connection during the body', { resetAfter: 700_000 }],
  ])('is retried if the store %s', async (_, fault) => {
    store.faults.push({ method: 'PUT', ...fault }, { method: 'PUT', ...fault });
    expect(await copy()).toMatchObject({ existed: false, sha256: SHA256 });
    expect(store.sent('PUT')).toHaveLength(3);
    expect(store.objects.get(KEY)?.bytes.equals(MOVIE)).toBe(true);
  });

  it('is recognized if the object was stored, with its sha256 and without a second put', async () => {
    store.faults.push({ method: 'PUT', commitThenDrop: true });
    expect(await copy()).toMatchObject({ existed: false, sha256: SHA256 });
    expect(store.sent('PUT')).toHaveLength(1);
  });

  it("rejects with the store's error after the last retry", async () => {
    store.faults.push({ method: 'PUT', status: 503, code: 'SlowDown', always: true });
    const error = await failure(copy({}, { retries: 2 }));
    expect(error).toMatchObject({ name: 'StorageError', code: 'SlowDown', status: 503, store: 's3' });
    expect(store.sent('PUT')).toHaveLength(3);
    expect(store.objects.size).toBe(0);
  });

  it('is also retried if it is a HEAD', async () => {
    store.faults.push({ method: 'HEAD', status: 503 }, { method: 'HEAD', resetAfter: 0 });
    expect(await copy()).toMatchObject({ existed: false });
  });
});

describe("the store's rejections", () => {
  const wrongSecret = { credentials: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'other' } };
  const unknownKey = { credentials: { accessKeyId: 'AKIDOTHER', secretAccessKey: 'other' } };

  it.each<[string, Partial<S3Options>, string, number, string]>([
    ['a wrong secret', wrongSecret, 'SignatureDoesNotMatch', 403, 'SignatureDoesNotMatch'],
    ['an unknown access key', unknownKey, 'InvalidAccessKeyId', 403, 'InvalidAccessKeyId'],
    ['a wrong region', { region: 'us-west-2' }, 'AuthorizationHeaderMalformed', 400, 'eu-central-1'],
    ['an unknown bucket', { bucket: 'nowhere' }, 'NoSuchBucket', 404, 'NoSuchBucket'],
  ])("%s is reported with the store's code, and not retried", async (_, options, code, status, fix) => {
    const error = await failure(copy(options));
    expect(error).toBeInstanceOf(StorageError);
    expect(error).toMatchObject({ code, status, store: 's3' });
    expect(error.message).toContain(fix);
    expect(`${error.message} ${JSON.stringify(error)}`).not.toContain('other');
    // Only the put distinguishes a missing bucket from a missing object.
    expect(store.sent('PUT')).toHaveLength(code === 'NoSuchBucket' ? 1 : 0);
  });

  it('a wrong secret is reported even if the store closes the connection during the put', async () => {
    store.isAbrupt = true;
    expect(await failure(copy(wrongSecret))).toMatchObject({ code: 'SignatureDoesNotMatch', status: 403 });
  });

  it('a wrong clock is reported before the download starts', async () => {
    for (const method of ['HEAD', 'GET'] as const)
      store.faults.push({ method, status: 403, code: 'RequestTimeTooSkewed', always: true });
    expect((await failure(copy())).message).toContain('RequestTimeTooSkewed');
    expect(service.downloads).toEqual([]);
  });

  it('an HTML page instead of a store is reported as a wrong endpoint', async () => {
    const fetch = async () => new Response('<p>Sign in</p>', { headers: { 'content-type': 'text/html' } });
    const error = await failure(copy({ fetch }));
    expect(error).toMatchObject({ code: 'not_s3', status: 200 });
    expect(error.message).toContain('is not an S3 store: its response to HEAD has no ETag. Check endpoint');
    expect(service.downloads).toEqual([]);
  });

  it('an unreachable store is reported as unreachable', async () => {
    await store.close();
    const error = await failure(copy({}, { retries: 1 }));
    expect(error).toMatchObject({ code: 'unreachable' });
    expect(error).not.toHaveProperty('status', expect.anything());
  });
});

it('calls a credentials function for each request, and reports expired credentials once', async () => {
  store.account = { ...store.account, sessionToken: 'second' };
  const tokens = ['second', 'second', 'first'];
  const credentials = vi.fn(async () => ({ ...store.account, sessionToken: tokens.shift() ?? 'first' }));
  expect(await copy({ credentials })).toMatchObject({ existed: false });
  expect(credentials).toHaveBeenCalledTimes(2);
  expect(await failure(copy({ credentials }))).toMatchObject({ code: 'ExpiredToken' });
  expect(store.sent('PUT')).toHaveLength(1);
});

describe('a redirect', () => {
  const other = openPerTest(new S3Double());
  const toOtherStore = () => ({ redirect: { status: 307, location: `${other.endpoint}/media/${KEY}` } });

  it('in response to a HEAD is followed once, and the put is sent directly to its target', async () => {
    store.faults.push({ method: 'HEAD', ...toOtherStore() });
    expect(await copy({}, { retries: 0 })).toMatchObject({ existed: false });
    expect(other.objects.get(KEY)?.bytes.equals(MOVIE)).toBe(true);
    expect(store.sent('PUT')).toHaveLength(0);
  });

  it('in response to a put is followed with a new signature', async () => {
    store.faults.push({ method: 'PUT', ...toOtherStore() }, { method: 'PUT', ...toOtherStore() });
    expect(await copy({}, { retries: 0 })).toMatchObject({ existed: false, sha256: SHA256 });
    expect(other.objects.get(KEY)?.bytes.equals(MOVIE)).toBe(true);
    expect(store.objects.size).toBe(0);
  });

  it.each(['http://store.test/media/a.mp4', 'ftp://store.test/a.mp4', ''])(
    'from https to "%s" is rejected, and nothing is sent there',
    async (location) => {
      const fetch = vi.fn(async (_url: string, _init: RequestInit) => {
        return new Response(null, { status: 307, headers: { location } });
      });
      const error = await failure(copy({ endpoint: 'https://store.test', fetch }, { retries: 0 }));
      expect(error).toMatchObject({ code: 'redirected', status: 307 });
      expect(fetch.mock.calls.map(([url]) => url)).toEqual([`https://store.test/media/${KEY}`]);
    },
  );

  it('to another redirect is rejected', async () => {
    store.faults.push({ method: 'HEAD', ...toOtherStore() });
    const toFirstStore = { redirect: { status: 307, location: `${store.endpoint}/media/${KEY}` } };
    other.faults.push({ method: 'PUT', ...toFirstStore }, { method: 'PUT', ...toFirstStore });
    expect(await failure(copy())).toMatchObject({ code: 'redirected', status: 307 });
  });
});

it.each<[object, string]>([
  [{ headers: { 'x y': '1' } }, 'headers contains'],
  [{ bucket: '' }, 'bucket must be'],
  [{ key: 'a/../b' }, 'key must be'],
  [{ endpoint: 'minio:9000' }, 'endpoint must be'],
  [{ endpoint: 'https://user:pa55@host' }, 'endpoint must be'],
  [{ credentials: { accessKeyId: 'a' } }, 'credentials must be'],
  [{ regoin: 'x' }, 'Did you mean "region"?'],
  [{ key: 'fox-\ud83e.mp4' }, 'key must be'],
  [{ endpoint: 'https://account.r2.test/media/' }, 'Remove "/media" at the end'],
  [{ endpoint: 'https://media.s3.eu-central-1.amazonaws.com' }, 'Remove "media." at the beginning'],
])('throws for %j', (options, message) => {
  const open = () => s3({ ...store.at(KEY), ...options } as S3Options);
  expect(open).toThrow(message);
  expect(open).not.toThrow('pa55');
});

it.each(['https://media.store.test', 'https://account.supabase.co/storage/v1/media'])(
  'accepts the endpoint %s',
  (endpoint) => {
    expect(s3({ ...store.at(KEY), endpoint }).store).toBe('s3');
  },
);

it("uses the bucket's host name on AWS, and the path for a bucket with a dot", async () => {
  const urls: string[] = [];
  const fetch = async (url: string) => {
    urls.push(url);
    return new Response(null, { status: 404 });
  };
  const { account: credentials } = store;
  for (const bucket of ['media', 'media.example']) {
    const { head } = s3({ region: 'eu-west-1', bucket, key: 'a/b.mp4', credentials, fetch });
    await head?.({ signal: new AbortController().signal });
  }
  expect(urls).toEqual([
    'https://media.s3.eu-west-1.amazonaws.com/a/b.mp4',
    'https://s3.eu-west-1.amazonaws.com/media.example/a/b.mp4',
  ]);
});

it('serves ranges of the copy through a handler, without a request to the service', async () => {
  await copy();
  const requestsBefore = service.requests.length;
  const handler = createOutputHandler({
    client: createClient(service),
    authorize: () => true,
    source: () => s3(store.at(KEY)),
  });
  const serve = (range: string) => handler(new Request('https://app.test/files/job_1', { headers: { range } }));
  const response = await serve('bytes=10-19');
  expect([response.status, response.headers.get('content-range')]).toEqual([206, `bytes 10-19/${MOVIE.length}`]);
  expect(await response.bytes()).toEqual(MOVIE.slice(10, 20));
  expect(JSON.stringify([...response.headers])).not.toContain('x-amz');
  const unsatisfiable = await serve('bytes=9999999-');
  expect([unsatisfiable.status, unsatisfiable.headers.get('content-range')]).toEqual([416, `bytes */${MOVIE.length}`]);
  expect(service.requests.length).toBe(requestsBefore);
});
