// Several waits: those on one job share its polls and end independently, and each client polls at its own rate.
import { describe, expect, it } from 'vitest';
import type { Job } from '../../src/schemas/job.js';
import { JobDurations } from '../../src/store/learned-values.js';
import { NO_LIMITS, type PollLimits } from '../../src/waiting/poll-queue.js';
import { PollScheduler } from '../../src/waiting/scheduler.js';
import { completedEvent } from '../support/completed-event.js';
import { rejection } from '../transport/support.js';
import { BASE_URL, done, type ProcessOptions, pollLimits, running, startProcess, verified } from './processes.js';
import { virtualClock } from './virtual-clock.js';

/** Sets up waits whose polls take `readMs`. */
function setUp(response: (id: string, atMs: number) => Job, readMs = 0, setting: ProcessOptions = {}) {
  const clock = virtualClock();
  const startMs = clock.now();
  const durations = new JobDurations();
  // Learned durations would change the times of later polls.
  durations.learn = () => {};
  const read = async (id: string) => {
    if (readMs > 0) await new Promise<void>((resolve) => void clock.after(readMs, resolve));
    return response(id, clock.now() - startMs);
  };
  return startProcess(read, { durations, ...setting }, clock);
}

/** Returns a limit of one poll per minute. The first poll is immediate. */
const onePollPerMinute = () => pollLimits({ limit: 1 });

describe('a later wait', () => {
  it('uses the result of a poll in flight', async () => {
    const { jobWaits, clock, polledIds, elapsed } = setUp(done, 3_000);
    const first = jobWaits.waitForJob('a');
    await clock.advance(1_000);
    const second = jobWaits.waitForJob('a', { pollIntervalMs: 500 });
    await clock.advance(1_500);
    expect(polledIds).toHaveLength(1);
    await expect(clock.until(Promise.all([first, second]))).resolves.toHaveLength(2);
    expect(polledIds).toHaveLength(1);
    expect(elapsed()).toBe(3_000);
  });

  it('can make the next poll earlier, never later', async () => {
    const { jobWaits, clock, pollTimes } = setUp((id, atMs) => (atMs >= 3_000 ? done(id) : running(id)));
    const waits = [jobWaits.waitForJob(running('a'))];
    await clock.advance(2_000);
    waits.push(jobWaits.waitForJob(running('a'), { pollIntervalMs: 1_000 }));
    await clock.advance(500);
    waits.push(jobWaits.waitForJob(running('a'), { pollIntervalMs: 5_000 }));
    await clock.until(Promise.all(waits));
    expect(pollTimes).toEqual([3_000]);
  });
});

describe('a wait that ends', () => {
  it("leaves its position in the poll queue to the job's next wait", async () => {
    const limits = onePollPerMinute();
    const { jobWaits, clock, polledIds } = setUp(done, 0, { limits });
    await clock.until(jobWaits.waitForJob('first'));
    const abort = new AbortController();
    const ended = rejection(jobWaits.waitForJob('a', { signal: abort.signal }));
    const other = jobWaits.waitForJob('a');
    await clock.advance(10_000);
    expect(polledIds).toEqual(['first']);
    abort.abort('enough');
    expect(await ended).toBe('enough');
    await expect(clock.until(other)).resolves.toMatchObject({ id: 'a', status: 'completed' });
    expect(polledIds).toEqual(['first', 'a']);
  });

  it('removes the job from the poll queue if there is no other wait', async () => {
    const limits = onePollPerMinute();
    const { jobWaits, clock, polledIds, scheduler } = setUp(done, 0, { limits });
    await clock.until(jobWaits.waitForJob('first'));
    const abort = new AbortController();
    const ended = rejection(jobWaits.waitForJob('a', { signal: abort.signal }));
    const other = jobWaits.waitForJob('b');
    await clock.advance(10_000);
    abort.abort('enough');
    expect(await ended).toBe('enough');
    await clock.until(other);
    expect(polledIds).toEqual(['first', 'b']);
    await clock.advance(600_000);
    expect(polledIds).toHaveLength(2);
    expect(scheduler.busy).toBe(false);
    expect(clock.timers).toBe(0);
  });

  it('makes the next wait poll immediately if its poll was in flight', async () => {
    const { jobWaits, clock, signals, pollTimes } = setUp(done, 5_000);
    const abort = new AbortController();
    const ended = rejection(jobWaits.waitForJob('a', { signal: abort.signal }));
    const other = jobWaits.waitForJob('a');
    await clock.advance(2_000);
    abort.abort('enough');
    expect(await ended).toBe('enough');
    await clock.until(other);
    expect(pollTimes).toEqual([0, 2_000]);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
  });
});

describe('a verified webhook of a job with several waits', () => {
  it('cancels an earlier poll, and polls the job again', async () => {
    const { jobWaits, clock, signals, pollTimes } = setUp(done, 1_500);
    const waits = [jobWaits.waitForJob('a'), jobWaits.waitForJob('a')];
    await clock.advance(1_000);
    jobWaits.notify(await verified(completedEvent('a', BASE_URL), clock));
    await expect(clock.until(Promise.all(waits))).resolves.toMatchObject([
      { finalTokenCost: 4 },
      { finalTokenCost: 4 },
    ]);
    expect(pollTimes).toEqual([0, 1_000]);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
  });
});

describe('waits of clients with different rate limits', () => {
  it("poll at each client's own rate, even as waits start and end", async () => {
    const clock = virtualClock();
    const startMs = clock.now();
    const scheduler = new PollScheduler(clock, () => 0.5);
    const polledIds: string[] = [];
    const read = (id: string) => {
      polledIds.push(`${id} ${Math.round((clock.now() - startMs) / 1_000)}`);
      return done(id);
    };
    const waitsOn = (limits: PollLimits) => startProcess(read, { limits, scheduler }, clock).jobWaits;
    const [limited, free] = [waitsOn(onePollPerMinute()), waitsOn(NO_LIMITS)];
    await clock.until(Promise.all([limited.waitForJob('a'), free.waitForJob('b')]));
    const waits = [limited.waitForJob('c'), limited.waitForJob('d')];
    await clock.until(Promise.all(['e', 'f', 'g'].map((id) => free.waitForJob(id))));
    expect([...polledIds].sort()).toEqual(['a 0', 'b 0', 'e 0', 'f 0', 'g 0']);
    await clock.until(Promise.all(waits));
    expect(polledIds.slice(5)).toEqual(['c 69', 'd 137']);
    await clock.until(limited.waitForJob('h'));
    expect(polledIds.at(-1)).toBe('h 206');
    expect(clock.timers).toBe(0);
  });
});
