// The apps of examples/apps that need only this package's dependencies, with a sandbox.
import { globSync, readdirSync, readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { signWebhook } from 'gen-client/webhooks';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { ROOT } from '../support/build.js';
import { completedEvent } from '../support/completed-event.js';
import { serveApps, stopServing } from './service.js';

const APPS = join(ROOT, 'examples/apps');

describe('the test of an app', async () => {
  await import('../../examples/apps/poster.test.js');
});

describe('Lambda', () => {
  let sandbox: ReturnType<typeof serveApps>;
  beforeAll(() => {
    sandbox = serveApps({ jobDurationMs: 0 });
  });
  afterAll(stopServing);
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
  const create = async (params: object) => {
    const { statusCode, bytes } = await call('POST', '/videos', {}, JSON.stringify(params));
    return { statusCode, result: JSON.parse(bytes.toString()) as { id: string; code?: string; issues?: unknown[] } };
  };

  test('creates a video and serves the file, in full or as a range, to its owner', async () => {
    const { statusCode, result } = await create({ prompt: 'a fox at dawn', duration: 5 });
    expect(statusCode).toBe(202);
    const path = `/videos/${result.id}`;
    const file = await call('GET', path);
    expect(file).toMatchObject({ statusCode: 200, headers: { 'content-type': 'video/mp4' } });
    expect(file.bytes.subarray(4, 8).toString('latin1')).toBe('ftyp');
    const part = await call('GET', path, { range: 'bytes=4-7' });
    expect(part).toMatchObject({ statusCode: 206, headers: { 'content-range': `bytes 4-7/${file.bytes.length}` } });
    expect(part.bytes.toString('latin1')).toBe('ftyp');
    expect((await call('GET', path, { range: 'bytes=4-' })).bytes).toHaveLength(file.bytes.length - 4);
    expect((await call('GET', path, { 'x-user': 'bob' })).statusCode).toBe(404);
  });

  test('responds to invalid input with its issues, and to a service error with its code', async () => {
    const rejected = await create({ prompt: 'a fox', duration: 99 });
    expect(rejected).toMatchObject({ statusCode: 400, result: { code: 'invalid' } });
    expect(rejected.result.issues).toHaveLength(1);
    expect((await call('POST', '/videos', {}, 'no json')).statusCode).toBe(400);
    sandbox.faults.add({ match: { path: '/v1/videos' }, status: 402, code: 'insufficient_balance' });
    const log = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const failed = await create({ prompt: 'a fox' });
    expect(failed).toMatchObject({ statusCode: 402, result: { code: 'insufficient_balance' } });
    expect(log).toHaveBeenCalledOnce();
    log.mockRestore();
  });

  test('handles a webhook once, and rejects a forged one', async () => {
    const log = vi.spyOn(console, 'log').mockImplementation(() => undefined);
    const event = completedEvent('job_1', sandbox.baseUrl);
    const { body, headers } = await signWebhook(event, { secret: sandbox.webhookSecret });
    const statusOf = async (text: string) => (await call('POST', '/webhooks', { ...headers }, text)).statusCode;
    expect([await statusOf(body), await statusOf(body), await statusOf(`${body} `)]).toEqual([200, 200, 400]);
    expect(log.mock.calls).toEqual([['job_1 is ready']]);
    log.mockRestore();
  });
});

describe('a nested Express router', () => {
  let url = '';
  let server: Server;

  beforeAll(async () => {
    serveApps({ jobDurationMs: 0 });
    const { app } = await import('../../examples/apps/express-router.js');
    server = app.listen(0);
    await new Promise((resolve) => server.once('listening', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/users`;
  });
  afterAll(async () => {
    await new Promise((resolve) => server.close(resolve));
    stopServing();
  });
  const headers = { 'content-type': 'application/json' };
  const create = (params: object) =>
    fetch(`${url}/ann/videos`, { method: 'POST', headers, body: JSON.stringify(params) });

  test('creates a video, reports its progress, and serves the file only to its owner', async () => {
    const created = await create({ prompt: 'a fox at dawn' });
    expect(created.status).toBe(202);
    const { id } = (await created.json()) as { id: string };
    const progress = await (await fetch(`${url}/ann/videos/${id}/progress`)).text();
    expect(progress).toMatch(/data: \{"status":"completed","progress":1,"etaMs":0\}\n\n$/);
    const file = await fetch(`${url}/ann/videos/${id}/file`);
    expect([file.status, file.headers.get('content-type')]).toEqual([200, 'video/mp4']);
    expect((await file.arrayBuffer()).byteLength).toBeGreaterThan(100);
    for (const name of ['progress', 'file']) expect((await fetch(`${url}/bob/videos/${id}/${name}`)).status).toBe(404);
  });

  test('responds to invalid input with its issues', async () => {
    const rejected = await create({ prompt: 'a fox', duration: 99 });
    expect([rejected.status, await rejected.json()]).toMatchObject([400, { code: 'invalid' }]);
  });

  test('lets Express handle malformed JSON without logging an error', async () => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => {});
    const response = await fetch(`${url}/ann/videos`, { method: 'POST', headers, body: '{bad' });
    expect(response.status).toBe(400);
    expect(log.mock.calls.filter(([first]) => !String(first).includes('SyntaxError'))).toEqual([]);
    log.mockRestore();
  });
});

describe('Fastify', () => {
  test("creates a video, rejects invalid params, and leaves Fastify's errors unchanged", async () => {
    serveApps({ jobDurationMs: 0 });
    const log = vi.spyOn(console, 'error').mockImplementation(() => {});
    const { app } = await import('../../examples/apps/fastify.js');
    const statusOf = async (payload: object | string, type = 'application/json') =>
      (await app.inject({ method: 'POST', url: '/videos', payload, headers: { 'content-type': type } })).statusCode;
    expect(await statusOf({ prompt: 'a fox at dawn', duration: 5 })).toBe(202);
    expect(await statusOf({ prompt: 'a fox', duration: 99 })).toBe(400);
    expect(await statusOf('a fox', 'a/b')).toBe(415);
    expect(log).not.toHaveBeenCalled();
    await app.close();
    log.mockRestore();
    stopServing();
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
