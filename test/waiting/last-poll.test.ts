// Waits that end without a finished file: on a timeout, after a proxy's HTML pages, or because the file never appears.
import { describe, expect, it } from 'vitest';
import { MAX_PAGES } from '../../src/rules/failure-kind.js';
import { CLOCK } from '../../src/runtime/clock.js';
import { json, rejection, stubbed } from '../transport/support.js';
import { done, running, startProcess } from './processes.js';
import { type VirtualClock, virtualClock } from './virtual-clock.js';

/** Creates a clock whose timers pause while the process is stopped. On resume, all due timers fire in one turn. */
function stoppableClock(): VirtualClock & { stop(): void; resume(): void } {
  const clock = virtualClock();
  const dueTimers = new Set<() => void>();
  let isStopped = false;
  return {
    ...clock,
    timers: 0,
    after(ms, fire) {
      const fireOrQueue = () => void (isStopped ? dueTimers.add(fire) : fire());
      const cancel = clock.after(ms, fireOrQueue);
      return () => {
        cancel();
        dueTimers.delete(fire);
      };
    },
    stop() {
      isStopped = true;
    },
    resume() {
      isStopped = false;
      for (const fire of dueTimers) {
        dueTimers.delete(fire);
        fire();
      }
    },
  };
}

describe('a wait that times out', () => {
  it.each(['by job', 'by id'])('polls once more if its process was suspended (%s)', async (how) => {
    const clock = stoppableClock();
    const read = (id: string, atMs: number) => (atMs >= 3_000 ? done(id) : running(id));
    const { jobWaits, pollTimes } = startProcess(read, {}, clock);
    const wait = jobWaits.waitForJob(how === 'by id' ? 'a' : running('a'), { timeoutMs: 6_000, pollIntervalMs: 2_500 });
    await clock.advance(2_900);
    const earlierPolls = pollTimes.length;
    clock.stop();
    await clock.advance(8_000);
    clock.resume();
    await expect(clock.until(wait)).resolves.toMatchObject({ status: 'completed' });
    expect(pollTimes.slice(earlierPolls)).toEqual([10_900]);
  });

  it('polls once more even if a poll was in flight when the process was suspended', async () => {
    const clock = stoppableClock();
    let polls = 0;
    const read = (id: string) => (++polls === 1 ? new Promise<never>(() => {}) : done(id));
    const { jobWaits } = startProcess(read, {}, clock);
    const wait = jobWaits.waitForJob('a', { timeoutMs: 6_000, pollIntervalMs: 2_500 });
    await clock.advance(2_600);
    expect(polls).toBe(1);
    clock.stop();
    await clock.advance(60_000);
    clock.resume();
    await expect(clock.until(wait)).resolves.toMatchObject({ status: 'completed' });
    expect(polls).toBe(2);
  });

  it("doesn't poll again if its last poll is more recent than the interval", async () => {
    const { clock, jobWaits, pollTimes } = startProcess(running);
    const error = await clock.until(rejection(jobWaits.waitForJob('a', { timeoutMs: 6_000, pollIntervalMs: 2_500 })));
    expect(error).toMatchObject({ name: 'WaitTimeoutError', job: { status: 'processing' } });
    expect(String(error)).toContain('Its last status was processing. It continues: call waitForJob again');
    expect(pollTimes).toEqual([0, 2_500, 5_000]);
  });

  it('waits up to five seconds for its last poll, unless it is aborted', async () => {
    const hang = () => new Promise<never>(() => {});
    const { clock, jobWaits, pollTimes, elapsed } = startProcess(hang);
    const youngWait = { timeoutMs: 6_000, pollIntervalMs: 4_000 };
    const error = await clock.until(rejection(jobWaits.waitForJob(running('a'), youngWait)));
    expect(error).toMatchObject({ name: 'WaitTimeoutError' });
    expect(pollTimes).toEqual([4_000]);
    expect(elapsed()).toBe(11_000);
    const stalledWait = { timeoutMs: 10_000, pollIntervalMs: 4_000 };
    await clock.until(rejection(jobWaits.waitForJob(running('a'), stalledWait)));
    expect(pollTimes.slice(1)).toEqual([15_000, 21_000]);
    expect(elapsed()).toBe(26_000);
    const abort = new AbortController();
    const aborted = rejection(jobWaits.waitForJob(running('b'), { timeoutMs: 6_000, signal: abort.signal }));
    await clock.advance(7_000);
    abort.abort('enough');
    expect(await aborted).toBe('enough');
    await clock.advance(0);
    expect(clock.timers).toBe(0);
  });
});

describe('a completed job without a file', () => {
  const fileless = (id: string) => ({ ...running(id), status: 'completed', providerOutputUrl: null });

  it('ends the wait after two minutes with a ResponseError that includes the job', async () => {
    const { clock, jobWaits, elapsed } = startProcess(fileless);
    const error = await clock.until(rejection(jobWaits.waitForJob('a')));
    expect(error).toMatchObject({ name: 'ResponseError', job: { id: 'a', status: 'completed' } });
    expect(String(error)).not.toContain('continues');
    expect(elapsed()).toBeGreaterThanOrEqual(120_000);
    expect(elapsed()).toBeLessThan(135_000);
  });

  it("doesn't end the wait if the file appears or the wait times out first", async () => {
    const { clock, jobWaits } = startProcess((id, atMs) => (atMs > 100_000 ? done(id) : fileless(id)));
    await expect(clock.until(jobWaits.waitForJob('a'))).resolves.toMatchObject({ status: 'completed' });
    const other = startProcess(fileless);
    const error = await other.clock.until(rejection(other.jobWaits.waitForJob('a', { timeoutMs: 30_000 })));
    expect(error).toMatchObject({ name: 'WaitTimeoutError' });
    expect(String(error)).toMatch(/its file is not available yet: call waitForJob again\.$/);
  });
});

describe('an HTML page instead of a response', () => {
  const page = (status: number) => () =>
    new Response('<html><body>404 Not Found</body></html>', { status, headers: { 'content-type': 'text/html' } });
  const job = (status: string) => json({ data: { job: { ...done('a'), status } } });
  /** Waits for a job whose polls get these responses. */
  const waitOn = (...steps: readonly (() => Response)[]) => {
    const clock = virtualClock();
    const { client, requests } = stubbed(steps, { [CLOCK]: clock } as object);
    return { requests, outcome: clock.until(client.waitForJob('a')) };
  };
  const pages = (count: number, status: number) => Array.from({ length: count }, () => page(status));

  it.each([200, 403, 404])('with status %i fails its poll, and the fifth in a row ends the wait', async (status) => {
    const belowLimit = waitOn(...pages(MAX_PAGES - 1, status), () => job('completed'));
    await expect(belowLimit.outcome).resolves.toMatchObject({ status: 'completed' });
    const responses = [...pages(2, status), () => job('processing'), ...pages(MAX_PAGES - 1, status)];
    const interrupted = waitOn(...responses, () => job('completed'));
    await expect(interrupted.outcome).resolves.toMatchObject({ status: 'completed' });
    const overLimit = waitOn(page(status));
    await expect(overLimit.outcome).rejects.toMatchObject({ attempts: 1 });
    expect(overLimit.requests).toHaveLength(MAX_PAGES);
  });

  it('with status 502 never ends a wait', async () => {
    const { outcome } = waitOn(...pages(12, 502), () => job('completed'));
    await expect(outcome).resolves.toMatchObject({ status: 'completed' });
  });
});
