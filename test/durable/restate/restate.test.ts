// The example, run by the real Restate server.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../support/free-port.js';
import { bundleForNode, folder, whyNoEngine } from '../engine-packages.js';
import { pause, type SlowService, slowService, until } from '../slow-service.js';

const reason = whyNoEngine('restate');

describe.skipIf(reason !== undefined)('a run in Restate', () => {
  let service: SlowService;
  let server: ChildProcess;
  let program: ChildProcess;
  let startProgram: () => Promise<ChildProcess>;
  let ingress: string;
  const data = mkdtempSync(join(tmpdir(), 'gen-client-restate-'));

  beforeAll(async () => {
    service = await slowService();
    const [ingressPort, adminPort, nodePort, port, hookPort] = await Promise.all([1, 2, 3, 4, 5].map(() => freePort()));
    ingress = `http://127.0.0.1:${ingressPort}`;
    const address = (which: number | undefined) => `127.0.0.1:${which}`;
    server = spawn(
      `${folder('restate')}node_modules/@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`,
      [],
      {
        cwd: data,
        stdio: 'ignore',
        env: {
          ...process.env,
          DO_NOT_TRACK: '1',
          RESTATE_INGRESS__BIND_ADDRESS: address(ingressPort),
          RESTATE_ADMIN__BIND_ADDRESS: address(adminPort),
          RESTATE_BIND_ADDRESS: address(nodePort),
          RESTATE_ADVERTISED_ADDRESS: `http://${address(nodePort)}`,
          RESTATE_BASE_DIR: data,
        },
      },
    );
    const path = await bundleForNode('restate', 'examples/durable/restate-workflow.ts');
    startProgram = async () => {
      const child = spawn(process.execPath, [path], {
        cwd: folder('restate'),
        stdio: 'ignore',
        env: {
          ...process.env,
          GEN_API_KEY: service.sandbox.apiKey,
          GEN_BASE_URL: service.url,
          GEN_WEBHOOK_SECRET: service.sandbox.webhookSecret,
          RESTATE_URL: ingress,
          ORIGIN: `http://127.0.0.1:${hookPort}`,
          PORT: String(port),
          HOOK_PORT: String(hookPort),
        },
      });
      const up = () => fetch(`http://127.0.0.1:${hookPort}/`).then(() => true);
      await until(up, 20_000).catch(() => {});
      return child;
    };
    program = await startProgram();
    await until(async () => {
      const body = JSON.stringify({ uri: `http://127.0.0.1:${port}`, force: true });
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(`http://127.0.0.1:${adminPort}/deployments`, { method: 'POST', headers, body });
      return answer.ok ? true : undefined;
    }, 30_000);
  });

  afterAll(async () => {
    program.kill('SIGKILL');
    server.kill('SIGKILL');
    await service.close();
    await pause(200);
    rmSync(data, { recursive: true, force: true });
  });

  const run = async (id: string, prompt: string) => {
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${ingress}/video/${id}/run`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ order: id, prompt }),
    });
    return (await answer.json()) as Record<string, unknown>;
  };

  it('has one job and one charge over a create that dies with its process, its lost answer and a lost webhook', async () => {
    service.sandbox.outcomes.next({ webhookCopies: 0 });
    const result = run('order-1', 'run one');
    await service.created('run one');
    program.kill('SIGKILL');
    program = await startProgram();
    expect(await result).toMatchObject({ status: 'completed', tries: [{ idempotencyKey: 'order-1' }] });
    expect(service.bill('run one')).toEqual({ jobs: 1, charges: 1 });
  }, 90_000);

  it('reads its job when the webhook comes, and fails for good with the error of its job', async () => {
    const [quick, refused] = await Promise.all([
      run('order-2', 'run two'),
      run('order-3', '[fail:generation_rejected] run three'),
    ]);
    expect(quick).toMatchObject({ status: 'completed' });
    expect(service.bill('run two')).toEqual({ jobs: 1, charges: 1 });
    expect(refused.message).toMatch(/^JobFailedError: .*generation_rejected/);
    const reads = service.sandbox.requests.filter(({ path }) => path.includes(String(quick.id)));
    expect(reads).toHaveLength(2);
  }, 90_000);
});
