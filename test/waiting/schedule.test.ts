// Exact poll times: after failures, after notifications, and with many waits.
import { describe, expect, it } from 'vitest';
import { ConnectionError, ServerError } from '../../src/errors/index.js';
import type { Job } from '../../src/schemas/job.js';
import { JobDurations } from '../../src/store/learned-values.js';
import { completedEvent } from '../support/completed-event.js';
import { rejection } from '../transport/support.js';
import { BASE_URL, done, hint, type ProcessOptions, pollLimits, running, startProcess, verified } from './processes.js';
import { virtualClock } from './virtual-clock.js';

describe('a running job that a notification reports as ended', () => {
  it('is polled 2.5 s after its last poll if the notification repeats, but never later than usual', async () => {
    const { jobWaits, clock, pollTimes } = startProcess(running);
    const wait = rejection(jobWaits.waitForJob(running('a'), { timeoutMs: 12_000 }));
    jobWaits.notify(hint('a'));
    await clock.advance(100);
    jobWaits.notify(hint('a'));
    await clock.advance(2_000);
    expect(pollTimes).toEqual([0, 2_000]);
    jobWaits.notify(hint('a'));
    await clock.advance(3_000);
    expect(pollTimes).toEqual([0, 2_000, 4_500]);
    await clock.advance(3_900);
    expect(pollTimes).toEqual([0, 2_000, 4_500]);
    jobWaits.notify(hint('a'));
    await clock.advance(0);
    expect(pollTimes).toEqual([0, 2_000, 4_500, 9_000]);
    await clock.until(wait);
  });
});

describe('a failed poll', () => {
  const details = { status: 503, code: 'x', recovery: 'retry', method: 'GET', url: 'https://x.example' } as const;
  const retryDelay = async (retryAfterMs: number, more: ProcessOptions = {}) => {
    let failures = 1;
    const read = (id: string): Job => {
      if (failures-- > 0) throw new ServerError('unavailable', { ...details, retryAfterMs });
      return done(id);
    };
    const { jobWaits, clock, pollTimes } = startProcess(read, more);
    await clock.until(jobWaits.waitForJob('a'));
    return pollTimes[1];
  };

  it("is retried after its Retry-After, limited to two minutes or the client's maximum", async () => {
    expect(await retryDelay(90_000)).toBe(90_000);
    expect(await retryDelay(86_400_000)).toBe(120_000);
    expect(await retryDelay(86_400_000, { maxRetryAfterMs: 30_000 })).toBe(30_000);
    expect(await retryDelay(5)).toBe(11_000);
  });

  it('is retried after the shortest pause again once a poll has succeeded', async () => {
    const responses = [new ConnectionError('x'), new ConnectionError('x'), null, new ConnectionError('x'), null];
    const read = (id: string): Job => {
      const response = responses.shift();
      if (response) throw response;
      return response === null ? running(id) : done(id);
    };
    const { jobWaits, clock, pollTimes } = startProcess(read);
    await clock.until(jobWaits.waitForJob('a'));
    expect(pollTimes).toEqual([0, 11_000, 33_000, 44_000, 55_000, 66_000]);
  });
});

describe('a key function that fails before the first poll', () => {
  it('is called again after 1, 2, 4, … seconds, up to a minute', async () => {
    const seconds: number[] = [];
    const cause = new ConnectionError('the vault is sealed');
    const { jobWaits, clock, elapsed } = startProcess(running, {
      scheduling: () => {
        seconds.push(elapsed() / 1_000);
        return Promise.reject(cause);
      },
    });
    const error = await clock.until(rejection(jobWaits.waitForJob('a', { timeoutMs: 250_000 })));
    expect(seconds).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183, 243]);
    expect(error).toMatchObject({ name: 'WaitTimeoutError', cause, job: undefined });
    expect(clock.timers).toBe(0);
  });

  it("doesn't delay an abort during the pause", async () => {
    const scheduling = () => Promise.reject(new ConnectionError('the vault is sealed'));
    const { jobWaits, clock } = startProcess(running, { scheduling });
    const abort = new AbortController();
    const wait = rejection(jobWaits.waitForJob('a', { signal: abort.signal, timeoutMs: false }));
    await clock.advance(500);
    abort.abort('enough');
    expect(await wait).toBe('enough');
    expect(clock.timers).toBe(0);
  });
});

it('an onUpdate that aborts its own wait ends it immediately, without another poll', async () => {
  const { jobWaits, clock, pollTimes } = startProcess(running);
  const abort = new AbortController();
  const onUpdate = () => abort.abort('enough');
  const wait = rejection(jobWaits.waitForJob('a', { signal: abort.signal, onUpdate }));
  await clock.advance(0);
  expect(await wait).toBe('enough');
  await clock.advance(60_000);
  expect(pollTimes).toEqual([0]);
  expect(clock.timers).toBe(0);
});

describe('the charge of a job whose wait ended with an event', () => {
  it("is learned from a poll that waits until no other job is due and doesn't keep the process alive", async () => {
    const timers: (boolean | undefined)[] = [];
    const clock = virtualClock();
    const { after } = clock;
    clock.after = (ms, fire, options) => {
      timers.push(options?.isIdle);
      return after(ms, fire);
    };
    // One poll per minute.
    const limits = pollLimits({ limit: 1, nextFreeMs: 60_000 });
    const jobs = { isWatched: (id: string) => id === 'a' };
    const { jobWaits, polledIds } = startProcess(done, { limits, jobs }, clock);
    await clock.until(jobWaits.waitForJob('first'));
    for (const id of ['b', 'a']) {
      const wait = jobWaits.waitForJob(running(id), { timeoutMs: false });
      await clock.advance(0);
      expect(timers.at(-1)).toBe(false);
      jobWaits.notify(await verified(completedEvent(id, BASE_URL), clock));
      await expect(clock.until(wait)).resolves.not.toHaveProperty('finalTokenCost');
    }
    await clock.advance(0);
    expect(timers.at(-1)).toBe(true);
    expect(polledIds).toEqual(['first']);
    await clock.advance(70_000);
    expect(polledIds).toEqual(['first', 'a']);
    expect(clock.timers).toBe(0);
  });
});

it("a duplicate webhook doesn't cancel the poll that the first one started", async () => {
  const clock = virtualClock();
  const slow = (id: string) => new Promise<Job>((resolve) => void clock.after(1_000, () => resolve(done(id))));
  const { jobWaits, pollTimes } = startProcess(slow, {}, clock);
  const wait = jobWaits.waitForJob('a');
  for (let delivery = 0; delivery < 5; delivery++) {
    await clock.advance(300);
    jobWaits.notify(hint('a'));
  }
  await clock.until(wait);
  expect(pollTimes).toEqual([0, 300]);
});

it('the oldest notifications of jobs without a wait are evicted', async () => {
  const { jobWaits, clock, polledIds } = startProcess(done);
  for (let at = 0; at < 300; at++) jobWaits.notify(hint(`foreign_${at}`));
  const wait = jobWaits.waitForJob(running('foreign_0'));
  await clock.advance(5_000);
  expect(polledIds).toHaveLength(0);
  await clock.until(wait);
});

describe('the first poll of a job', () => {
  const ago = (ms: number) => new Date(virtualClock().now() - ms).toISOString();
  it.each<[string, Partial<Job>, number]>([
    ['that was created earlier is due sooner', { createdAt: ago(4_000) }, 7_000],
    ['with a creation time in the future is due like a new one', { createdAt: ago(-9_000) }, 11_000],
    ['with an invalid creation time is due like a new one', { createdAt: 'yesterday' }, 11_000],
  ])('%s', async (_, fields, atMs) => {
    const { jobWaits, clock, pollTimes } = startProcess(done);
    await clock.until(jobWaits.waitForJob({ ...running('a'), ...fields }));
    expect(pollTimes).toEqual([atMs]);
  });
});

describe('a finished job updates the estimates', () => {
  const times = (createdAt: string, completedAt: string) => ({ createdAt, completedAt });
  const at = (ms: number) => new Date(virtualClock().now() + ms).toISOString();
  it.each<[string, Partial<Job>, number[]]>([
    ['from its timestamps', times(at(-90_000), at(0)), [90_000, 90_000]],
    ['from the wait if it has no timestamps', {}, [11_000, 11_000]],
    ['from the wait if its timestamps are in the wrong order', times(at(0), at(-9)), [11_000, 11_000]],
    ['unless it failed', { ...times(at(-90_000), at(0)), status: 'failed' }, []],
    ['unless its file never appears', { providerOutputUrl: null }, []],
  ])('%s', async (_, fields, expected) => {
    const learned: number[] = [];
    const durations = new JobDurations();
    durations.learn = (_key, ms) => void learned.push(ms);
    durations.classOf = () => 'mini 5 s';
    const { jobWaits, clock } = startProcess((id) => ({ ...done(id), ...fields }), { durations });
    await clock.until(jobWaits.waitForJob(running('a'), { timeoutMs: 20_000 }).catch(() => {}));
    expect(learned).toEqual(expected);
  });
});
