// The example, run by the real DBOS on a real Postgres.
import { type ChildProcess, spawn } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../support/free-port.js';
import { bundleForNode, enginePackage, folder, whyNoEngine } from '../engine-packages.js';
import { type SlowService, slowService, until } from '../slow-service.js';
import { type Postgres, postgresPrograms, startPostgres } from './postgres.js';

/** The part of its package that forks a run. */
interface DbosPackage {
  readonly DBOSClient: {
    create(options: { readonly systemDatabaseUrl: string }): Promise<{
      forkWorkflow(id: string, startStep: number): Promise<string>;
      retrieveWorkflow(id: string): { getResult(): Promise<unknown> };
      destroy(): Promise<void>;
    }>;
  };
}

const reason = whyNoEngine('dbos');
const programs = reason === undefined ? postgresPrograms() : undefined;

describe.skipIf(programs === undefined)('a run in DBOS', () => {
  let service: SlowService;
  let postgres: Postgres;
  let program: ChildProcess;
  let startProgram: () => Promise<ChildProcess>;
  let origin: string;

  beforeAll(async () => {
    service = await slowService();
    postgres = await startPostgres(programs ?? '');
    const port = await freePort();
    origin = `http://127.0.0.1:${port}`;
    const path = await bundleForNode('dbos', 'examples/durable/dbos-workflow.ts');
    startProgram = async () => {
      const child = spawn(process.execPath, [path], {
        cwd: folder('dbos'),
        stdio: 'ignore',
        env: {
          ...process.env,
          GEN_API_KEY: service.sandbox.apiKey,
          GEN_BASE_URL: service.url,
          GEN_WEBHOOK_SECRET: service.sandbox.webhookSecret,
          DATABASE_URL: postgres.url,
          ORIGIN: origin,
          PORT: String(port),
        },
      });
      await until(() => fetch(`${origin}/hook`).then(() => true), 60_000);
      return child;
    };
    program = await startProgram();
  });

  afterAll(async () => {
    program.kill('SIGKILL');
    await postgres.close();
    await service.close();
  });

  const start = (order: number, prompt: string) => fetch(`${origin}/?order=${order}`, { method: 'POST', body: prompt });
  const ended = async (order: number) =>
    (await (await fetch(`${origin}/?order=${order}`)).json()) as Record<string, unknown>;

  it('has one job and one charge over a create that dies with its process, its lost answer and a lost webhook', async () => {
    service.sandbox.outcomes.next({ webhookCopies: 0 });
    await start(1, 'run one');
    await service.created('run one');
    program.kill('SIGKILL');
    program = await startProgram();
    expect(await ended(1)).toMatchObject({ status: 'completed', tries: [{ idempotencyKey: 'order-1' }] });
    expect(service.bill('run one')).toEqual({ jobs: 1, charges: 1 });
  });

  it('finds its job when it is forked, from any step, and pays for none', async () => {
    const { DBOSClient } = await enginePackage<DbosPackage>('dbos', '@dbos-inc/dbos-sdk');
    const client = await DBOSClient.create({ systemDatabaseUrl: postgres.url });
    try {
      await start(4, 'run four');
      const { id } = await ended(4);
      for (const step of [0, 2]) {
        const fork = await client.forkWorkflow('order-4', step);
        const result = await client.retrieveWorkflow(fork).getResult();
        expect(result).toMatchObject({ id, status: 'completed' });
      }
      expect(service.bill('run four')).toEqual({ jobs: 1, charges: 1 });
    } finally {
      await client.destroy();
    }
  });

  it('reads its job when the webhook comes, and fails for good with the error of its job', async () => {
    await start(2, 'run two');
    await start(3, '[fail:generation_rejected] run three');
    const [quick, refused] = await Promise.all([ended(2), ended(3)]);
    expect(quick).toMatchObject({ status: 'completed' });
    expect(service.bill('run two')).toEqual({ jobs: 1, charges: 1 });
    expect(refused.message).toMatch(/generation_rejected/);
    const reads = service.sandbox.requests.filter(({ path }) => path.includes(String(quick.id)));
    expect(reads).toHaveLength(2);
  });
});
