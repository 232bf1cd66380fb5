// A job's charge is reported once, even if several processes poll the job and receive its webhook,
// or the process that created the job crashes.
import type { ChildProcess, Serializable } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createSandbox } from '../../src/sandbox/index.js';
import { bundleProgram, receiveMessage } from '../support/program.js';

let program: Awaited<ReturnType<typeof bundleProgram>>;
let folder = '';
beforeAll(async () => {
  program = await bundleProgram(new URL('./charge-process.ts', import.meta.url));
  folder = mkdtempSync(join(tmpdir(), 'gen-charges-'));
}, 60_000);
afterAll(() => {
  program.remove();
  rmSync(folder, { recursive: true, force: true });
});

const PROMPTS = ['a fox', 'a hare', 'an owl [fail:generation_failed]', 'a wolf'];

/** Starts a service and replicas. They share a store if `path` is set. Each webhook reaches two of them. */
async function startReplicas(path: string) {
  const hooks: string[] = [];
  const sandbox = createSandbox({
    limits: 'off',
    prices: 10,
    jobDurationMs: [1_500, 2_500],
    async webhookFetch(_, init) {
      const [first = '', second = ''] = hooks.slice(-2);
      await fetch(second, init);
      return fetch(first, init);
    },
  });
  const service = await sandbox.listen({ port: 0 });
  const reports: { readonly at: number; readonly charged: string; readonly tokens: number }[] = [];
  const replicas: ChildProcess[] = [];
  for (let at = 0; at < 3; at++) {
    const replica = program.start([path, service.url, sandbox.apiKey, sandbox.webhookSecret]);
    replica.on('message', (message: { charged?: string }) => {
      if (message.charged) reports.push({ at, ...(message as { charged: string; tokens: number }) });
    });
    replicas.push(replica);
    const { hook } = await receiveMessage<{ hook: number }>(replica);
    hooks.push(`http://127.0.0.1:${hook}`);
  }
  const run = async (at: number, task: Serializable): Promise<readonly string[]> => {
    const [replica] = replicas.slice(at);
    if (!replica) throw new Error('no such replica');
    const finished = receiveMessage<{ jobs: readonly string[] }>(replica, (message) => 'jobs' in (message as object));
    replica.send(task);
    return (await finished).jobs;
  };
  return {
    run,
    reports,
    kill: (at: number) => replicas[at]?.kill('SIGKILL'),
    costs: () => sandbox.jobs.map(({ id, finalTokenCost }) => [id, finalTokenCost] as const),
    async close() {
      for (const replica of replicas) replica.kill('SIGKILL');
      await service.close();
    },
  };
}

it.each([
  ['outcomes arrive through polls and webhooks', false],
  ['the process that created the jobs crashes', true],
])(
  'processes that share a store report each charge once if %s (real processes)',
  async (_, crashes) => {
    const replicas = await startReplicas(join(folder, `${crashes}.store`));
    try {
      const polledJobs = await replicas.run(0, { create: PROMPTS });
      const webhookJobs = await replicas.run(0, { create: PROMPTS, webhookUrl: 'https://app.example/hooks' });
      if (crashes) replicas.kill(0);
      await Promise.all([1, 2].map((at) => replicas.run(at, { wait: [...polledJobs, ...webhookJobs] })));
      await expect.poll(() => replicas.reports).toHaveLength(2 * PROMPTS.length);
      // The duplicate webhook or another poll would cause a second report.
      await Promise.all([1, 2].map((at) => replicas.run(at, { wait: [...polledJobs, ...webhookJobs] })));
      const charges = replicas.reports.map(({ charged, tokens }) => [charged, tokens] as const);
      expect(new Map(charges)).toEqual(new Map(replicas.costs()));
      expect(charges).toHaveLength(2 * PROMPTS.length);
    } finally {
      await replicas.close();
    }
  },
  60_000,
);

it('without a store, only the process that created a job reports its charge (real processes)', async () => {
  const replicas = await startReplicas('');
  try {
    const jobs = await replicas.run(0, { create: PROMPTS });
    await Promise.all([0, 1, 2].map((at) => replicas.run(at, { wait: jobs })));
    await Promise.all([1, 2].map((at) => replicas.run(at, { wait: jobs })));
    expect(replicas.reports.map(({ at }) => at)).toEqual(PROMPTS.map(() => 0));
    expect(new Map(replicas.reports.map(({ charged, tokens }) => [charged, tokens]))).toEqual(
      new Map(replicas.costs()),
    );
  } finally {
    await replicas.close();
  }
}, 60_000);
