// The limits of an account over a shared store, on a clock that the test holds. The store counts what it is asked.

import { readFileSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { ConnectionError } from '../../src/errors/index.js';
import type { LaneLimit } from '../../src/rules/limits.js';
import type { LaneWait } from '../../src/store/rate-limiter.js';
import { setupError } from '../../src/store/store.js';
import { fullest } from '../support/fullest.js';
import { seeded } from '../support/seeded.js';
import { settle, type VirtualClock, virtualClock } from '../waiting/virtual-clock.js';
import { LANE, MINUTE, world } from './world.js';

interface Campaign {
  readonly processes: number;
  readonly calls: number;
  readonly limit: LaneLimit;
  readonly answerMs: number;
  readonly delayMs?: number;
  /** Between two calls. */
  readonly gapMs?: number;
}

/** Calls of many processes at once: when the service counted each, and when each was sent. */
async function campaign({ processes, calls, limit, answerMs, delayMs = 2, gapMs = 200 }: Campaign) {
  const { clock, process, asks } = world(limit, { delayMs });
  const next = seeded(1);
  const pause = (ms: number) => new Promise<void>((resolve) => void clock.after(ms, resolve));
  const limiters = Array.from({ length: processes }, () => process());
  const counted: number[] = [];
  const sent: { readonly call: number; readonly atMs: number }[] = [];
  const began = clock.now();
  const all: Promise<void>[] = [];
  for (let call = 0; call < calls; call++) {
    const limiter = limiters[call % processes];
    const work = async () => {
      const release = await limiter?.acquire(LANE);
      sent.push({ call, atMs: clock.now() });
      const there = next() * answerMs;
      await pause(there);
      counted.push(clock.now());
      await pause(answerMs - there);
      release?.();
    };
    all.push(work());
    await clock.advance(gapMs);
  }
  await clock.until(Promise.all(all));
  return { counted, sent, tookMs: Math.max(...counted) - began, asks: asks() };
}

describe('limits in a shared store', () => {
  it.each([1, 8, 50])('hold over %i processes, use nine tenths of the slots, and serve in order', async (processes) => {
    const calls = 200;
    const { counted, sent, tookMs, asks } = await campaign({ processes, calls, limit: MINUTE, answerMs: 800 });
    expect(counted).toHaveLength(calls);
    expect(fullest(counted, MINUTE.windowMs)).toBeLessThanOrEqual(MINUTE.limit);
    const allowedMs = (calls / MINUTE.limit - 1) * MINUTE.windowMs;
    expect(allowedMs / tookMs).toBeGreaterThan(0.9);
    // No call loses more than a window to later ones. What goes out within a second goes out together.
    for (const { call, atMs } of sent)
      expect(sent.filter((other) => other.call > call && other.atMs < atMs - 1_000).length).toBeLessThanOrEqual(
        1.25 * MINUTE.limit,
      );
    expect(asks).toBeLessThan(2 * calls + 2 * processes * (tookMs / 1000));
  });

  it.each([
    ['late, but within its time limit', 8, 950],
    ['so late that it counts as unavailable, for a process that counts by itself', 1, 20_000],
    ['now in time and now too late, for a process that counts by itself', 1, 2_200],
  ])('hold while the store answers %s', async (_, processes, delayMs) => {
    const calls = 70;
    const { counted } = await campaign({ processes, calls, limit: MINUTE, answerMs: 800, delayMs });
    expect(counted).toHaveLength(calls);
    expect(fullest(counted, MINUTE.windowMs)).toBeLessThanOrEqual(MINUTE.limit);
  });

  it.each([1, 8, 50])('cost %i processes whose calls come at once what the guide says', async (processes) => {
    const over = async (windowMs: number) => {
      const limit = { limit: 20, windowMs };
      const { tookMs, asks } = await campaign({ processes, calls: 100, limit, answerMs: 10, delayMs: 1, gapMs: 0 });
      return { used: Math.floor((100 * 4 * windowMs) / tookMs), asks: Math.ceil(asks / (tookMs / 1_000)) };
    };
    const short = await over(6_000);
    const long = await over(60_000);
    const guide = readFileSync('docs/many-processes.md', 'utf8');
    expect(guide).toContain(`| ${processes} | ${short.used} % | ${short.asks} | ${long.asks} |`);
  });

  it('cost at most two asks for a slot of a process that creates one after the other', async () => {
    const { clock, process, asks } = world();
    const limiter = process();
    for (let call = 0; call < 20; call++) (await clock.until(limiter.acquire(LANE)))();
    expect(asks()).toBeLessThanOrEqual(2 * 20);
  });

  it('are asked for at most twice a second by a process, however many of its calls wait', async () => {
    const { clock, process, asks } = world({ limit: 1, windowMs: 3_600_000 });
    const limiter = process();
    (await clock.until(limiter.acquire(LANE)))();
    await clock.advance(1_000);
    const before = asks();
    const abort = new AbortController();
    const calls: Promise<unknown>[] = [];
    for (let call = 0; call < 600; call++) {
      calls.push(limiter.acquire(LANE, abort.signal).catch(() => {}));
      await clock.advance(100);
    }
    expect(asks() - before).toBeLessThanOrEqual(2 * 60 + 4);
    abort.abort();
    await Promise.all(calls);
  });

  it.each([
    ['serve the calls of two processes that come within a tenth of a second in turn', 50, ['first', 'second']],
    ['serve those that came earlier first', 100, ['first', 'first']],
  ])('%s', async (_, laterMs, served) => {
    const { clock, process } = world({ limit: 2, windowMs: 60_000 });
    const [one, other] = [process(), process()];
    const used = [await clock.until(one.acquire(LANE)), await clock.until(one.acquire(LANE))];
    await clock.advance(100 - (clock.now() % 100));
    const got: string[] = [];
    const abort = new AbortController();
    const call = (limiter: typeof one, name: string) =>
      void limiter.acquire(LANE, abort.signal).then(
        () => got.push(name),
        () => {},
      );
    for (let nth = 0; nth < 2; nth++) call(one, 'first');
    await clock.advance(laterMs);
    for (let nth = 0; nth < 2; nth++) call(other, 'second');
    for (const release of used) release();
    await clock.advance(65_000);
    expect(got.toSorted()).toEqual(served);
    abort.abort();
  });

  it('give a slot one window after the answer and not after the call', async () => {
    const { clock, process } = world({ limit: 1, windowMs: 60_000 });
    const [one, other] = [process(), process()];
    const release = await clock.until(one.acquire(LANE));
    let isThrough = false;
    const next = other.acquire(LANE).then((slot) => {
      isThrough = true;
      return slot;
    });
    await clock.advance(100_000);
    release();
    release();
    await clock.advance(60_000);
    expect(isThrough).toBe(false);
    await clock.advance(1_000);
    expect(isThrough).toBe(true);
    (await next)();
  });

  it('give a slot one window after the answer, also when that came while the store was read', async () => {
    const { clock, process } = world({ limit: 1, windowMs: 10_000 });
    const late: { answer?: () => unknown } = {};
    const [one, other] = [process({ faults: late }), process()];
    const release = await clock.until(one.acquire(LANE));
    late.answer = () => new Promise<void>((resolve) => void clock.after(1_500, resolve));
    const refused = one.tryShared?.(LANE);
    await clock.advance(1_400);
    release();
    const answeredMs = clock.now();
    expect(await clock.until(Promise.resolve(refused))).toBeGreaterThan(0);
    delete late.answer;
    (await clock.until(other.acquire(LANE)))();
    expect(clock.now() - answeredMs).toBeGreaterThan(10_000);
    expect(clock.now() - answeredMs).toBeLessThan(11_000);
  });

  it('give an unused slot to the next call without a window', async () => {
    const { clock, process } = world({ limit: 1, windowMs: 60_000 });
    const [one, other] = [process(), process()];
    const release = await clock.until(one.acquire(LANE));
    const next = other.acquire(LANE);
    await clock.advance(1_000);
    release('unused');
    await clock.advance(6_000);
    (await Promise.race([next, settle().then(() => expect.unreachable())]))();
  });

  it('hold back every process for a pause, for as long as it lasts, also one that comes later', async () => {
    const { clock, process } = world();
    const one = process();
    const release = await clock.until(one.acquire(LANE));
    one.pause(LANE, 600_000);
    release('unused');
    one.pause(LANE, 1_000);
    await clock.advance(590_000);
    const other = process();
    let isThrough = false;
    const next = other.acquire(LANE).then((slot) => {
      isThrough = true;
      slot();
    });
    await clock.advance(9_000);
    expect(isThrough).toBe(false);
    await clock.advance(5_000);
    expect(isThrough).toBe(true);
    await next;
  });

  it('let an abort act at once with its own reason, and give its place to the next', async () => {
    const { clock, process, faults } = world({ limit: 1, windowMs: 60_000 });
    const [one, other] = [process(), process()];
    (await clock.until(one.acquire(LANE)))();
    const abort = new AbortController();
    const aborted = one.acquire(LANE, abort.signal);
    await clock.advance(500);
    const last = other.acquire(LANE);
    await clock.advance(500);
    faults.read = () => new Promise(() => {});
    const reason = new Error('enough');
    abort.abort(reason);
    await expect(aborted).rejects.toBe(reason);
    delete faults.read;
    const before = clock.now();
    (await clock.until(last))();
    expect(clock.now() - before).toBeLessThan(62_000);
    await expect(one.acquire(LANE, AbortSignal.abort('before'))).rejects.toBe('before');
  });

  it('say once to each call that it waits, how long, behind how many and why', async () => {
    const { clock, process } = world({ limit: 1, windowMs: 60_000 });
    const [one, other] = [process(), process()];
    const waits: LaneWait[] = [];
    const note = (wait: LaneWait) => void waits.push(wait);
    (await clock.until(one.acquire(LANE, undefined, note)))();
    await clock.advance(2_000);
    const first = other.acquire(LANE, undefined, note);
    await clock.advance(1_000);
    const second = one.acquire(LANE, undefined, note);
    await clock.advance(1_000);
    expect(waits).toEqual([
      { lane: LANE, waitMs: expect.any(Number), queued: 1, reason: 'limit' },
      { lane: LANE, waitMs: expect.any(Number), queued: 2, reason: 'limit' },
    ]);
    expect(waits[0]?.waitMs).toBeGreaterThan(57_000);
    expect(waits[0]?.waitMs).toBeLessThan(60_100);
    expect(waits[1]?.waitMs).toBeGreaterThan(115_000);
    (await clock.until(first))();
    (await clock.until(second))();
    expect(waits).toHaveLength(2);
  });

  it('refuse a call that does not queue, with the time of the next slot, and leave nothing in the queue', async () => {
    const { clock, process } = world({ limit: 1, windowMs: 60_000 });
    const [one, other] = [process(), process()];
    const taken = await clock.until(one.tryShared?.(LANE) ?? Promise.reject(new Error('no tryShared')));
    expect(typeof taken).toBe('function');
    if (typeof taken === 'function') taken();
    await clock.advance(1_000);
    const refused = await clock.until(other.tryShared?.(LANE) ?? Promise.reject(new Error('no tryShared')));
    expect(refused).toBeGreaterThan(58_000);
    expect(refused).toBeLessThan(60_100);
    const next = one.acquire(LANE);
    (await clock.until(next))();
  });

  it('give up the places of a process that died, and its slots one window after its lease', async () => {
    const { clock, process } = world({ limit: 2, windowMs: 60_000 });
    // Its clock has stopped, so it takes no turn any more.
    const stopped = virtualClock(clock.now());
    const dead = process({
      clock: {
        ...clock,
        timers: 0,
        now: stopped.now,
        after: (ms, fire) => (ms < 100 ? clock.after(ms, fire) : () => {}),
      },
    });
    for (let slot = 0; slot < 2; slot++) await clock.until(dead.acquire(LANE));
    dead.acquire(LANE).catch(() => {});
    await clock.advance(1_000);
    const began = clock.now();
    (await clock.until(process().acquire(LANE)))();
    expect(clock.now() - began).toBeGreaterThan(70_000);
    expect(clock.now() - began).toBeLessThan(82_000);
  });

  it('are left with nothing when the account is idle, and no timer', async () => {
    const { clock, process, store } = world();
    const limiter = process();
    (await clock.until(limiter.acquire(LANE)))();
    await clock.advance(200_000);
    expect(clock.timers).toBe(0);
    expect((await store.read(`account/limits/${LANE}`, ['lane'])).values).toEqual({});
  });
});

it('a slot that was granted to a call which has just been aborted goes to another process', async () => {
  const { clock, process, faults } = world({ limit: 1, windowMs: 60_000 });
  const [one, other] = [process(), process()];
  const aborted = new AbortController();
  // While the turn that grants the slot is being written.
  faults.write = () => aborted.abort();
  await expect(clock.until(one.acquire(LANE, aborted.signal))).rejects.toMatchObject({ name: 'AbortError' });
  delete faults.write;
  const before = clock.now();
  await clock.until(other.acquire(LANE));
  expect(clock.now() - before).toBeLessThan(5_000);
});

describe('a shared store that is unavailable', () => {
  const away = () => Promise.reject(new Error('the store is gone'));

  it('is replaced by the limits of the process, which count what it has used, and one warning', async () => {
    const { clock, process, faults, warnings } = world({ limit: 2, windowMs: 60_000 });
    const limiter = process();
    (await clock.until(limiter.acquire(LANE)))();
    faults.read = away;
    const times: number[] = [];
    const calls = [1, 2, 3].map(() =>
      limiter.acquire(LANE).then((slot) => {
        times.push(clock.now());
        slot();
      }),
    );
    await clock.until(Promise.all(calls));
    times.sort((a, b) => a - b);
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(58_000);
    expect(warnings).toEqual([expect.stringContaining('the store is gone')]);
    delete faults.read;
    await clock.advance(200_000);
    (await clock.until(limiter.acquire(LANE)))();
    faults.read = away;
    await clock.advance(200_000);
    (await clock.until(limiter.acquire(LANE)))();
    expect(warnings).toHaveLength(2);
  });

  it('takes back the calls that still wait when it returns, in their order, and counts what was sent without it', async () => {
    const limit = { limit: 4, windowMs: 60_000 };
    const { clock, process, faults } = world(limit);
    const limiters = [process(), process(), process()];
    const sent: { readonly call: number; readonly atMs: number }[] = [];
    faults.read = away;
    const all = Array.from({ length: 30 }, async (_, call) => {
      await new Promise<void>((resolve) => void clock.after(1_000 * call, resolve));
      const release = await limiters[call % 3]?.acquire(LANE);
      sent.push({ call, atMs: clock.now() });
      await new Promise<void>((resolve) => void clock.after(800, resolve));
      release?.();
    });
    await clock.advance(40_000);
    // Each process has sent what it may by itself.
    expect(sent).toHaveLength(12);
    delete faults.read;
    // All of them have asked the store again.
    const knownMs = clock.now() + 6_000;
    await clock.until(Promise.all(all));
    for (const { atMs } of sent.filter(({ atMs }) => atMs > knownMs)) {
      const within = sent.filter((other) => other.atMs <= atMs && other.atMs > atMs - limit.windowMs);
      expect(within.length).toBeLessThanOrEqual(limit.limit);
    }
    const later = sent.slice(12).map(({ call }) => call);
    // What goes out within a second goes out together.
    for (const [at, call] of later.entries()) expect(Math.abs(call - (12 + at))).toBeLessThan(limit.limit);
    expect(later).toHaveLength(18);
  });

  it('is told by a process that had lost it what that has sent meanwhile, though none of its calls waits', async () => {
    const limit = { limit: 4, windowMs: 60_000 };
    const { clock, process } = world(limit);
    const lost: { read?: () => unknown } = { read: away };
    const [one, other] = [process({ faults: lost }), process()];
    for (let call = 0; call < 4; call++) (await clock.until(one.acquire(LANE)))();
    await clock.advance(40_000);
    const before = clock.now();
    delete lost.read;
    await clock.advance(6_000);
    (await clock.until(other.acquire(LANE)))();
    // A window after the calls, and not a window after the return of the store.
    expect(clock.now() - before).toBeGreaterThan(19_000);
    expect(clock.now() - before).toBeLessThan(22_000);
    await clock.advance(120_000);
    expect(clock.timers).toBe(0);
  });

  it.each([
    ['two seconds', undefined, 2_000],
    ['its own time limit', 300, 300],
  ])(
    'counts as unavailable after %s without an answer, and the next calls do not wait for it',
    async (_, timeoutMs, ms) => {
      const { clock, process, faults } = world();
      faults.read = () => new Promise(() => {});
      const limiter = process({ timeoutMs });
      const before = clock.now();
      (await clock.until(limiter.acquire(LANE)))();
      expect(clock.now() - before).toBe(ms);
      for (let call = 0; call < 3; call++) (await clock.until(limiter.acquire(LANE)))();
      expect(clock.now() - before).toBe(ms);
    },
  );

  it('keeps no process alive that has only answered calls to tell of', async () => {
    const { clock, process, faults } = world();
    const holding: number[] = [];
    const after: VirtualClock['after'] = (ms, fire, options) => {
      if (!options?.isIdle) holding.push(ms);
      return clock.after(ms, fire);
    };
    faults.read = away;
    (await clock.until(process({ clock: { ...clock, timers: 0, after } }).acquire(LANE)))();
    await clock.advance(1_000);
    expect(clock.timers).toBe(1);
    // Nothing but the time limit of the store's answers.
    expect(Math.max(...holding)).toBe(2_000);
  });

  it('rejects with a ConnectionError under onUnavailable "throw", and is asked again by the next call', async () => {
    const { clock, process, faults } = world();
    const limiter = process({ onUnavailable: 'throw' });
    faults.read = away;
    const error: unknown = await clock.until(limiter.acquire(LANE).catch((reason: unknown) => reason));
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error).toMatchObject({ cause: { message: 'the store is gone' } });
    delete faults.read;
    (await clock.until(limiter.acquire(LANE)))();
  });

  it('is no outage when it is set up wrongly: each call rejects with what to fix', async () => {
    const { clock, process, faults, warnings } = world();
    const limiter = process();
    faults.read = () => Promise.reject(setupError('NOPERM. Give its user the command eval.'));
    await expect(clock.until(limiter.acquire(LANE))).rejects.toMatchObject({ recovery: 'fix_setup' });
    await expect(clock.until(limiter.tryShared?.(LANE) ?? Promise.resolve(1))).rejects.toThrow('NOPERM');
    expect(warnings).toEqual([]);
    delete faults.read;
    (await clock.until(limiter.acquire(LANE)))();
  });

  it('that loses the answer to a write keeps the limit, and finds its way back', async () => {
    const limit = { limit: 2, windowMs: 10_000 };
    const { clock, process, store, faults } = world(limit);
    const limiter = process({ onUnavailable: 'throw' });
    let lost = 0;
    const write = store.write;
    store.write = async (...given) => {
      const isWritten = await write(...given);
      if (lost++ === 0) throw new Error('the answer was lost');
      return isWritten;
    };
    await expect(clock.until(limiter.acquire(LANE))).rejects.toThrow('unavailable');
    const slots = [await clock.until(limiter.acquire(LANE)), await clock.until(limiter.acquire(LANE))];
    for (const release of slots) release();
    const seen = vi.fn();
    const third = limiter.acquire(LANE).then((release) => {
      seen();
      release();
    });
    await clock.advance(9_000);
    expect(seen).not.toHaveBeenCalled();
    await clock.until(third);
    expect(faults).toEqual({});
  });
});
