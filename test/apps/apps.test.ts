// The apps of examples/apps that need only the root's packages, on the sandbox. Jobs end immediately.
import { globSync, readdirSync, readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { signWebhook } from 'gen-client/webhooks';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { ROOT } from '../support/build.js';
import { completedEvent } from '../support/completed-event.js';
import { serveApps } from './service.js';

const APPS = join(ROOT, 'examples/apps');

describe('the test suite of an app with its own client', async () => {
  await import('../../examples/apps/poster.test.js');
});

describe('Lambda', () => {
  let sandbox: ReturnType<typeof serveApps>;
  beforeAll(() => {
    sandbox = serveApps({ jobDurationMs: 0 });
  });
  afterAll(() => {
    vi.unstubAllEnvs();
    vi.unstubAllGlobals();
  });
  const event = (method: string, rawPath: string, headers: Record<string, string> = {}, body?: string) => ({
    rawPath,
    rawQueryString: '',
    headers: { 'x-user': 'ann', ...headers },
    ...(body === undefined ? {} : { body }),
    isBase64Encoded: false,
    requestContext: { domainName: 'app.example.com', http: { method } },
  });
  const call = async (...args: Parameters<typeof event>) => {
    const { handler } = await import('../../examples/apps/lambda.js');
    const { body, ...result } = await handler(event(...args));
    return { ...result, bytes: Buffer.from(body, 'base64') };
  };
  const make = async (params: object) => {
    const { statusCode, bytes } = await call('POST', '/videos', {}, JSON.stringify(params));
    return { statusCode, answer: JSON.parse(bytes.toString()) as { id: string; code?: string; issues?: unknown[] } };
  };

  test('creates a video and serves the file, in full or as a range, to its owner', async () => {
    const { statusCode, answer: response } = await make({ prompt: 'a fox at dawn', duration: 5 });
    expect(statusCode).toBe(202);
    const whole = await call('GET', `/videos/${response.id}`);
    expect(whole).toMatchObject({ statusCode: 200, headers: { 'content-type': 'video/mp4' } });
    expect(whole.bytes.subarray(4, 8).toString('latin1')).toBe('ftyp');
    const part = await call('GET', `/videos/${response.id}`, { range: 'bytes=4-7' });
    expect(part).toMatchObject({ statusCode: 206, headers: { 'content-range': `bytes 4-7/${whole.bytes.length}` } });
    expect(part.bytes.toString('latin1')).toBe('ftyp');
    expect((await call('GET', `/videos/${response.id}`, { range: 'bytes=4-' })).bytes).toHaveLength(
      whole.bytes.length - 4,
    );
    expect((await call('GET', `/videos/${response.id}`, { 'x-user': 'bob' })).statusCode).toBe(404);
  });

  test('responds to invalid input with its issues, and to a service error with its code', async () => {
    const bad = await make({ prompt: 'a fox', duration: 99 });
    expect(bad).toMatchObject({ statusCode: 400, answer: { code: 'invalid' } });
    expect(bad.answer.issues).toHaveLength(1);
    expect((await call('POST', '/videos', {}, 'no json')).statusCode).toBe(400);
    sandbox.faults.add({ match: { path: '/v1/videos' }, status: 402, code: 'insufficient_balance' });
    const log = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    expect(await make({ prompt: 'a fox' })).toMatchObject({
      statusCode: 402,
      answer: { code: 'insufficient_balance' },
    });
    expect(log).toHaveBeenCalledOnce();
    log.mockRestore();
  });

  test('handles a webhook once, and rejects a forged one', async () => {
    const log = vi.spyOn(console, 'log').mockImplementation(() => undefined);
    const { body, headers } = await signWebhook(completedEvent('job_1', sandbox.baseUrl), {
      secret: sandbox.webhookSecret,
    });
    const sent = { ...headers };
    expect((await call('POST', '/webhooks', sent, body)).statusCode).toBe(200);
    expect((await call('POST', '/webhooks', sent, body)).statusCode).toBe(200);
    expect((await call('POST', '/webhooks', sent, `${body} `)).statusCode).toBe(400);
    expect(log.mock.calls).toEqual([['job_1 is ready']]);
    log.mockRestore();
  });
});

describe('a nested Express router', () => {
  let url = '';
  let close = async () => {};

  beforeAll(async () => {
    serveApps({ jobDurationMs: 0 });
    const { app } = await import('../../examples/apps/express-router.js');
    const server = app.listen(0);
    await new Promise((resolve) => server.once('listening', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/users`;
    close = () => new Promise((resolve) => server.close(() => resolve()));
  });
  afterAll(async () => {
    await close();
    vi.unstubAllEnvs();
    vi.unstubAllGlobals();
  });
  const make = (user: string, params: object) =>
    fetch(`${url}/${user}/videos`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(params),
    });

  test('creates a video, reports its progress, and serves the file only to its owner', async () => {
    const made = await make('ann', { prompt: 'a fox at dawn' });
    expect(made.status).toBe(202);
    const { id } = (await made.json()) as { id: string };
    const progress = await (await fetch(`${url}/ann/videos/${id}/progress`)).text();
    expect(progress).toMatch(/data: \{"status":"completed","progress":1,"etaMs":0\}\n\n$/);
    const file = await fetch(`${url}/ann/videos/${id}/file`);
    expect([file.status, file.headers.get('content-type')]).toEqual([200, 'video/mp4']);
    expect((await file.arrayBuffer()).byteLength).toBeGreaterThan(100);
    for (const what of ['progress', 'file']) expect((await fetch(`${url}/bob/videos/${id}/${what}`)).status).toBe(404);
  });

  test('responds to invalid input with its issues', async () => {
    const bad = await make('ann', { prompt: 'a fox', duration: 99 });
    expect([bad.status, await bad.json()]).toMatchObject([400, { code: 'invalid' }]);
  });

  test('lets Express handle malformed JSON, without an alert', async () => {
    const alarm = vi.spyOn(console, 'error').mockImplementation(() => {});
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${url}/ann/videos`, { method: 'POST', headers, body: '{bad' });
    expect(response.status).toBe(400);
    expect(alarm.mock.calls.filter(([first]) => !String(first).includes('SyntaxError'))).toEqual([]);
    alarm.mockRestore();
  });
});

describe('Fastify', () => {
  test("creates a video, rejects an unknown field, and keeps Fastify's own errors", async () => {
    serveApps({ jobDurationMs: 0 });
    const alarm = vi.spyOn(console, 'error').mockImplementation(() => {});
    const { app } = await import('../../examples/apps/fastify.js');
    const ask = async (payload: object | string, type = 'application/json') =>
      (await app.inject({ method: 'POST', url: '/videos', payload, headers: { 'content-type': type } })).statusCode;
    expect(await ask({ prompt: 'a fox at dawn', duration: 5 })).toBe(202);
    expect(await ask({ prompt: 'a fox', duration: 99 })).toBe(400);
    expect(await ask('a fox', 'a/b')).toBe(415);
    expect(alarm).not.toHaveBeenCalled();
    await app.close();
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
    vi.unstubAllGlobals();
  });
});

test('the recipes page lists every app', () => {
  const page = readFileSync(join(ROOT, 'docs/recipes.md'), 'utf8');
  for (const name of readdirSync(APPS)) expect(page).toContain(`(../examples/apps/${name})`);
});

test('the gallery has at most 100 lines', () => {
  const files = globSync('examples/gallery/**/*.{ts,tsx}', { cwd: ROOT }).filter(
    (path) => !path.includes('node_modules'),
  );
  const lines = files.flatMap((path) => readFileSync(join(ROOT, path), 'utf8').split('\n'));
  expect(files).toHaveLength(5);
  expect(lines.filter((line) => line.trim() !== '').length).toBeLessThanOrEqual(100);
});
