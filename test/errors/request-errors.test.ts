import { describe, expect, it } from 'vitest';
import {
  APIError,
  AuthenticationError,
  BadRequestError,
  ConflictError,
  InsufficientBalanceError,
  NotFoundError,
  PayloadTooLargeError,
  PermissionDeniedError,
  RateLimitError,
  ServerError,
  UnprocessableEntityError,
} from '../../src/index.js';
import characterPending from '../fixtures/bodies/character-pending.json' with { type: 'json' };
import insufficientBalance from '../fixtures/bodies/insufficient-balance.json' with { type: 'json' };
import requestErrors from '../fixtures/request-errors.json' with { type: 'json' };
import { BASE_URL, rejection, stubbed } from '../transport/support.js';

const CLASSES: Readonly<Record<number, typeof APIError>> = {
  400: BadRequestError,
  401: AuthenticationError,
  402: InsufficientBalanceError,
  403: PermissionDeniedError,
  404: NotFoundError,
  409: ConflictError,
  413: PayloadTooLargeError,
  422: UnprocessableEntityError,
  429: RateLimitError,
};
const classOf = (status: number) => CLASSES[status] ?? (status >= 500 ? ServerError : APIError);

/** Possible positions of the code and the message. The service documents no position. */
const ENVELOPES: readonly (readonly [string, (code: string, message: string) => unknown])[] = [
  ['error.code', (code, message) => ({ success: false, error: { code, message } })],
  ['error.type', (type, message) => ({ error: { type, message } })],
  ['error as the code', (error, message) => ({ success: false, error, message })],
  ['code', (code, message) => ({ success: false, code, message })],
  ['data.code', (code, message) => ({ success: false, data: { code, message } })],
  ['data.error.code', (code, message) => ({ success: false, data: { error: { code, message } } })],
  ['errorCode', (errorCode, errorMessage) => ({ success: false, errorCode, errorMessage })],
  ['error_code', (error_code, message) => ({ error_code, message })],
  ['errors[0].code', (code, message) => ({ errors: [{ code, message }] })],
  ['detail.code', (code, message) => ({ detail: { code, message } })],
];

/** Returns the error of a create that gets this response and isn't retried. */
async function apiErrorFor(body: string, init: ResponseInit): Promise<APIError> {
  const { client } = stubbed(() => new Response(init.status === 204 ? null : body, init), { rateLimit: 'throw' });
  const error = await rejection(client.videos.create({ prompt: 'x' }, { maxRetries: 0, idempotencyKey: 'order-1' }));
  if (!(error instanceof APIError)) throw error;
  return error;
}

describe.each(requestErrors)('$code', ({ code, status, recovery, condition }) => {
  it.each(ENVELOPES)('is recognized at %s', async (_, envelope) => {
    const error = await apiErrorFor(JSON.stringify(envelope(code, condition)), { status });
    expect(error).toMatchObject({ name: classOf(status).name, code, status, recovery, message: condition });
    expect(error).toBeInstanceOf(classOf(status));
  });

  it('is recognized with status 200 and `success: false`, and has its documented class', async () => {
    const body = JSON.stringify({ success: false, error: { code, message: condition } });
    expect(await apiErrorFor(body, { status: 200 })).toMatchObject({ name: classOf(status).name, code, recovery });
  });
});

describe("an error's details", () => {
  it('include the call, idempotency key, attempts, request ID, and headers', async () => {
    const body = JSON.stringify({ error: { code: 'prompt_too_long', message: 'Shorten it.' } });
    const error = await apiErrorFor(body, { status: 400, headers: { 'x-request-id': 'req_7', 'x-more': 'y' } });
    expect(error).toMatchObject({
      method: 'POST',
      url: `${BASE_URL}/v1/videos`,
      idempotencyKey: 'order-1',
      attempts: 1,
      requestId: 'req_7',
    });
    expect(error.headers.get('x-more')).toBe('y');
    expect(JSON.parse(JSON.stringify(error))).toMatchObject({ name: 'BadRequestError', code: 'prompt_too_long' });
  });

  it('include the top-up URL', async () => {
    for (const body of [
      insufficientBalance,
      { data: { top_up_url: '/development?section=billing', error: 'insufficient_balance' } },
    ]) {
      const error = await apiErrorFor(JSON.stringify(body), { status: 402 });
      expect(error).toMatchObject({
        name: 'InsufficientBalanceError',
        code: 'insufficient_balance',
        topUpUrl: '/development?section=billing',
      });
    }
  });

  it.each([
    ['Retry-After in seconds', {}, { 'retry-after': '7' }, 7000],
    [
      'Retry-After as a date',
      {},
      { 'retry-after': 'Sun, 01 Mar 2026 10:00:09 GMT', date: 'Sun, 01 Mar 2026 10:00:00 GMT' },
      9000,
    ],
    ["the body's retry_after", { retry_after: 20 }, {}, 20_000],
    ["data's retry_after", { data: { retry_after: 21 } }, {}, 21_000],
    ["the error's retry_after", { error: { code: 'character_pending', retry_after: 22 } }, {}, 22_000],
    ["the error's data.retry_after", { error: { code: 'character_pending', data: { retry_after: 23 } } }, {}, 23_000],
    ['the header rather than the body', { retry_after: 20 }, { 'retry-after': '3' }, 3000],
    ['neither header nor body (undefined)', {}, {}, undefined],
    ['invalid values (undefined)', { retry_after: 'soon' }, { 'retry-after': 'soon' }, undefined],
  ])('include the wait from %s', async (_, fields, headers, retryAfterMs) => {
    const body = JSON.stringify({ error: { code: 'character_pending' }, ...fields });
    const error = await apiErrorFor(body, { status: 409, headers: headers as Record<string, string> });
    expect([error.retryAfterMs, error.code]).toEqual([retryAfterMs, 'character_pending']);
  });

  it('include the wait from the documented response for a pending character', async () => {
    expect(await apiErrorFor(JSON.stringify(characterPending), { status: 409 })).toMatchObject({
      retryAfterMs: 20_000,
      recovery: 'wait_and_retry',
    });
  });
});

describe("an error response without the service's envelope", () => {
  const BODIES = [
    ['empty', ''],
    ['HTML', '<!doctype html><html><body><h1>Bad gateway</h1></body></html>'],
    ['plain text', 'upstream connect error'],
    ['an array', '[]'],
    ['an array of numbers', '[1,2]'],
    ['a number', '5'],
    ['null', 'null'],
    ['true', 'true'],
    ['an empty object', '{}'],
    ['truncated JSON', '{"error": {"co'],
    ['objects instead of strings', '{"error":{"code":{"a":1},"message":[1]}}'],
  ];
  const STATUSES = [400, 401, 402, 403, 404, 409, 413, 418, 422, 429, 500, 502, 503];

  it.each(BODIES)('falls back to the status if the body is %s', async (_, body) => {
    for (const status of STATUSES) {
      const error = await apiErrorFor(body ?? '', { status });
      expect(error.status).toBe(status);
      expect(error.code).toBe(`http_${status}`);
      expect(error.name).toBe(classOf(status).name);
      expect(error.message).not.toBe('');
      expect(error.message).not.toMatch(/<|\[object|undefined/);
    }
  });

  const pageMessage = (details: string) =>
    `POST ${BASE_URL}/v1/videos: received a web page instead of the service's response (${details}). A proxy may have sent it. Try again later, and check baseUrl.`;

  it('includes plain text in its message, but no HTML', async () => {
    expect((await apiErrorFor('upstream connect error', { status: 502 })).message).toContain('upstream connect error');
    expect((await apiErrorFor('<html>secret page</html>', { status: 502 })).message).not.toContain('secret page');
  });

  it.each<[string, string]>([
    ['{"error":"Not today, please."}', 'Not today, please.'],
    ['{"title":"Too many","detail":"Ask again at noon."}', 'Ask again at noon.'],
    ['{"title":"Ask again at noon."}', 'Ask again at noon.'],
    ['{"error_description":"The token is old."}', 'The token is old.'],
    ['{"msg":"Not today, please."}', 'Not today, please.'],
    ['{"errors":["Not today, please."]}', 'Not today, please.'],
    ['{"detail":[{"msg":"field required"}]}', 'field required'],
    ['["Not today, please."]', 'Not today, please.'],
    // A word that could be a code is the message only if the body contains no other text.
    ['{"message":"invalid_input","detail":"The prompt is empty."}', 'The prompt is empty.'],
    ['', `POST ${BASE_URL}/v1/videos failed with 409 Conflict.`],
    ['<html>no</html>', pageMessage('409 Conflict')],
    ['<title>Just a moment</title>', pageMessage('409 Conflict, "Just a moment"')],
    ['<Error><Code>AccessDenied</Code><Message>Expired</Message></Error>', pageMessage('409 Conflict, "Expired"')],
    ['busy', pageMessage('409 Conflict, "busy"')],
  ])('takes the message from %s', async (body, message) => {
    expect((await apiErrorFor(body, { status: 409, statusText: 'Conflict' })).message).toBe(message);
  });

  it.each<[unknown, string, string]>([
    [{ error: { code: 'a_code', message: 'Nearest.' }, message: 'Root.' }, 'a_code', 'Nearest.'],
    [{ error: { data: { message: 'In data.' } }, message: 'Root.' }, 'http_409', 'In data.'],
    [{ message: 'Root.', data: { error: { message: 'Inner.' }, message: 'Data.' } }, 'http_409', 'Root.'],
    [{ data: { error: { message: 'Inner.' }, message: 'Data.' } }, 'http_409', 'Inner.'],
    [{ data: { message: 'Data.' }, errors: [{ message: 'Listed.' }] }, 'http_409', 'Data.'],
    [[{ message: 'First.' }, { message: 'Second.' }], 'http_409', 'First.'],
    [
      { code: 'first_code', type: 'prompt_too_long', message: 'A documented code wins.' },
      'prompt_too_long',
      'A documented code wins.',
    ],
    [{ errorCode: 'second', error_code: 'third', message: 'In this order.' }, 'second', 'In this order.'],
    [{ error: 'second', code: 'first', message: 'In this order.' }, 'first', 'In this order.'],
    [{ code: 'Not a code!', message: 'No code.' }, 'http_409', 'No code.'],
    [{ code: 'x'.repeat(81), message: 'Too long.' }, 'http_409', 'Too long.'],
    [{ code: 'a_code', message: 'word' }, 'a_code', 'word'],
    [{ code: 'a_code', msg: 'word' }, 'a_code', `POST ${BASE_URL}/v1/videos failed with 409 Conflict.`],
    [{ code: 'toString', message: 'Of no object.' }, 'toString', 'Of no object.'],
  ])('with the body %j has the code %s and the message %s', async (body, code, message) => {
    const error = await apiErrorFor(JSON.stringify(body), { status: 409, statusText: 'Conflict' });
    expect([error.code, error.message]).toEqual([code, message]);
  });

  it('retains an unknown code', async () => {
    const error = await apiErrorFor(JSON.stringify({ error: { code: 'moon_phase_wrong', message: 'Not today.' } }), {
      status: 400,
    });
    expect(error).toMatchObject({
      code: 'moon_phase_wrong',
      message: 'Not today.',
      recovery: 'change_request',
      name: 'BadRequestError',
    });
  });

  it('treats `success: false` with status 200 and no code as an error', async () => {
    const error = await apiErrorFor(JSON.stringify({ success: false, message: 'No.' }), { status: 200 });
    expect(error).toMatchObject({ name: 'APIError', message: 'No.' });
  });
});
