// The example, compiled by Vercel's own builder and run on its local world.
import { type ChildProcess, execFile, fork } from 'node:child_process';
import { rmSync } from 'node:fs';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ensureBuilt } from '../../support/build.js';
import { freePort } from '../../support/free-port.js';
import { folder, makeProject, whyNoEngine } from '../engine-packages.js';
import { type SlowService, slowService } from '../slow-service.js';

const reason = whyNoEngine('workflow');

describe.skipIf(reason !== undefined)('a run in Vercel Workflow', () => {
  let service: SlowService;
  let program: ChildProcess;
  let startProgram: () => Promise<ChildProcess>;
  let origin: string;
  let project: string;

  beforeAll(async () => {
    await ensureBuilt();
    service = await slowService();
    project = makeProject('workflow', ['vercel-workflow.ts', 'vercel-routes.ts']);
    await promisify(execFile)(process.execPath, [`${folder('workflow')}build-project.mjs`], { cwd: project });
    const port = await freePort();
    origin = `http://127.0.0.1:${port}`;
    startProgram = () => {
      const env = {
        ...process.env,
        GEN_API_KEY: service.sandbox.apiKey,
        GEN_BASE_URL: service.url,
        GEN_WEBHOOK_SECRET: service.sandbox.webhookSecret,
        ORIGIN: origin,
        PORT: String(port),
      };
      const child = fork(`${folder('workflow')}host.mjs`, [], {
        cwd: project,
        env,
        stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      });
      return new Promise((resolve, reject) => {
        child.once('message', () => resolve(child));
        child.once('exit', (code) => reject(new Error(`the host ended with ${code}`)));
      });
    };
    program = await startProgram();
  }, 180_000);

  afterAll(async () => {
    program?.kill('SIGKILL');
    await service.close();
    rmSync(project, { recursive: true, force: true });
  });

  const start = async (order: number, prompt: string) => {
    const answer = await fetch(`${origin}/?order=${order}`, { method: 'POST', body: prompt });
    return ((await answer.json()) as { runId: string }).runId;
  };
  const ended = async (run: string) => (await (await fetch(`${origin}/?run=${run}`)).json()) as Record<string, unknown>;

  it('has one job and one charge over a create that dies with its process, its lost answer and a lost webhook', async () => {
    service.sandbox.outcomes.next({ webhookCopies: 0 });
    const run = await start(1, 'run one');
    await service.created('run one');
    program.kill('SIGKILL');
    program = await startProgram();
    expect(await ended(run)).toMatchObject({ status: 'completed', tries: [{ idempotencyKey: 'order-1' }] });
    expect(service.bill('run one')).toEqual({ jobs: 1, charges: 1 });
  });

  it('that is started twice under one key has one job: the second run cannot have the hook and reads', async () => {
    const runs = [await start(4, 'run four'), await start(4, 'run four')];
    const [first, second] = await Promise.all(runs.map(ended));
    expect(first).toMatchObject({ status: 'completed' });
    expect(second).toMatchObject({ status: 'completed', id: first?.id });
    expect(service.bill('run four')).toEqual({ jobs: 1, charges: 1 });
  });

  it('reads its job when the webhook comes, and fails for good with the error of its job', async () => {
    const runs = [await start(2, 'run two'), await start(3, '[fail:generation_rejected] run three')];
    const [quick, refused] = await Promise.all(runs.map(ended));
    expect(quick).toMatchObject({ status: 'completed' });
    expect(service.bill('run two')).toEqual({ jobs: 1, charges: 1 });
    expect(refused?.message).toMatch(/generation_rejected/);
    const reads = service.sandbox.requests.filter(({ path }) => path.includes(String(quick?.id)));
    // One on a machine on which the run takes longer to its first read than its job does.
    expect([1, 2]).toContain(reads.length);
  });
});
