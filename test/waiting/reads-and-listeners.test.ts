import { afterEach, describe, expect, it, vi } from 'vitest';
import { RateLimitError, WaitTimeoutError } from '../../src/index.js';
import type { Job } from '../../src/schemas/job.js';
import { accountFor } from '../../src/store/account.js';
import { waitForJobs } from '../../src/waiting/job-iterables.js';
import { createWaiter } from '../../src/waiting/wait-for-job.js';
import { JobWatcher } from '../../src/waiting/watcher.js';
import { BASE_URL, countedSignal, created, freshKey, json, rejection, stubbed } from '../transport/support.js';
import { settle, type VirtualClock, virtualClock } from './virtual-clock.js';

afterEach(() => {
  vi.useRealTimers();
});

const DONE = { status: 'completed', providerOutputUrl: 'https://x.example/output' };
const running = (id: string): Job => ({ id, status: 'processing', mediaType: 'video' });

/** A waiter whose reads are answered by a function, and the time of each read. */
function waiterOn(clock: VirtualClock, read: (id: string, atMs: number, count: number) => Job | Promise<Job>) {
  const watcher = new JobWatcher(clock, () => 0);
  const startMs = clock.now();
  const reads: { readonly id: string; readonly atMs: number }[] = [];
  const waiter = createWaiter({
    clock,
    account: async () => ({ shared: <T extends object>() => watcher as object as T }),
    async readJob(id) {
      const atMs = clock.now() - startMs;
      reads.push({ id, atMs });
      return read(id, atMs, reads.filter((each) => each.id === id).length);
    },
  });
  return { waiter, reads };
}

describe('waitForJobs', () => {
  const ends: Record<string, number> = { a: 5_000, b: 15_000, c: 25_000 };
  const timed = (clock: VirtualClock) =>
    waiterOn(clock, (id, atMs) => ({ ...running(id), ...(atMs >= (ends[id] ?? 0) && DONE) }));

  it('gives the jobs too that end while its consumer works on another one', async () => {
    const clock = virtualClock();
    const { waiter } = timed(clock);
    const seen: string[] = [];
    const loop = async () => {
      for await (const job of waitForJobs(['a', 'b', 'c'], waiter)) {
        seen.push(job.id);
        if (job.id === 'a') await new Promise<void>((resolve) => clock.after(60_000, resolve));
      }
    };
    await clock.until(loop());
    expect(seen).toEqual(['a', 'b', 'c']);
  });

  it("leaves no listener on the caller's signal", async () => {
    const clock = virtualClock();
    const { waiter } = timed(clock);
    const { signal, listeners } = countedSignal();
    const loop = async () => {
      for await (const job of waitForJobs(['a', 'b'], waiter, { signal })) expect(job.status).toBe('completed');
    };
    await clock.until(loop());
    expect(listeners()).toBe(0);
  });
});

describe('a read', () => {
  it('that is refused with a Retry-After is not made again before that time', async () => {
    vi.useFakeTimers();
    const away = () => json({}, { status: 503, headers: { 'retry-after': '90' } });
    const done = () => json({ data: { job: { id: 'job_1', ...DONE } } });
    const { client, seen } = stubbed([away, done]);
    const wait = client.waitForJob('job_1');
    await vi.advanceTimersByTimeAsync(89_000);
    expect(seen).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(12_000);
    expect(seen).toHaveLength(2);
    await wait;
  });

  it('that is refused with a 429 holds back the reads of other jobs', async () => {
    const clock = virtualClock();
    const details = { status: 429, code: 'rate_limited', method: 'GET', url: BASE_URL, attempts: 1 } as const;
    const limited = new RateLimitError('too many', { ...details, recovery: 'wait_and_retry', retryAfterMs: 30_000 });
    const { waiter, reads } = waiterOn(clock, (id, _atMs, count) => {
      if (id === 'a' && count === 1) throw limited;
      return { ...running(id), ...DONE };
    });
    const waits = [waiter.waitForJob('a')];
    await clock.advance(1_000);
    waits.push(waiter.waitForJob('b'));
    await clock.until(Promise.all(waits));
    const [first, ...others] = reads;
    expect(first).toMatchObject({ id: 'a', atMs: 0 });
    expect(others.map(({ id }) => id).sort()).toEqual(['a', 'b']);
    for (const { atMs } of others) expect(atMs).toBeGreaterThanOrEqual(30_000);
  });

  it('whose turn another wait has taken, on Workers, leaves it that turn when it is answered late', async () => {
    const clock = { ...virtualClock(), perRequest: true };
    const slow = (ms: number, job: Job) =>
      new Promise<Job>((resolve) => {
        clock.after(ms, () => resolve(job));
      });
    const { waiter, reads } = waiterOn(clock, (id, _atMs, count) =>
      slow(8_000, { ...running(id), ...(count > 2 && DONE) }),
    );
    const options = { pollIntervalMs: 500 };
    const waits = [waiter.waitForJob('a', options), waiter.waitForJob('a', options)];
    await clock.advance(10_250);
    // The second wait took the turn over after 5 s and has it for as long. The answer to the first one came at 8.5 s.
    expect(reads.map(({ atMs }) => atMs)).toEqual([500, 5_500]);
    await clock.until(Promise.all(waits));
  });
});

it('M24: each copy of a webhook broke off the read that the first one had asked for', async () => {
  const clock = virtualClock();
  const { waiter, reads } = waiterOn(
    clock,
    (id) => new Promise((resolve) => void clock.after(1_000, () => resolve({ ...running(id), ...DONE }))),
  );
  const wait = waiter.waitForJob('a');
  for (let copy = 0; copy < 5; copy++) {
    await clock.advance(300);
    waiter.notify({ data: { job: { id: 'a' } } });
  }
  await clock.until(wait);
  expect(reads.map(({ atMs }) => atMs)).toEqual([0, 300]);
});

it('M27: the announcements of jobs that nobody waits for were kept without a bound', async () => {
  const clock = virtualClock();
  const { waiter, reads } = waiterOn(clock, (id) => ({ ...running(id), ...DONE }));
  for (let at = 0; at < 300; at++) waiter.notify({ data: { job: { id: `foreign_${at}` } } });
  await settle();
  const wait = waiter.waitForJob(running('foreign_0'));
  await clock.advance(5_000);
  expect(reads).toHaveLength(0);
  await clock.until(wait);
});

it('M29: createAndWait died of its own option when onCreated took longer than timeoutMs', async () => {
  vi.useFakeTimers();
  const { client } = stubbed(() => json(created()));
  const onCreated = () => new Promise((resolve) => setTimeout(resolve, 3_000));
  const outcome = client.videos.createAndWait({ prompt: 'x' }, { timeoutMs: 1_000, onCreated }).catch((error) => error);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(await outcome).toBeInstanceOf(WaitTimeoutError);
});

describe('an onCreated that does not settle ends', () => {
  const onCreated = () => new Promise(() => {});
  const started = (options: { readonly signal?: AbortSignal; readonly timeoutMs?: number }) => {
    vi.useFakeTimers();
    const { client } = stubbed(() => json(created()));
    return rejection(client.videos.createAndWait({ prompt: 'x' }, { idempotencyKey: 'k', onCreated, ...options }));
  };

  it("with the call's timeoutMs, and the error has the job and its key", async () => {
    const outcome = started({ timeoutMs: 1_000 });
    await vi.advanceTimersByTimeAsync(1_100);
    const error = await outcome;
    expect(error).toBeInstanceOf(WaitTimeoutError);
    expect(error).toMatchObject({ jobId: 'job_1', idempotencyKey: 'k', timeoutMs: 1_000, recovery: 'wait_again' });
    expect((error as Error).message).toBe(
      'onCreated did not settle within 1000 ms (timeoutMs). Job job_1 goes on: wait for it by its id.',
    );
    expect(vi.getTimerCount()).toBe(0);
  });

  it('with an abort, at once', async () => {
    const caller = new AbortController();
    const outcome = started({ signal: caller.signal });
    await vi.advanceTimersByTimeAsync(300);
    caller.abort(new Error('left'));
    expect(await outcome).toMatchObject({ message: 'left' });
    expect(vi.getTimerCount()).toBe(0);
  });
});

it('M09: the body of a redirect that is followed held its connection', async () => {
  const cancel = vi.fn();
  const body = new ReadableStream({ cancel });
  const moved = () => new Response(body, { status: 302, headers: { location: `${BASE_URL}/elsewhere` } });
  const { client } = stubbed([moved, () => json({ data: { job: running('job_1') } })]);
  await client.jobs.get('job_1');
  expect(cancel).toHaveBeenCalledOnce();
});

it('M18: accounts that are used were forgotten before those that are not', () => {
  const registry = Reflect.get(globalThis, Symbol.for('gen-client.accounts')) as { accounts: Map<string, object> };
  // Those of other tests may still be in use.
  registry.accounts.clear();
  const used = freshKey();
  const account = accountFor(BASE_URL, used);
  for (let at = 1, size = 0; registry.accounts.size >= size; at++) {
    size = registry.accounts.size;
    accountFor(BASE_URL, `idle-${at}-${used}`);
    if (at % 100 === 0) accountFor(BASE_URL, used);
    expect(at).toBeLessThan(2_000);
  }
  expect([...registry.accounts.values()].includes(account)).toBe(true);
});

it('M05: a 429 after another failure was waited out as if it were one more in a row', async () => {
  vi.useFakeTimers();
  const busy = () => json({ error: 'rate_limited' }, { status: 429 });
  const broken = () => json({}, { status: 500 });
  const waits: number[] = [];
  const hooks = { onWait: ({ waitMs }: { readonly waitMs: number }) => void waits.push(waitMs) };
  const { client } = stubbed([busy, busy, busy, busy, broken, busy, () => json(created())], { hooks });
  const made = client.request({ method: 'POST', path: '/v1/speech', body: { text: 'x' } });
  await vi.advanceTimersByTimeAsync(60_000);
  await made;
  expect(waits).toHaveLength(5);
  expect(waits[3]).toBeGreaterThan(1_500);
  expect(waits[4]).toBeLessThan(1_000);
});
