// The guide says how many places a call may lose among two hundred.
import { describe, expect, it } from 'vitest';
import { isTooSlow } from '../support/core-share.js';
import { createdOn, noRedis, queuesOnSandboxes } from './queue-on-sandbox.js';

const HOUR_MS = 3_600_000;
const WINDOW = 20;
const CALLS = 200;
/** Much longer than a busy machine stands still: what is measured is the order, not the machine. */
const WINDOW_MS = Number(process.env.WINDOW_MS ?? 2_000);

describe.skipIf(noRedis !== undefined)('the creates of a queue', () => {
  const { open } = queuesOnSandboxes();

  it.each([1, 4, 8])(
    'go out in the order of their calls: none loses more than a window of places (%i workers)',
    async (workers) => {
      const limits = { 'videos.create': { limit: WINDOW, windowMs: WINDOW_MS } };
      const on = open({ jobDurationMs: HOUR_MS, client: { limits, rateLimit: 'wait' } });
      for (let at = 0; at < CALLS; at++)
        await on.queue.videos.create({ prompt: `order-${at}` }, { jobId: `order-${at}` });
      const start = performance.now();
      for (let at = 0; at < workers; at++) on.work({ pollIntervalMs: HOUR_MS });
      await expect.poll(() => createdOn(on).length, { timeout: 80_000, interval: 100 }).toBe(CALLS);
      const places = createdOn(on).map((prompt, place) => place - Number(prompt.split('-')[1]));
      if (process.env.TABLE)
        console.log(
          `workers ${workers}: worst loss ${Math.max(...places)} places, ${Math.round(performance.now() - start)} ms`,
        );
      const worst = Math.max(...places);
      if (worst > WINDOW && isTooSlow(`the order of the creates of ${workers} workers`)) return;
      expect(worst).toBeLessThanOrEqual(WINDOW);
    },
    90_000,
  );
});
