import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, describe, expect, it } from 'vitest';
import { type DoctorPlan, runDoctor } from '../../src/cli/commands/doctor.js';
import type { Check } from '../../src/cli/doctor/checks.js';
import type { Machine } from '../../src/cli/session.js';
import { GenClient } from '../../src/client/client.js';
import { serve } from '../../src/sandbox/http/serve.js';
import { createSandbox, type ResponseShapes, type Sandbox, type SandboxOptions } from '../../src/sandbox/index.js';
import { SHAPES } from '../../src/sandbox/world/shapes.js';
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

async function withCharacter(options: SandboxOptions): Promise<Sandbox> {
  const sandbox = createSandbox({ ...options, jobDurationMs: 0 });
  const client = sandbox.client();
  const png = Buffer.from('89504e470d0a1a0a0000000d4948445200000200000002000802000000', 'hex');
  const { upload_id } = await client.uploads.upload(new Blob([png], { type: 'image/png' }));
  await client.characters.register({ name: 'Mira', upload_id });
  return sandbox;
}

describe('tells the truth about the sandbox in each of its shapes', () => {
  /** What an answer shows under each variant, for the shapes that an answer without a job or an upload can show. */
  const SEEN: {
    readonly [K in keyof ResponseShapes]?: readonly [point: string, found: Readonly<Record<string, unknown>>];
  } = {
    error: [
      'error envelope',
      {
        object: 'error.code',
        code: 'error',
        flat: 'code',
        data: 'data.code',
        errors: 'errors[0].code',
        detail: 'detail.code',
      },
    ],
    list: [
      'list of voices',
      {
        named: 'data.voices',
        items: 'data.items',
        results: 'data.results',
        array: 'data',
        map: 'data.voices, an object by id',
        bare: 'the body',
      },
    ],
    character: ['place of a character record', { nested: 'data.character', flat: 'data' }],
    requestId: [
      'header of the request id',
      { 'x-request-id': 'x-request-id', 'x-service-request-id': 'x-service-request-id', 'request-id': 'request-id' },
    ],
  };
  const cases = Object.entries(SHAPES).flatMap(([shape, variants]) =>
    variants.map((variant) => [shape, variant] as const),
  );

  it.each(cases)('%s: %s', async (shape, variant) => {
    const sandbox = await withCharacter({ shapes: { [shape]: variant } });
    const before = { jobs: sandbox.jobs.length, tokens: sandbox.ledger().balanceTokens };
    const { ok, checks, openPoints } = await diagnose(sandbox);
    expect({ ok, odd: checks.filter(({ status }) => !['ok', 'skipped'].includes(status)) }).toEqual({
      ok: true,
      odd: [],
    });
    for (const [name, seen] of Object.entries(SEEN)) {
      const [point, variants] = seen ?? [];
      const { settled, found } = openPoints.find((one) => one.point === point) ?? {};
      const now = name === shape ? variant : Object.entries(SHAPES).find(([known]) => known === name)?.[1][0];
      const wanted = variants?.[String(now)];
      expect({ name, settled, found }).toEqual({
        name,
        settled: wanted !== undefined,
        found: wanted ?? 'the answer does not tell',
      });
    }
    // What takes a job or an upload is never claimed to be settled.
    for (const { settled, found } of openPoints.filter((one) => /shown by/.test(String(one.found)))) {
      expect({ settled, found }).toMatchObject({ settled: false });
    }
    expect({ jobs: sandbox.jobs.length, tokens: sandbox.ledger().balanceTokens }).toEqual(before);
  });
});

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

  it('generation that is paused, where the service says so', async () => {
    const sandbox = createSandbox();
    sandbox.faults.add({ match: { method: 'POST', path: '/v1/videos' }, status: 503, code: 'dispatch_disabled' });
    expect(await status(diagnose(sandbox), 'dispatch')).toMatchObject({ status: 'warning' });
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

  it('models that this version does not know, or that have changed', async () => {
    const sandbox = createSandbox();
    const changed: typeof fetch = async (input, init) => {
      const response = await sandbox.fetch(input, init);
      if (!response.url.endsWith('/v1/models')) return response;
      const text = (await response.text()).replace('"svc-video-gen-2-5"', '"svc-video-gen-9"');
      return new Response(text.replaceAll('[4,5,6,8,10]', '[4,5]'), { headers: response.headers });
    };
    const catalog = await status(run({ baseUrl: sandbox.baseUrl, apiKey: sandbox.apiKey, fetch: changed }), 'catalog');
    expect(catalog).toMatchObject({
      status: 'warning',
      message: expect.stringContaining('svc-video-fast has durations 4 5'),
    });
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
    expect(stdout).toMatch(/\n {2}error envelope +error\.code\n/);
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

  it('names the calls that were answered with 429', async () => {
    const sandbox = createSandbox();
    sandbox.faults.add({ match: { path: '/v1/voices' }, status: 429, retryAfterS: 30 });
    const { ok, checks } = await diagnose(sandbox);
    const limits = checks.find(({ name }) => name === 'limits');
    expect({ ok, status: limits?.status, calls: limits?.calls }).toEqual({
      ok: true,
      status: 'warning',
      calls: ['GET /v1/voices'],
    });
  });

  it('reads no more than a megabyte of a body that does not end', async () => {
    let sent = 0;
    const endless = () =>
      new ReadableStream<Uint8Array>({
        pull(controller) {
          sent += 65_536;
          controller.enqueue(new Uint8Array(65_536));
        },
      });
    const { checks } = await answer(() => new Response(endless()));
    expect(checks[0]).toMatchObject({ name: 'service', status: 'failed' });
    expect(sent).toBeLessThan(2_000_000);
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

describe('the upload of the doctor', () => {
  const points = async (sandbox: Sandbox, fetch: typeof globalThis.fetch = sandbox.fetch) => {
    const { openPoints } = await run({ baseUrl: sandbox.baseUrl, apiKey: sandbox.apiKey, fetch });
    return (name: string) => openPoints.find(({ point }) => point === name);
  };

  it('shows what pages may do and whether its PUT needs the key, and is deleted', async () => {
    const sandbox = createSandbox();
    const before = sandbox.ledger().balanceTokens;
    const point = await points(sandbox);
    expect(point('CORS of direct_upload_url')).toMatchObject({ settled: true, found: 'pages may PUT (*)' });
    expect(point('whether the PUT of an upload needs the key')).toMatchObject({ settled: true, found: 'no' });
    expect(sandbox.requests.at(-1)).toMatchObject({ method: 'DELETE', path: expect.stringMatching(/uploads\/upl_/) });
    expect(sandbox.ledger().balanceTokens).toBe(before);
  });

  it('shows a storage that refuses pages and wants the key', async () => {
    const sandbox = createSandbox();
    const strict: typeof fetch = async (input, init) => {
      const method = init?.method ?? (input instanceof Request ? input.method : 'GET');
      if (method === 'OPTIONS') return new Response(null, { status: 403 });
      if (method === 'PUT') return new Response('no', { status: 401 });
      return sandbox.fetch(input, init);
    };
    const point = await points(sandbox, strict);
    expect(point('CORS of direct_upload_url')).toMatchObject({ found: 'pages are refused (403)' });
    expect(point('whether the PUT of an upload needs the key')).toMatchObject({ found: 'yes (401 without it)' });
  });
});
