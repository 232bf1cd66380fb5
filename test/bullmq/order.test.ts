// The order of creates at the rate limit.
import { describe, expect, it } from 'vitest';
import { createdOn, noRedis, type QueueOnSandbox, queuesOnSandboxes } from './queue-on-sandbox.js';

const HOUR_MS = 3_600_000;
const WINDOW = 20;

/** Client options with a shorter window than the documented minute. */
function client(windowMs: number) {
  const limits = { 'videos.create': { limit: WINDOW, windowMs } };
  return { limits, rateLimit: 'wait' as const };
}

async function enqueue(on: QueueOnSandbox, name: string, calls: number, options: object = {}) {
  for (let at = 0; at < calls; at++) {
    await on.queue.videos.create({ prompt: `${name}-${at}` }, { jobId: `${name}-${at}`, ...options });
  }
}

const QUIET = { pollIntervalMs: HOUR_MS };

describe.skipIf(noRedis !== undefined)("a queue's creates", () => {
  const { open } = queuesOnSandboxes();

  it.each([1, 4])(
    'precede a backlog if they have a higher priority (%i workers)',
    async (workers) => {
      const on = open({ jobDurationMs: HOUR_MS, client: client(1_000) });
      await enqueue(on, 'backlog', 80);
      for (let at = 0; at < workers; at++) on.work(QUIET);
      await expect.poll(() => createdOn(on).length, { timeout: 20_000 }).toBeGreaterThanOrEqual(2 * WINDOW);
      await enqueue(on, 'urgent', 10, { priority: 1 });
      const before = createdOn(on).length;
      const urgent = () => createdOn(on).filter((prompt) => prompt.startsWith('urgent'));
      await expect.poll(() => urgent().length, { timeout: 20_000, interval: 20 }).toBe(10);
      const last = createdOn(on).findLastIndex((prompt) => prompt.startsWith('urgent'));
      expect(last - before).toBeLessThan(2 * WINDOW);
    },
    60_000,
  );
});
