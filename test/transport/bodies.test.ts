// Response bodies: read in full up to a size limit, or streamed.
import { gzipSync } from 'node:zlib';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { type ClientOptions, GenClient, ResponseError } from '../../src/index.js';
import type { ResponseEvent } from '../../src/transport/events.js';
import { fakeTimers } from '../support/fake-timers.js';
import { quiet } from '../support/quiet.js';
import {
  BASE_URL,
  countedSignal,
  freshKey,
  httpServer,
  json,
  PROMPT,
  rejection,
  stubbed,
  stubbedTransport,
} from './support.js';

beforeAll(quiet);

const bytes = (text: string) => new TextEncoder().encode(text);

/** Returns a response without a known length, in chunks of `size` bytes. */
function chunkedResponse(text: string, size: number): Response {
  const all = bytes(text);
  let sent = 0;
  const pull = (controller: ReadableStreamDefaultController) => {
    if (sent >= all.length) return controller.close();
    controller.enqueue(all.subarray(sent, sent + size));
    sent += size;
  };
  return new Response(new ReadableStream({ pull }, { highWaterMark: 0 }));
}

fakeTimers();
afterEach(() => void vi.unstubAllGlobals());

describe('a buffered response', () => {
  it('is decoded correctly even if its chunks split a character', async () => {
    const { client } = stubbed(() => chunkedResponse('{"data":{"text":"ä – 狐 🦊"}}', 1));
    expect(await client.request({ method: 'GET', path: '/v1/x' })).toEqual({ text: 'ä – 狐 🦊' });
  });

  it.each<[string, BodyInit, ResponseInit, string]>([
    ['HTML', '<p>hi</p>', { headers: { 'content-type': 'text/html' } }, 'text/html, 9 characters'],
    ['text without a content type', bytes('hello'), {}, 'no content type, 5 characters'],
  ])('that is %s rejects the call with an error that describes it', async (_, body, init, description) => {
    const { client } = stubbed(() => new Response(body, init), { maxRetries: 0 });
    expect(await rejection(client.jobs.get('job_1'))).toMatchObject({
      name: 'ResponseError',
      message: `GET ${BASE_URL}/v1/jobs/job_1: the service responded 200 with a body that is not JSON (${description})`,
      method: 'GET',
      url: `${BASE_URL}/v1/jobs/job_1`,
      attempts: 1,
    });
  });

  it.each<[string, () => Response, Partial<ResponseEvent>]>([
    ['no body', () => new Response(null, { status: 204 }), { receivedBytes: 0, quotedTokens: undefined }],
    ['null', () => json('null'), { receivedBytes: 4, quotedTokens: undefined }],
    ['a string', () => json('"ä"'), { receivedBytes: 4, quotedTokens: undefined }],
    ['a quote', () => json({ data: { quoted_token_cost: 7 } }), { receivedBytes: 32, quotedTokens: 7 }],
    [
      'an invalid quote',
      () => json({ data: { quoted_token_cost: 'x' } }),
      { receivedBytes: 34, quotedTokens: undefined },
    ],
  ])('is reported to hooks.onResponse with its size and quote: %s', async (_, respond, expected) => {
    const events: ResponseEvent[] = [];
    const { client } = stubbed(respond, { hooks: { onResponse: (event) => void events.push(event) } });
    await client.request({ method: 'DELETE', path: '/v1/x' });
    expect(events).toMatchObject([{ ...expected, status: events[0]?.status, error: undefined }]);
  });

  it.each([204, 205])('with status %i, which has no body, is available as a Response', async (status) => {
    const { client } = stubbed(() => new Response(null, { status }));
    const response = await client.request({ method: 'DELETE', path: '/v1/x' }).asResponse();
    expect([response.status, response.body]).toEqual([status, null]);
  });
});

describe('a rejection', () => {
  it('keeps its status if its body is truncated', async () => {
    const broken = () => new ReadableStream({ pull: (controller) => controller.error(new TypeError('terminated')) });
    const { client } = stubbed(() => new Response(broken(), { status: 402, statusText: 'Payment Required' }));
    expect(await rejection(client.videos.create(PROMPT))).toMatchObject({
      message: `POST ${BASE_URL}/v1/videos failed with 402 Payment Required.`,
      data: undefined,
    });
  });

  it('rejects the call after timeoutMs if its body stalls', async () => {
    const stalled = () => new Response(new ReadableStream(), { status: 400 });
    const { client, requests } = stubbed(stalled, { timeoutMs: 1_000 });
    const outcome = rejection(client.videos.create(PROMPT));
    await vi.advanceTimersByTimeAsync(1_010);
    expect(await outcome).toMatchObject({ name: 'BadRequestError', status: 400, attempts: 1 });
    expect(requests).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('a response larger than its limit', () => {
  it('is canceled at the size limit, and not retried', async () => {
    vi.useRealTimers();
    const body = gzipSync(Buffer.alloc(64 * 1024 * 1024, ' '));
    let requests = 0;
    const server = await httpServer((_request, response) => {
      requests += 1;
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(body);
    });
    const client = new GenClient({ apiKey: freshKey(), baseUrl: server.url });
    const error = await rejection(client.jobs.get('job_1'));
    expect(error).toBeInstanceOf(ResponseError);
    expect(String(error)).toContain('larger than 16777216 bytes');
    expect(requests).toBe(1);
    await server.close();
  });

  it('with an error status is read up to the limit for error bodies', async () => {
    let pulled = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        pulled += 1;
        controller.enqueue(new TextEncoder().encode('x'.repeat(16_384)));
      },
    });
    const { client } = stubbed(() => new Response(endless, { status: 400 }), { maxRetries: 0 });
    const error = await rejection(client.images.create(PROMPT));
    expect(error).toMatchObject({ status: 400 });
    expect(pulled).toBeLessThan(10);
    expect(String(error).length).toBeLessThan(500);
  });
});

/** Opens a job's output as a stream, and counts the listeners of its signal. */
async function openOutput(respond: () => Response, options: ClientOptions = {}) {
  const { client } = stubbed(respond, options);
  const { controller, signal, listeners } = countedSignal();
  const response = await client.jobs.output('job_1', { signal });
  return { response, controller, listeners };
}

describe('a stream', () => {
  it('can pause between two chunks for longer than timeoutMs', async () => {
    const { response } = await openOutput(() => chunkedResponse('hello', 3), { timeoutMs: 1_000 });
    const reader = response.body?.getReader();
    await reader?.read();
    await vi.advanceTimersByTimeAsync(600_000);
    expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('lo');
  });

  it.each<[string, (response: Response) => Promise<unknown>, unknown]>([
    ['text', (response) => response.text(), '{"a":1}'],
    ['json', (response) => response.json(), { a: 1 }],
    ['arrayBuffer', async (response) => (await response.arrayBuffer()).byteLength, 7],
    ['blob', async (response) => (await response.blob()).size, 7],
    ['bytes', async (response) => (await response.bytes()).length, 7],
    ['clone', (response) => response.clone().text(), '{"a":1}'],
    ['body', (response) => new Response(response.body).text(), '{"a":1}'],
  ])('can be read with %s, and has its status and headers', async (_, read, value) => {
    const respond = () => new Response('{"a":1}', { status: 206, statusText: 'Part', headers: { 'x-a': '1' } });
    const { response, listeners } = await openOutput(respond);
    expect([response.status, response.statusText, response.headers.get('x-a')]).toEqual([206, 'Part', '1']);
    expect(await read(response)).toEqual(value);
    expect(listeners()).toBe(0);
  });
});

it('a stream of known length is a FixedLengthStream on Workers', async () => {
  const lengths: number[] = [];
  class FixedLengthStream extends TransformStream {
    constructor(length: number) {
      super();
      lengths.push(length);
    }
  }
  vi.stubGlobal('FixedLengthStream', FixedLengthStream);
  const { response } = await openOutput(() => new Response('hello', { headers: { 'content-length': '5' } }));
  expect(await response.text()).toBe('hello');
  expect(lengths).toEqual([5]);
});

describe('the response to an upload', () => {
  const target = { name: 'put', url: 'https://storage.test/put?signature=1', headers: {}, repeatable: true };

  it('is buffered, so that no timer or listener remains', async () => {
    const transport = stubbedTransport(async () => new Response('stored', { status: 201, headers: { etag: '"1"' } }));
    const { signal, listeners } = countedSignal();
    const response = await transport.transfer({ ...target, body: () => 'x' }, { signal });
    expect([response.status, response.headers.get('etag'), await response.text()]).toEqual([201, '"1"', 'stored']);
    expect(listeners()).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("rejects with a ConnectionError without the URL's signature if it is truncated", async () => {
    const pull = (controller: ReadableStreamDefaultController) => controller.error(new TypeError('terminated'));
    const transport = stubbedTransport(async () => new Response(new ReadableStream({ pull })), { maxRetries: 0 });
    expect(await rejection(transport.transfer({ ...target, body: () => 'x' }))).toMatchObject({
      name: 'ConnectionError',
      message: 'PUT https://storage.test/put: the connection failed before the response was complete (terminated)',
    });
  });
});
