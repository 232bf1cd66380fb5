import { inspect } from 'node:util';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ConnectionError, GenClient } from '../../src/index.js';
import { pass } from '../support/pass.js';
import { BASE_URL, created, freshKey, json, rejection, stubbed } from './support.js';

const PROMPT = { prompt: 'a fox at dawn' };

afterEach(() => {
  vi.useRealTimers();
});

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

  describe('is removed from a fetch error that is otherwise unchanged:', () => {
    const circular = (apiKey: string) => {
      const lost = Object.assign(new Error('lost'), { request: { self: {}, token: apiKey } });
      lost.request.self = lost;
      return lost;
    };
    it.each<[string, (apiKey: string) => unknown]>([
      [
        'headers of an error',
        (key) => Object.assign(new Error('lost'), { headers: { authorization: `Bearer ${key}` } }),
      ],
      [
        'a deeply nested request',
        (key) => Object.assign(new Error('lost'), { config: { request: { auth: [[key]] } } }),
      ],
      ['a Headers object', (key) => Object.assign(new Error('lost'), { headers: new Headers({ authorization: key }) })],
      ['a Request', (key) => ({ request: new Request(BASE_URL, { headers: { authorization: key } }), why: 'lost' })],
      ['a field name', (key) => Object.assign(new Error('lost'), { sent: { [key]: 1 } })],
      ['a symbol', (key) => Object.assign(new Error('lost'), { [Symbol('kept')]: { key } })],
      ['an AggregateError', (key) => new AggregateError([new Error(`lost ${key}`), new Error('other')], 'all lost')],
      ['a plain object', (key) => ({ message: 'lost', authorization: `Bearer ${key}` })],
      ['the cause of a cause', (key) => new Error('lost', { cause: new Error('b', { cause: { key } }) })],
      ['a circular reference', circular],
      [
        'more values than are searched',
        (key) => Object.assign(new Error('lost'), { all: [...Array(20_000).keys()], sent: { key } }),
      ],
    ])('%s', async (_where, make) => {
      const apiKey = freshKey();
      const { client } = stubbed(() => Promise.reject(make(apiKey)), { apiKey, maxRetries: 0 });
      const error = await rejection(client.videos.create(PROMPT));
      expect(error).toBeInstanceOf(ConnectionError);
      expect(formatFully(error)).not.toContain(apiKey);
      expect(formatFully(error)).toContain('lost');
    });

    it("an error's code states that no connection was made", async () => {
      const apiKey = freshKey();
      const cause = Object.assign(new Error('lost'), { code: 'ECONNREFUSED', headers: { authorization: apiKey } });
      const { client } = stubbed(() => Promise.reject(cause), { apiKey, maxRetries: 0 });
      expect(await rejection(client.videos.create(PROMPT))).toMatchObject({ cause: { code: 'ECONNREFUSED' } });
    });

    it('an error without the key is the cause itself, with all its fields', async () => {
      const cause = Object.assign(new AggregateError([new Error('lost')]), {
        request: { self: {} },
        bytes: Buffer.alloc(9),
      });
      cause.request.self = cause;
      const { client } = stubbed(() => Promise.reject(cause), { maxRetries: 0 });
      expect(await rejection(client.videos.create(PROMPT))).toHaveProperty('cause', cause);
    });

    it("an error that can't be converted to a string", async () => {
      const { client } = stubbed(() => Promise.reject(Object.create(null)), { maxRetries: 0 });
      const error = await rejection(client.videos.create(PROMPT, { idempotencyKey: 'order-1' }));
      expect(error).toMatchObject({ name: 'ConnectionError', idempotencyKey: 'order-1' });
    });
  });

  it("isn't in any log line, at any level", async () => {
    vi.useFakeTimers();
    const apiKey = freshKey();
    const write = vi.fn();
    const logger = { error: write, warn: write, info: write, debug: write };
    const { client } = stubbed([() => json({ m: apiKey }, { status: 500 }), () => json(created())], {
      apiKey,
      logger,
      logLevel: 'debug',
    });
    await pass(client.images.create(PROMPT));
    expect(write.mock.calls.length).toBeGreaterThan(3);
    expect(formatFully(write.mock.calls)).not.toContain(apiKey);
  });

  it('is requested for each attempt, so a rotated key is used', async () => {
    vi.useFakeTimers();
    const keys = [freshKey(), freshKey()];
    let requested = 0;
    const apiKey = async () => keys[requested++] ?? '';
    const { client, seen } = stubbed([() => json({}, { status: 500 }), () => json(created())], { apiKey });
    await pass(client.videos.create(PROMPT));
    expect(seen.map((request) => request.headers.authorization)).toEqual(keys.map((key) => `Bearer ${key}`));
    expect(requested).toBe(2);
  });

  it('can end in a line break, like a key read from a file', async () => {
    const key = freshKey();
    for (const apiKey of [`${key}\n`, () => ` ${key}\r\n`]) {
      const { client, seen } = stubbed(() => json(created()), { apiKey });
      await client.images.create(PROMPT);
      expect(seen[0]?.headers.authorization).toBe(`Bearer ${key}`);
    }
  });

  it('is rejected without being shown if it is invalid', async () => {
    expect(() => new GenClient({ apiKey: 'sk-\nhidden', baseUrl: BASE_URL })).toThrow(
      /^apiKey contains whitespace or non-ASCII characters\. If it starts with "Bearer "/,
    );
    const { client, seen } = stubbed(() => json(created()), { apiKey: () => 'sk-\u0000hidden' });
    const error = await rejection(client.images.create(PROMPT));
    expect((error as Error).message).toMatch(/^apiKey/);
    expect(formatFully(error)).not.toContain('hidden');
    expect(seen).toHaveLength(0);
  });
});

describe('URLs in errors', () => {
  it('have no query', async () => {
    const { client } = stubbed(() => json({}, { status: 404 }));
    const call = client.request({
      method: 'GET',
      path: '/v1/search',
      query: { token: 'hidden', page: 2, none: undefined },
    });
    const error = await rejection(call);
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
      const events: unknown[] = [];
      const tell = (event: unknown) => void events.push(event);
      const write = vi.fn();
      const { client } = stubbed(
        ({ url }) => {
          if (url.includes('?')) throw thrown(url);
          return json({ data: { upload_id: 'upl_1', direct_upload_url: SIGNED, direct_upload_method: 'PUT' } });
        },
        {
          maxRetries: 1,
          hooks: { onRequest: tell, onResponse: tell, onRetry: tell },
          logger: { error: write, warn: write, info: write, debug: write },
          logLevel: 'debug',
        },
      );
      vi.useFakeTimers();
      const error = await pass(rejection(run(client)));
      expect((error as Error).message).toContain('the connection failed');
      expect(events.length).toBeGreaterThan(1);
      for (const value of [error, events, write.mock.calls]) expect(formatFully(value)).not.toContain('hidden');
    });
  });
});

describe('a key echoed by the service in a request ID', () => {
  it('reaches no hook, no log line, and no result', async () => {
    const apiKey = freshKey();
    const write = vi.fn();
    const response = () => json(created(), { headers: { 'x-request-id': `req-${apiKey}` } });
    const { client } = stubbed(response, {
      apiKey,
      hooks: { onResponse: write },
      logger: { error: write, warn: write, info: write, debug: write },
      logLevel: 'debug',
    });
    const { requestId } = await client.images.create(PROMPT).withResponse();
    expect(requestId).toBe('req-[redacted]');
    expect(formatFully(write.mock.calls)).toContain('req-[redacted]');
    expect(formatFully(write.mock.calls)).not.toContain(apiKey);
  });
});

it("isn't in the error of a key function", async () => {
  const key = freshKey();
  let requested = 0;
  const apiKey = () => {
    if (++requested > 1) throw new Error(`${key} could not be renewed`);
    return key;
  };
  const { client } = stubbed(() => json(created()), { apiKey, maxRetries: 0 });
  await client.images.create(PROMPT);
  const error = await rejection(client.images.create(PROMPT));
  expect((error as Error).message).toBe('apiKey failed: [redacted] could not be renewed');
  expect(formatFully(error)).not.toContain(key);
});
