import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createSandbox } from '../../src/sandbox/index.js';
import { seeded } from '../support/seeded.js';

/** Other points each time; a failure names the seed of its own. */
const SEED = Date.now();
const random = seeded(SEED);
const sandbox = createSandbox({ jobDurationMs: 150, limits: 'off', review: { asset: 700 }, balanceTokens: 100_000 });
let folder: string;
let program: string;
let served: Awaited<ReturnType<typeof sandbox.listen>>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gen-client-kill-'));
  program = join(folder, 'program.mjs');
  const entryPoints = [new URL('./crashing-program.ts', import.meta.url).pathname];
  await build({ entryPoints, outfile: program, bundle: true, platform: 'node', format: 'esm', target: 'node22' });
  served = await sandbox.listen();
  // Answers take their time, so that kills also fall between the service's commit and its answer.
  sandbox.faults.add({ match: {}, latencyMs: 25 });
});

afterAll(async () => {
  await served.close();
  await rm(folder, { recursive: true });
});

/** Runs the program, killed `killAfterMs` after it began to work; gives what it printed and whether it ended by itself. */
function run(args: readonly string[], killAfterMs: number): Promise<{ out: string; ended: boolean; tookMs: number }> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [program, served.url, sandbox.apiKey, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let out = '';
    let begun = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    child.stdout.on('data', (chunk) => {
      out += chunk;
      if (begun > 0) return;
      begun = performance.now();
      if (killAfterMs < Number.POSITIVE_INFINITY) timer = setTimeout(() => child.kill('SIGKILL'), killAfterMs);
    });
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve({ out, ended: code === 0, tookMs: performance.now() - begun });
    });
  });
}

/** The jobs that the service has of one program, whose prompt is its key. */
function bill(key: string) {
  const jobs = sandbox.jobs.filter(({ prompt }) => prompt === key);
  const completed = jobs.filter(({ status }) => status === 'completed');
  return { jobs: jobs.length, completed: completed.length, ids: completed.map(({ id }) => id) };
}

it.each([
  ['a plain create', 26, false],
  ['a create whose reference is still under review, so that it is resubmitted', 26, true],
])(
  'makes one job and one charge of %s, killed at any of %i random points and run again',
  async (_, kills, pending) => {
    const args = (key: string) => [key, ...(pending ? [`https://media.example/${key}.png`] : [])];
    const whole = await run(args(`whole-${pending}.`), Number.POSITIVE_INFINITY);
    expect(whole.ended).toBe(true);
    const spentBefore = sandbox.ledger().spentTokens;
    let killed = 0;
    const one = async (at: number) => {
      const key = `kill-${pending}-${at}.`;
      for (let crash = true; crash; crash = random() < 0.3) {
        const { ended } = await run(args(key), random() * whole.tookMs);
        if (!ended) killed++;
      }
      const { out, ended } = await run(args(key), Number.POSITIVE_INFINITY);
      expect(ended).toBe(true);
      const { jobs, completed, ids } = bill(key);
      expect(completed, `${key} under seed ${SEED}`).toBe(1);
      expect(out).toContain(ids[0]);
      if (!pending) expect(jobs, `${key} under seed ${SEED}`).toBe(1);
    };
    let next = 0;
    const worker = async () => {
      while (killed < kills) await one(next++);
    };
    await Promise.all([worker(), worker(), worker(), worker()]);
    const price = sandbox.jobs.find(({ status }) => status === 'completed')?.finalTokenCost ?? 0;
    expect(price).toBeGreaterThan(0);
    expect(killed).toBeGreaterThanOrEqual(kills);
    expect(sandbox.ledger().spentTokens - spentBefore).toBe(next * price);
  },
  180_000,
);
