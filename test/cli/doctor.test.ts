import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, describe, expect, it } from 'vitest';
import { GenClient } from '../../src/client/client.js';
import { serve } from '../../src/sandbox/http/serve.js';
import { createWebhookHandler } from '../../src/webhooks/index.js';
import { cliOnSandbox } from './cli-on-sandbox.js';
import { runCli, startCli } from './run-cli.js';

const place = cliOnSandbox();
const { sandbox } = place;
/** Returns options that run the doctor with this fetch. */
const against = (fetch: typeof globalThis.fetch, env: Record<string, string> = {}) => ({
  env: { ...place.env, ...env },
  createClient: (options: object) => new GenClient({ ...options, fetch }),
});
const doctor = (words: readonly string[], env: Record<string, string> = {}, fetch = sandbox.fetch) =>
  runCli(['doctor', ...words], against(fetch as typeof globalThis.fetch, env));
const check = async (name: string, env: Record<string, string> = {}, fetch?: typeof globalThis.fetch) => {
  const { checks } = JSON.parse((await doctor(['--json'], env, fetch)).stdout);
  return checks.find((one: { name: string }) => one.name === name);
};

describe('reports', () => {
  it('an invalid key, a missing key, and a suspended account', async () => {
    expect(await check('key', { GEN_API_KEY: 'wrong-key' })).toMatchObject({
      status: 'failed',
      code: 'invalid_api_key',
    });
    expect(await check('key', { GEN_API_KEY: '' })).toMatchObject({
      status: 'failed',
      message: 'GEN_API_KEY is not set.',
    });
    const suspended = sandbox.createKey({ account: 'other', suspended: true });
    expect(await check('key', { GEN_API_KEY: suspended })).toMatchObject({ code: 'account_not_active' });
  });

  it.each([
    [-302, 'failed', ' s ahead of the service'],
    [302, 'failed', ' s behind the service'],
    [-60, 'warning', ' s ahead of the service'],
    [4, 'ok', ' s behind the service'],
  ])('a clock that is %i s off: %s', async (offS, wanted, message) => {
    const shifted = async (...given: Parameters<typeof sandbox.fetch>) => {
      const response = await sandbox.fetch(...given);
      response.headers.set('date', new Date(Date.now() + offS * 1000 - 500).toUTCString());
      return response;
    };
    const clock = await check('clock', {}, shifted as typeof globalThis.fetch);
    expect(clock).toMatchObject({ status: wanted, message: expect.stringContaining(message) });
    expect(Math.abs(clock.skewS + offS)).toBeLessThanOrEqual(1);
  });

  it("a key that can't read jobs", async () => {
    const key = sandbox.createKey({ scopes: ['images:create'] });
    expect(await check('key', { GEN_API_KEY: key })).toMatchObject({ status: 'warning', code: 'scope_missing' });
  });

  it("another service's base URL", async () => {
    const elsewhere = async () => new Response('<html>hello', { headers: { 'content-type': 'text/html' } });
    expect(await check('service', {}, elsewhere)).toMatchObject({
      status: 'failed',
      message: expect.stringContaining('Check the base URL'),
    });
  });

  it('a 429 immediately, with the time to wait', async () => {
    const busy = async () => new Response('{}', { status: 429, headers: { 'retry-after': '900' } });
    const { message } = await check('service', {}, busy);
    expect(message).toContain("The account's rate limit is reached. Run");
    expect(message).toContain('in 900 s');
  });
});

describe('the command', () => {
  const closing: (() => unknown)[] = [];
  afterAll(() => Promise.all(closing.map((close) => close())));

  it('prints one line per check, and sends two requests', async () => {
    const { code, stdout, stderr } = await doctor([]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^ok {6}service {2}It responded in \d+ ms and lists 12 models\.\n/);
    const names = [...stdout.matchAll(/^\S+ +(\w+)/gm)].map(([, name]) => name);
    expect(names).toEqual(['service', 'clock', 'key', 'webhook']);
    expect(sandbox.requests.map(({ method, path }) => [method, path])).toEqual([
      ['GET', '/v1/models'],
      ['GET', '/v1/jobs/gen-client-doctor-none'],
    ]);
    expect(sandbox.jobs).toEqual([]);
  });

  it('tests a receiver with a signed, a forged, and an old event', async () => {
    const seen: string[] = [];
    const handler = createWebhookHandler({
      secret: sandbox.webhookSecret,
      on: { '*': (event) => void seen.push(event.type) },
      onError() {},
    });
    const good = await serve(handler, { port: 0, host: '127.0.0.1' });
    const careless = createServer((_, response) => response.end()).listen(0, '127.0.0.1');
    closing.push(good.close, () => careless.close());
    const passed = JSON.parse((await doctor(['--webhook', `${good.url}/hook`, '--json'])).stdout);
    expect(passed.checks.at(-1)).toMatchObject({ name: 'webhook', status: 'warning', httpStatus: 200 });
    expect(passed.checks.at(-1).message).toContain('rejected a forged and an old one');
    expect(seen).toEqual(['doctor.ping']);
    const { port } = careless.address() as AddressInfo;
    const { code, stdout } = await doctor(['--webhook', `http://127.0.0.1:${port}/`]);
    expect({ code, stdout }).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('The receiver also accepts a forged event and an event that is 301 s old.'),
    });
    const differs = await doctor(['--webhook', `${good.url}/hook`], { GEN_WEBHOOK_SECRET: 'another' });
    expect(differs.stdout).toContain('Check that it has the same secret.');
  });

  it('exits with 3 for an invalid key, 4 for an unavailable service, and 2 for an unknown flag', async () => {
    expect((await doctor([], { GEN_API_KEY: 'wrong-key' })).code).toBe(3);
    const away = () => Promise.reject(new TypeError('fetch failed'));
    expect(await doctor([], {}, away)).toMatchObject({ code: 4, stdout: expect.stringContaining('FAILED') });
    expect((await doctor(['--webhook', 'nowhere'])).code).toBe(2);
  });

  it("ends immediately on Ctrl-C if the service doesn't respond", async () => {
    let wasAborted = false;
    const silent: typeof globalThis.fetch = (_, init) =>
      new Promise((_, reject) => {
        init?.signal?.addEventListener('abort', () => {
          wasAborted = true;
          reject(init.signal?.reason);
        });
      });
    const running = startCli(['doctor'], against(silent));
    await new Promise((resolve) => setImmediate(resolve));
    running.interrupt();
    expect(await running.ended).toMatchObject({ code: 130, stderr: expect.stringContaining('Interrupted.') });
    expect(wasAborted).toBe(true);
  });
});
