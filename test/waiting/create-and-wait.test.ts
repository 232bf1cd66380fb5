import { describe, expect, it, vi } from 'vitest';
import { ConflictError, JobFailedError, NotFoundError, WaitTimeoutError } from '../../src/errors/index.js';
import { type CreateAndWaitOptions, createAndWait } from '../../src/polling/create-and-wait.js';
import { JobWatcher } from '../../src/polling/job-watcher.js';
import { createWaiter } from '../../src/polling/wait-for-job.js';
import { waitForJobs } from '../../src/polling/wait-for-jobs.js';
import type { Job } from '../../src/schemas/job.js';
import { settle, virtualClock } from './virtual-clock.js';

const DONE = { status: 'completed', providerOutputUrl: 'https://x.example/output' };
const pending = (retry_after?: number): Partial<Job> => ({
  status: 'failed',
  errorCode: 'reference_asset_pending',
  errorData: retry_after === undefined ? null : { retry_after },
});

/** A service that makes one job a key; each new job ends as the next of `ends` says, half a second after its creation. */
function setup(ends: Partial<Job>[]) {
  const clock = virtualClock();
  const start = clock.now();
  const jobs = new Map<string, Job & { readyAt: number; end: Partial<Job> }>();
  const sent: { key: string; atMs: number }[] = [];
  const refusals: (ConflictError | Error)[] = [];
  const view = (id: string): Job => {
    const { readyAt, end, ...job } = jobs.get(id)!;
    return clock.now() >= readyAt ? { ...job, ...end } : job;
  };
  const watcher = new JobWatcher(clock);
  const waiter = createWaiter({
    clock,
    account: async () => ({ shared: <T extends object>() => watcher as object as T }),
    readJob: async (id) => {
      if (!jobs.has(id)) throw new NotFoundError('no such job', { ...wire, status: 404, code: 'job_not_found' });
      return view(id);
    },
  });
  const create = async (key: string) => {
    sent.push({ key, atMs: clock.now() - start });
    const refusal = refusals.shift();
    if (refusal) throw refusal;
    const id = `job_${key}`;
    if (!jobs.has(id)) {
      const end = ends.length > 1 ? ends.shift()! : ends[0]!;
      jobs.set(id, { id, status: 'processing', mediaType: 'video', readyAt: clock.now() + 500, end });
    }
    return { job: view(id), warnings: [], idempotencyKey: key };
  };
  const run = (options?: CreateAndWaitOptions) =>
    clock.until(createAndWait(create, waiter, { pollIntervalMs: 1000, ...options }));
  return { clock, run, sent, jobs, waiter, refusals, keys: () => sent.map(({ key }) => key) };
}

const wire = { recovery: 'none', method: 'POST', url: 'https://x.example' } as const;
const underReview = (retryAfterMs?: number) =>
  new ConflictError('character_pending', { ...wire, status: 409, code: 'character_pending', retryAfterMs });

describe('createAndWait', () => {
  it('creates once under a key of its own and gives the finished job', async () => {
    const { run, keys } = setup([DONE]);
    await expect(run()).resolves.toMatchObject(DONE);
    expect(keys()).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/)]);
  });

  it('tells, and awaits, onCreated before it waits', async () => {
    const { run, clock, waiter } = setup([DONE]);
    const waited = vi.spyOn(waiter, 'waitForJob');
    const onCreated = vi.fn(async () => {
      expect(waited).not.toHaveBeenCalled();
      await settle();
    });
    await run({ idempotencyKey: 'k', onCreated });
    expect(onCreated).toHaveBeenCalledWith(
      expect.objectContaining({ idempotencyKey: 'k', job: expect.objectContaining({ id: 'job_k' }) }),
    );
    expect(clock.timers).toBe(0);
  });

  it('waits as long as the service asks and resubmits a pending reference under keys derived from the first', async () => {
    const { run, sent } = setup([pending(30), pending(10), DONE]);
    const onCreated = vi.fn();
    await expect(run({ idempotencyKey: 'k', onCreated })).resolves.toMatchObject({ id: 'job_k:r3' });
    expect(sent).toEqual([
      { key: 'k', atMs: 0 },
      { key: 'k:r2', atMs: 31_000 },
      { key: 'k:r3', atMs: 42_000 },
    ]);
    expect(onCreated).toHaveBeenCalledTimes(3);
  });

  it('comes to the same job when a crashed program repeats its call', async () => {
    const { run, jobs } = setup([pending(30), DONE]);
    await run({ idempotencyKey: 'k' });
    await expect(run({ idempotencyKey: 'k' })).resolves.toMatchObject({ id: 'job_k:r2' });
    expect([...jobs.keys()]).toEqual(['job_k', 'job_k:r2']);
  });

  it('waits some seconds where the service does not say how long, and never endlessly', async () => {
    const { run, sent } = setup([pending()]);
    await expect(run({ idempotencyKey: 'k', timeoutMs: false })).rejects.toThrow(JobFailedError);
    expect(sent[1]?.atMs).toBe(16_000);
    expect(sent).toHaveLength(21);
  });

  it('does not resubmit when told not to, nor any other failure', async () => {
    const first = setup([pending(30)]);
    await expect(first.run({ resubmitPending: false })).rejects.toThrow('reference_asset_pending');
    expect(first.sent).toHaveLength(1);
    const second = setup([{ status: 'failed', errorCode: 'generation_failed' }]);
    await expect(second.run()).rejects.toThrow('generation_failed');
    await expect(second.run({ throwOnFailure: false })).resolves.toMatchObject({ errorCode: 'generation_failed' });
    expect(second.sent).toHaveLength(2);
  });

  it('keeps its one deadline over all resubmissions, and does not wait past it in vain', async () => {
    const { run, sent, clock } = setup([pending(30)]);
    const start = clock.now();
    await expect(run({ timeoutMs: 70_000 })).rejects.toThrow(JobFailedError);
    expect(clock.now() - start).toBeLessThan(70_000);
    expect(sent).toHaveLength(3);
    const never = setup([{}]);
    await expect(never.run({ timeoutMs: 70_000 })).rejects.toThrow(WaitTimeoutError);
  });

  it('waits out a character under review, under a new key', async () => {
    const { run, sent, refusals } = setup([DONE]);
    refusals.push(underReview(20_000), underReview(5000));
    await run();
    const [key] = sent.map((one) => one.key);
    expect(sent).toEqual([
      { key, atMs: 0 },
      { key: `${key}:w2`, atMs: 20_000 },
      { key: `${key}:w3`, atMs: 25_000 },
    ]);
  });

  it('tries the caller’s own refused key again first, so that a repeated program cannot be charged twice', async () => {
    const { run, keys, refusals, jobs } = setup([DONE]);
    refusals.push(underReview(20_000), underReview(5000), underReview(5000));
    await run({ idempotencyKey: 'k' });
    expect(keys()).toEqual(['k', 'k', 'k:w2', 'k']);
    await run({ idempotencyKey: 'k' });
    expect(jobs.size).toBe(1);
  });

  it('throws the refusal when it may not be waited out', async () => {
    const refusal = underReview(60_000);
    for (const options of [{ resubmitPending: false }, { timeoutMs: 30_000 }]) {
      const { run, refusals, sent } = setup([DONE]);
      refusals.push(refusal);
      await expect(run(options)).rejects.toBe(refusal);
      expect(sent).toHaveLength(1);
    }
  });

  it('ends at once on abort in every phase and leaves no timer', async () => {
    for (const phase of [0, 3000, 20_000]) {
      const { clock, refusals, run } = setup([pending(60)]);
      if (phase === 0) refusals.push(underReview(60_000));
      const abort = new AbortController();
      clock.after(phase + 100, () => abort.abort('enough'));
      const start = clock.now();
      await expect(run({ signal: abort.signal })).rejects.toBe('enough');
      expect(clock.now() - start).toBe(phase + 100);
      expect(clock.timers).toBe(0);
    }
  });

  it('makes no unhandled rejection beside its own when the create fails', async () => {
    const seen = vi.fn();
    process.on('unhandledRejection', seen);
    const { waiter } = setup([DONE]);
    const result = createAndWait(async () => Promise.reject(new Error('no')), waiter);
    result.catch(() => {});
    await settle();
    await settle();
    process.off('unhandledRejection', seen);
    await expect(result).rejects.toThrow('no');
    expect(seen).not.toHaveBeenCalled();
  });

  it('refuses a wrong option before it creates anything', async () => {
    const { run, sent } = setup([DONE]);
    await expect(run({ timeoutMs: -1 })).rejects.toThrow('timeoutMs');
    expect(sent).toEqual([]);
  });
});

describe('waitForJobs', () => {
  /** Jobs a, b and c, which end in the order c, a, b. */
  function three(b: Partial<Job> = DONE) {
    const clock = virtualClock();
    const start = clock.now();
    const watcher = new JobWatcher(clock, () => 0);
    const ends = new Map([
      ['a', 20_000],
      ['b', 40_000],
      ['c', 5000],
    ]);
    const waiter = createWaiter({
      clock,
      account: async () => ({ shared: <T extends object>() => watcher as object as T }),
      async readJob(id) {
        const end = ends.get(id);
        if (end === undefined) throw new NotFoundError('no such job', { ...wire, status: 404, code: 'job_not_found' });
        return {
          id,
          mediaType: 'video',
          status: 'processing',
          ...(clock.now() - start >= end && (id === 'b' ? b : DONE)),
        };
      },
    });
    const collect = async (ids: string[], options = {}) => {
      const seen: string[] = [];
      for await (const job of waitForJobs(ids, waiter, options)) seen.push(`${job.id} ${job.status}`);
      return seen;
    };
    return { clock, watcher, waiter, collect };
  }

  it('gives the jobs in the order in which they end, also the failed ones', async () => {
    const { clock, collect } = three({ status: 'failed' });
    await expect(clock.until(collect(['a', 'b', 'c']))).resolves.toEqual(['c completed', 'a completed', 'b failed']);
    expect(clock.timers).toBe(0);
  });

  it('throws the first failure when told so', async () => {
    const { clock, collect } = three({ status: 'failed' });
    await expect(clock.until(collect(['a', 'b', 'c'], { throwOnFailure: true }))).rejects.toThrow(JobFailedError);
  });

  it('gives all the others before it throws for a job that cannot be waited for', async () => {
    const { clock, waiter } = three();
    const seen: string[] = [];
    const loop = async () => {
      for await (const job of waitForJobs(['nobody', 'a', 'c'], waiter)) seen.push(job.id);
    };
    await expect(clock.until(loop())).rejects.toThrow(NotFoundError);
    expect(seen).toEqual(['c', 'a']);
    await expect(clock.until(three().collect([]))).resolves.toEqual([]);
    const both = three();
    await expect(both.clock.until(both.collect(['no', 'none']))).rejects.toThrow('2 jobs could not be waited for.');
  });

  it('ends all waits when the loop is left, and at once on abort', async () => {
    const { clock, watcher, waiter } = three();
    const first = async () => {
      for await (const job of waitForJobs(['a', 'b', 'c'], waiter)) return job.id;
    };
    await expect(clock.until(first())).resolves.toBe('c');
    await settle();
    expect(watcher.busy).toBe(false);
    const abort = new AbortController();
    clock.after(1000, () => abort.abort('enough'));
    const start = clock.now();
    const loop = async () => {
      for await (const _ of waitForJobs(['b'], waiter, { signal: abort.signal, pollIntervalMs: 60_000 }));
    };
    await expect(clock.until(loop())).rejects.toBe('enough');
    expect(clock.now() - start).toBe(1000);
    expect(watcher.busy).toBe(false);
  });
});
