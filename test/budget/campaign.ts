// Many processes spend one budget while they and Redis are killed, prices rise and midnight passes: `npm run campaign:budget`.
import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { createBudget } from '../../src/index.js';
import { redisBudget } from '../../src/redis/index.js';
import { createSandbox, type PricedJob } from '../../src/sandbox/index.js';
import { startRedis } from '../redis/real-redis.js';
import { seeded } from '../support/seeded.js';

/** How large a campaign is. */
export interface CampaignSize {
  readonly processes: number;
  /** Creates of each process on each of two days. */
  readonly creates: number;
  readonly maxTokens: number;
  readonly seed: number;
  readonly kills: number;
  /** Milliseconds after which the first process is killed. */
  readonly killAfterMs: number;
  readonly restarts: number;
}

/** What is left after one day. */
export interface CampaignDay {
  /** What the service has charged for the jobs of the day. */
  readonly chargedTokens: number;
  /** What the budget says that was spent. */
  readonly spentTokens: number;
  readonly reservedTokens: number;
  readonly jobs: number;
  readonly counts: Readonly<Record<string, number>>;
}

const PRICES: Readonly<Record<string, number>> = { 4: 10, 8: 23, 5: 60, 6: 31.5 };
/** What prices rise by in the middle of the first day. */
const RISE = 1.5;
const SPENDER = fileURLToPath(new URL('campaign-spender-process.ts', import.meta.url));
const BUNDLE = {
  bundle: true,
  platform: 'node',
  format: 'esm',
  // The Redis clients are CommonJS.
  banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
} as const;
const TROUBLE = { kills: 12, killAfterMs: 1_500, restarts: 4 };
const DAY_MS = 86_400_000;

/** The most that a day may pass its limit by: one job of each price that was never seen before that day. */
export const MOST_OVER = Object.values(PRICES).reduce((sum, tokens) => sum + tokens * (1 + RISE), 0);

/** Runs two days of one budget. The second one begins while creates of the first are under way. */
export async function runCampaign(size: CampaignSize): Promise<readonly CampaignDay[]> {
  const folder = mkdtempSync(join(tmpdir(), 'gen-client-spender-'));
  const program = join(folder, 'spender.mjs');
  await build({ ...BUNDLE, entryPoints: [SPENDER], outfile: program });
  const redis = await startRedis({ keeps: true });
  let rise = 1;
  const midnightMs = Math.ceil(Date.now() / DAY_MS) * DAY_MS;
  const sandbox = createSandbox({
    seed: size.seed,
    clock: 'manual',
    startTime: midnightMs - 3_600_000,
    balanceTokens: 1e9,
    limits: 'off',
    jobDurationMs: 0,
    prices: ({ duration }: PricedJob) => (PRICES[duration] ?? 0) * rise,
  });
  const service = await sandbox.listen({ port: 0 });
  const random = seeded(size.seed);
  let offsetMs = midnightMs - 3_600_000 - Date.now();
  const clock = { now: () => Date.now() + offsetMs, after: () => () => {} };
  const store = redisBudget(redis.ioredis, { [Symbol.for('gen-client.clock')]: clock } as object);
  const budget = createBudget({ maxTokens: size.maxTokens, per: 'day', scope: 'campaign', store });
  const days: CampaignDay[] = [];
  try {
    for (const day of [0, 1]) {
      const before = { jobs: sandbox.jobs.length, tokens: chargedIn(sandbox.jobs) };
      const run = { ...size, day, program, port: redis.port, baseUrl: service.url, apiKey: sandbox.apiKey };
      const trouble = async () => {
        for (let count = 0; count < size.restarts; count++) {
          await pause(300 + random() * 700);
          await redis.restart();
        }
        if (day === 0) rise = RISE;
      };
      const [counts] = await Promise.all([runProcesses(run, { random, offset: () => offsetMs }), trouble()]);
      const { spentTokens, reservedTokens } = await budget.usage();
      days.push({
        chargedTokens: chargedIn(sandbox.jobs) - before.tokens,
        jobs: sandbox.jobs.length - before.jobs,
        spentTokens,
        reservedTokens,
        counts,
      });
      offsetMs = midnightMs + 3_600_000 - Date.now();
      await sandbox.advance(7_200_000);
    }
    return days;
  } finally {
    await service.close();
    await redis.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Run extends CampaignSize {
  readonly day: number;
  readonly port: number;
  readonly baseUrl: string;
  readonly apiKey: string;
  /** The spender, bundled. */
  readonly program: string;
}

/** Runs the spenders, and kills some of them on the way. Gives what their last lives have counted. */
async function runProcesses(
  { processes, creates, kills, killAfterMs, seed, day, ...run }: Run,
  { random, offset }: { readonly random: () => number; readonly offset: () => number },
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  let killsLeft = kills;
  const spend = async (at: number) => {
    for (let life = 0; ; life++) {
      const id = day * processes + at;
      const settings = { ...run, id, orders: creates, atOnce: 12, seed: seed * 1000 + id * 10 + life };
      const child = fork(run.program, [JSON.stringify(settings)], { execArgv: [] });
      const ended = endOf(child, offset);
      await Promise.race([ended, new Promise((resolve) => child.once('message', resolve))]);
      if (killsLeft > 0) {
        killsLeft--;
        const isDone = await Promise.race([ended.then(() => true), pause(killAfterMs * (1 + random()))]);
        if (isDone !== true) child.kill('SIGKILL');
      }
      const done = await ended;
      if (done === undefined) continue;
      for (const [name, count] of Object.entries(done)) counts[name] = (counts[name] ?? 0) + count;
      return;
    }
  };
  await Promise.all(Array.from({ length: processes }, (_, at) => spend(at)));
  return counts;
}

/** What the process has counted; undefined for one that was killed. */
function endOf(child: ChildProcess, offset: () => number): Promise<Record<string, number> | undefined> {
  let done: Record<string, number> | undefined;
  child.on('message', (message: { done?: Record<string, number> }) => {
    if (message.done === undefined) child.send({ offsetMs: offset() });
    else done = message.done;
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      if (code === 0 || signal === 'SIGKILL') resolve(done);
      else reject(new Error(`a spender ended with ${code ?? signal}`));
    });
  });
}

function chargedIn(jobs: readonly { readonly finalTokenCost?: number | null }[]): number {
  return jobs.reduce((sum, { finalTokenCost }) => sum + (finalTokenCost ?? 0), 0);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({ options: { seed: { type: 'string', default: '1' } } });
  const size = { processes: 8, creates: 1_000, maxTokens: 120_000, seed: Number(values.seed), ...TROUBLE };
  const began = performance.now();
  const days = await runCampaign(size);
  process.stdout.write(`${JSON.stringify({ ...size, mostOver: MOST_OVER, days }, null, 2)}\n`);
  process.stdout.write(`${Math.round((performance.now() - began) / 1000)} s\n`);
  for (const { chargedTokens, spentTokens, reservedTokens } of days) {
    const holds = chargedTokens <= size.maxTokens + MOST_OVER && chargedTokens >= size.maxTokens * 0.95;
    if (!holds || reservedTokens !== 0 || spentTokens !== chargedTokens) process.exitCode = 1;
  }
}
