// Rate limits that processes share through a store, on a manual clock.
import { describe, expect, it, vi } from 'vitest';
import type { Rate } from '../../src/rules/limits.js';
import type { Release } from '../../src/store/rate-limit.js';
import { maxPerWindow } from '../support/max-per-window.js';
import { seeded } from '../support/seeded.js';
import { virtualClock } from '../waiting/virtual-clock.js';
import { type Faults, LIMIT_NAME, MINUTE, world } from './world.js';

interface Campaign {
  readonly processes: number;
  readonly calls: number;
  readonly limit: Rate;
  readonly responseMs: number;
  readonly delayMs?: number;
  /** Pause between two calls. */
  readonly gapMs?: number;
}

/** Runs calls in many processes. Returns when the service counted them, the total time, and the number of store requests. */
async function campaign({ processes, calls, limit, responseMs, delayMs = 2, gapMs = 200 }: Campaign) {
  const { clock, process, requestCount, pauseMs } = world(limit, { delayMs });
  const next = seeded(1);
  const all = Array.from({ length: processes }, () => process());
  const counted: number[] = [];
  const startMs = clock.now();
  const sent: Promise<void>[] = [];
  for (let call = 0; call < calls; call++) {
    const work = async () => {
      const release = await all[call % processes]?.acquire();
      const outboundMs = next() * responseMs;
      await pauseMs(outboundMs);
      counted.push(clock.now());
      await pauseMs(responseMs - outboundMs);
      release?.();
    };
    sent.push(work());
    await clock.advance(gapMs);
  }
  await clock.until(Promise.all(sent));
  return { counted, tookMs: Math.max(...counted) - startMs, requestCount: requestCount() };
}

describe('shared limits', () => {
  it.each([
    [1, 0.95],
    [8, 0.95],
    [50, 0.9],
  ])('are enforced across %i processes, which use nearly all slots', async (processes, minUsage) => {
    const calls = 200;
    const { counted, tookMs, requestCount } = await campaign({ processes, calls, limit: MINUTE, responseMs: 800 });
    expect(counted).toHaveLength(calls);
    expect(maxPerWindow(counted, MINUTE.windowMs)).toBeLessThanOrEqual(MINUTE.limit);
    const allowedMs = (calls / MINUTE.limit - 1) * (MINUTE.windowMs + 800);
    expect(allowedMs / tookMs).toBeGreaterThan(minUsage);
    expect(requestCount / (tookMs / 1_000)).toBeLessThan(100);
  });

  it.each([
    ['slowly, but within its timeout', 8, 950],
    ['after its timeout, so that the process counts locally', 1, 20_000],
    ['sometimes after its timeout, so that the process sometimes counts locally', 1, 2_200],
  ])('are enforced if the store responds %s', async (_, processes, delayMs) => {
    const calls = 70;
    const { counted } = await campaign({ processes, calls, limit: MINUTE, responseMs: 800, delayMs });
    expect(counted).toHaveLength(calls);
    expect(maxPerWindow(counted, MINUTE.windowMs)).toBeLessThanOrEqual(MINUTE.limit);
  });

  it.each([
    [1, 99, 2, 1],
    [8, 98, 15, 3],
    [50, 97, 48, 16],
  ])(
    'let %i processes use %i%% of the slots with %i store requests a second',
    async (processes, usedPercent, requestsAt6s, requestsAt60s) => {
      const measure = async (windowMs: number) => {
        const limit = { limit: 20, windowMs };
        const load = { processes, calls: 100, limit, responseMs: 10, delayMs: 1, gapMs: 0 };
        const { tookMs, requestCount } = await campaign(load);
        return [Math.floor((100 * 4 * windowMs) / tookMs), Math.ceil(requestCount / (tookMs / 1_000))];
      };
      expect(await measure(6_000)).toEqual([usedPercent, requestsAt6s]);
      expect((await measure(60_000))[1]).toBe(requestsAt60s);
    },
  );

  it('serve every process, whether it has two calls or forty', async () => {
    const { clock, process, pauseMs } = world({ limit: 10, windowMs: 2_000 });
    const served = new Map<number, number>();
    const counted: number[] = [];
    for (let at = 0; at < 8; at++) {
      const worker = process();
      const loop = async () => {
        for (;;) {
          const release = await worker.acquire();
          counted.push(clock.now());
          served.set(at, (served.get(at) ?? 0) + 1);
          await pauseMs(50);
          release();
        }
      };
      for (let call = 0; call < (at % 2 === 0 ? 2 : 40); call++) void loop();
    }
    await clock.advance(60_000);
    expect(maxPerWindow(counted, 2_000)).toBeLessThanOrEqual(10);
    expect(counted.length).toBeGreaterThan(0.95 * ((10 * 60_000) / 2_050));
    expect(served.size).toBe(8);
    expect(Math.min(...served.values())).toBeGreaterThan(20);
  });

  it("need at most two requests for each of a process's consecutive creates", async () => {
    const { clock, process, requestCount } = world();
    const worker = process();
    for (let call = 0; call < 20; call++) (await clock.until(worker.acquire()))();
    expect(requestCount()).toBeLessThanOrEqual(2 * 20);
  });

  it('need one read and one write for concurrent calls', async () => {
    const { clock, process, requestCount } = world();
    const worker = process();
    await clock.until(Promise.all([worker.acquire(), worker.acquire(), worker.tryAcquire(), worker.tryAcquire('run')]));
    expect(requestCount()).toBe(2);
  });

  it('need at most two requests a second per process, however many of its calls wait', async () => {
    const { clock, process, requestCount } = world({ limit: 1, windowMs: 3_600_000 });
    const worker = process();
    (await clock.until(worker.acquire()))();
    await clock.advance(1_000);
    const requestsBefore = requestCount();
    const abort = new AbortController();
    const calls: Promise<unknown>[] = [];
    for (let call = 0; call < 600; call++) {
      calls.push(worker.acquire(abort.signal).catch(() => {}));
      await clock.advance(100);
    }
    expect(requestCount() - requestsBefore).toBeLessThanOrEqual(2 * 60 + 4);
    abort.abort();
    await Promise.all(calls);
  });

  it('release a slot one window after its response, even if the response arrived during a read', async () => {
    const { clock, process } = world({ limit: 1, windowMs: 10_000 });
    const faults: Faults = {};
    const [worker, otherWorker] = [process({ faults }), process()];
    const release = await clock.until(worker.acquire());
    faults.afterRead = () => new Promise<void>((resolve) => void clock.after(1_500, resolve));
    const attempt = worker.tryAcquire();
    await clock.advance(1_400);
    release();
    const respondedMs = clock.now();
    expect(await clock.until(attempt)).toBeGreaterThan(0);
    delete faults.afterRead;
    (await clock.until(otherWorker.acquire()))();
    expect(clock.now() - respondedMs).toBeGreaterThan(10_000);
    expect(clock.now() - respondedMs).toBeLessThan(12_000);
  });

  it('pause every process, including a process that starts during the pause', async () => {
    const { clock, process } = world();
    const worker = process();
    const release = await clock.until(worker.acquire());
    worker.limits.pause(LIMIT_NAME, 600_000);
    release('unused');
    worker.limits.pause(LIMIT_NAME, 1_000);
    await clock.advance(590_000);
    const onGranted = vi.fn((slot: Release) => slot());
    void process().acquire().then(onGranted);
    await clock.advance(9_000);
    expect(onGranted).not.toHaveBeenCalled();
    await clock.advance(7_000);
    expect(onGranted).toHaveBeenCalledOnce();
  });

  it('without a number allow rounds of 1, 2, 4, … calls in total across processes after a pause', async () => {
    const { clock, process } = world({ limit: Number.POSITIVE_INFINITY, windowMs: 0 });
    const all = [process(), process(), process()];
    for (const worker of all) (await clock.until(worker.acquire()))('accepted');
    all[0]?.limits.pause(LIMIT_NAME, 10_000);
    await clock.advance(100);
    const slots: Release[] = [];
    for (const worker of all)
      for (let call = 0; call < 5; call++) void worker.acquire().then((slot) => slots.push(slot));
    await clock.advance(9_000);
    expect(slots).toHaveLength(0);
    await clock.advance(20_000);
    const rounds: number[] = [];
    for (let round = 0; round < 4; round++) {
      rounds.push(slots.length);
      for (const release of slots.splice(0)) release('accepted');
      await clock.advance(5_000);
    }
    expect(rounds).toEqual([1, 2, 4, 8]);
  });

  it('pass a slot to another process if its call was aborted while the slot was granted', async () => {
    const { clock, process, faults } = world({ limit: 1, windowMs: 60_000 });
    const [worker, otherWorker] = [process(), process()];
    const aborted = new AbortController();
    // The write that grants the slot is in flight.
    faults.beforeWrite = () => aborted.abort();
    await expect(clock.until(worker.acquire(aborted.signal))).rejects.toMatchObject({ name: 'AbortError' });
    delete faults.beforeWrite;
    const startMs = clock.now();
    await clock.until(otherWorker.acquire());
    expect(clock.now() - startMs).toBeLessThan(6_000);
  });

  it("release a crashed process's queue position, and its slots after one lease", async () => {
    const { clock, process } = world({ limit: 2, windowMs: 60_000 });
    // The clock of the crashed process has stopped, so it no longer renews its leases.
    const stopped = virtualClock(clock.now());
    const after: typeof clock.after = (ms, fire) => (ms < 100 ? clock.after(ms, fire) : () => {});
    const crashed = process({ clock: { ...clock, timers: 0, now: stopped.now, after } });
    for (let slot = 0; slot < 2; slot++) await clock.until(crashed.acquire());
    crashed.acquire().catch(() => {});
    await clock.advance(1_000);
    const startMs = clock.now();
    (await clock.until(process().acquire()))();
    expect(clock.now() - startMs).toBeGreaterThan(70_000);
    expect(clock.now() - startMs).toBeLessThan(80_000);
  });

  it('leave no data and no timer behind once the account is idle', async () => {
    const { clock, process, store } = world();
    (await clock.until(process().acquire()))();
    await clock.advance(200_000);
    expect(clock.timers).toBe(0);
    expect((await store.read(`account/limits/${LIMIT_NAME}`, ['limit'])).values).toEqual({});
  });

  it('are enforced on Workers, where each call sends its own store requests', async () => {
    const { clock, process, pauseMs } = world({ limit: 3, windowMs: 2_000 });
    const { acquire, limits } = process({ clock: { ...clock, timers: 0, perRequest: true } });
    const counted: number[] = [];
    const call = async () => {
      const release = await acquire();
      counted.push(clock.now());
      await pauseMs(30);
      release();
    };
    const all = Array.from({ length: 12 }, call);
    await clock.advance(500);
    expect(limits.snapshot()[LIMIT_NAME]).toMatchObject({ free: 0, queued: 9 });
    await clock.until(Promise.all(all));
    expect(maxPerWindow(counted, 2_000)).toBeLessThanOrEqual(3);
    expect(Math.max(...counted) - Math.min(...counted)).toBeLessThan(15_000);
  });
});

/** Runs calls that succeed, are aborted, or release their slot unused, on a store with varying delays. */
async function runRandomCalls(seed: number) {
  const next = seeded(seed);
  const limit = { limit: 1 + Math.floor(next() * 8), windowMs: 500 + next() * 5_000 };
  const { clock, process, pauseMs } = world(limit, { delayMs: next() ** 3 * 300, next });
  const counted: number[] = [];
  let pending = 0;
  const start = (worker: ReturnType<typeof process>) => {
    const call = async () => {
      const abort = new AbortController();
      if (next() < 0.1) clock.after(next() * 3_000, () => abort.abort());
      const release = await worker.acquire(abort.signal).catch(() => undefined);
      if (!release) return;
      if (next() < 0.05) return release('unused');
      await pauseMs(next() ** 3 * 2_000);
      counted.push(clock.now());
      await pauseMs(next() ** 3 * 2_000);
      release();
    };
    pending++;
    return call().finally(() => pending--);
  };
  for (let at = 0; at < 6; at++) {
    const worker = process();
    for (let call = 0; call < 20; call++) clock.after(next() * 10_000, () => void start(worker));
  }
  await clock.advance(120_000 + 12 * 20 * (limit.windowMs / limit.limit));
  return { limit, counted, pending, timers: clock.timers };
}

it('shared limits are enforced, and leave no call waiting, for any calls and delays', async () => {
  for (let seed = 1; seed <= 20; seed++) {
    const { limit, counted, pending, timers } = await runRandomCalls(seed);
    expect([seed, maxPerWindow(counted, limit.windowMs) <= limit.limit, pending, timers]).toEqual([seed, true, 0, 0]);
  }
});
