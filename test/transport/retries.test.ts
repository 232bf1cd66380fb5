import { describe, expect, it, vi } from 'vitest';
import {
  APIError,
  ConnectionError,
  GenClient,
  NotFoundError,
  ResponseError,
  ServerError,
  TimeoutError,
} from '../../src/index.js';
import { advanceUntil } from '../support/advance-until.js';
import { fakeTimers } from '../support/fake-timers.js';
import { created, freshKey, json, never, PROMPT, rawServer, rejection, stubbed, wire } from './support.js';

describe('retries', () => {
  fakeTimers();

  async function settle<T>(promise: Promise<T>): Promise<T | { readonly thrown: unknown }> {
    const outcome = promise.catch((thrown: unknown) => ({ thrown }));
    await vi.advanceTimersByTimeAsync(600_000);
    return outcome;
  }

  it.each([408, 500, 502, 503, 504, 520, 521, 522, 523, 524])(
    'a create that failed with %i is retried with the same idempotency key',
    async (status) => {
      const { client, requests } = stubbed([() => json({}, { status }), () => json(created())]);
      const result = await settle(client.videos.create(PROMPT).withResponse());
      expect(result).toMatchObject({ attempts: 2, idempotencyKey: requests[0]?.headers['idempotency-key'] });
      expect(requests).toHaveLength(2);
      expect(requests[1]?.headers['idempotency-key']).toBe(requests[0]?.headers['idempotency-key']);
      expect(requests[0]?.headers['idempotency-key']).toMatch(/^[\da-f-]{36}$/);
    },
  );

  it.each([400, 401, 402, 403, 404, 405, 409, 410, 413, 422, 425, 451, 501, 505])(
    'a create that was rejected with %i is sent once',
    async (status) => {
      const { client, requests } = stubbed([() => json({}, { status }), () => json(created())]);
      expect(await settle(client.videos.create(PROMPT))).toMatchObject({ thrown: { status, attempts: 1 } });
      expect(requests).toHaveLength(1);
    },
  );

  it("503 dispatch_disabled isn't retried, because generation is paused indefinitely", async () => {
    const { client, requests } = stubbed(() => json({ error: { code: 'dispatch_disabled' } }, { status: 503 }));
    expect(await settle(client.videos.create(PROMPT))).toMatchObject({
      thrown: { code: 'dispatch_disabled', recovery: 'retry_later' },
    });
    expect(requests).toHaveLength(1);
  });

  it('503 dispatch_disabled with Retry-After is retried after that time', async () => {
    const rejection = () => json({ code: 'dispatch_disabled' }, { status: 503, headers: { 'retry-after': '30' } });
    const { client, requests } = stubbed([rejection, () => json(created())]);
    const result = client.videos.create(PROMPT);
    await vi.advanceTimersByTimeAsync(29_999);
    expect(requests).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await result).toMatchObject({ job: { id: 'job_1' } });
  });

  const connectionErrors: readonly [string, Error][] = [
    ['Node', new TypeError('fetch failed', { cause: new Error('read ECONNRESET') })],
    ['Node, in a body', new TypeError('terminated', { cause: new Error('other side closed') })],
    ['Bun', Object.assign(new Error('The socket connection was closed unexpectedly.'), { code: 'ECONNRESET' })],
    ['Deno', new TypeError('error sending request for url (https://service.test/): connection closed')],
    ['workerd', new Error('Network connection lost.')],
    ['workerd, internally', new Error('internal error; reference = abc')],
    ['Chrome', new TypeError('Failed to fetch')],
    ['Firefox', new TypeError('NetworkError when attempting to fetch resource.')],
    ['Safari', new TypeError('Load failed')],
  ];

  it.each(connectionErrors)('a broken connection is retried after the error of %s', async (_runtime, error) => {
    const { client, requests } = stubbed([() => Promise.reject(error), () => json(created())]);
    expect(await settle(client.videos.create(PROMPT))).toMatchObject({ job: { id: 'job_1' } });
    expect(new Set(requests.map((request) => request.headers['idempotency-key'])).size).toBe(1);
  });

  it('a connection that stays broken rejects with the idempotency key, the attempts, and the cause', async () => {
    const cause = new TypeError('Failed to fetch');
    const { client, requests } = stubbed(() => Promise.reject(cause));
    const { thrown } = (await settle(client.videos.create(PROMPT))) as { thrown: ConnectionError };
    expect(thrown).toBeInstanceOf(ConnectionError);
    expect(thrown).toMatchObject({ method: 'POST', attempts: 4, cause });
    expect(thrown.idempotencyKey).toBe(requests[0]?.headers['idempotency-key']);
    expect(requests).toHaveLength(4);
  });

  it("a 429 after another failure doesn't count as a second failure in a row", async () => {
    const limited = () => json({ error: 'rate_limited' }, { status: 429 });
    const waits: number[] = [];
    const hooks = { onWait: ({ waitMs }: { readonly waitMs: number }) => void waits.push(waitMs) };
    const failed = () => json({}, { status: 500 });
    const steps = [limited, limited, limited, limited, failed, limited, () => json(created())];
    const { client } = stubbed(steps, { hooks });
    await settle(client.request({ method: 'POST', path: '/v1/speech', body: { text: 'x' } }));
    expect(waits).toHaveLength(5);
    expect(waits[3]).toBeGreaterThan(1_500);
    expect(waits[4]).toBeLessThan(1_000);
  });

  it('an attempt that times out is retried, and the last one rejects with a TimeoutError', async () => {
    const { client, requests } = stubbed(never, { timeoutMs: 1_000, maxRetries: 1 });
    const { thrown } = (await settle(client.videos.create(PROMPT))) as { thrown: TimeoutError };
    expect(thrown).toBeInstanceOf(TimeoutError);
    expect(thrown).toMatchObject({ attempts: 2, timeoutMs: 1_000 });
    expect(thrown.idempotencyKey).toBe(requests[1]?.headers['idempotency-key']);
  });

  it("a create whose response isn't JSON is retried, and finally rejects with a ResponseError", async () => {
    const html = () => new Response('<html>busy</html>', { headers: { 'content-type': 'text/html' } });
    const { client, requests } = stubbed(html, { maxRetries: 2 });
    const { thrown } = (await settle(client.videos.create(PROMPT))) as { thrown: ResponseError };
    expect(thrown).toBeInstanceOf(ResponseError);
    expect(thrown.message).toContain('text/html');
    expect(thrown).toMatchObject({ attempts: 3, idempotencyKey: requests[2]?.headers['idempotency-key'] });
  });

  it("success: false with status 200 is treated as its code's documented status", async () => {
    const failed = () => json({ success: false, error: { code: 'internal_error', message: 'oops' } });
    const { client, requests } = stubbed(failed, { maxRetries: 1 });
    const { thrown } = (await settle(client.videos.create(PROMPT))) as { thrown: ServerError };
    expect(thrown).toBeInstanceOf(ServerError);
    expect(thrown).toMatchObject({ status: 200, code: 'internal_error', message: 'oops', attempts: 2 });
    expect(requests).toHaveLength(2);
  });

  it("a body that can't be serialized rejects with a GenError, not a ConnectionError", async () => {
    const circular: Record<string, unknown> = {};
    circular.self = circular;
    const { client, requests } = stubbed(() => json(created()));
    const rejected = client.request({ method: 'POST', path: '/v1/speech', body: circular });
    await expect(rejected).rejects.toMatchObject({ name: 'GenError', cause: expect.any(TypeError) });
    expect(requests).toHaveLength(0);
  });
});

describe('a deletion that finds nothing', () => {
  fakeTimers();
  const notFound = () => json({ error: 'upload_not_found' }, { status: 404 });

  it('succeeds if an earlier response was lost', async () => {
    const steps = [() => Promise.reject(new Error('reset')), notFound];
    expect(await advanceUntil(stubbed(steps).client.uploads.delete('upl_1'))).toEqual({});
    expect(await advanceUntil(stubbed(steps).client.characters.delete('ann'))).toEqual({});
  });

  it('rejects with NotFoundError on the first attempt or after a 429', async () => {
    expect(await rejection(stubbed(notFound).client.uploads.delete('upl_1'))).toBeInstanceOf(NotFoundError);
    const waited = stubbed([
      () => json({}, { status: 429, headers: { 'retry-after': '1' } }),
      notFound,
    ]).client.uploads.delete('upl_1');
    expect(await rejection(advanceUntil(waited))).toBeInstanceOf(NotFoundError);
  });
});

describe('on a real connection', () => {
  it('a reset and a truncated body are retried with the same idempotency key', async () => {
    const keys: (string | undefined)[] = [];
    const server = await rawServer((socket, request, number) => {
      keys.push(request.headers['idempotency-key']);
      if (number === 1) return void socket.resetAndDestroy();
      if (number === 2) return void socket.end(wire(200, created()).slice(0, -20));
      socket.end(wire(200, created()));
    });
    const client = new GenClient({ apiKey: freshKey(), baseUrl: server.url });
    const { data, attempts } = await client.videos.create(PROMPT).withResponse();
    expect(data.job.id).toBe('job_1');
    expect(attempts).toBe(3);
    expect(new Set(keys).size).toBe(1);
    await server.close();
  });
});

describe("the caller's idempotency key", () => {
  it('is on the request, the result, and the error, whether passed as an option or as a param', async () => {
    const { client, requests } = stubbed([
      () => json(created()),
      () => json(created()),
      () => json({}, { status: 400 }),
    ]);
    expect((await client.videos.create(PROMPT, { idempotencyKey: 'order-1' })).idempotencyKey).toBe('order-1');
    expect((await client.videos.create({ ...PROMPT, idempotency_key: 'order-2' })).idempotencyKey).toBe('order-2');
    const error = await rejection(client.videos.create(PROMPT, { idempotencyKey: 'order-3' }));
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({ idempotencyKey: 'order-3' });
    expect(requests.map((request) => request.headers['idempotency-key'])).toEqual(['order-1', 'order-2', 'order-3']);
  });
});
