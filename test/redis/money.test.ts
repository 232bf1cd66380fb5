// Processes that share a Redis: one process is killed repeatedly, another is paused, and Redis becomes unavailable while
// calls are in flight.
import type { ChildProcess } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createSandbox } from '../../src/sandbox/index.js';
import { collectLines, expectNothingLost } from '../support/killed-processes.js';
import { bundleProgram } from '../support/program.js';
import { startRedis, whyNoRedis } from './real-redis.js';

/** `npm run campaign -- money` runs the full version. */
const [BATCH, STOP_MS, OUTAGE_MS, JOB_MS] =
  process.env.CAMPAIGN === 'full' ? [200, 45_000, 20_000, [8_000, 25_000]] : [10, 2_000, 3_000, [300, 2_000]];
const LIMIT = { limit: 4 * BATCH, windowMs: 60_000 };

test.skipIf(whyNoRedis())(
  'processes that are killed, paused, and disconnected from Redis lose no paid job, and their budget equals the charges (real processes)',
  async () => {
    const redis = await startRedis({ isPersistent: true });
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
      const closed = collectLines(child, lines).then(() => void running.delete(child));
      return { child, closed };
    };
    const waitForJobs = async (count: number) => {
      while (sandbox.jobs.length < count) await pause(50);
    };
    try {
      const paused = start();
      start();
      let killed = start();
      // Wait until several processes have calls in flight.
      await waitForJobs(sandbox.jobs.length + 2 * BATCH);
      await redis.stop();
      await pause(OUTAGE_MS);
      await redis.restart();
      paused.child.kill('SIGSTOP');
      for (let untilMs = Date.now() + STOP_MS; Date.now() < untilMs; ) {
        await pause(Math.random() * 4_000);
        killed.child.kill('SIGKILL');
        await killed.closed;
        killed = start();
      }
      paused.child.kill('SIGCONT');
      await waitForJobs(sandbox.jobs.length + BATCH);
      for (const child of running) child.kill('SIGKILL');
      while (running.size > 0) await pause(50);
      await start('resume').closed;
      expectNothingLost(sandbox, lines);
      expect(sandbox.requests.filter(({ status }) => status === 429)).toEqual([]);
    } finally {
      for (const child of running) child.kill('SIGKILL');
      await server.close();
      program.remove();
      await redis.close();
    }
  },
  1_500_000,
);
