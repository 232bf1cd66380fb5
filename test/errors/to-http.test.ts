import type { AddressInfo } from 'node:net';
import express from 'express';
import fastify from 'fastify';
import { describe, expect, it, test } from 'vitest';
import * as gen from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import jobErrors from '../fixtures/job-errors.json' with { type: 'json' };
import requestErrors from '../fixtures/request-errors.json' with { type: 'json' };
import { rejection } from '../transport/support.js';

const { toHttp } = gen;
const prompt = 'a fox';
const SECRET = 'sk-live-never-to-be-seen';
const INTERNAL = 'https://internal.example/prefix';

/** Returns the client's error for a service error with `code`. */
async function serviceError(code: string, status: number, message = `rejected with ${code}`): Promise<unknown> {
  const fetch = async () =>
    new Response(JSON.stringify({ success: false, error: { code, message } }), {
      status,
      headers: { 'content-type': 'application/json' },
    });
  const client = new gen.GenClient({
    apiKey: SECRET,
    baseUrl: INTERNAL,
    fetch,
    maxRetries: 0,
    rateLimit: 'off',
    maxRetryAfterMs: 0,
  });
  return rejection(client.videos.create({ prompt }));
}

describe('every documented rejection', () => {
  const statuses: Readonly<Record<number, number>> = { 401: 502, 403: 502, 500: 502, 503: 502 };
  test.each(requestErrors.map(({ code, status }) => [code, status, statuses[status] ?? status] as const))(
    '%s (%i) becomes %i',
    async (code, status, expected) => {
      const response = toHttp(await serviceError(code, status));
      const faults = { 401: 'app', 402: 'app', 403: 'app', 429: 'service', 500: 'service', 503: 'service' };
      expect(response).toMatchObject({
        status: expected,
        code: status === 401 || status === 403 ? 'service_error' : code,
        fault: Reflect.get(faults, status) ?? 'caller',
      });
      expect(response.message).not.toBe('');
    },
  );

  it("includes the service's message about the input, but no details for the developer", async () => {
    expect(toHttp(await serviceError('prompt_too_long', 400, 'Shorten the prompt.')).message).toBe(
      'Shorten the prompt.',
    );
    const message = `GET ${INTERNAL}/v1/x with ${SECRET} failed`;
    for (const [code, status] of [
      ['model_not_found', 400],
      ['job_not_found', 404],
      ['invalid_api_key', 401],
      ['insufficient_balance', 402],
      ['internal_error', 500],
    ] as const) {
      const actual = JSON.stringify(toHttp(await serviceError(code, status, message)));
      expect(actual).not.toMatch(/internal\.example|sk-live/);
    }
    // Without an envelope, this package's own message would include the URL.
    const fetch = async () => new Response('', { status: 404 });
    const client = new gen.GenClient({ apiKey: SECRET, baseUrl: INTERNAL, fetch });
    const error = await rejection(client.jobs.get('job_1'));
    expect(String(error)).toContain('internal.example');
    expect(toHttp(error)).toEqual({ status: 404, code: 'http_404', message: 'This does not exist.', fault: 'caller' });
  });
});

describe('a failed job', () => {
  const job = (errorCode: string) => ({ id: 'job_1', status: 'failed', errorCode });
  const byInput = ['reference_rejected', 'reference_asset_failed', 'generation_rejected'];
  test.each(jobErrors.map(({ code }) => [code, byInput.includes(code) ? 422 : 502] as const))(
    'with the code %s becomes %i',
    (code, status) => {
      expect(toHttp(new gen.JobFailedError(`Job job_1 failed (${code}).`, { job: job(code) }))).toMatchObject({
        status,
        code,
      });
    },
  );

  it('without a code becomes 502 with its status as the code', () => {
    const blocked = new gen.JobBlockedError('Job job_1 was blocked.', { job: { id: 'job_1', status: 'blocked' } });
    expect(toHttp(blocked)).toMatchObject({ status: 502, code: 'job_blocked' });
  });
});

const WAIT = { jobId: 'job_1', timeoutMs: 1 };
const { PreflightError, UploadError, DownloadError, WebhookVerificationError } = gen;
const tooLarge = new PreflightError('too large', { code: 'upload_too_large', param: 'source' });
const broken = new gen.ConnectionError(`POST ${INTERNAL} failed`);
const download = (code: string) => new DownloadError('x', { jobId: 'job_1', code });
const webhook = (reason: gen.WebhookVerificationError['reason']) => new WebhookVerificationError('x', { reason });

test.each<[string, unknown, response: string]>([
  ['invalid input', new PreflightError('No such length.', { code: 'x', param: 'duration' }), '400 x caller'],
  ['a broken connection', broken, '502 service_error service'],
  ['an invalid response', new gen.ResponseError(`GET ${INTERNAL} failed`), '502 service_error service'],
  ["a call's timeout", new gen.TimeoutError(`POST ${INTERNAL} timed out`), '504 timeout service'],
  ["a wait's timeout", new gen.WaitTimeoutError('late', WAIT), '504 timeout service'],
  ['a budget', Object.assign(new gen.GenError('No.'), { code: 'budget_exceeded' }), '402 budget_exceeded caller'],
  [
    'a file that is too large',
    new UploadError('x', { step: 'create', cause: tooLarge }),
    '400 upload_too_large caller',
  ],
  ['an interrupted source', new UploadError('It ended early.', { step: 'put' }), '400 upload_invalid caller'],
  ['a failed upload', new UploadError('x', { step: 'put', cause: broken }), '502 service_error service'],
  ['an unfinished file', download('job_not_finished'), '409 job_not_finished caller'],
  ['an expired file', download('output_expired'), '404 output_expired caller'],
  ['a store', new gen.StorageError('x', { code: 'SlowDown', store: 's3' }), '502 storage_error app'],
  ['a forged webhook', webhook('signature_mismatch'), '400 signature_mismatch caller'],
  ['a receiver without a secret', webhook('secret_missing'), '500 internal_error app'],
  ['a client without a base URL', new gen.GenError('baseUrl is missing.'), '500 internal_error app'],
  ['a bug', new TypeError(`${SECRET} is undefined`), '500 internal_error app'],
  ['an abort', new DOMException('stop', 'AbortError'), '500 internal_error app'],
  ['undefined', undefined, '500 internal_error app'],
])('toHttp converts %s', (_, error, expected) => {
  const { status, code, fault, message } = toHttp(error);
  expect(`${status} ${code} ${fault}`).toBe(expected);
  expect(message).toMatch(/\S.*\.$|^too large$|^x$/);
  expect(message + code).not.toMatch(/internal\.example|sk-live/);
});

it('PreflightError.status is 400, including in its JSON', async () => {
  const client = createSandbox().client();
  const error = await rejection(client.videos.create({ prompt, duration: 7 as never }));
  expect(error).toMatchObject({ name: 'PreflightError', status: 400 });
  expect(JSON.parse(JSON.stringify(error))).toMatchObject({ status: 400, param: 'duration' });
});

describe('in a framework', () => {
  const client = createSandbox().client({ apiKey: 'sk-revoked-revoked' });
  const createWithRevokedKey = () => client.videos.create({ prompt });
  const invalidInput = () => client.videos.create({ prompt, duration: 7 as never });

  test('Fastify responds 502 for an invalid API key of the app and 400 for invalid input by default', async () => {
    const app = fastify();
    app.get('/key', createWithRevokedKey);
    app.get('/input', invalidInput);
    const responses = await Promise.all(['/key', '/input'].map((url) => app.inject(url)));
    expect(responses.map(({ statusCode }) => statusCode)).toEqual([502, 400]);
    await app.close();
  });

  test('Express responds 400 for invalid input by default, and 502 for an invalid API key of the app with toHttp', async () => {
    const app = express();
    app.get('/key', createWithRevokedKey);
    app.get('/input', invalidInput);
    app.use((error: unknown, _request: express.Request, response: express.Response, _next: express.NextFunction) => {
      const { status, code, message } = toHttp(error);
      response.status(status).json({ code, message });
    });
    const defaultApp = express();
    defaultApp.set('env', 'test');
    defaultApp.get('/input', invalidInput);
    const server = app.listen(0, '127.0.0.1');
    const defaultServer = defaultApp.listen(0, '127.0.0.1');
    await new Promise((resolve) => setImmediate(resolve));
    const get = (target: ReturnType<typeof app.listen>, path: string) =>
      fetch(`http://127.0.0.1:${(target.address() as AddressInfo).port}${path}`);
    const key = await get(server, '/key');
    expect(key.status).toBe(502);
    expect(await key.json()).toEqual({
      code: 'service_error',
      message: 'The generation service is not available. Try again later.',
    });
    const input = await get(server, '/input');
    expect(input.status).toBe(400);
    expect(await input.json()).toMatchObject({
      code: 'duration_not_supported',
      message: expect.stringContaining('duration: must be one of 4'),
    });
    expect((await get(defaultServer, '/input')).status).toBe(400);
    for (const running of [server, defaultServer]) running.close();
  });
});
