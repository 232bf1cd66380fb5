// The example, by Inngest's real handler, driven as Inngest's server does.
import { type ChildProcess, spawn } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../support/free-port.js';
import { bundleForNode, folder, whyNoEngine } from '../engine-packages.js';
import { type SlowService, slowService, until } from '../slow-service.js';
import { startExecutor } from './executor.js';

const reason = whyNoEngine('inngest');

describe.skipIf(reason !== undefined)('a run in Inngest', () => {
  let service: SlowService;
  let executor: Awaited<ReturnType<typeof startExecutor>>;
  let program: ChildProcess;
  let startProgram: () => Promise<ChildProcess>;
  let origin: string;

  beforeAll(async () => {
    service = await slowService();
    executor = await startExecutor();
    const port = await freePort();
    origin = `http://127.0.0.1:${port}`;
    const path = await bundleForNode('inngest', 'examples/durable/inngest-function.ts');
    startProgram = async () => {
      const child = spawn(process.execPath, [path], {
        cwd: folder('inngest'),
        stdio: 'ignore',
        env: {
          ...process.env,
          GEN_API_KEY: service.sandbox.apiKey,
          GEN_BASE_URL: service.url,
          GEN_WEBHOOK_SECRET: service.sandbox.webhookSecret,
          INNGEST_DEV: '1',
          INNGEST_BASE_URL: executor.url,
          ORIGIN: origin,
          PORT: String(port),
        },
      });
      await until(() => fetch(`${origin}/hook`).then(() => true), 30_000);
      return child;
    };
    program = await startProgram();
  });

  afterAll(async () => {
    program.kill('SIGKILL');
    executor.close();
    await service.close();
  });

  const run = (order: string, prompt: string) => executor.run(`${origin}/api/inngest`, { order, prompt });

  it('has one job and one charge over a create that dies with its process, its lost answer and a lost webhook', async () => {
    service.sandbox.outcomes.next({ webhookCopies: 0 });
    const result = run('order-1', 'run one');
    await service.created('run one');
    program.kill('SIGKILL');
    program = await startProgram();
    const { status, body } = await result;
    expect(status).toBe(200);
    expect(body).toMatchObject({ status: 'completed', tries: [{ idempotencyKey: 'order-1' }] });
    expect(service.bill('run one')).toEqual({ jobs: 1, charges: 1 });
  });

  it('reads its job when the webhook comes, and fails for good with the error of its job', async () => {
    const [quick, refused] = await Promise.all([
      run('order-2', 'run two'),
      run('order-3', '[fail:generation_rejected] run three'),
    ]);
    expect(quick).toMatchObject({ status: 200, body: { status: 'completed' } });
    expect(quick.steps).toHaveLength(5);
    expect(service.bill('run two')).toEqual({ jobs: 1, charges: 1 });
    expect(refused.status).toBe(400);
    expect(JSON.stringify(refused.body)).toContain('JobFailedError');
  });
});
