// What an error tells about a refused call, beyond its code: ids, times, bodies, redirects and full rate limits.
import { describe, expect, it } from 'vitest';
import { APIError, GenClient, RateLimitError } from '../../src/index.js';
import { BASE_URL, created, freshKey, json, rejection, stubbed } from './support.js';

/** The error of one read that is refused, nothing retried. */
async function refused(body: unknown, init: ResponseInit = {}): Promise<APIError> {
  const { client } = stubbed(() => json(body, { status: 400, ...init }), { rateLimit: 'throw', maxRetries: 0 });
  const error = await rejection(client.jobs.get('job_1'));
  if (!APIError.isInstance(error)) throw error;
  return error;
}

describe('the id of the request', () => {
  it.each([
    ['request_id', { error: { code: 'bad_ratio', request_id: 'req_1' } }],
    ['requestId', { code: 'bad_ratio', requestId: 'req_1' }],
    ['data.error.request_id', { data: { error: { request_id: 'req_1' } } }],
  ])('is read from %s of the body', async (_, body) => {
    expect((await refused(body)).requestId).toBe('req_1');
  });

  it('is that of the header where both have one', async () => {
    const error = await refused({ request_id: 'req_1' }, { headers: { 'x-request-id': 'req_2' } });
    expect(error.requestId).toBe('req_2');
  });

  it('is undefined where nobody says it, and where it is not text', async () => {
    expect((await refused({ code: 'x' })).requestId).toBeUndefined();
    expect((await refused({ request_id: 7, requestId: ' ' })).requestId).toBeUndefined();
  });
});

describe('the time to wait', () => {
  it.each<[string, unknown, number | undefined]>([
    ['retry_after in seconds', { error: { retry_after: 7 } }, 7_000],
    ['retryAfter in seconds', { retryAfter: 1.5 }, 1_500],
    ['digits', { retry_after: '7' }, 7_000],
    ['no number', { retry_after: 'soon' }, undefined],
    ['a number below 0', { retry_after: -1 }, undefined],
  ])('is read from the body: %s', async (_, body, ms) => {
    expect((await refused(body, { status: 503 })).retryAfterMs).toBe(ms);
  });

  it.each<[string, number | undefined]>([
    ['Thu, 01 Jan 2026 00:00:09 GMT', 9_000],
    ['Thursday, 01-Jan-26 00:00:09 GMT', 9_000],
    ['Wed, 31 Dec 2025 00:00:00 GMT', 0],
    ['2026-01-01T00:00:09Z', undefined],
    ['in Thu, 01 Jan 2026 00:00:09 GMT', undefined],
    ['9 s', undefined],
  ])('is read from the header %j against the date of the answer', async (value, ms) => {
    const headers = { 'retry-after': value, date: 'Thu, 01 Jan 2026 00:00:00 GMT' };
    expect((await refused({}, { status: 503, headers })).retryAfterMs).toBe(ms);
  });
});

describe('the body', () => {
  it.each<[string, string, unknown]>([
    ['its data', '{"code":"x","data":{"have":1}}', { have: 1 }],
    ['itself where it has no data', '{"code":"x"}', { code: 'x' }],
    ['its text where it is not JSON', 'upstream is away', 'upstream is away'],
    ['nothing of markup', '<html>upstream</html>', undefined],
    ['nothing where it is empty', '', undefined],
  ])('is kept as %s', async (_, body, data) => {
    const { client } = stubbed(() => new Response(body, { status: 400 }), { maxRetries: 0 });
    expect((await rejection(client.jobs.get('job_1'))) as APIError).toMatchObject({ data });
  });

  it.each<[unknown, string]>([
    [{ detail: 'model_not_found' }, 'model_not_found'],
    [{ type: 'model_not_found', error: 'bad' }, 'model_not_found'],
    [{ message: 'model_not_found' }, 'model_not_found'],
    ['model_not_found', 'model_not_found'],
    [{ detail: 'new_code' }, 'new_code'],
    [{ type: 'new_code' }, 'http_400'],
    [{ message: 'new_code' }, 'http_400'],
    [7, 'http_400'],
    [[], 'http_400'],
    [null, 'http_400'],
  ])('%j has the code %s', async (body, code) => {
    expect((await refused(JSON.stringify(body))).code).toBe(code);
  });
});

describe('a redirect', () => {
  it.each([
    ['with a user name', 'https://user@service.test/x', 'its location holds a user name or a password'],
    ['with a password', 'https://:secret@service.test/x', 'its location holds a user name or a password'],
    ['to another origin', 'https://evil.test/x', 'it leads to https://evil.test'],
    ['without encryption', 'http://service.test/x', 'it leads to http://service.test without encryption'],
    ['to something else', 'data:text/plain,x', 'it leads to null'],
    ['to no URL', 'https://', 'its location is not a URL'],
  ])('%s is not followed', async (_, location, why) => {
    const { client, seen } = stubbed(() => new Response(null, { status: 302, headers: { location } }), {
      maxRetries: 0,
    });
    const error = (await rejection(client.jobs.get('job_1'))) as APIError;
    expect(error.message).toContain(why);
    expect(error.message).not.toContain('secret');
    expect(seen).toHaveLength(1);
  });

  it('within the service is followed up to a bound', async () => {
    const redirect = () => new Response(null, { status: 302, headers: { location: `${BASE_URL}/v1/jobs/job_1` } });
    const answer = () => json({ success: true, data: { job: { id: 'job_1', status: 'processing' } } });
    const once = stubbed([redirect, answer]);
    expect((await once.client.jobs.get('job_1')).id).toBe('job_1');
    expect(once.seen).toHaveLength(2);
    const ever = stubbed(redirect, { maxRetries: 0 });
    expect(((await rejection(ever.client.jobs.get('job_1'))) as APIError).message).toMatch(/it is the \d+th in a row/);
  });
});

describe('a full rate limit', () => {
  const limits = { 'videos.create': { limit: 1, windowMs: 60_000 } };

  it('is refused unsent, and the message says when the next slot is free', async () => {
    const { client, seen } = stubbed(() => json(created()), { rateLimit: 'throw', limits });
    await client.videos.create({ prompt: 'x' });
    const error = await rejection(client.videos.create({ prompt: 'x' }));
    expect(RateLimitError.isInstance(error)).toBe(true);
    expect((error as Error).message).toMatch(
      /^The limit of videos\.create is reached, so the call was not sent\. The next slot is free in \d{5} ms\.$/,
    );
    expect(seen).toHaveLength(1);
  });
});

describe('a key function', () => {
  it('that never gives a key fails the call after timeoutMs, and names the option', async () => {
    const client = new GenClient({
      apiKey: () => new Promise(() => {}),
      baseUrl: BASE_URL,
      timeoutMs: 20,
      maxRetries: 0,
    });
    const error = (await rejection(client.videos.create({ prompt: 'x' }))) as Error;
    expect(error).toMatchObject({ name: 'TimeoutError', message: expect.stringContaining('(timeoutMs)') });
  });

  it('that gives something else once does not end a wait', async () => {
    const key = freshKey();
    const keys: unknown[] = [key, '', undefined];
    const answers = ['processing', 'completed'];
    const job = (status: string) => ({ id: 'job_1', status, providerOutputUrl: 'https://service.test/o' });
    const { client } = stubbed(() => json({ success: true, data: { job: job(answers.shift() ?? 'completed') } }), {
      apiKey: () => (keys.length > 0 ? keys.shift() : key) as string,
    });
    const done = await client.waitForJob('job_1', { pollIntervalMs: 20 });
    expect(done.status).toBe('completed');
  });
});
