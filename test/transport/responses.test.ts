import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type APIError, ResponseError } from '../../src/index.js';
import { BASE_URL, created, json, PROMPT, rejection, stubbed, stubbedTransport } from './support.js';

async function apiErrorFor(body: unknown, init: ResponseInit = { status: 400 }): Promise<APIError> {
  const response = typeof body === 'string' ? () => new Response(body, init) : () => json(body, init);
  return (await rejection(stubbed(response, { maxRetries: 0 }).client.images.create(PROMPT))) as APIError;
}

describe('an API error', () => {
  it.each<[string, unknown, Record<string, string>]>([
    ['x-request-id', {}, { 'x-request-id': 'r1' }],
    ['x-service-request-id', {}, { 'x-service-request-id': 'r1' }],
    ['request-id', {}, { 'request-id': 'r1' }],
    ['cf-ray', {}, { 'cf-ray': 'r1' }],
    ['the body', { request_id: 'r1' }, {}],
    ["the body's data.error", { data: { error: { requestId: 'r1' } } }, {}],
    ['the header before the body', { request_id: 'r2' }, { 'x-request-id': 'r1' }],
  ])('reads requestId from %s', async (_place, body, headers) => {
    expect(await apiErrorFor(body, { status: 400, headers })).toMatchObject({ requestId: 'r1' });
  });

  it.each<[string, string, unknown]>([
    ["the body's data field", '{"code":"x","data":{"have":1}}', { have: 1 }],
    ['the body if it has no data field', '{"code":"x"}', { code: 'x' }],
    ["the body's text if it isn't JSON", 'upstream is down', 'upstream is down'],
    ['undefined for markup', '<html>upstream</html>', undefined],
    ['undefined for an empty body', '', undefined],
  ])('sets data to %s', async (_, body, data) => {
    expect(await apiErrorFor(body)).toMatchObject({ data });
  });
});

describe('a response', () => {
  it('is available with its Response, request ID, attempts, idempotency key, and an unread body', async () => {
    const { client } = stubbed(() => json(created(), { headers: { 'x-request-id': 'r1' } }));
    const { data, response, ...meta } = await client.videos.create(PROMPT, { idempotencyKey: 'k' }).withResponse();
    expect(meta).toEqual({ requestId: 'r1', attempts: 1, idempotencyKey: 'k' });
    expect(data.job.id).toBe('job_1');
    expect(response.headers.get('x-request-id')).toBe('r1');
    expect(await response.json()).toEqual(JSON.parse(created()));
  });

  it("is available raw, even if the method can't use it", async () => {
    const { client } = stubbed(() => json({ success: true, data: {} }));
    const response = await client.jobs.get('job_1').asResponse();
    expect(await response.json()).toEqual({ success: true, data: {} });
    const error = await rejection(client.videos.create(PROMPT, { idempotencyKey: 'k' }));
    expect(error).toBeInstanceOf(ResponseError);
    expect(error).toMatchObject({ idempotencyKey: 'k', attempts: 1, path: expect.stringMatching(/^data\.job/) });
  });

  it('may have no body if the method needs none', async () => {
    const { client } = stubbed([() => new Response(null, { status: 204 }), () => new Response('')]);
    expect(await client.request({ method: 'DELETE', path: '/v1/uploads/u1' })).toBeUndefined();
    expect(await client.request({ method: 'POST', path: '/v1/x' })).toBeUndefined();
  });

  it('that is streamed is available with the result of `read`', async () => {
    const transport = stubbedTransport(async () => new Response('file', { headers: { 'x-a': '1' } }));
    const request = { name: 'open', method: 'GET', path: '/v1/x' } as const;
    const { data, response } = await transport.open({ ...request, read: ({ status }) => status }).withResponse();
    expect([data, response.headers.get('x-a'), await response.text()]).toEqual([200, '1', 'file']);
    const replacement = new Response('own');
    const openReplaced = () => transport.open({ ...request, read: () => replacement }).withResponse();
    expect(await openReplaced()).toMatchObject({ data: replacement, response: replacement });
    // @hono/node-server replaces the global class, but fetch still returns the original one.
    vi.stubGlobal('Response', class extends Response {});
    expect((await openReplaced()).response).toBe(replacement);
    vi.unstubAllGlobals();
  });
});

describe('an unexpected response', () => {
  it('rejects with a ResponseError, however its data is accessed', async () => {
    const { client } = stubbed(() => json({ success: true, data: {} }));
    const call = () => client.jobs.get('job_1');
    const expected = { name: 'ResponseError', method: 'GET', url: `${BASE_URL}/v1/jobs/job_1`, attempts: 1 };
    expect(await rejection(call())).toMatchObject(expected);
    expect(await rejection(call().withResponse())).toMatchObject(expected);
  });
});

describe('unhandled rejections', () => {
  const unhandled = vi.fn();
  beforeEach(() => void process.on('unhandledRejection', unhandled));
  afterEach(() => {
    process.off('unhandledRejection', unhandled);
    unhandled.mockReset();
  });

  it.each(['withResponse', 'asResponse'] as const)('%s() on a failing call causes none', async (method) => {
    const { client } = stubbed(() => json({}, { status: 400 }));
    await rejection(client.images.create(PROMPT)[method]());
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    expect(unhandled).not.toHaveBeenCalled();
  });

  it('a handled call causes none', async () => {
    const { client } = stubbed(() => Promise.reject(new Error('lost')), { maxRetries: 0 });
    await Promise.allSettled([client.images.create(PROMPT), client.jobs.output('job_1')]);
    await new Promise(setImmediate);
    expect(unhandled).not.toHaveBeenCalled();
  });
});
