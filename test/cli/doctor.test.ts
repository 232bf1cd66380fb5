import { describe, expect, it } from 'vitest';
import { GenClient } from '../../src/client/client.js';
import { createWebhookHandler, type WebhookEvent } from '../../src/webhooks/index.js';
import { serveWeb } from '../webhooks/node-server.js';
import { cliOnSandbox } from './cli-on-sandbox.js';
import { runCli, startCli } from './run-cli.js';

const fixture = cliOnSandbox();
const { sandbox } = fixture;
/** Returns options that run the doctor with this fetch. */
const optionsFor = (fetch: typeof globalThis.fetch, env: Record<string, string> = {}) => ({
  env: { ...fixture.env, ...env },
  createClient: (options: object) => new GenClient({ ...options, fetch }),
});
const doctor = (args: readonly string[], env: Record<string, string> = {}, fetch = sandbox.fetch) =>
  runCli(['doctor', ...args], optionsFor(fetch as typeof globalThis.fetch, env));
const check = async (name: string, env: Record<string, string> = {}, fetch?: typeof globalThis.fetch) => {
  const { checks } = JSON.parse((await doctor(['--json'], env, fetch)).stdout);
  return checks.find((entry: { name: string }) => entry.name === name);
};

describe('doctor reports', () => {
  it('an invalid API key, a missing one, and a suspended account', async () => {
    const wrongKeyCheck = await check('key', { GEN_API_KEY: 'wrong-key' });
    expect(wrongKeyCheck).toMatchObject({ status: 'failed', code: 'invalid_api_key' });
    const missingKeyCheck = await check('key', { GEN_API_KEY: '' });
    expect(missingKeyCheck).toMatchObject({ status: 'failed', message: 'GEN_API_KEY is not set.' });
    const suspendedKey = sandbox.createKey({ account: 'other', suspended: true });
    expect(await check('key', { GEN_API_KEY: suspendedKey })).toMatchObject({ code: 'account_not_active' });
  });

  it.each([
    [-302, 'failed', ' s ahead of the service'],
    [302, 'failed', ' s behind the service'],
    [-60, 'warning', ' s ahead of the service'],
    [4, 'ok', ' s behind the service'],
  ])('a clock that is %i s off: %s', async (offS, status, message) => {
    const shiftedFetch = async (...args: Parameters<typeof sandbox.fetch>) => {
      const response = await sandbox.fetch(...args);
      response.headers.set('date', new Date(Date.now() + offS * 1000 - 500).toUTCString());
      return response;
    };
    const clock = await check('clock', {}, shiftedFetch as typeof globalThis.fetch);
    expect(clock).toMatchObject({ status, message: expect.stringContaining(message) });
    expect(Math.abs(clock.skewS + offS)).toBeLessThanOrEqual(1);
  });

  it("an API key that can't read jobs", async () => {
    const key = sandbox.createKey({ scopes: ['images:create'] });
    expect(await check('key', { GEN_API_KEY: key })).toMatchObject({ status: 'warning', code: 'scope_missing' });
  });

  it("another service's base URL", async () => {
    const fetch = async () => new Response('<html>hello', { headers: { 'content-type': 'text/html' } });
    const message = expect.stringContaining('Check the base URL');
    expect(await check('service', {}, fetch)).toMatchObject({ status: 'failed', message });
  });

  it('a 429 immediately, with the time to wait', async () => {
    const busyFetch = async () => new Response('{}', { status: 429, headers: { 'retry-after': '900' } });
    const { message } = await check('service', {}, busyFetch);
    expect(message).toMatch(/The account's rate limit is reached\. Run.* in 900 s/);
  });
});

describe('the command', () => {
  it('prints one line per check, and sends two requests', async () => {
    const { code, stdout, stderr } = await doctor([]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^ok {6}service {2}The service responded in \d+ ms and lists 12 models\.\n/);
    const names = [...stdout.matchAll(/^\S+ +(\w+)/gm)].map(([, name]) => name);
    expect(names).toEqual(['service', 'clock', 'key', 'webhook']);
    expect(sandbox.requests.map(({ method, path }) => [method, path])).toEqual([
      ['GET', '/v1/models'],
      ['GET', '/v1/jobs/gen-client-doctor-none'],
    ]);
    expect(sandbox.jobs).toEqual([]);
  });

  it('tests a receiver with a signed, a forged, and an old event', async () => {
    const handled: string[] = [];
    const on = { '*': ({ type }: WebhookEvent) => void handled.push(type) };
    const handler = createWebhookHandler({ secret: sandbox.webhookSecret, on, onError() {} });
    await using receiver = await serveWeb(handler);
    await using carelessReceiver = await serveWeb(() => new Response());
    const { checks } = JSON.parse((await doctor(['--webhook', `${receiver.url}/hook`, '--json'])).stdout);
    const message = expect.stringContaining('rejected a forged and an old one');
    expect(checks.at(-1)).toMatchObject({ name: 'webhook', status: 'warning', httpStatus: 200, message });
    expect(handled).toEqual(['doctor.ping']);
    const stdout = expect.stringContaining('accepts a forged event and an event that is 301 s old.');
    expect(await doctor(['--webhook', carelessReceiver.url])).toMatchObject({ code: 1, stdout });
    const otherSecret = await doctor(['--webhook', `${receiver.url}/hook`], { GEN_WEBHOOK_SECRET: 'another' });
    expect(otherSecret.stdout).toContain('Check that it has the same secret.');
  });

  it('exits with 3 for an invalid API key, 4 for an unavailable service, and 2 for an invalid URL', async () => {
    expect((await doctor([], { GEN_API_KEY: 'wrong-key' })).code).toBe(3);
    const unavailable = () => Promise.reject(new TypeError('fetch failed'));
    expect(await doctor([], {}, unavailable)).toMatchObject({ code: 4, stdout: expect.stringContaining('FAILED') });
    expect((await doctor(['--webhook', 'nowhere'])).code).toBe(2);
  });

  it("ends immediately on Ctrl-C if the service doesn't respond", async () => {
    let wasAborted = false;
    const silentFetch: typeof globalThis.fetch = (_, init) =>
      new Promise((_, reject) => {
        init?.signal?.addEventListener('abort', () => {
          wasAborted = true;
          reject(init.signal?.reason);
        });
      });
    const running = startCli(['doctor'], optionsFor(silentFetch));
    await new Promise((resolve) => setImmediate(resolve));
    running.interrupt();
    expect(await running.ended).toMatchObject({ code: 130, stderr: expect.stringContaining('Interrupted.') });
    expect(wasAborted).toBe(true);
  });
});
