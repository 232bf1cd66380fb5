// What an S3 store is asked word for word, and what each of its answers means.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { s3 } from '../../src/adapters/storage/index.js';
import type { S3Options } from '../../src/adapters/storage/s3-options.js';
import { rejection } from '../transport/support.js';

const KEY = 'videos/fox 1.mp4';
const URL_OF_KEY = 'https://store.test/media/videos/fox%201.mp4';
const CREDENTIALS = { accessKeyId: 'AKID', secretAccessKey: 'secret' };
const NOW = Date.UTC(2026, 0, 2, 3, 4, 5);
const AT = '(media/videos/fox 1.mp4).';
const signal = new AbortController().signal;

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: NOW }));
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

type Answer = Response | Error;
const xml = (status: number, code: string, more = '', headers: Record<string, string> = {}) =>
  new Response(`<Error><Code>${code}</Code><Message>It says why.</Message>${more}</Error>`, { status, headers });
const status = (code: number, headers: Record<string, string> = {}) => new Response(null, { status: code, headers });

/** A store that gives one answer after the other, and what it was asked. */
function start(answers: readonly Answer[], options: Partial<S3Options> = {}) {
  const left = [...answers];
  const asked: { method: string | undefined; url: string; headers: Record<string, string>; init: RequestInit }[] = [];
  const fetch = async (url: string, init: RequestInit) => {
    const headers = Object.fromEntries(new Headers(init.headers));
    asked.push({ method: init.method, url, headers, init });
    const answer = left.shift() ?? expect.fail(`nothing answers ${init.method} ${url}`);
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const store = s3({
    ...{ endpoint: 'https://store.test', bucket: 'media', key: KEY, credentials: CREDENTIALS, fetch },
    ...options,
  });
  const put = (more: object = {}) =>
    store.put(new Blob(['12345']).stream(), {
      ...{ contentType: 'video/mp4', sizeBytes: 5, metadata: { 'gen-job': 'job_1' }, signal, overwrite: false },
      ...more,
    });
  const head = async () => store.head?.({ signal });
  return { store, asked, put, head, left };
}

/** What an error of the store says. */
const told = (error: unknown) => {
  const { name, message, code, status } = error as Error & { code?: string; status?: number };
  return { name, message, code, status };
};
const storeError = (code: string, message: string, answered?: number) => ({
  name: 'StorageError',
  message,
  code,
  status: answered,
});

describe('a request', () => {
  it('is signed for its time, region and place, and says nothing else', async () => {
    const { asked, head } = start([status(404)], { region: 'eu-central-1' });
    expect(await head()).toBeUndefined();
    expect(asked).toEqual([
      {
        method: 'HEAD',
        url: URL_OF_KEY,
        headers: {
          'accept-encoding': 'identity',
          authorization: expect.stringMatching(
            /^AWS4-HMAC-SHA256 Credential=AKID\/20260102\/eu-central-1\/s3\/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=[\da-f]{64}$/,
          ),
          'x-amz-content-sha256': 'UNSIGNED-PAYLOAD',
          'x-amz-date': '20260102T030405Z',
        },
        init: expect.objectContaining({ redirect: 'manual', signal, cache: 'force-cache' }),
      },
    ]);
  });

  it('of a put carries what was given, the job, and the condition that nothing is there', async () => {
    const headers = { 'Cache-Control': 'max-age=60', 'x-amz-storage-class': 'STANDARD_IA' };
    const { asked, put } = start([status(200, { etag: '"1"' }), status(200, { etag: '"2"' })], { headers });
    expect(await put()).toEqual({ etag: '"1"' });
    const { 'x-amz-date': _, authorization, ...sent } = asked[0]?.headers ?? {};
    const always = {
      'cache-control': 'max-age=60',
      'content-length': '5',
      'content-type': 'video/mp4',
      'x-amz-content-sha256': 'UNSIGNED-PAYLOAD',
      'x-amz-meta-gen-job': 'job_1',
      'x-amz-storage-class': 'STANDARD_IA',
    };
    expect(sent).toEqual({ ...always, 'if-none-match': '*' });
    expect(authorization).toContain('/us-east-1/s3/');
    expect(asked[0]?.init).toMatchObject({ method: 'PUT', duplex: 'half', redirect: 'error', signal });
    expect(await put({ overwrite: true })).toEqual({ etag: '"2"' });
    expect(asked[1]?.headers).not.toHaveProperty('if-none-match');
  });

  it('where a stream has no length on the wire carries a Blob, whose length the runtime sends', async () => {
    const { asked, put } = start([status(200, { etag: '"1"' })]);
    vi.stubGlobal('Deno', {});
    await put();
    expect(asked[0]?.init.body).toBeInstanceOf(Blob);
    expect(asked[0]?.headers).not.toHaveProperty('content-length');
    expect(asked[0]?.init).toMatchObject({ redirect: 'manual' });
    expect(asked[0]?.init).not.toHaveProperty('cache');
  });

  it('by a fetch of Next.js says nothing about its cache', async () => {
    const fetch = Object.assign(
      vi.fn(async (_url: string, _init: RequestInit) => status(404)),
      { __nextPatched: true },
    );
    await start([], { fetch }).head();
    expect(fetch.mock.calls[0]?.[1]).not.toHaveProperty('cache');
  });

  it('of a session carries its token', async () => {
    const { asked, head } = start([status(404)], { credentials: { ...CREDENTIALS, sessionToken: 'token' } });
    await head();
    expect(asked[0]?.headers['x-amz-security-token']).toBe('token');
  });

  it.each<[Partial<S3Options>, string]>([
    [{ endpoint: 'https://store.test/' }, URL_OF_KEY],
    [{ endpoint: 'https://store.test/base//' }, 'https://store.test/base/media/videos/fox%201.mp4'],
    [{ endpoint: new URL('http://127.0.0.1:9000') }, 'http://127.0.0.1:9000/media/videos/fox%201.mp4'],
    [{ endpoint: undefined }, 'https://media.s3.us-east-1.amazonaws.com/videos/fox%201.mp4'],
    [{ endpoint: undefined, region: 'cn-north-1' }, 'https://media.s3.cn-north-1.amazonaws.com.cn/videos/fox%201.mp4'],
    [{ endpoint: undefined, bucket: 'a.b', key: 'ü' }, 'https://s3.us-east-1.amazonaws.com/a.b/%C3%BC'],
  ])('with %o goes to %s', async (options, url) => {
    const { asked, head } = start([status(404)], options);
    await head();
    expect(asked[0]?.url).toBe(url);
  });

  it('that has no answer is told with its cause, and one that was aborted by its reason', async () => {
    const cause = new TypeError('fetch failed');
    const { head } = start([cause]);
    const error = await rejection(head());
    expect(told(error)).toEqual(
      storeError('unreachable', `The store "s3" did not answer: the connection failed ${AT}`),
    );
    expect(error).toMatchObject({ cause, store: 's3' });
    const { store } = start([cause]);
    expect(await rejection(Promise.resolve(store.head?.({ signal: AbortSignal.abort('enough') })))).toBe('enough');
  });

  it('by a function that gives no credentials is refused, and nothing is sent', async () => {
    for (const given of [undefined, null, 'key', {}, { ...CREDENTIALS, sessionToken: '' }]) {
      const { asked, head } = start([], { credentials: (async () => given) as never });
      expect(await rejection(head())).toMatchObject({
        name: 'GenError',
        message: 'The function credentials must give an object with accessKeyId and secretAccessKey.',
      });
      expect(asked).toEqual([]);
    }
  });
});

describe('a look', () => {
  it('tells size, type, tag and all metadata, as far as the store does', async () => {
    const headers = {
      ...{ 'content-length': '7', 'content-type': 'video/mp4', etag: '"1"', 'x-request-id': '1' },
      ...{ 'x-amz-meta-gen-job': 'job_1', 'X-Amz-Meta-Owner': 'ann' },
    };
    expect(await start([status(200, headers)]).head()).toEqual({
      sizeBytes: 7,
      contentType: 'video/mp4',
      etag: '"1"',
      metadata: { 'gen-job': 'job_1', owner: 'ann' },
    });
    expect(await start([status(200)]).head()).toEqual({
      sizeBytes: Number.NaN,
      contentType: undefined,
      etag: undefined,
      metadata: {},
    });
  });

  it.each<[string, Answer]>([
    ['which is there', new Response('1')],
    ['which the credentials may not read either', xml(403, 'AccessDenied')],
    ['which is not there', xml(404, 'NoSuchKey')],
  ])('that is denied asks for the first byte of the object, %s, and says nothing', async (_, answer) => {
    const { asked, head } = start([status(403), answer]);
    expect(await head()).toBeUndefined();
    expect(asked.map(({ method, url }) => [method, url])).toEqual([
      ['HEAD', URL_OF_KEY],
      ['GET', URL_OF_KEY],
    ]);
    expect(asked[1]?.headers.range).toBe('bytes=0-0');
    expect(asked[1]?.headers).not.toHaveProperty('accept-encoding');
  });

  it('lets go of the byte that it does not need', async () => {
    const cancel = vi.fn();
    const answer = new Response(new ReadableStream({ cancel }));
    await start([status(403), answer]).head();
    expect(cancel).toHaveBeenCalledOnce();
  });

  const says = 'It says why.';
  it.each<[Response, number, string, string, Partial<S3Options>?]>([
    [xml(404, 'NoSuchBucket'), 404, 'NoSuchBucket', says],
    [xml(403, 'SignatureDoesNotMatch'), 403, 'SignatureDoesNotMatch', `${says} Check secretAccessKey.`],
    [xml(403, 'InvalidAccessKeyId'), 403, 'InvalidAccessKeyId', `${says} Check accessKeyId.`],
    [xml(403, 'RequestTimeTooSkewed'), 403, 'RequestTimeTooSkewed', `${says} Set the clock of this machine.`],
    [
      xml(403, 'RequestTimeTooSkewed', '', { date: 'soon' }),
      403,
      'RequestTimeTooSkewed',
      `${says} Set the clock of this machine.`,
    ],
    [xml(403, 'ExpiredToken'), 403, 'ExpiredToken', says],
    [xml(400, 'Malformed', '<Region>eu-west-1</Region>'), 400, 'Malformed', `${says} Pass region: "eu-west-1".`],
    [
      xml(400, 'Malformed', '', { 'x-amz-bucket-region': 'eu-west-1' }),
      400,
      'Malformed',
      `${says} Pass region: "eu-west-1".`,
    ],
    [xml(400, 'Malformed', '<Region>us-east-1</Region>'), 400, 'Malformed', says],
    [xml(400, 'Malformed', '<Region>eu-west-1</Region>'), 400, 'Malformed', says, { region: 'eu-west-1' }],
    [new Response('<html>', { status: 500 }), 500, 'http_500', 'HTTP status 500'],
    [status(301), 301, 'http_301', 'HTTP status 301'],
  ])('that fails with %o (%i, %s) says: %s', async (answer, code, name, words, options) => {
    const error = await rejection(start([status(code === 301 ? 301 : 400), answer], options).head());
    expect(told(error)).toEqual(storeError(name, `The store "s3" answers ${name}: ${words} ${AT}`, code));
  });

  it('reads the beginning of an error and not all of it', async () => {
    const cancel = vi.fn();
    let given = 0;
    const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
      given += 1;
      controller.enqueue(new Uint8Array(4_096).fill(32));
    };
    const answer = new Response(new ReadableStream({ pull, cancel }, { highWaterMark: 0 }), { status: 500 });
    expect(await rejection(start([status(500), answer]).head())).toMatchObject({ code: 'http_500' });
    expect(given).toBe(4);
    await vi.waitFor(() => expect(cancel).toHaveBeenCalledOnce());
  });
});

describe('a store that tells something about itself', () => {
  it('sends the next request by its time, once', async () => {
    const date = new Date(NOW + 3_600_000).toUTCString();
    const skewed = () => xml(403, 'RequestTimeTooSkewed', '', { date });
    const { asked, put } = start([skewed(), skewed(), status(200, { etag: '"1"' })]);
    expect(told(await rejection(put()))).toEqual(storeError('redirected', 'The store "s3" has another time.', 403));
    expect(told(await rejection(put()))).toEqual(
      storeError(
        'RequestTimeTooSkewed',
        `The store "s3" answers RequestTimeTooSkewed: It says why. Set the clock of this machine. ${AT}`,
        403,
      ),
    );
    await put();
    expect(asked.map(({ headers }) => headers['x-amz-date'])).toEqual([
      '20260102T030405Z',
      '20260102T040405Z',
      '20260102T040405Z',
    ]);
  });

  it.each(['ExpiredToken', 'ExpiredTokenException', 'TokenRefreshRequired'])(
    'asks a function for new credentials after %s, once',
    async (code) => {
      const credentials = vi.fn(() => CREDENTIALS);
      const { put } = start([xml(400, code), xml(400, code)], { credentials });
      expect(told(await rejection(put()))).toEqual(
        storeError('redirected', 'The store "s3" refuses an expired session.', 400),
      );
      expect(told(await rejection(put()))).toMatchObject({ code, status: 400 });
      expect(credentials).toHaveBeenCalledTimes(2);
    },
  );

  it('does not ask again for credentials that are no function, or after another code', async () => {
    expect(told(await rejection(start([xml(400, 'ExpiredToken')]).put()))).toMatchObject({ code: 'ExpiredToken' });
    const credentials = () => CREDENTIALS;
    const other = start([xml(400, 'NotExpiredToken')], { credentials });
    expect(told(await rejection(other.put()))).toMatchObject({ code: 'NotExpiredToken' });
  });

  it.each([307, 308])('is followed after a %i, with the signature of the new place', async (code) => {
    const there = 'https://other.test/media/fox.mp4';
    const body = new ReadableStream({});
    const moved = new Response(body, { status: code, headers: { location: there } });
    const { asked, head, put } = start([moved, status(404), status(200, { etag: '"1"' })]);
    expect(await head()).toBeUndefined();
    expect(await put()).toEqual({ etag: '"1"' });
    expect(asked.map(({ url }) => url)).toEqual([URL_OF_KEY, there, there]);
    expect(asked[1]?.headers.authorization).not.toBe(asked[0]?.headers.authorization);
  });

  it('may name the new place by its path alone', async () => {
    const { asked, head } = start([status(307, { location: '/moved/fox.mp4' }), status(404)]);
    await head();
    expect(asked[1]?.url).toBe('https://store.test/moved/fox.mp4');
  });

  it('has a put sent anew after a redirect', async () => {
    const { put } = start([status(307, { location: 'https://other.test/x' })], { endpoint: 'http://store.test' });
    expect(told(await rejection(put()))).toEqual(storeError('redirected', 'The store "s3" redirects the put.', 307));
  });

  const NOWHERE = 'to a place that is not told or not encrypted';
  it.each<[string, Response[], string]>([
    ['a second time', [status(307, { location: '/a' }), status(307, { location: '/b' })], 'a second time'],
    ['nowhere', [status(307)], NOWHERE],
    ['to what is no address', [status(307, { location: 'http://[' })], NOWHERE],
    ['out of encryption', [status(307, { location: 'http://store.test/x' })], NOWHERE],
  ])('is not followed %s', async (_, answers, why) => {
    const { put } = start(answers);
    if (answers.length > 1) await rejection(put());
    expect(told(await rejection(put()))).toEqual(
      storeError('redirected', `The store "s3" redirects the request ${why} ${AT}`, 307),
    );
  });

  it('may move from one place without encryption to another', async () => {
    const location = 'http://other.test/x';
    const { asked, head } = start([status(307, { location }), status(404)], { endpoint: 'http://store.test' });
    await head();
    expect(asked[1]?.url).toBe(location);
  });

  it('shows where it redirects a put to in the next put alone: that costs a copy in memory', async () => {
    const failed = new TypeError('fetch failed', { cause: new Error('unexpected redirect') });
    const { asked, put } = start([failed, status(200, { etag: '"1"' }), status(200, { etag: '"1"' })]);
    expect(told(await rejection(put()))).toEqual(
      storeError('redirected', 'The store "s3" redirects the put.', undefined),
    );
    await put();
    await put();
    expect(asked.map(({ init }) => init.redirect)).toEqual(['error', 'manual', 'error']);
  });
});

describe('a put', () => {
  it.each<[Response, string, string, number | undefined]>([
    [status(200), 'not_confirmed', 'no proof that the object is stored', undefined],
    [new Response(' \n', { status: 200 }), 'not_confirmed', 'no proof that the object is stored', undefined],
    [
      new Response('<html>', { status: 200, headers: { etag: '"1"' } }),
      'not_confirmed',
      'no proof that the object is stored',
      undefined,
    ],
    [
      xml(200, 'InternalError', '', { etag: '"1"' }),
      'InternalError',
      'no proof that the object is stored: It says why.',
      undefined,
    ],
    [status(404), 'http_404', 'http_404', 404],
    [xml(404, 'NoSuchKey'), 'NoSuchKey', 'NoSuchKey: It says why.', 404],
  ])('whose answer %o does not prove it (%s) says: %s', async (answer, code, what, given) => {
    const error = await rejection(start([answer]).put());
    expect(told(error)).toEqual(storeError(code, `The store "s3" answers the put with ${what} ${AT}`, given));
    expect(error).toMatchObject({ store: 's3' });
  });

  it('is proved by a tag and an empty answer', async () => {
    expect(await start([new Response(' \n', { headers: { etag: '"1"' } })]).put()).toEqual({ etag: '"1"' });
  });

  it.each([xml(501, 'Any'), xml(400, 'NotImplemented')])(
    'whose condition the store does not know is sent without it, for good',
    async (answer) => {
      const done = () => status(200, { etag: '"1"' });
      const { asked, put } = start([answer, done(), done()]);
      expect(told(await rejection(put()))).toEqual(
        storeError('redirected', 'The store "s3" does not support If-None-Match.', answer.status),
      );
      await put();
      await put();
      expect(asked.map(({ headers }) => headers['if-none-match'])).toEqual(['*', undefined, undefined]);
    },
  );

  it('without a condition that is refused all the same is an error', async () => {
    const error = await rejection(start([xml(501, 'NotImplemented')]).put({ overwrite: true }));
    expect(told(error)).toEqual(
      storeError('NotImplemented', `The store "s3" answers NotImplemented: It says why. ${AT}`, 501),
    );
  });

  it('that can neither be conditional nor be looked for is refused with the ways out', async () => {
    const { head, put } = start([status(403), xml(403, 'AccessDenied'), xml(501, 'NotImplemented')]);
    await head();
    expect(told(await rejection(put()))).toEqual(
      storeError(
        'cannot_check',
        `The store "s3" does not support If-None-Match, and the credentials may not look at the object. Allow them GetObject and ListBucket, or pass overwrite: true ${AT}`,
        501,
      ),
    );
  });
});

describe('a get', () => {
  it.each<[object, object]>([
    [{}, { 'accept-encoding': 'identity' }],
    [{ range: 'bytes=0-9' }, { range: 'bytes=0-9' }],
    [
      { range: 'bytes=0-9', ifRange: '"1"' },
      { range: 'bytes=0-9', 'if-range': '"1"' },
    ],
    [{ ifRange: '"1"' }, { 'accept-encoding': 'identity' }],
  ])('with %j is asked with %j', async (options, headers) => {
    const answer = new Response('12345', { status: 206 });
    const { asked, store } = start([answer]);
    expect(await store.get({ method: 'GET', ...options })).toBe(answer);
    const { 'x-amz-date': _, 'x-amz-content-sha256': __, authorization: ___, ...sent } = asked[0]?.headers ?? {};
    expect(sent).toEqual(headers);
    expect(asked[0]?.init.signal).toBeNull();
  });

  it('gives 416 as it is, nothing where there is no object, and an error for a refusal', async () => {
    const get = (answers: Response[], options: Partial<S3Options> = {}) =>
      start(answers, options).store.get({ method: 'GET', signal });
    expect((await get([status(416)]))?.status).toBe(416);
    expect(await get([xml(404, 'NoSuchKey')])).toBeUndefined();
    expect(told(await rejection(get([xml(403, 'AccessDenied')])))).toEqual(
      storeError('AccessDenied', `The store "s3" answers AccessDenied: It says why. ${AT}`, 403),
    );
    const expired = () => xml(400, 'ExpiredToken');
    const credentials = () => CREDENTIALS;
    expect((await get([expired(), new Response('1')], { credentials }))?.status).toBe(200);
    expect(await rejection(get([expired(), expired()], { credentials }))).toMatchObject({ code: 'ExpiredToken' });
  });

  it('may be a HEAD', async () => {
    const { asked, store } = start([status(200)]);
    await store.get({ method: 'HEAD', signal });
    expect(asked[0]).toMatchObject({ method: 'HEAD', init: { signal } });
  });
});
