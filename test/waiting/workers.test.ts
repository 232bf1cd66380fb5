// On Workers, timers and promises belong to one request, so each wait has its own timer and checks for results itself.
import { describe, expect, it } from 'vitest';
import type { Job } from '../../src/schemas/job.js';
import { PollScheduler } from '../../src/waiting/scheduler.js';
import { completedEvent } from '../support/completed-event.js';
import { BASE_URL, done, pollLimits, running, startProcess, verified } from './processes.js';
import { virtualClock } from './virtual-clock.js';

const perRequestClock = () => Object.assign(virtualClock(), { perRequest: true });

/** Creates a scheduler whose waits can stop without cleanup, like those of a request that has ended. */
function createScheduler(clock = perRequestClock()) {
  const scheduler = new PollScheduler(clock, () => 0.5);
  const limits = pollLimits();
  const join = (id: string) =>
    scheduler.join(limits, { id, job: running(id), pollIntervalMs: 1_000, wait: { wake() {}, restart() {} } });
  return { clock, scheduler, join };
}

describe('a wait whose request ended without cleanup', () => {
  it('is evicted when another wait starts at least 100 seconds later', async () => {
    const { clock, scheduler, join } = createScheduler();
    join('lost');
    await clock.advance(100_000);
    scheduler.leave(join('b'));
    expect(scheduler.busy).toBe(true);
    await clock.advance(1);
    scheduler.leave(join('b'));
    expect(scheduler.busy).toBe(false);
  });

  it('leaves its poll to the next wait on the job after five seconds', async () => {
    const { clock, scheduler, join } = createScheduler();
    const [abandoned, other] = [join('a'), join('a')];
    expect([scheduler.next(abandoned), scheduler.next(other)]).toEqual(['sleep', 'sleep']);
    await clock.advance(1_000);
    expect(scheduler.next(abandoned)).toBe('poll');
    expect(scheduler.next(other)).toBe('sleep');
    await clock.advance(4_999);
    expect(scheduler.next(other)).toBe('sleep');
    await clock.advance(1);
    expect(scheduler.next(other)).toBe('poll');
    scheduler.pollSucceeded(other, done('a'));
    expect(scheduler.next(other)).toMatchObject({ isPolled: true, job: { status: 'completed' } });
    expect(scheduler.next(abandoned)).toMatchObject({ isPolled: true, job: { status: 'completed' } });
  });
});

describe('on Workers', () => {
  it("a late response doesn't end the poll of the wait that took over", async () => {
    const clock = perRequestClock();
    const slow = (id: string) =>
      new Promise<Job>((resolve) => {
        const job = polledIds.length > 2 ? done(id) : running(id);
        clock.after(8_000, () => resolve(job));
      });
    const { jobWaits, pollTimes, polledIds } = startProcess(slow, {}, clock);
    const options = { pollIntervalMs: 500 };
    const waits = [jobWaits.waitForJob(running('a'), options), jobWaits.waitForJob(running('a'), options)];
    await clock.advance(10_250);
    // The second wait took over after 5 s. The first one's response arrived at 8.5 s.
    expect(pollTimes).toEqual([500, 5_500]);
    await clock.until(Promise.all(waits));
  });

  it('waits check every 250 ms, poll when their job is due, and set no other timer', async () => {
    const clock = perRequestClock();
    const poll = (id: string): Job => (pollTimes.length < 3 ? running(id) : done(id));
    const { jobWaits, pollTimes } = startProcess(poll, {}, clock);
    const wait = jobWaits.waitForJob(running('a'), { pollIntervalMs: 1_100, timeoutMs: false });
    await clock.advance(0);
    expect(clock.timers).toBe(1);
    await expect(clock.until(wait)).resolves.toMatchObject({ status: 'completed' });
    expect(pollTimes).toEqual([1_250, 2_500, 3_750]);
    expect(clock.timers).toBe(0);
  });

  it("waits on one job share each other's polls", async () => {
    const clock = perRequestClock();
    const { jobWaits, polledIds } = startProcess(done, {}, clock);
    const waits = [1, 2, 3].map(() => jobWaits.waitForJob(running('a'), { pollIntervalMs: 1_000 }));
    await expect(clock.until(Promise.all(waits))).resolves.toHaveLength(3);
    expect(polledIds).toEqual(['a']);
  });

  it('a wait sees the outcome at its own next check, and another request never wakes it', async () => {
    const clock = perRequestClock();
    const startMs = clock.now();
    const { jobWaits, polledIds } = startProcess(done, {}, clock);
    const endTimes: number[] = [];
    const wait = async () => {
      await jobWaits.waitForJob(running('a'), { pollIntervalMs: 1_000 });
      endTimes.push(clock.now() - startMs);
    };
    const first = wait();
    await clock.advance(100);
    await clock.until(Promise.all([first, wait()]));
    expect(endTimes).toEqual([1_000, 1_100]);
    expect(polledIds).toEqual(['a']);
  });

  it('polls stay within their share of the rate limit', async () => {
    const clock = perRequestClock();
    const { jobWaits, polledIds } = startProcess(running, {}, clock);
    const end = new AbortController();
    const waits = Array.from({ length: 60 }, (_, at) => jobWaits.waitForJob(`job_${at}`, { signal: end.signal }));
    for (const wait of waits) wait.catch(() => {});
    await clock.advance(0);
    expect(polledIds).toHaveLength(8);
    await clock.advance(10_000);
    expect(polledIds.length).toBeLessThanOrEqual(8 + 18);
    end.abort();
    await Promise.allSettled(waits);
    expect(clock.timers).toBe(0);
  });

  it('a verified webhook ends the wait after two seconds if polls return the previous state', async () => {
    const clock = perRequestClock();
    const { jobWaits } = startProcess(running, {}, clock);
    const wait = jobWaits.waitForJob(running('a'), { timeoutMs: 60_000 });
    const startMs = clock.now();
    jobWaits.notify(await verified(completedEvent('a', BASE_URL), clock));
    await expect(clock.until(wait)).resolves.toMatchObject({ status: 'completed' });
    expect(clock.now() - startMs).toBe(2_000);
  });
});
