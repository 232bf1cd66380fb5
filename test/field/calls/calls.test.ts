// Queries, bodies, URLs, idempotency keys, and fallback models that callers pass. Each row: source, input, expected value.
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type ClientOptions, GenError, JobFailedError, PreflightError } from '../../../src/index.js';
import { createSandbox } from '../../../src/sandbox/index.js';
import { BASE_URL, json, never, rejection, stubbed } from '../../transport/support.js';

const PROMPT = { prompt: 'a fox at dawn' };
const stubService = (options?: ClientOptions) => stubbed(() => json({ success: true, data: {} }), options);
afterEach(() => vi.restoreAllMocks());

describe('client.request', () => {
  it.each<[source: string, request: { path: string; query?: object }, sent: string]>([
    ['P4: added to the query of the path', { path: '/v1/x?y=1', query: { z: 2 } }, '/v1/x?y=1&z=2'],
    ['an array', { path: '/v1/x', query: { a: ['1', 2, true] } }, '/v1/x?a=1&a=2&a=true'],
    ['undefined and empty values', { path: '/v1/x', query: { a: undefined, b: [] } }, '/v1/x'],
    ['in the path, unchanged', { path: '/v1/x?y=a+b%20c' }, '/v1/x?y=a+b%20c'],
  ])('builds the query: %s', async (_, request, suffix) => {
    const { client, requests } = stubService();
    await client.request({ method: 'GET', ...request } as never);
    expect(requests.map(({ url }) => url)).toEqual([BASE_URL + suffix]);
  });

  it.each<[source: string, request: object]>([
    ['URLSearchParams', { query: new URLSearchParams({ a: '1' }) }],
    ['a Map', { query: new Map([['a', '1']]) }],
    ['an array', { query: [['a', '1']] }],
    ['a nested object', { query: { a: { b: 1 } } }],
    ['a nested Date', { query: { a: new Date(0) } }],
    ['a nested null', { query: { a: null } }],
    ['a nested NaN', { query: { a: Number.NaN } }],
    ['a GET with a body', { body: {} }],
    ['a function as the body', { method: 'POST', body: () => {} }],
    ['a symbol as the body', { method: 'POST', body: Symbol('x') }],
  ])('rejects an invalid query or body: %s', async (_, request) => {
    const { client, requests } = stubService();
    const call = client.request({ method: 'GET', path: '/v1/x', ...request } as never);
    expect(await rejection(call)).toBeInstanceOf(GenError);
    expect(requests).toEqual([]);
  });
});

describe('a URL in the params', () => {
  it.each<[params: object, message: string]>([
    // P7: the quickstart's code without APP_URL.
    [{ webhook_url: 'undefined/api/webhooks' }, 'webhook_url: must be an absolute URL'],
    [{ webhook_url: 'https://' }, 'webhook_url: must be an absolute URL'],
    [{ callback_url: 'invalid' }, 'callback_url: must be an absolute URL'],
    [{ reference_image_urls: ['fox.png'] }, 'reference_image_urls[0]: must be an absolute URL'],
  ])('is rejected if it is invalid: %j', async (params, message) => {
    const { client, requests } = stubService();
    const invalid = { ...PROMPT, ...params };
    for (const call of [() => client.videos.create(invalid), () => client.videos.createAndWait(invalid)]) {
      const error = (await rejection(call())) as PreflightError;
      expect(error).toBeInstanceOf(PreflightError);
      expect(error.message).toContain(message);
      expect(error.code).not.toMatch(/^http_/);
    }
    expect(requests).toEqual([]);
  });
});

it('a log line without fields has no second argument', async () => {
  const data = { job: { id: 'job_1', status: 'queued' }, warnings: ['odd'] };
  const { client } = stubbed(() => json({ success: true, data }), { logger: console, logLevel: 'warn' });
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
  await client.videos.create(PROMPT);
  expect(warn.mock.calls).toEqual([['gen-client: job job_1: odd']]);
});

describe('the idempotency key', () => {
  it('of a create is available immediately, even if the call is aborted', async () => {
    const controller = new AbortController();
    const { client } = stubService({ fetch: never });
    const call = client.videos.create(PROMPT, { signal: controller.signal });
    expect(call.idempotencyKey).toMatch(/^[\da-f-]{36}$/);
    controller.abort();
    expect(await rejection(call)).toMatchObject({ name: 'AbortError' });
    const keyedCall = client.videos.create({ ...PROMPT, idempotency_key: 'order-1' }, { signal: controller.signal });
    expect(keyedCall.idempotencyKey).toBe('order-1');
    await rejection(keyedCall);
  });

  it('of createAndWait is available immediately, and resumes an aborted call', async () => {
    const controller = new AbortController();
    const keys: unknown[] = [];
    const { client } = stubbed(({ method, headers }) => {
      if (method === 'POST') keys.push(headers['idempotency-key']);
      if (keys.length === 1) controller.abort();
      return json({ data: { job: { id: 'job_1', status: 'completed', providerOutputUrl: 'https://x.example/file' } } });
    });
    const call = client.videos.createAndWait(PROMPT, { signal: controller.signal });
    expect(await rejection(call)).toMatchObject({ name: 'AbortError' });
    const job = await client.videos.createAndWait(PROMPT, { idempotencyKey: call.idempotencyKey });
    expect(job.id).toBe('job_1');
    expect(keys).toEqual([call.idempotencyKey, call.idempotencyKey]);
    const rejected = client.videos.createAndWait(PROMPT, { idempotencyKey: '' });
    expect(rejected.idempotencyKey).toBeUndefined();
    expect(await rejection(rejected)).toMatchObject({ message: expect.stringMatching(/^idempotencyKey must be /) });
  });

  it('of another call is undefined', async () => {
    const { client } = stubbed(() => json({ success: true, data: { job: { id: 'job_1', status: 'queued' } } }));
    const call = client.jobs.get('job_1');
    expect(call.idempotencyKey).toBeUndefined();
    await call;
  });
});

describe('recover', () => {
  it.each([
    ['the only model', { generation_failed: { models: ['svc-image-pro'] } }],
    ['the second model', { generation_failed: { models: ['svc-video-pro', 'svc-image-pro'] } }],
    [
      "another code's model",
      { generation_failed: { models: ['svc-video-pro'] }, generation_timeout: { models: ['svc-image-pro'] } },
    ],
  ])('is validated before the first create: %s', async (_, recover) => {
    const { client, requests } = stubService();
    const error = await rejection(client.videos.createAndWait(PROMPT, { recover }));
    expect(error).toMatchObject({ name: 'PreflightError', param: 'recover', code: 'model_not_found' });
    expect(String(error)).toContain('recover: the params do not fit the model "svc-image-pro".');
    expect(requests).toEqual([]);
  });

  it.each([
    ['the only one', ['svc-video-pro']],
    ['the second one', ['svc-video-mini', 'svc-video-pro']],
  ])("rejects with the failed job and its fallback's rejection as the cause: %s", async (_, models) => {
    const sandbox = createSandbox({ jobDurationMs: 0 });
    for (const _ of models) sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_failed' });
    let creates = 0;
    const fetch = async (url: string, init: RequestInit) => {
      if (init.method === 'POST' && ++creates === models.length + 1)
        return json({ error: { code: 'account_not_active' } }, { status: 403 });
      return sandbox.fetch(url, init);
    };
    const client = sandbox.client({ fetch: fetch as typeof globalThis.fetch });
    const recover = { generation_failed: { models } };
    const error = await rejection(client.videos.createAndWait(PROMPT, { recover }));
    expect(error).toBeInstanceOf(JobFailedError);
    expect(error).toMatchObject({ code: 'generation_failed', cause: { name: 'PermissionDeniedError' } });
    expect((error as JobFailedError).job.tries).toHaveLength(models.length);
  });
});
