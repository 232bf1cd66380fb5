// Secrets in errors, logs, hooks, and inspected objects.
import { inspect } from 'node:util';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type APIError, type ClientOptions, ConnectionError, GenClient } from '../../src/index.js';
import { advanceUntil } from '../support/advance-until.js';
import { BASE_URL, created, freshKey, json, PROMPT, rejection, stubbed } from './support.js';

afterEach(() => void vi.useRealTimers());

/** Creates a logger and hooks that record everything. */
function createRecorder() {
  const write = vi.fn();
  const hooks = { onRequest: write, onResponse: write, onRetry: write };
  const logger = { error: write, warn: write, info: write, debug: write };
  return { write, options: { hooks, logger, logLevel: 'debug' as const } };
}

/** Formats a value in every way that a log, debugger, or error page could. */
function formatFully(value: unknown): string {
  const texts = [inspect(value, { depth: 20, showHidden: true, getters: true }), String(value), JSON.stringify(value)];
  for (let error = value; error instanceof Error; error = error.cause) texts.push(error.stack ?? '', error.message);
  if (value !== null && typeof value === 'object' && 'headers' in value && value.headers instanceof Headers) {
    texts.push(JSON.stringify([...value.headers]));
  }
  return texts.join('\n');
}

describe('the API key', () => {
  it("isn't visible in the client, its resources, or its options", () => {
    const apiKey = freshKey();
    const secret = 'whsec_do_not_show';
    const client = new GenClient({ apiKey, baseUrl: BASE_URL, webhookSecret: secret });
    for (const value of [client, client.videos, client.jobs, client.uploads, { ...client }]) {
      expect(formatFully(value)).not.toContain(apiKey);
      expect(formatFully(value)).not.toContain(secret);
    }
    expect(inspect(client)).toBe(`GenClient { baseUrl: '${BASE_URL}', apiKey: '[redacted]' }`);
    expect(JSON.stringify(client)).toBe(JSON.stringify({ baseUrl: BASE_URL, apiKey: '[redacted]' }));
  });

  describe('is never in a fetch error, which is otherwise unchanged:', () => {
    const errorWith = <Fields extends object>(fields: Fields) => Object.assign(new Error('lost'), fields);
    const circular = (apiKey: string) => {
      const error = errorWith({ request: { self: {}, token: apiKey } });
      error.request.self = error;
      return error;
    };
    it.each<[string, (apiKey: string) => unknown]>([
      ['headers of an error', (key) => errorWith({ headers: { authorization: `Bearer ${key}` } })],
      ['a deeply nested request', (key) => errorWith({ config: { request: { auth: [[key]] } } })],
      ['a Headers object', (key) => errorWith({ headers: new Headers({ authorization: key }) })],
      ['a Request', (key) => ({ request: new Request(BASE_URL, { headers: { authorization: key } }), why: 'lost' })],
      ['a field name', (key) => errorWith({ params: { [key]: 1 } })],
      ['a symbol', (key) => errorWith({ [Symbol('params')]: { key } })],
      ['an AggregateError', (key) => new AggregateError([new Error(`lost ${key}`), new Error('other')], 'all lost')],
      ['a plain object', (key) => ({ message: 'lost', authorization: `Bearer ${key}` })],
      ['the cause of a cause', (key) => new Error('lost', { cause: new Error('b', { cause: { key } }) })],
      ['a circular reference', circular],
      ['more values than are searched', (key) => errorWith({ all: [...Array(20_000).keys()], params: { key } })],
    ])('%s', async (_, createError) => {
      const apiKey = freshKey();
      const { client } = stubbed(() => Promise.reject(createError(apiKey)), { apiKey, maxRetries: 0 });
      const error = await rejection(client.videos.create(PROMPT));
      expect(error).toBeInstanceOf(ConnectionError);
      expect(formatFully(error)).not.toContain(apiKey);
      expect(formatFully(error)).toContain('lost');
    });

    it('an error with a code', async () => {
      const apiKey = freshKey();
      const cause = errorWith({ code: 'ECONNREFUSED', headers: { authorization: apiKey } });
      const { client } = stubbed(() => Promise.reject(cause), { apiKey, maxRetries: 0 });
      expect(await rejection(client.videos.create(PROMPT))).toMatchObject({ cause: { code: 'ECONNREFUSED' } });
    });

    it('an error without the key, which stays the same object', async () => {
      const cause = Object.assign(new AggregateError([new Error('lost')]), {
        request: { self: {} },
        bytes: Buffer.alloc(9),
      });
      cause.request.self = cause;
      const { client } = stubbed(() => Promise.reject(cause), { maxRetries: 0 });
      expect(await rejection(client.videos.create(PROMPT))).toHaveProperty('cause', cause);
    });

    it("a value that can't be converted to a string", async () => {
      const { client } = stubbed(() => Promise.reject(Object.create(null)), { maxRetries: 0 });
      const error = await rejection(client.videos.create(PROMPT, { idempotencyKey: 'order-1' }));
      expect(error).toMatchObject({ name: 'ConnectionError', idempotencyKey: 'order-1' });
    });
  });

  it("isn't in any log line, at any level", async () => {
    vi.useFakeTimers();
    const apiKey = freshKey();
    const { write, options } = createRecorder();
    const steps = [() => json({ m: apiKey }, { status: 500 }), () => json(created())];
    const { client } = stubbed(steps, { apiKey, ...options });
    await advanceUntil(client.images.create(PROMPT));
    expect(write.mock.calls.length).toBeGreaterThan(3);
    expect(formatFully(write.mock.calls)).not.toContain(apiKey);
  });
});

describe('an API key echoed in an error response', () => {
  const apiKey = 'sk-"quoted"-key';
  const rejectionWith = async (body: unknown, init: ResponseInit = {}, options: ClientOptions = {}) => {
    const { client } = stubbed(() => json(body, { status: 400, ...init }), { apiKey, ...options });
    return rejection(client.videos.create(PROMPT));
  };

  it('is removed from the message and from every string and name in the body and headers', async () => {
    const error = await rejectionWith(
      {
        error: { code: 'bad_ratio', message: `${apiKey} may not.` },
        data: {
          list: [`Bearer ${apiKey}`, 7, null, true],
          [`of ${apiKey}`]: { deep: apiKey },
          top_up_url: `https://pay.test/${apiKey}`,
        },
        request_id: `req ${apiKey}`,
      },
      { headers: { 'x-echo': `Bearer ${apiKey}`, 'x-more': 'y' } },
    );
    expect(error).toMatchObject({
      code: 'bad_ratio',
      message: '[redacted] may not.',
      data: {
        list: ['Bearer [redacted]', 7, null, true],
        'of [redacted]': { deep: '[redacted]' },
        top_up_url: 'https://pay.test/[redacted]',
      },
      requestId: 'req [redacted]',
    });
    const { headers } = error as APIError;
    expect([headers.get('x-echo'), headers.get('x-more')]).toEqual(['Bearer [redacted]', 'y']);
    expect(formatFully(error)).not.toContain(apiKey);
  });

  it("is removed from text that isn't JSON, including in its JSON form", async () => {
    const error = await rejectionWith(`upstream got ${JSON.stringify({ key: apiKey })} and ${apiKey}`);
    expect(error).toMatchObject({ data: 'upstream got {"key":"[redacted]"} and [redacted]' });
    expect((error as Error).message).not.toContain('quoted');
  });

  it("isn't reported as the error code if the service echoes it as the code", async () => {
    const key = 'sk-looks-like-a-code';
    expect(await rejectionWith({ error: key }, {}, { apiKey: key })).toMatchObject({ code: 'http_400' });
    expect(await rejectionWith({ code: `of-${key}` }, {}, { apiKey: key })).toMatchObject({ code: 'http_400' });
    // A documented code doesn't change, even if it contains the key.
    expect(await rejectionWith({ code: 'prompt_too_long' }, {}, { apiKey: 'prompt_too' })).toMatchObject({
      code: 'prompt_too_long',
    });
  });

  it("isn't removed if it is shorter than eight characters, because it may be a common word", async () => {
    const errorWith = (key: string) => rejectionWith({ message: `The ${key} is odd.` }, {}, { apiKey: key });
    expect(await errorWith('quality')).toMatchObject({ message: 'The quality is odd.' });
    expect(await errorWith('qualitys')).toMatchObject({ message: 'The [redacted] is odd.' });
  });
});

describe('URLs in errors', () => {
  it('have no query', async () => {
    const { client } = stubbed(() => json({}, { status: 404 }));
    const query = { token: 'hidden', page: 2, none: undefined };
    const error = await rejection(client.request({ method: 'GET', path: '/v1/search', query }));
    expect(error).toMatchObject({ url: `${BASE_URL}/v1/search` });
    expect(formatFully(error)).not.toContain('hidden');
  });

  const SIGNED = 'https://storage.test/put?X-Amz-Signature=hidden&n=1';
  /** Fetch errors that contain the URL, by runtime. */
  describe.each<[string, (url: string) => unknown]>([
    [
      'Deno',
      (url) =>
        new TypeError(`error sending request for url (${url}): client error (Connect)`, { cause: new Error(url) }),
    ],
    ['node-fetch', (url) => Object.assign(new Error(`request to ${url} failed, reason: reset`), { type: 'system' })],
    [
      'a custom client',
      (url) => Object.assign(new Error('reset'), { config: { url }, path: `/put${new URL(url).search}` }),
    ],
    ['a Request', (url) => Object.assign(new Error('reset'), { request: new Request(url) })],
  ])("have no query even if the runtime's message contains it: %s", (_runtime, thrown) => {
    it.each<[string, (client: GenClient) => Promise<unknown>]>([
      [
        'an upload',
        (client) => client.uploads.upload(new Blob(['x'.repeat(99)], { type: 'image/png' }), { filename: 'a.png' }),
      ],
      ['a request', (client) => client.request({ method: 'GET', path: '/v1/search', query: { token: 'hidden' } })],
    ])('%s', async (_call, run) => {
      const { write, options } = createRecorder();
      const { client } = stubbed(
        ({ url }) => {
          if (url.includes('?')) throw thrown(url);
          return json({ data: { upload_id: 'upl_1', direct_upload_url: SIGNED, direct_upload_method: 'PUT' } });
        },
        { maxRetries: 1, ...options },
      );
      vi.useFakeTimers();
      const error = await advanceUntil(rejection(run(client)));
      expect((error as Error).message).toContain('the connection failed');
      expect(write.mock.calls.length).toBeGreaterThan(3);
      for (const value of [error, write.mock.calls]) expect(formatFully(value)).not.toContain('hidden');
    });
  });
});

it('an API key echoed in a request ID is removed from hooks, logs, and results', async () => {
  const apiKey = freshKey();
  const { write, options } = createRecorder();
  const response = () => json(created(), { headers: { 'x-request-id': `req-${apiKey}` } });
  const { client } = stubbed(response, { apiKey, ...options });
  const { requestId } = await client.images.create(PROMPT).withResponse();
  expect(requestId).toBe('req-[redacted]');
  expect(formatFully(write.mock.calls)).toContain('req-[redacted]');
  expect(formatFully(write.mock.calls)).not.toContain(apiKey);
});

it('an API key is removed from the error of its key function', async () => {
  const key = freshKey();
  let calls = 0;
  const apiKey = () => {
    if (++calls > 1) throw new Error(`${key} could not be renewed`);
    return key;
  };
  const { client } = stubbed(() => json(created()), { apiKey, maxRetries: 0 });
  await client.images.create(PROMPT);
  const error = await rejection(client.images.create(PROMPT));
  expect((error as Error).message).toBe('apiKey failed: [redacted] could not be renewed');
  expect(formatFully(error)).not.toContain(key);
});
