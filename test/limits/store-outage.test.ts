// Rate limits during a store outage: the process uses its local state, and updates the store afterward.
import { describe, expect, it, vi } from 'vitest';
import { setupError } from '../../src/store/store.js';
import type { VirtualClock } from '../waiting/virtual-clock.js';
import { type Faults, LIMIT_NAME, world } from './world.js';

const unavailable = () => Promise.reject(new Error('connection lost'));
const ONE = { limit: 1, windowMs: 10_000 };

describe('an unavailable store', () => {
  it('is replaced by local state, with one warning per outage', async () => {
    const { clock, process, faults, warnings } = world({ limit: 2, windowMs: 60_000 });
    const one = process();
    (await clock.until(one.acquire()))();
    faults.read = unavailable;
    const times: number[] = [];
    const calls = [1, 2, 3].map(() =>
      one.acquire().then((slot) => {
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
    delete faults.read;
    await clock.advance(200_000);
    (await clock.until(one.acquire()))();
    faults.read = unavailable;
    await clock.advance(200_000);
    (await clock.until(one.acquire()))();
    expect(warnings).toHaveLength(2);
  });

  it('receives the slots used without it when it recovers, and serves the waiting calls', async () => {
    const limit = { limit: 4, windowMs: 60_000 };
    const { clock, process, faults, pauseMs } = world(limit);
    const all = [process(), process(), process()];
    const sent: number[] = [];
    faults.read = unavailable;
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
    delete faults.read;
    // All of them have reached the store again.
    const knownMs = clock.now() + 6_000;
    await clock.until(Promise.all(calls));
    expect(sent).toHaveLength(30);
    for (const atMs of sent.filter((time) => time > knownMs)) {
      const within = sent.filter((other) => other <= atMs && other > atMs - limit.windowMs);
      expect(within.length).toBeLessThanOrEqual(limit.limit);
    }
  });

  it('receives calls that another process sent during the outage, even if none of them waits', async () => {
    const { clock, process } = world({ limit: 4, windowMs: 60_000 });
    const faults: Faults = { read: unavailable };
    const [one, other] = [process({ faults }), process()];
    for (let call = 0; call < 4; call++) (await clock.until(one.acquire()))();
    await clock.advance(40_000);
    const before = clock.now();
    delete faults.read;
    await clock.advance(6_000);
    (await clock.until(other.acquire()))();
    // One window after the calls, not after the recovery.
    expect(clock.now() - before).toBeGreaterThan(19_000);
    expect(clock.now() - before).toBeLessThan(23_000);
    await clock.advance(120_000);
    expect(clock.timers).toBe(0);
  });

  it.each([
    ['two seconds', undefined, 2_000],
    ['its own timeoutMs', 300, 300],
  ])("counts as unavailable after %s, and the next calls don't wait for it", async (_, timeoutMs, ms) => {
    const { clock, process, faults } = world();
    faults.read = () => new Promise(() => {});
    const one = process(timeoutMs === undefined ? {} : { timeoutMs });
    const before = clock.now();
    (await clock.until(one.acquire()))();
    expect(clock.now() - before).toBe(ms);
    for (let call = 0; call < 3; call++) (await clock.until(one.acquire()))();
    expect(clock.now() - before).toBe(ms);
  });

  it('keeps no process alive just to record responses', async () => {
    const { clock, process, faults } = world();
    const delays: number[] = [];
    const after: VirtualClock['after'] = (ms, fire, options) => {
      if (!options?.isIdle) delays.push(ms);
      return clock.after(ms, fire);
    };
    faults.read = unavailable;
    const release = await clock.until(process({ clock: { ...clock, timers: 0, after } }).acquire());
    delays.length = 0;
    release();
    await clock.advance(1_000);
    expect(clock.timers).toBe(1);
    // The local state records the response.
    expect(delays.filter((ms) => ms > 250)).toEqual([]);
  });

  it("rejects calls that don't queue by local state", async () => {
    const { clock, process, faults, requestCount } = world(ONE);
    const [one, other] = [process(), process()];
    faults.read = unavailable;
    const [release, rejected] = await clock.until(Promise.all([one.tryAcquire(), one.tryAcquire()]));
    expect([typeof release, rejected]).toEqual(['function', expect.closeTo(10_006, -1)]);
    if (typeof release === 'function') release();
    await clock.advance(100);
    expect(await clock.until(one.tryAcquire())).toBeGreaterThan(9_000);
    expect(requestCount()).toBe(1);
    delete faults.read;
    await clock.advance(6_000);
    expect(await clock.until(other.tryAcquire())).toBeGreaterThan(3_000);
  });

  it("isn't treated as an outage if it's misconfigured: each call rejects with the fix", async () => {
    const { clock, process, faults, warnings } = world();
    const one = process();
    faults.read = () => Promise.reject(setupError('NOPERM. Give its user the command eval.'));
    await expect(clock.until(one.acquire())).rejects.toMatchObject({ recovery: 'fix_setup' });
    await expect(clock.until(one.tryAcquire())).rejects.toThrow('NOPERM');
    expect(warnings).toEqual([]);
    delete faults.read;
    (await clock.until(one.acquire()))();
  });

  it('that loses the response to a write keeps enforcing the limit, and recovers', async () => {
    const { clock, process, faults } = world({ limit: 2, windowMs: 10_000 });
    const [one, other] = [process(), process()];
    faults.written = () => {
      delete faults.written;
      throw new Error('response lost');
    };
    const slots = [await clock.until(one.acquire()), await clock.until(one.acquire())];
    await clock.advance(6_000);
    // The store contains the first call once, and the second since its recovery.
    expect(await clock.until(other.tryAcquire())).toBeGreaterThan(5_000);
    for (const release of slots) release();
    const onGranted = vi.fn();
    const third = other.acquire().then(onGranted);
    await clock.advance(9_000);
    expect(onGranted).not.toHaveBeenCalled();
    await clock.until(third);
  });

  it('that contains foreign data causes an error that says so', async () => {
    const { clock, process, store } = world();
    const group = `account/limits/${LIMIT_NAME}`;
    await store.write(group, '0', { limit: { value: 'not ours', ttlMs: 60_000 } });
    await expect(clock.until(process().acquire())).rejects.toThrow(
      `The store has data of another program under "${group}". Pass a prefix that only gen-client uses.`,
    );
  });
});
