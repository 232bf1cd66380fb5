// Forms that refusals take, and the ways to read an answer: each value to the letter.
import { tracingChannel } from 'node:diagnostics_channel';
import { afterEach, describe, expect, it } from 'vitest';
import { readConfig } from '../../src/client/config.js';
import { type APIError, idempotencyKeyFrom, type Logger } from '../../src/index.js';
import { createTransport } from '../../src/transport/create-transport.js';
import type { RequestTrace } from '../../src/transport/events.js';
import { virtualClock } from '../waiting/virtual-clock.js';
import { BASE_URL, created, freshKey, json, rejection, stubbed } from './support.js';

const PROMPT = { prompt: 'a fox at dawn' };
const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/** The error of a create that is answered so. */
async function refusedWith(body: unknown, init: ResponseInit = {}): Promise<APIError> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const answer = () => new Response(text, { status: 409, statusText: 'Conflict', ...init });
  return (await rejection(stubbed(answer, { maxRetries: 0 }).client.videos.create(PROMPT))) as APIError;
}

describe('a refusal', () => {
  const PLAIN = `POST ${BASE_URL}/v1/videos was answered with 409 Conflict`;

  it.each<[string, string]>([
    ['{}', `${PLAIN}.`],
    ['[]', `${PLAIN}.`],
    ['17', `${PLAIN}.`],
    ['null', `${PLAIN}: null`],
    ['{"message":""}', `${PLAIN}.`],
    ['{"message":" "}', `${PLAIN}.`],
    ['{"message":7,"detail":{"a":1}}', `${PLAIN}.`],
    ['  <html>no</html>', `${PLAIN}.`],
    ['  busy  ', `${PLAIN}: busy`],
    ['x'.repeat(301), `${PLAIN}: ${'x'.repeat(300)}`],
    ['{"error": {"co', `${PLAIN}: {"error": {"co`],
    ['<Error><Message>Request has expired</Message></Error>', `${PLAIN}.`],
    ['<Error><Code>AccessDenied</Code></Error>', `${PLAIN}.`],
  ])('with the body %j says %s', async (body, message) => {
    expect((await refusedWith(body)).message).toBe(message);
  });

  it('of a call without a key is told like any other', async () => {
    const { client } = stubbed(() => json({ code: 'a_code', message: 'Not now.' }, { status: 404 }));
    expect(await rejection(client.models.list())).toMatchObject({
      name: 'NotFoundError',
      code: 'a_code',
      message: 'Not now.',
      data: { code: 'a_code', message: 'Not now.' },
      attempts: 1,
    });
  });

  it('without a status text says its number', async () => {
    expect((await refusedWith('', { statusText: '' })).message).toBe(
      `POST ${BASE_URL}/v1/videos was answered with 409.`,
    );
  });

  it.each<[unknown, string, string]>([
    [{ error: { code: 'a_code', message: 'Nearest.' }, message: 'Root.' }, 'a_code', 'Nearest.'],
    [{ error: { data: { message: 'In data.' } }, message: 'Root.' }, 'http_409', 'In data.'],
    [{ message: 'Root.', data: { error: { message: 'Inner.' }, message: 'Data.' } }, 'http_409', 'Root.'],
    [{ data: { error: { message: 'Inner.' }, message: 'Data.' } }, 'http_409', 'Inner.'],
    [{ data: { message: 'Data.' }, errors: [{ message: 'Listed.' }] }, 'http_409', 'Data.'],
    [
      { errors: [{ message: 'Listed.' }, { message: 'Second.' }], detail: { message: 'Detail.' } },
      'http_409',
      'Listed.',
    ],
    [{ errors: { message: 'Not a list.' } }, 'http_409', 'Not a list.'],
    [{ detail: { message: 'Detail.' } }, 'http_409', 'Detail.'],
    [[{ message: 'First.' }, { message: 'Second.' }], 'http_409', 'First.'],
    [
      { code: 'first_code', type: 'prompt_too_long', message: 'A documented code wins.' },
      'prompt_too_long',
      'A documented code wins.',
    ],
    [{ code: 'new_code', detail: 'prompt_too_long', message: 'Also there.' }, 'prompt_too_long', 'Also there.'],
    [{ errorCode: 'second', error_code: 'third', message: 'In this order.' }, 'second', 'In this order.'],
    [{ error: 'second', code: 'first', message: 'In this order.' }, 'first', 'In this order.'],
    [{ code: 'Not a code!', message: 'No code.' }, 'http_409', 'No code.'],
    [{ code: '7_is_none', message: 'No code.' }, 'http_409', 'No code.'],
    [{ code: 'x'.repeat(80), message: 'As long as may be.' }, 'x'.repeat(80), 'As long as may be.'],
    [{ code: 'x'.repeat(81), message: 'Too long.' }, 'http_409', 'Too long.'],
    [{ code: 'With.Dots-1', message: 'A code.' }, 'With.Dots-1', 'A code.'],
    [{ code: 'a_code', message: 'word' }, 'a_code', 'word'],
    [{ code: 'a_code', errorMessage: 'word' }, 'a_code', 'word'],
    [{ code: 'a_code', error_message: 'word' }, 'a_code', 'word'],
    [{ code: 'a_code', msg: 'word' }, 'a_code', `${PLAIN}.`],
    [{ code: 'toString', message: 'Of no object.' }, 'toString', 'Of no object.'],
  ])('%j has the code %s and the message %s', async (body, code, message) => {
    const error = await refusedWith(body);
    expect([error.code, error.message]).toEqual([code, message]);
  });

  it.each<[string, string, string]>([
    ['generation_rejected', 'change_request', 'a code of jobs'],
    ['new_code', 'retry_later', 'an unknown code'],
    ['rate_limited', 'wait_and_retry', 'a documented code'],
  ])('with %s says what to do: %s, as for %s', async (code, recovery) => {
    expect((await refusedWith({ code })).recovery).toBe(recovery);
  });

  it.each<[string | number, number | undefined]>([
    ['0', 0],
    ['7', 7_000],
    [' 7 ', 7_000],
    ['1.5', 1_500],
    ['0.0001', 1],
    ['-1', undefined],
    ['+7', undefined],
    ['7s', undefined],
    ['1e3', undefined],
    ['', undefined],
    ['Thu, 01 Jan 2026 00:00:07 GMT', 7_000],
    ['Thu 01 Jan 2026 00:00:07 GMT', 7_000],
    ['Thursday, 01-Jan-26 00:00:07 GMT', 7_000],
    ['Thu, nonsense', undefined],
    ['Th, 01 Jan 2026 00:00:07 GMT', undefined],
    ['Wed, 31 Dec 2025 23:59:59 GMT', 0],
  ])('with Retry-After %j is waited for %s ms, by the clock of the client', async (value, ms) => {
    const clock = virtualClock(Date.UTC(2026, 0, 1));
    const answer = () => json({}, { status: 409, headers: { 'retry-after': String(value) } });
    const { client } = stubbed(answer, { maxRetries: 0, [Symbol.for('gen-client.clock')]: clock });
    expect(((await rejection(client.videos.create(PROMPT))) as APIError).retryAfterMs).toBe(ms);
    // The answer's own date counts before the clock of this machine.
    const dated = () =>
      json({}, { status: 409, headers: { 'retry-after': String(value), date: 'Thu, 01 Jan 2026 00:00:02 GMT' } });
    const other = stubbed(dated, { maxRetries: 0, [Symbol.for('gen-client.clock')]: clock });
    const isDate = /[a-z]{3}/i.test(String(value)) && ms !== undefined;
    const expected = isDate ? Math.max(0, ms - 2_000) : ms;
    expect(((await rejection(other.client.videos.create(PROMPT))) as APIError).retryAfterMs).toBe(expected);
  });
});

describe('an answer of another shape', () => {
  it('is a ResponseError by each way to its data, and is had as a Response', async () => {
    const { client } = stubbed(() => json({ success: true, data: {} }));
    const made = () => client.jobs.get('job_1');
    const expected = { name: 'ResponseError', method: 'GET', url: `${BASE_URL}/v1/jobs/job_1`, attempts: 1 };
    expect(await rejection(made())).toMatchObject(expected);
    expect(await rejection(made().withResponse())).toMatchObject(expected);
    expect(await (await made().asResponse()).json()).toEqual({ success: true, data: {} });
  });

  it('to an upload is not asked for: its Response is had by each way', async () => {
    const fetch = async () => new Response('stored', { headers: { 'x-request-id': 'r1' } });
    const transport = createTransport(readConfig({ apiKey: freshKey(), baseUrl: BASE_URL, fetch }));
    const target = { name: 'put', url: 'https://storage.test/put', headers: {}, repeatable: true, body: () => 'x' };
    expect(await (await transport.transfer(target).asResponse()).text()).toBe('stored');
    const { data, response, ...meta } = await transport.transfer(target).withResponse();
    expect(meta).toEqual({ requestId: 'r1', attempts: 1 });
    expect(data).toBe(response);
    expect(await data.text()).toBe('stored');
  });

  it('as a stream is what the reader makes of it, and its Response beside it', async () => {
    const fetch = async () => new Response('file', { headers: { 'x-a': '1' } });
    const transport = createTransport(readConfig({ apiKey: freshKey(), baseUrl: BASE_URL, fetch }));
    const request = { name: 'open', method: 'GET', path: '/v1/x' } as const;
    const { data, response } = await transport.open({ ...request, read: ({ status }) => status }).withResponse();
    expect([data, response.headers.get('x-a'), await response.text()]).toEqual([200, '1', 'file']);
    const own = new Response('mine');
    const replaced = await transport.open({ ...request, read: () => own }).withResponse();
    expect([replaced.data, replaced.response]).toEqual([own, own]);
  });
});

describe('the trace of a stored output', () => {
  it('has the name of the call and the path of the output', async () => {
    const traces: RequestTrace[] = [];
    const nothing = () => {};
    const subscribers = {
      start: (message: unknown) => void traces.push(message as RequestTrace),
      end: nothing,
      asyncStart: nothing,
      asyncEnd: nothing,
      error: nothing,
    };
    const channel = tracingChannel('gen-client:request');
    channel.subscribe(subscribers);
    stops.push(() => channel.unsubscribe(subscribers));
    const transport = createTransport(readConfig({ apiKey: freshKey(), baseUrl: BASE_URL }));
    expect(await transport.storing({ name: 'saveOutput', jobId: 'a b/c' }, async () => 7)).toBe(7);
    expect(traces).toEqual([
      { callId: expect.any(String), name: 'saveOutput', path: '/v1/jobs/a%20b%2Fc/output', attempts: 0, laneWaitMs: 0 },
    ]);
  });
});

describe('the logger', () => {
  it('is told of each step in one line with its fields', async () => {
    const lines: [string, string, unknown][] = [];
    const at = (level: string) => (message: string, fields?: unknown) => void lines.push([level, message, fields]);
    const logger: Logger = { error: at('error'), warn: at('warn'), info: at('info'), debug: at('debug') };
    const clock = { ...virtualClock(), random: { next: () => 0.5, uuid: () => 'id-1' } };
    const steps = [() => json({}, { status: 500 }), () => json({}, { status: 429 }), () => json({ data: 1 })];
    const { client } = stubbed(steps, { logger, logLevel: 'debug', [Symbol.for('gen-client.clock')]: clock });
    await clock.until(client.request({ method: 'GET', path: '/v1/x' }));
    const call = { callId: 'id-1', method: 'GET', path: '/v1/x', lane: undefined, idempotencyKey: undefined };
    const message = `GET ${BASE_URL}/v1/x was answered with`;
    const first = { ...call, attempt: 1, laneWaitMs: 0 };
    const failed = { ...first, error: `ServerError: ${message} 500.` };
    const later = { ...call, attempt: 3, laneWaitMs: 393.75 };
    expect(lines).toMatchObject([
      ['debug', 'gen-client: GET /v1/x', first],
      ['debug', 'gen-client: GET /v1/x 500', { ...failed, status: 500, durationMs: 0 }],
      ['info', 'gen-client: retrying GET /v1/x in 375 ms', { ...failed, delayMs: 375 }],
      ['debug', 'gen-client: GET /v1/x', { ...first, attempt: 2 }],
      ['debug', 'gen-client: GET /v1/x 429', { ...first, attempt: 2, error: `RateLimitError: ${message} 429.` }],
      [
        'info',
        'gen-client: waiting 394 ms (no lane, pause)',
        { callId: 'id-1', waitMs: 393.75, queued: 0, reason: 'pause' },
      ],
      ['debug', 'gen-client: GET /v1/x', later],
      ['debug', 'gen-client: GET /v1/x 200', { ...later, status: 200, error: undefined }],
    ]);
    expect(lines).toHaveLength(8);
  });
});

describe('an idempotency key', () => {
  it.each<[unknown, string]>([
    ['', '""'],
    [' x', '" x"'],
    ['x ', '"x "'],
    ['ä', '"ä"'],
    ['a\tb', '"a\\tb"'],
    ['x'.repeat(256), `"${'x'.repeat(60)}…"`],
    [7, '7'],
    [null, 'null'],
    [{}, 'an object'],
  ])('%j in the params is refused by its name, which the body has', async (key, shown) => {
    const { client, seen } = stubbed(() => json(created()));
    const message = `must be a string of 1 to 255 printable ASCII characters, not ${shown}. idempotencyKeyFrom() makes one from your own ids.`;
    expect(await rejection(client.videos.create({ ...PROMPT, idempotency_key: key as string }))).toMatchObject({
      name: 'GenError',
      message: `idempotency_key ${message}`,
    });
    expect(await rejection(client.videos.create(PROMPT, { idempotencyKey: key as string }))).toMatchObject({
      name: 'GenError',
      message: expect.stringMatching(/^idempotencyKey must be /),
    });
    expect(seen).toEqual([]);
  });

  it.each(['x', 'a b', '~', '!', 'x'.repeat(255)])('%j is sent as it is', async (idempotencyKey) => {
    const { client, seen } = stubbed(() => json(created()));
    await client.videos.create(PROMPT, { idempotencyKey });
    expect(seen[0]?.headers['idempotency-key']).toBe(idempotencyKey);
  });

  it('of the options counts before that of the params', async () => {
    const { client, seen } = stubbed(() => json(created()));
    await client.videos.create({ ...PROMPT, idempotency_key: 'of-params' }, { idempotencyKey: 'of-options' });
    expect(seen[0]?.headers['idempotency-key']).toBe('of-options');
  });

  it('made of long ids is readable for 128 characters, and ends in the hash of the whole', () => {
    expect(idempotencyKeyFrom('x'.repeat(500))).toMatch(/^x{128}-[0-9a-f]{64}$/);
    expect(idempotencyKeyFrom('a  b', 'c/d', 1.5)).toMatch(/^a_b-c_d-1\.5-[0-9a-f]{64}$/);
  });
});

describe('a key that is used again', () => {
  const isRefused = async (first: object, second: object) => {
    const { client } = stubbed(() => json(created()), { preflight: false });
    await client.videos.create({ ...PROMPT, ...first }, { idempotencyKey: 'k' });
    const again = client.videos.create({ ...PROMPT, ...second }, { idempotencyKey: 'k' });
    return again.then(
      () => false,
      ({ code }) => code === 'idempotency_key_reused',
    );
  };

  it.each<[string, object, object, boolean]>([
    ['another value', { seed: 1 }, { seed: 2 }, true],
    ['a field more', {}, { seed: 1 }, true],
    ['a nested value', { a: { b: [1] } }, { a: { b: [2] } }, true],
    ['a list in another order', { a: [1, 2] }, { a: [2, 1] }, true],
    ['fields in another order', { a: 1, b: 2, c: 3 }, { c: 3, b: 2, a: 1 }, false],
    ['nested fields in another order', { a: { b: 1, c: 2 } }, { a: { c: 2, b: 1 } }, false],
    ['another upload', { first_frame_upload_id: 'upl_1' }, { first_frame_upload_id: 'upl_2' }, false],
    ['a key in the body', {}, { idempotency_key: 'k' }, false],
    ['a field that ends as the key does', { my_idempotency_key: 'a' }, { my_idempotency_key: 'b' }, true],
  ])('for %s: %j and %j, is refused: %s', async (_, first, second, expected) => {
    expect(await isRefused(first, second)).toBe(expected);
  });

  it('is forgotten after a thousand others, so that memory is bounded', async () => {
    const { client } = stubbed(() => json(created()), { rateLimit: 'off' });
    const create = (idempotencyKey: string, prompt: string) => client.videos.create({ prompt }, { idempotencyKey });
    await create('first', 'a');
    for (let at = 0; at < 999; at++) await create(`other-${at}`, 'a');
    await expect(create('first', 'b')).rejects.toMatchObject({ code: 'idempotency_key_reused' });
    for (let at = 0; at < 1_000; at++) await create(`more-${at}`, 'a');
    await create('first', 'b');
  });
});
