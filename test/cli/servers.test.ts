import { describe, expect, it } from 'vitest';
import { GenClient } from '../../src/client/client.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { signWebhook } from '../../src/webhooks/index.js';
import { event } from '../webhooks/deliver.js';
import { runCli, startCli } from './run-cli.js';

describe('sandbox', () => {
  it('prints its URL, API key, and secret, and exits on Ctrl-C', async () => {
    const run = startCli(['sandbox', '--port', '0', '--job-time', '1ms']);
    await run.shows('GEN_WEBHOOK_SECRET=');
    const { stdout } = run.written;
    const [, url = ''] = /^Sandbox +(http:\/\/127\.0\.0\.1:\d+) /m.exec(stdout) ?? [];
    expect(stdout).toMatch(/^API key +sk_sandbox_\w+$/m);
    expect(stdout).toMatch(/^Secret +whsec_\w+$/m);
    run.interrupt();
    expect(await run.ended).toMatchObject({ code: 0 });
    await expect(fetch(url)).rejects.toThrow(TypeError);
  });

  it('prints one line of JSON with --json, and accepts speed, key, secret, balance, and limits', async () => {
    const args = ['--port', '0', '--json', '--speed', '1000', '--key', 'my-key', '--secret', 'my-secret'];
    const run = startCli(['sandbox', ...args, '--balance', '50', '--no-limits']);
    await run.shows('\n');
    const { url, apiKey, baseUrl, webhookSecret, page, control } = JSON.parse(run.written.stdout);
    expect({ apiKey, webhookSecret, page }).toEqual({ apiKey: 'my-key', webhookSecret: 'my-secret', page: `${url}/` });
    const { job } = await new GenClient({ apiKey, baseUrl }).videos.create({ prompt: 'a fox' });
    expect(job.status).toBe('processing');
    const state = await (await fetch(`${control}state`)).json();
    expect(state.money.balanceTokens).toBe(35);
    expect(await (await fetch(page)).text()).toContain('gen-client sandbox');
    run.interrupt();
    expect(await run.ended).toMatchObject({ code: 0, stderr: '' });
  });

  it('explains a port in use or an invalid option', async () => {
    const server = await createSandbox().listen();
    const port = new URL(server.url).port;
    expect(await runCli(['sandbox', '--port', port])).toEqual({
      code: 2,
      stdout: '',
      stderr: `Error: Port ${port} on 127.0.0.1 is in use. Pass another port, or 0 for any free port.\n`,
    });
    await server.close();
    const stderr = expect.stringContaining('speed');
    expect(await runCli(['sandbox', '--speed', '0'])).toMatchObject({ code: 2, stderr });
    expect(await runCli(['sandbox', '--port', '70000'])).toMatchObject({ code: 2 });
  });
});

describe('webhook listen', () => {
  it("verifies the service's deliveries, prints them, and rejects forged ones", async () => {
    const sandbox = createSandbox({ jobDurationMs: 1 });
    const server = await sandbox.listen();
    const env = { GEN_WEBHOOK_SECRET: sandbox.webhookSecret, GEN_API_KEY: sandbox.apiKey, GEN_BASE_URL: server.url };
    const run = startCli(['webhook', 'listen', '--port', '0'], { env });
    await run.shows('Listening on');
    const [, url = ''] = /on (\S+) \(any path\)/.exec(run.written.stderr) ?? [];
    await runCli(['image', 'a', '--webhook', `${url}/hook`, '--poll', '100ms'], { env });
    await run.shows(/^job\.completed {2}evt_job_\w+_completed {2}job_\w+ {2}completed$/m);
    const forged = await fetch(url, { method: 'POST', body: '{}', headers: { 'x-service-signature': 't=1,v1=00' } });
    expect(forged.status).toBe(400);
    await run.shows('Rejected: signature_malformed.');
    run.interrupt();
    expect((await run.ended).code).toBe(0);
    await server.close();
  });

  it('prints one JSON document per line with --json', async () => {
    const run = startCli(['webhook', 'listen', '--port', '0', '--json'], { env: { GEN_WEBHOOK_SECRET: 'whsec' } });
    await run.shows('"url"');
    const { url } = JSON.parse(run.written.stdout);
    await fetch(url, { method: 'POST', ...(await signWebhook(event, { secret: 'whsec' })) });
    await run.shows('"event"');
    expect(JSON.parse(run.written.stdout.split('\n')[1] ?? '').event).toEqual(event);
    run.interrupt();
    expect((await run.ended).code).toBe(0);
  });

  it('requires the secret in the environment', async () => {
    const stderr = expect.stringContaining('GEN_WEBHOOK_SECRET is not set');
    expect(await runCli(['webhook', 'listen', '--port', '0'])).toMatchObject({ code: 2, stderr });
  });
});
