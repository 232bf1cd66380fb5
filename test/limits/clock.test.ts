import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { steady, systemClock } from '../../src/runtime/clock.js';
import { sleep } from '../../src/runtime/deadline.js';
import { quiet } from '../support/quiet.js';
import { virtualClock } from '../waiting/virtual-clock.js';

beforeAll(quiet);

describe('the system clock', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    // Before the real timers: a later file's restoreAllMocks() would bring the spied fake timer back.
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  it("fires no earlier than requested, even beyond a timer's maximum delay", async () => {
    for (const ms of [0, 1.2, 5000, 2 ** 31 - 1, 2 ** 32 + 5]) {
      const fire = vi.fn();
      systemClock.after(ms, fire);
      await vi.advanceTimersByTimeAsync(Math.floor(ms));
      expect(fire).not.toHaveBeenCalled();
      await vi.advanceTimersByTimeAsync(3);
      expect(fire).toHaveBeenCalledOnce();
    }
  });

  it("doesn't keep the process alive for an idle timer, however long its delay", async () => {
    const timers = vi.spyOn(globalThis, 'setTimeout');
    systemClock.after(2 ** 33, () => {}, { isIdle: true });
    await vi.advanceTimersByTimeAsync(2 ** 32);
    expect(timers.mock.results.map(({ value }) => value.hasRef())).toEqual([false, false, false]);
  });

  it('can be canceled at any time during a long delay', async () => {
    const fire = vi.fn();
    const cancel = systemClock.after(2 ** 33, fire);
    await vi.advanceTimersByTimeAsync(2 ** 32);
    cancel();
    expect(vi.getTimerCount()).toBe(0);
    await vi.advanceTimersByTimeAsync(2 ** 33);
    expect(fire).not.toHaveBeenCalled();
  });
});

describe('a steady clock', () => {
  it('never runs backward', async () => {
    const wall = virtualClock();
    const clock = steady(wall);
    const start = clock.now();
    await wall.advance(1000);
    expect(clock.now()).toBe(start + 1000);
    wall.shiftWallClock(-3_600_000);
    expect(clock.now()).toBe(start + 1000);
    await wall.advance(500);
    expect(clock.now()).toBe(start + 1500);
  });

  it("has reached a timer's due time when it fires, even if the wall clock was set back", async () => {
    const wall = virtualClock();
    const clock = steady(wall);
    const dueMs = clock.now() + 1000;
    const firedAt: number[] = [];
    clock.after(1000, () => firedAt.push(clock.now()));
    await wall.advance(400);
    wall.shiftWallClock(-300);
    await wall.advance(600);
    expect(firedAt).toEqual([dueMs]);
  });
});

it("sleep rejects immediately with an abort's reason, and leaves no timer", async () => {
  const clock = virtualClock();
  const abort = new AbortController();
  const sleeping = sleep(clock, 1000, abort.signal);
  abort.abort('enough');
  await expect(sleeping).rejects.toBe('enough');
  expect(clock.timers).toBe(0);
  await expect(sleep(clock, 1000, abort.signal)).rejects.toBe('enough');
});
