import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { GenClient } from '../../src/client/client.js';
import { createSandbox, type Sandbox } from '../../src/sandbox/index.js';

let sandbox: Sandbox;
let client: GenClient;
beforeEach(() => {
  sandbox = createSandbox({ clock: 'manual', webhookFetch: async () => new Response(null, { status: 204 }) });
  client = new GenClient({ apiKey: sandbox.apiKey, baseUrl: sandbox.baseUrl, fetch: sandbox.fetch });
});

async function control(path: string, body?: unknown, method = body === undefined ? 'GET' : 'POST') {
  const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
  const response = await sandbox.fetch(`${sandbox.baseUrl}/_sandbox/${path}`, init);
  return { status: response.status, body: await response.json() };
}

describe('the control API', () => {
  it("advances the clock, sets a job's outcome, and returns the job", async () => {
    await control('outcomes', { errorCode: 'generation_rejected' });
    const { job } = await client.videos.create({ prompt: 'a fox' });
    const nowBefore = (await control('clock')).body.now;
    expect(await control('advance', { ms: 60_000 })).toMatchObject({ status: 200, body: { now: nowBefore + 60_000 } });
    expect((await control(`jobs/${job.id}`)).body.job).toMatchObject({ errorCode: 'generation_rejected' });
    const other = await client.videos.create({ prompt: 'a fox' });
    const { body } = await control(`jobs/${other.job.id}/finish`, { status: 'blocked' });
    expect(body.job.status).toBe('blocked');
  });

  it('adds, lists, and removes fault rules', async () => {
    const { body } = await control('faults', { match: { method: 'GET', path: '/v1/voices' }, status: 500, times: 2 });
    await expect(client.voices.list({ maxRetries: 0 })).rejects.toMatchObject({ status: 500 });
    expect((await control('faults')).body.faults).toMatchObject([{ id: body.id, struck: 1 }]);
    await control(`faults/${body.id}`, undefined, 'DELETE');
    await expect(client.voices.list()).resolves.toBeDefined();
    for (const id of [body.id, '%']) expect((await control(`faults/${id}`, undefined, 'DELETE')).status).toBe(404);
  });

  it("tops up, creates and revokes API keys, pauses dispatch, logs the client's requests, and resets", async () => {
    expect((await control('topup', { usd: 20 })).body).toEqual({ balanceTokens: 1400 });
    expect((await control('ledger')).body).toMatchObject({ balanceTokens: 1400, paidTokens: 1400 });
    const { key, webhookSecret } = (await control('keys', { scopes: ['jobs:read'], account: 'other' })).body;
    expect(webhookSecret).not.toBe(sandbox.webhookSecret);
    await control('dispatch', { dispatch: 'disabled' });
    expect(sandbox.dispatch).toBe('disabled');
    const create = (apiKey: string) => client.withOptions({ apiKey, maxRetries: 0 }).videos.create({ prompt: 'a fox' });
    await expect(create(key)).rejects.toMatchObject({ code: 'scope_missing' });
    await control(`keys/${key}`, undefined, 'DELETE');
    await expect(create(key)).rejects.toMatchObject({ code: 'invalid_api_key' });
    expect((await control('requests')).body.requests).toMatchObject([{ status: 403 }, { status: 401 }]);
    await control('reset', {});
    expect((await control('requests')).body.requests).toEqual([]);
  });

  it('serves output files without an API key, including byte ranges', async () => {
    const { job } = await client.images.create({ prompt: 'a fox' });
    expect((await control(`jobs/${job.id}/output`)).status).toBe(409);
    await sandbox.advance(60_000);
    const url = `${sandbox.baseUrl}/_sandbox/jobs/${job.id}/output`;
    const file = await sandbox.fetch(url);
    expect(file.headers.get('content-type')).toBe('image/png');
    const bytes = new Uint8Array(await file.arrayBuffer());
    const part = await sandbox.fetch(url, { headers: { range: 'bytes=8-15' } });
    expect(part.status).toBe(206);
    expect(part.headers.get('content-range')).toBe(`bytes 8-15/${bytes.length}`);
    expect(new Uint8Array(await part.arrayBuffer())).toEqual(bytes.subarray(8, 16));
  });

  it.each([
    ['outcomes', '{"errorcode":"x"}', 'outcomes.next has no option "errorcode". Did you mean "errorCode"?'],
    ['advance', '{}', 'ms must be'],
    ['advance', '[]', 'The body must be a JSON object.'],
    ['nothing', '{}', 'There is no POST /_sandbox/nothing.'],
  ])('rejects %s with the body %s and explains why', async (path, body, message) => {
    const rejected = await sandbox.fetch(`${sandbox.baseUrl}/_sandbox/${path}`, { method: 'POST', body });
    expect(rejected.status).toBe(path === 'nothing' ? 404 : 400);
    expect((await rejected.json()).error.message).toContain(message);
    expect((await control('state')).status).toBe(200);
  });

  it('ignores faults and limits', async () => {
    sandbox.faults.add({ status: 500, times: 100 });
    expect((await control('state')).status).toBe(200);
  });
});

describe('a server', () => {
  const send = (url: string, init: RequestInit = {}) => sandbox.handle(new Request(url, init));

  it.each(['evil.example.com', 'sandbox.invalid.evil.com', '127.0.0.1.nip.io'])(
    'rejects requests for the host %s (DNS rebinding)',
    async (host) => {
      for (const [path, method] of [
        ['_sandbox/state', 'GET'],
        ['', 'GET'],
        ['_sandbox/reset', 'POST'],
      ] as const) {
        const rejected = await send(`http://${host}:4010/${path}`, { method });
        expect(rejected.status, `${method} ${path}`).toBe(403);
        expect(await rejected.text()).not.toContain(sandbox.apiKey);
      }
    },
  );

  it.each(['localhost', '127.0.0.1', '[::1]', 'sandbox', 'host.docker.internal', 'a.localhost'])(
    'accepts requests for the host %s',
    async (host) => {
      expect((await send(`http://${host}:4010/_sandbox/state`)).status).toBe(200);
    },
  );

  it("rejects requests from another site's page (CSRF)", async () => {
    const url = 'http://127.0.0.1:4010/_sandbox/reset';
    const post = (headers: Record<string, string>) => send(url, { method: 'POST', headers });
    for (const headers of [
      { origin: 'https://evil.example.com' },
      { origin: 'http://127.0.0.1:8080' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ] as Record<string, string>[]) {
      expect((await post(headers)).status, JSON.stringify(headers)).toBe(403);
    }
    expect((await post({ origin: 'http://127.0.0.1:4010', 'sec-fetch-site': 'same-origin' })).status).toBe(200);
    expect((await post({})).status).toBe(200);
  });

  it('sends no response that other origins can read', async () => {
    const headers = { origin: 'https://evil.example.com' };
    const response = await send('http://127.0.0.1:4010/_sandbox/state', { headers });
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
  });
});

it('the control API responds the same way over a port, for example to curl', async () => {
  const server = await sandbox.listen();
  onTestFinished(() => server.close());
  const curl = promisify(execFile)('curl', ['-s', '-d', '{"usd":20}', `${server.url}/_sandbox/topup`]);
  expect(JSON.parse((await curl).stdout)).toEqual({ balanceTokens: 1400 });
});
