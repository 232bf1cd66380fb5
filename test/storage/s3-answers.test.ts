// What an S3 store is asked word for word, and what each of its answers means.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { s3 } from '../../src/adapters/storage/index.js';
import type { S3Options } from '../../src/adapters/storage/s3-options.js';
import { rejection } from '../transport/support.js';

const KEY = 'videos/fox 1.mp4';
const URL_OF_KEY = 'https://store.test/media/videos/fox%201.mp4';
const CREDENTIALS = { accessKeyId: 'AKID', secretAccessKey: 'secret' };
const NOW = Date.UTC(2026, 0, 2, 3, 4, 5);
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
  it('by a fetch of Next.js says nothing about its cache', async () => {
    const fetch = Object.assign(
      vi.fn(async (_url: string, _init: RequestInit) => status(404)),
      { __nextPatched: true },
    );
    await start([], { fetch }).head();
    expect(fetch.mock.calls[0]?.[1]).not.toHaveProperty('cache');
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
    expect(await start([status(200, { etag: '"1"' })]).head()).toEqual({
      sizeBytes: Number.NaN,
      contentType: undefined,
      etag: '"1"',
      metadata: {},
    });
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
    expect(given).toBe(5); // One piece more shows that it is longer.
    await vi.waitFor(() => expect(cancel).toHaveBeenCalledOnce());
  });
});

describe('a store that tells something about itself', () => {
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
});
