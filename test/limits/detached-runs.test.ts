// Runs that wait for a rate limit outside any process.
import { describe, expect, it } from 'vitest';
import { maxPerWindow } from '../support/max-per-window.js';
import { world } from './world.js';

describe('detached runs', () => {
  it.each([
    [1, 8],
    // The processes write concurrently, and each lost swap changes some positions.
    [2, 50],
  ])('each wake once and roughly in order if %i processes queue 300 of them', async (processes, maxShift) => {
    const { clock, process, pauseMs } = world({ limit: 20, windowMs: 6_000 }, { delayMs: 4 });
    const workers = Array.from({ length: processes }, () => process());
    const sent: number[] = [];
    const sentAt: number[] = [];
    let requests = 0;
    const call = async (number: number) => {
      for (;;) {
        requests++;
        const slot = await workers[number % processes]?.tryAcquire(`run-${String(number).padStart(3, '0')}`);
        if (typeof slot === 'function') {
          sent.push(number);
          sentAt.push(clock.now());
          await pauseMs(50);
          return slot('accepted');
        }
        // The engine wakes it up to 60 ms late.
        await pauseMs((slot ?? 0) + (number % 7) * 10);
      }
    };
    const all: Promise<void>[] = [];
    for (let number = 0; number < 300; number++) {
      all.push(call(number));
      await clock.advance(5);
    }
    await clock.until(Promise.all(all));
    expect(sent).toHaveLength(300);
    expect(maxPerWindow(sentAt, 6_000)).toBeLessThanOrEqual(20);
    // 280 runs wait once, so they request a slot twice.
    expect(requests).toBeLessThanOrEqual(300 + 280 + 10);
    const shifts = sent.map((number, position) => Math.abs(position - number));
    expect(Math.max(...shifts)).toBeLessThanOrEqual(maxShift);
  });
});
