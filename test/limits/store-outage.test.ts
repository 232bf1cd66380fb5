// Rate limits during a store outage: a process uses its local state, and updates the store afterward.
import { describe, expect, it, vi } from 'vitest';
import { setupError } from '../../src/store/store.js';
import type { VirtualClock } from '../waiting/virtual-clock.js';
import { type Faults, LIMIT_NAME, world } from './world.js';

const unavailable = () => Promise.reject(new Error('connection lost'));
const ONE_CALL = { limit: 1, windowMs: 10_000 };

describe('a faulty store', () => {
  it('is replaced by local state, with one warning per outage', async () => {
    const { clock, process, faults, warnings } = world({ limit: 2, windowMs: 60_000 });
    const worker = process();
    (await clock.until(worker.acquire()))();
    faults.beforeRead = unavailable;
    const times: number[] = [];
    const calls = [1, 2, 3].map(() =>
      worker.acquire().then((slot) => {
        times.push(clock.now());
        slot();
      }),
    );
    await clock.until(Promise.all(calls));
    times.sort((a, b) => a - b);
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(58_000);
    expect(warnings).toEqual([
      'The store is unavailable (connection lost). Until it recovers, this process enforces its rate limits locally.',
    ]);
    delete faults.beforeRead;
    await clock.advance(200_000);
    (await clock.until(worker.acquire()))();
    faults.beforeRead = unavailable;
    await clock.advance(200_000);
    (await clock.until(worker.acquire()))();
    expect(warnings).toHaveLength(2);
  });

  it('counts the slots used during the outage once it recovers, and the waiting calls are served', async () => {
    const limit = { limit: 4, windowMs: 60_000 };
    const { clock, process, faults, pauseMs } = world(limit);
    const all = [process(), process(), process()];
    const sent: number[] = [];
    faults.beforeRead = unavailable;
    const calls = Array.from({ length: 30 }, async (_, call) => {
      await pauseMs(1_000 * call);
      const release = await all[call % 3]?.acquire();
      sent.push(clock.now());
      await pauseMs(800);
      release?.();
    });
    await clock.advance(40_000);
    // Each process has sent as many calls as its local limit allows.
    expect(sent).toHaveLength(12);
    delete faults.beforeRead;
    // By then, each process has updated the store.
    const updatedMs = clock.now() + 6_000;
    await clock.until(Promise.all(calls));
    expect(sent).toHaveLength(30);
    for (const atMs of sent.filter((time) => time > updatedMs)) {
      const inWindow = sent.filter((other) => other <= atMs && other > atMs - limit.windowMs);
      expect(inWindow.length).toBeLessThanOrEqual(limit.limit);
    }
  });

  it('counts calls that a process sent during the outage, even if none of its calls waits', async () => {
    const { clock, process } = world({ limit: 4, windowMs: 60_000 });
    const faults: Faults = { beforeRead: unavailable };
    const [worker, otherWorker] = [process({ faults }), process()];
    for (let call = 0; call < 4; call++) (await clock.until(worker.acquire()))();
    await clock.advance(40_000);
    const startMs = clock.now();
    delete faults.beforeRead;
    await clock.advance(6_000);
    (await clock.until(otherWorker.acquire()))();
    // One window after the calls, not after the recovery.
    expect(clock.now() - startMs).toBeGreaterThan(19_000);
    expect(clock.now() - startMs).toBeLessThan(23_000);
    await clock.advance(120_000);
    expect(clock.timers).toBe(0);
  });

  it.each([
    ['two seconds', undefined, 2_000],
    ['its own timeoutMs', 300, 300],
  ])("counts as unavailable after %s, and the next calls don't wait for it", async (_, timeoutMs, ms) => {
    const { clock, process, faults } = world();
    faults.beforeRead = () => new Promise(() => {});
    const worker = process(timeoutMs === undefined ? {} : { timeoutMs });
    const startMs = clock.now();
    (await clock.until(worker.acquire()))();
    expect(clock.now() - startMs).toBe(ms);
    for (let call = 0; call < 3; call++) (await clock.until(worker.acquire()))();
    expect(clock.now() - startMs).toBe(ms);
  });

  it("doesn't keep a process alive that only has responses to record", async () => {
    const { clock, process, faults } = world();
    const delays: number[] = [];
    const after: VirtualClock['after'] = (ms, fire, options) => {
      if (!options?.isIdle) delays.push(ms);
      return clock.after(ms, fire);
    };
    faults.beforeRead = unavailable;
    const release = await clock.until(process({ clock: { ...clock, timers: 0, after } }).acquire());
    delays.length = 0;
    release();
    await clock.advance(1_000);
    expect(clock.timers).toBe(1);
    // The response is recorded in the local state.
    expect(delays.filter((ms) => ms > 250)).toEqual([]);
  });

  it("is replaced by local state for calls that don't queue, too", async () => {
    const { clock, process, faults, requestCount } = world(ONE_CALL);
    const [worker, otherWorker] = [process(), process()];
    faults.beforeRead = unavailable;
    const [release, rejected] = await clock.until(Promise.all([worker.tryAcquire(), worker.tryAcquire()]));
    expect([typeof release, rejected]).toEqual(['function', expect.closeTo(10_006, -1)]);
    if (typeof release === 'function') release();
    await clock.advance(100);
    expect(await clock.until(worker.tryAcquire())).toBeGreaterThan(9_000);
    expect(requestCount()).toBe(1);
    delete faults.beforeRead;
    await clock.advance(6_000);
    expect(await clock.until(otherWorker.tryAcquire())).toBeGreaterThan(3_000);
  });

  it("doesn't count as an outage if it is misconfigured: each call rejects and says what to change", async () => {
    const { clock, process, faults, warnings } = world();
    const worker = process();
    faults.beforeRead = () => Promise.reject(setupError('NOPERM. Give its user the command eval.'));
    await expect(clock.until(worker.acquire())).rejects.toMatchObject({ recovery: 'fix_setup' });
    await expect(clock.until(worker.tryAcquire())).rejects.toThrow('NOPERM');
    expect(warnings).toEqual([]);
    delete faults.beforeRead;
    (await clock.until(worker.acquire()))();
  });

  it('that loses the response to a write still enforces the limit, and recovers', async () => {
    const { clock, process, faults } = world({ limit: 2, windowMs: 10_000 });
    const [worker, otherWorker] = [process(), process()];
    faults.afterWrite = () => {
      delete faults.afterWrite;
      throw new Error('response lost');
    };
    const slots = [await clock.until(worker.acquire()), await clock.until(worker.acquire())];
    await clock.advance(6_000);
    // The store counts the first call once, and the second call since the recovery.
    expect(await clock.until(otherWorker.tryAcquire())).toBeGreaterThan(5_000);
    for (const release of slots) release();
    const onGranted = vi.fn();
    const third = otherWorker.acquire().then(onGranted);
    await clock.advance(9_000);
    expect(onGranted).not.toHaveBeenCalled();
    await clock.until(third);
  });

  it("that contains another program's data causes an error that says so", async () => {
    const { clock, process, store } = world();
    const group = `account/limits/${LIMIT_NAME}`;
    await store.write(group, '0', { limit: { value: 'not ours', ttlMs: 60_000 } });
    await expect(clock.until(process().acquire())).rejects.toThrow(
      `The store has data of another program under "${group}". Pass a prefix that only gen-client uses.`,
    );
  });
});
