// Delays and polls of many waits, in the benchmarks' simulation.
import { describe, expect, it } from 'vitest';
import { type Load, type Metrics, measure } from '../../bench/waiting/measure.js';
import { roundRobin } from '../../bench/waiting/round-robin.js';

async function meanMetrics(count: number, runs: number, load: Load = {}): Promise<Metrics> {
  const all: Metrics[] = [];
  for (let run = 1; run <= runs; run++) all.push(await measure(count, { ...load, seed: run * 7919 }));
  const meanOf = (key: keyof Metrics) => all.reduce((sum, metrics) => sum + metrics[key], 0) / runs;
  return {
    count,
    worstDelayMs: Math.max(...all.map((metrics) => metrics.worstDelayMs)),
    polls: meanOf('polls'),
    rejected: meanOf('rejected'),
    failed: meanOf('failed'),
    meanDelayMs: meanOf('meanDelayMs'),
    p95DelayMs: meanOf('p95DelayMs'),
  };
}

describe('waiting for 20 videos a minute, with 120 polls a minute', () => {
  const steady = { perMinute: 20 };

  it('detects each of 500 finished jobs within 45 seconds, without a 429 (regression: 124 s)', async () => {
    const { worstDelayMs, rejected, failed } = await meanMetrics(500, 3, steady);
    expect({ rejected, failed }).toEqual({ rejected: 0, failed: 0 });
    expect(worstDelayMs).toBeLessThan(45_000);
  });

  it('detects finished jobs sooner on average than round robin, even if jobs take four times as long', async () => {
    for (const load of [steady, { ...steady, durationFactor: 4 }]) {
      const scheduled = await meanMetrics(200, 2, load);
      const plain = await roundRobin(200, { ...load, seed: 7919 });
      expect(scheduled.meanDelayMs).toBeLessThan(0.8 * plain.meanDelayMs);
    }
  });
});

describe('waiting for many concurrent jobs, with 120 polls a minute', () => {
  it.each([
    [1, 60],
    [20, 10],
  ])('detects %i finished jobs within 6.5 s on average, without a 429', async (count, runs) => {
    const ours = await meanMetrics(count, runs);
    expect(ours).toMatchObject({ failed: 0, rejected: 0 });
    expect(ours.meanDelayMs).toBeLessThan(6_500);
  });

  it.each([100, 500])(
    'detects %i finished jobs in less than half the time of round robin, without a 429',
    async (count) => {
      const ours = await meanMetrics(count, 2);
      const plain = await roundRobin(count, { seed: 7919 });
      expect(ours).toMatchObject({ failed: 0, rejected: 0 });
      expect(ours.meanDelayMs).toBeLessThan(plain.meanDelayMs / 2);
    },
  );

  it('polls a job at most about once per poll interval while slots are free', async () => {
    const { polls } = await meanMetrics(20, 5);
    // 4 images take 6 s each, 8 videos 48 s, 6 videos 150 s, and 2 videos 360 s.
    expect(polls).toBeLessThan((4 * 6) / 2.5 + (8 * 48 + 6 * 150 + 2 * 360) / 10 + 20);
  });

  it('starves no wait: the latest of 500 ends within two rounds of polls', async () => {
    const { worstDelayMs } = await meanMetrics(500, 2);
    expect(worstDelayMs).toBeLessThan(2 * (500 / 105) * 60_000);
  });

  it.each([1, 20, 100, 500])(
    'detects %i finished jobs sooner with webhooks',
    async (count) => {
      const polled = await meanMetrics(count, 1);
      const announced = await meanMetrics(count, 1, { webhooks: 1 });
      expect(announced).toMatchObject({ failed: 0, rejected: 0 });
      expect(announced.meanDelayMs).toBeLessThan(polled.meanDelayMs);
      if (count <= 100) expect(announced.meanDelayMs).toBeLessThan(1500);
    },
    60_000,
  );

  it('ends every wait if 10% of the webhooks are lost, each at most a poll interval late', async () => {
    const lossy = await meanMetrics(20, 10, { webhooks: 0.9 });
    expect(lossy.failed).toBe(0);
    expect(lossy.worstDelayMs).toBeLessThan(25_000);
  });
});
