import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, describe, expect, it } from 'vitest';
import { type DoctorPlan, runDoctor } from '../../src/cli/commands/doctor.js';
import type { Check } from '../../src/cli/doctor/checks.js';
import type { Machine } from '../../src/cli/session.js';
import { GenClient } from '../../src/client/client.js';
import { serve } from '../../src/sandbox/http/serve.js';
import { createSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { createWebhookHandler } from '../../src/webhooks/index.js';
import { cliOnSandbox } from './cli-on-sandbox.js';
import { runCli, startCli } from './run-cli.js';

function run(plan: Omit<DoctorPlan, 'createClient' | 'signal'>) {
  return runDoctor({
    createClient: (options) => new GenClient(options),
    signal: new AbortController().signal,
    ...plan,
  });
}

/** A diagnosis of a sandbox in this process. */
function diagnose(sandbox: Sandbox, apiKey: string | undefined = sandbox.apiKey) {
  return run({ baseUrl: sandbox.baseUrl, apiKey, fetch: sandbox.fetch });
}

function permissionsIn(check: Check | undefined): readonly { operation: string; allowed: boolean }[] {
  const permissions = check?.permissions;
  return Array.isArray(permissions) ? permissions : [];
}

describe('names what is wrong', () => {
  const status = async (work: ReturnType<typeof runDoctor>, name: string) =>
    (await work).checks.find((check) => check.name === name);

  it('a wrong key, no key, a suspended account', async () => {
    const sandbox = createSandbox();
    expect(await status(diagnose(sandbox, 'wrong-key'), 'key')).toMatchObject({
      status: 'failed',
      code: 'invalid_api_key',
    });
    const none = run({ baseUrl: sandbox.baseUrl, fetch: sandbox.fetch });
    expect(await status(none, 'key')).toMatchObject({ status: 'failed', message: 'GEN_API_KEY is not set.' });
    const suspended = sandbox.createKey({ account: 'other', suspended: true });
    expect(await status(diagnose(sandbox, suspended), 'key')).toMatchObject({ code: 'account_not_active' });
  });

  it('the operations that a narrow key may not do', async () => {
    const sandbox = createSandbox();
    const narrow = sandbox.createKey({ scopes: ['images:create', 'jobs:read', 'uploads:create'] });
    const { ok, checks } = await diagnose(sandbox, narrow);
    const scopes = checks.find(({ name }) => name === 'scopes');
    expect({ ok, status: scopes?.status }).toEqual({ ok: true, status: 'warning' });
    const allowed = permissionsIn(scopes).filter((one) => one.allowed);
    expect(allowed.map(({ operation }) => operation)).toEqual([
      'GET /v1/jobs/{id}',
      'POST /v1/images',
      'POST /v1/uploads',
    ]);
  });

  it.each([
    [-302, 'failed', ' s ahead of the service'],
    [302, 'failed', ' s behind the service'],
    [-60, 'warning', ' s ahead of the service'],
    [4, 'ok', ' s behind the service'],
  ])('a service whose clock is %i s off: %s', async (offS, wanted, message) => {
    const sandbox = createSandbox();
    const shifted: typeof fetch = async (...given) => {
      const response = await sandbox.fetch(...given);
      response.headers.set('date', new Date(Date.now() + offS * 1000 - 500).toUTCString());
      return response;
    };
    const clock = await status(run({ baseUrl: sandbox.baseUrl, apiKey: sandbox.apiKey, fetch: shifted }), 'clock');
    expect(clock).toMatchObject({ status: wanted, message: expect.stringContaining(message) });
    expect(Math.abs(Number(clock?.skewS) + offS)).toBeLessThanOrEqual(1);
  });

  it('a base URL that leads elsewhere', async () => {
    const elsewhere: typeof fetch = async () =>
      new Response('<html>hello', { headers: { 'content-type': 'text/html' } });
    const service = await status(run({ baseUrl: 'https://x.test', apiKey: 'some-key', fetch: elsewhere }), 'service');
    expect(service).toMatchObject({ status: 'failed', message: expect.stringContaining('Is this the base URL') });
  });
});

describe('the command', () => {
  const place = cliOnSandbox();
  const closing: (() => unknown)[] = [];
  afterAll(() => Promise.all(closing.map((close) => close())));
  const doctor = (words: readonly string[], env: Record<string, string> = {}) =>
    runCli(['doctor', ...words], { ...place.options, fetch: place.sandbox.fetch, env: { ...place.env, ...env } });

  it('says line by line what is well, and costs nothing', async () => {
    const { code, stdout, stderr } = await doctor([]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^ok {6}service {2}It answers in \d+ ms and lists 12 models\.\n/);
    expect(
      stdout
        .trim()
        .split('\n')
        .map((line) => line.split(/ +/)[1]),
    ).toEqual(['service', 'clock', 'key', 'scopes', 'webhook']);
    expect(place.sandbox.requests.some(({ path }) => path === '/v1/uploads/complete')).toBe(false);
    expect(place.sandbox.jobs).toEqual([]);
  });

  it('tries a receiver with a signed, a forged and an old event', async () => {
    const seen: string[] = [];
    const handler = createWebhookHandler({
      secret: place.sandbox.webhookSecret,
      on: { '*': (event) => void seen.push(event.type) },
      onError() {},
    });
    const good = await serve(handler, { port: 0, host: '127.0.0.1' });
    const careless = createServer((_, response) => response.end()).listen(0, '127.0.0.1');
    closing.push(good.close, () => careless.close());
    const passed = JSON.parse((await doctor(['--webhook', `${good.url}/hook`, '--json'])).stdout);
    expect(passed.checks.at(-1)).toMatchObject({ name: 'webhook', status: 'warning', httpStatus: 200 });
    expect(passed.checks.at(-1).message).toContain('a forged and an old one were refused');
    expect(seen).toEqual(['doctor.ping']);
    const { port } = careless.address() as AddressInfo;
    const { code, stdout } = await doctor(['--webhook', `http://127.0.0.1:${port}/`]);
    expect({ code, stdout }).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('The receiver also takes a forged event and an event of 301 s ago.'),
    });
    const differs = await doctor(['--webhook', `${good.url}/hook`], { GEN_WEBHOOK_SECRET: 'another' });
    expect(differs.stdout).toContain('Does it have the same secret?');
  });

  it('ends with 3 for a key, with 4 for a service that is away, with 2 for a wrong flag', async () => {
    expect((await doctor([], { GEN_API_KEY: 'wrong-key' })).code).toBe(3);
    const away: typeof fetch = () => Promise.reject(new TypeError('fetch failed'));
    const words = ['doctor', '--base-url', 'https://away.test'];
    expect(await runCli(words, { ...place.options, fetch: away })).toMatchObject({
      code: 4,
      stdout: expect.stringContaining('FAILED'),
    });
    expect((await doctor(['--webhook', 'nowhere'])).code).toBe(2);
  });
});

describe('a service in trouble', () => {
  const plan = { baseUrl: 'https://x.test', apiKey: 'some-key' };
  const answer = (response: () => Response | Promise<Response>) => run({ ...plan, fetch: async () => response() });
  const machine = (fetch: Machine['fetch']) => ({ env: { GEN_API_KEY: 'k', GEN_BASE_URL: plan.baseUrl }, fetch });

  it('that answers 429 is reported at once, with the time to come back', async () => {
    const { ok, checks } = await answer(() => new Response('{}', { status: 429, headers: { 'retry-after': '900' } }));
    expect(ok).toBe(false);
    expect(checks[0]?.message).toContain('GET /v1/models answers 429. The rate limit of the account is used up. Run');
    expect(checks[0]?.message).toContain('in 900 s');
  });

  it('that does not answer ends at once on Ctrl-C', async () => {
    let aborted = false;
    const silent: typeof fetch = (input, init) =>
      new Promise((_, reject) => {
        const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
        signal?.addEventListener('abort', () => {
          aborted = true;
          reject(signal.reason);
        });
      });
    const running = startCli(['doctor'], machine(silent));
    await new Promise((resolve) => setImmediate(resolve));
    running.interrupt();
    expect(await running.ended).toMatchObject({ code: 130, stderr: expect.stringContaining('Interrupted.') });
    expect(aborted).toBe(true);
  });
});
