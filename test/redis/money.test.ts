// Processes that share a Redis: one is killed repeatedly, one is paused, and Redis becomes unavailable while calls are in
// flight. No paid job is lost, the budget matches the charges, and no 429 occurs.
import type { ChildProcess } from 'node:child_process';
import { expect, test } from 'vitest';
import { createSandbox } from '../../src/sandbox/index.js';
import { bundleProgram } from '../support/program.js';
import { startRedis, whyNoRedis } from './real-redis.js';

/** `npm run campaign -- money` runs the full version. */
const [BATCH, STOP_MS, AWAY_MS, ROUNDS, JOB_MS] =
  process.env.CAMPAIGN === 'full' ? [200, 45_000, 20_000, 1, [8_000, 25_000]] : [10, 2_000, 3_000, 1, [300, 2_000]];
const LIMIT = { limit: 4 * BATCH, windowMs: 60_000 };

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

test.skipIf(whyNoRedis())(
  'processes that are killed, paused, and disconnected from Redis lose no paid job, and their budget matches the charges (real processes)',
  async () => {
    const redis = await startRedis({ keeps: true });
    const program = await bundleProgram(new URL('money-worker.ts', import.meta.url));
    const sandbox = createSandbox({
      limits: { 'videos.create': LIMIT },
      balanceTokens: 1e9,
      jobDurationMs: JOB_MS as [number, number],
    });
    const server = await sandbox.listen({ port: 0 });
    const lines: string[] = [];
    const running = new Set<ChildProcess>();
    const start = (task = '') => {
      const child = program.start(
        [redis.port, server.url, sandbox.apiKey, BATCH, LIMIT.limit, LIMIT.windowMs, task],
        {},
        ['ignore', 'pipe', 'pipe', 'ipc'],
      );
      running.add(child);
      let [output, errors] = ['', ''];
      child.stdout?.on('data', (chunk) => {
        output += chunk;
      });
      child.stderr?.on('data', (chunk) => {
        errors += chunk;
      });
      const closed = new Promise<void>((resolve) => {
        child.once('close', () => {
          running.delete(child);
          // Ignore a line truncated by the kill.
          lines.push(...output.split('\n').slice(0, -1), ...(errors ? [`error ${errors}`] : []));
          resolve();
        });
      });
      return { child, closed };
    };
    const created = async (count: number) => {
      while (sandbox.jobs.length < count) await pause(50);
    };
    try {
      const [stopped] = [start(), start()];
      let killed = start();
      for (let round = 0; round < ROUNDS; round++) {
        // Wait until both have calls in flight.
        await created(sandbox.jobs.length + 2 * BATCH);
        await redis.stop();
        await pause(AWAY_MS);
        await redis.restart();
        stopped.child.kill('SIGSTOP');
        for (let untilMs = Date.now() + STOP_MS; Date.now() < untilMs; ) {
          await pause(Math.random() * 4_000);
          killed.child.kill('SIGKILL');
          await killed.closed;
          killed = start();
        }
        stopped.child.kill('SIGCONT');
        await created(sandbox.jobs.length + BATCH);
      }
      for (const child of running) child.kill('SIGKILL');
      while (running.size > 0) await pause(50);
      await start('resume').closed;
      const found = new Set(lines.filter((line) => line.startsWith('job ')).map((line) => line.slice('job '.length)));
      const charged = sandbox.jobs.reduce((sum, { finalTokenCost }) => sum + (finalTokenCost ?? 0), 0);
      console.info(`${sandbox.jobs.length} paid jobs, ${found.size} found, ${charged} tokens, ${lines.at(-1)}`);
      expect(lines.filter((line) => line.startsWith('error'))).toEqual([]);
      expect(sandbox.requests.filter(({ status }) => status === 429)).toEqual([]);
      expect(sandbox.jobs.filter(({ id }) => !found.has(id))).toEqual([]);
      expect(lines.at(-1)).toBe(`usage ${charged} 0`);
    } finally {
      for (const child of running) child.kill('SIGKILL');
      await server.close();
      program.remove();
      await redis.close();
    }
  },
  1_500_000,
);
