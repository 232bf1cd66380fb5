import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type APIError,
  BadRequestError,
  ConflictError,
  InsufficientBalanceError,
  RateLimitError,
  ResponseError,
} from '../../src/index.js';
import { BASE_URL, created, json, rejection, stubbed } from './support.js';

const PROMPT = { prompt: 'a fox at dawn' };

async function refusedWith(body: unknown, init: ResponseInit = { status: 400 }): Promise<APIError> {
  const answer = typeof body === 'string' ? () => new Response(body, init) : () => json(body, init);
  return (await rejection(stubbed(answer, { maxRetries: 0 }).client.images.create(PROMPT))) as APIError;
}

describe('the code of a refusal is found in', () => {
  const code = 'prompt_too_long';
  const message = 'Too long.';
  it.each<[string, unknown]>([
    ['error.code', { error: { code, message } }],
    ['error.code, under success', { success: false, error: { code, message } }],
    ['error as a string', { error: code, message }],
    ['code', { code, message }],
    ['data.code', { success: false, data: { code, message } }],
    ['data.error.code', { data: { error: { code, message } } }],
    ['data.error as a string', { data: { error: code }, message }],
    ['errors[0].code', { errors: [{ code, message }] }],
    ['errors[0] as a string', { errors: [code], message }],
    ['errorCode', { errorCode: code, errorMessage: message }],
    ['error_code', { error_code: code, error_message: message }],
    ['error.type', { error: { type: code, message } }],
    ['detail', { detail: code, message }],
    ['detail.code', { detail: { code, message } }],
    ['detail[0].code', { detail: [{ code, message }] }],
    ['code, beside a phrase in error', { error: 'Bad Request', code, message, statusCode: 400 }],
    ['error.code, beside a number in code', { code: 400, error: { code, message } }],
    ['a list', [{ error: { code, message } }]],
  ])('%s', async (_place, body) => {
    expect(await refusedWith(body)).toMatchObject({ code, message, status: 400, recovery: 'change_request' });
  });

  it('the message, when that is all there is', async () => {
    expect(await refusedWith({ message: code })).toMatchObject({ code, message: code });
    expect(await refusedWith(JSON.stringify(code))).toMatchObject({ code });
  });
});

describe('a refusal without a code', () => {
  it.each<[string, string, ResponseInit]>([
    ['empty', '', { status: 404 }],
    ['HTML', '<!doctype html><h1>Not found</h1>', { status: 404 }],
    ['a number', '17', { status: 404 }],
    ['null', 'null', { status: 404 }],
    ['a list', '[]', { status: 404 }],
  ])('falls back to its status: %s', async (_what, body, init) => {
    const error = await refusedWith(body, { ...init, statusText: 'Not Found' });
    expect(error).toMatchObject({ name: 'NotFoundError', code: 'http_404', recovery: 'change_request' });
    expect(error.message).toContain('404 Not Found');
    expect(error.message).not.toContain('<');
  });

  it('shows a plain text, cut to a bearable length', async () => {
    const error = await refusedWith(`upstream says ${'no '.repeat(1_000)}`, { status: 400 });
    expect(error.message).toContain('upstream says no');
    expect(error.message.length).toBeLessThan(450);
  });
});

describe('what a refusal says beside its code', () => {
  it.each<[string, unknown, Record<string, string>]>([
    ['the header', {}, { 'retry-after': '7' }],
    ['the body', { retry_after: 7 }, {}],
    ['data', { code: 'character_pending', data: { retry_after: '7' } }, {}],
    ['error', { error: { code: 'character_pending', retry_after: 7 } }, {}],
    ['error.data', { error: { code: 'character_pending', data: { retry_after: 7 } } }, {}],
  ])('retryAfterMs comes from %s', async (_place, body, headers) => {
    const error = await refusedWith(body, { status: 409, headers });
    expect(error).toBeInstanceOf(ConflictError);
    expect(error.retryAfterMs).toBe(7_000);
  });

  it.each<[string, unknown]>([
    ['data', { code: 'insufficient_balance', data: { top_up_url: 'https://x/development?section=billing' } }],
    ['error', { error: { code: 'insufficient_balance', top_up_url: 'https://x/development?section=billing' } }],
    [
      'error.data',
      { error: { code: 'insufficient_balance', data: { top_up_url: 'https://x/development?section=billing' } } },
    ],
  ])('topUpUrl comes from %s', async (_place, body) => {
    const error = await refusedWith(body, { status: 402 });
    expect(error).toBeInstanceOf(InsufficientBalanceError);
    expect(error).toMatchObject({ topUpUrl: 'https://x/development?section=billing', recovery: 'top_up' });
    expect(JSON.parse(JSON.stringify(error))).toMatchObject({ topUpUrl: expect.any(String) });
  });

  it.each<[string, unknown, Record<string, string>]>([
    ['x-request-id', {}, { 'x-request-id': 'r1' }],
    ['x-service-request-id', {}, { 'x-service-request-id': 'r1' }],
    ['request-id', {}, { 'request-id': 'r1' }],
    ['cf-ray', {}, { 'cf-ray': 'r1' }],
    ['the body', { request_id: 'r1' }, {}],
  ])('requestId comes from %s', async (_place, body, headers) => {
    expect(await refusedWith(body, { status: 400, headers })).toMatchObject({ requestId: 'r1' });
  });

  it('stands in its JSON form, with the cause by name and message, and without headers or stack', async () => {
    const error = await refusedWith({ error: { code: 'prompt_required' }, data: { field: 'prompt' } }, { status: 400 });
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      name: 'BadRequestError',
      message: expect.any(String),
      status: 400,
      code: 'prompt_required',
      recovery: 'change_request',
      method: 'POST',
      url: expect.stringMatching(/\/v1\/images$/),
      data: { field: 'prompt' },
      idempotencyKey: expect.any(String),
      attempts: 1,
    });
    const lost = await rejection(
      stubbed(() => Promise.reject(new TypeError('fetch failed')), { maxRetries: 0 }).client.images.create(PROMPT),
    );
    expect(JSON.parse(JSON.stringify(lost)).cause).toEqual({ name: 'TypeError', message: 'fetch failed' });
  });

  it('success: false with status 200 gives the class of the documented status', async () => {
    const rateLimited = await refusedWith({ success: false, code: 'rate_limited', retry_after: 999 }, { status: 200 });
    expect(rateLimited).toBeInstanceOf(RateLimitError);
    expect(await refusedWith({ success: false, error: 'prompt_required' }, { status: 200 })).toBeInstanceOf(
      BadRequestError,
    );
    const unknown = await refusedWith({ success: false, error: 'something_new' }, { status: 200 });
    expect(unknown).toMatchObject({ name: 'APIError', status: 200, code: 'something_new' });
  });
});

describe('an answer', () => {
  it('can be had with its Response, request id, attempts and key, the body readable', async () => {
    const { client } = stubbed(() => json(created(), { headers: { 'x-request-id': 'r1' } }));
    const { data, response, ...meta } = await client.videos.create(PROMPT, { idempotencyKey: 'k' }).withResponse();
    expect(meta).toEqual({ requestId: 'r1', attempts: 1, idempotencyKey: 'k' });
    expect(data.job.id).toBe('job_1');
    expect(response.headers.get('x-request-id')).toBe('r1');
    expect(await response.json()).toEqual(JSON.parse(created()));
  });

  it('can be had plain, even when it is not what the method wants', async () => {
    const { client } = stubbed(() => json({ success: true, data: {} }));
    const response = await client.jobs.get('job_1').asResponse();
    expect(await response.json()).toEqual({ success: true, data: {} });
    const error = await rejection(client.videos.create(PROMPT, { idempotencyKey: 'k' }));
    expect(error).toBeInstanceOf(ResponseError);
    expect(error).toMatchObject({ idempotencyKey: 'k', attempts: 1, path: expect.stringMatching(/^data\.job/) });
  });

  it.each<[string, ResponseInit, string]>([
    ['', {}, 'an empty body'],
    ['<p>hi</p>', { headers: { 'content-type': 'text/html' } }, 'a body that is not JSON (text/html, 9 characters)'],
  ])('of %j is told as what it is', async (body, init, what) => {
    const { client } = stubbed(() => new Response(body, init));
    const error = await rejection(client.videos.create({ prompt: 'x' }));
    expect(error).toMatchObject({
      name: 'ResponseError',
      message: `POST ${BASE_URL}/v1/videos: the service answered 200 with ${what}`,
    });
  });

  it('without a body is fine where nothing is needed of it', async () => {
    const { client } = stubbed([() => new Response(null, { status: 204 }), () => new Response('')]);
    expect(await client.request({ method: 'DELETE', path: '/v1/uploads/u1' })).toBeUndefined();
    expect(await client.request({ method: 'POST', path: '/v1/x' })).toBeUndefined();
  });
});

it.each(['message', 'errorMessage', 'error_message'])('a %s of one word is the message', async (name) => {
  const error = await refusedWith({ error: { code: 'upload_in_use', [name]: 'Busy' } }, { status: 409 });
  expect(error).toMatchObject({ code: 'upload_in_use', message: 'Busy' });
});

describe('unhandled rejections', () => {
  const unhandled = vi.fn();
  beforeEach(() => {
    process.on('unhandledRejection', unhandled);
  });
  afterEach(() => {
    process.off('unhandledRejection', unhandled);
    unhandled.mockReset();
  });

  it.each(['withResponse', 'asResponse'] as const)('%s() on a failing call raises none of its own', async (way) => {
    const { client } = stubbed(() => json({}, { status: 400 }));
    await rejection(client.images.create(PROMPT)[way]());
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    expect(unhandled).not.toHaveBeenCalled();
  });

  it('neither does a call that is looked after', async () => {
    const { client } = stubbed(() => Promise.reject(new Error('lost')), { maxRetries: 0 });
    await Promise.allSettled([client.images.create(PROMPT), client.jobs.output('job_1')]);
    await new Promise(setImmediate);
    expect(unhandled).not.toHaveBeenCalled();
  });
});
