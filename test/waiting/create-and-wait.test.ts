import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it, vi } from 'vitest';
import { ConflictError, JobFailedError, NotFoundError, WaitTimeoutError } from '../../src/errors/index.js';
import type { CreateStep } from '../../src/rules/run-state.js';
import type { Job } from '../../src/schemas/job.js';
import { waitForJobs } from '../../src/waiting/job-iterables.js';
import { type CreateAndWaitOptions, createAndWait, createWaiter } from '../../src/waiting/wait-for-job.js';
import { JobWatcher } from '../../src/waiting/watcher.js';
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
  const models: (string | null)[] = [];
  const create = async ({ key, model }: CreateStep) => {
    sent.push({ key, atMs: clock.now() - start });
    models.push(model);
    const refusal = refusals.shift();
    if (refusal) throw refusal;
    const id = `job_${key}`;
    if (!jobs.has(id)) {
      const end = ends.length > 1 ? ends.shift()! : ends[0]!;
      jobs.set(id, { id, status: 'processing', mediaType: 'video', readyAt: clock.now() + 500, end });
    }
    return { job: view(id), warnings: [], idempotencyKey: key };
  };
  const run = ({ idempotencyKey: key = 'key', ...options }: CreateAndWaitOptions = {}) => {
    const ports = { create, waiter, key, shortKey: shortenKey(key) };
    return clock.until(createAndWait(ports, { pollIntervalMs: 1000, ...options }));
  };
  return { clock, run, sent, models, jobs, waiter, refusals, keys: () => sent.map(({ key }) => key) };
}

const shortenKey = (key: string) => `${key.slice(0, 100)}-short`;
const wire = { recovery: 'none', method: 'POST', url: 'https://x.example' } as const;
const underReview = (retryAfterMs?: number) =>
  new ConflictError('character_pending', { ...wire, status: 409, code: 'character_pending', retryAfterMs });

describe('createAndWait', () => {
  it('creates once under its key and gives the finished job', async () => {
    const { run, keys } = setup([DONE]);
    await expect(run()).resolves.toMatchObject(DONE);
    expect(keys()).toEqual(['key']);
  });

  it('tells, and awaits, onCreated before it waits', async () => {
    const { run, clock, waiter } = setup([DONE]);
    const waited = vi.spyOn(waiter, 'follow');
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

  it('waits longer than five minutes when the service asks for it (regression: it came back after 303 s)', async () => {
    const { run, sent, refusals } = setup([pending(600), DONE]);
    refusals.push(underReview(900_000));
    await run({ idempotencyKey: 'k', timeoutMs: false });
    expect(sent.map(({ atMs }) => atMs)).toEqual([0, 900_000, 1_501_000]);
  });

  it('resubmits under a key that fits when its own is too long (regression: it died of the key)', async () => {
    const { run, keys } = setup([pending(30), DONE]);
    const long = 'x'.repeat(254);
    await expect(run({ idempotencyKey: long })).resolves.toMatchObject(DONE);
    expect(keys()).toEqual([long, `${shortenKey(long)}:r2`]);
  });

  it('recovers from the failures that `recover` names, and tells its tries', async () => {
    const { run, keys, models } = setup([
      { status: 'failed', errorCode: 'generation_timeout' },
      { status: 'failed', errorCode: 'generation_unavailable' },
      DONE,
    ]);
    const recover = { generation_timeout: 2, generation_unavailable: { models: ['svc-video-mini'] } };
    const done = await run({ idempotencyKey: 'k', recover });
    expect(keys()).toEqual(['k', 'k:r2', 'k:r3']);
    expect(models).toEqual([null, null, 'svc-video-mini']);
    expect(done.tries).toEqual([
      { jobId: 'job_k', idempotencyKey: 'k', status: 'failed', errorCode: 'generation_timeout' },
      { jobId: 'job_k:r2', idempotencyKey: 'k:r2', status: 'failed', errorCode: 'generation_unavailable' },
      { jobId: 'job_k:r3', idempotencyKey: 'k:r3', status: 'completed' },
    ]);
  });

  it('fails with the last error when no try is left, and has its tries on the job', async () => {
    const { run } = setup([{ status: 'failed', errorCode: 'generation_timeout' }]);
    const error = await run({ idempotencyKey: 'k', recover: { generation_timeout: 1 } }).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(JobFailedError);
    expect(error).toMatchObject({ code: 'generation_timeout', job: { id: 'job_k:r2', tries: [{}, {}] } });
  });

  it('calls onCreated once for each job, also where a later create is refused at first', async () => {
    const { run, refusals, sent } = setup([pending(30), DONE]);
    const ids: string[] = [];
    await run({
      idempotencyKey: 'k',
      onCreated: ({ job }) => {
        if (ids.push(job.id) === 1) refusals.push(underReview(5_000));
      },
    });
    expect(sent).toHaveLength(3);
    expect(ids).toEqual(['job_k', 'job_k:r2']);
  });

  it('goes by `recover` as it was when the call began', async () => {
    const { run, keys } = setup([{ status: 'failed', errorCode: 'generation_timeout' }]);
    const recover = { generation_timeout: 1 };
    const onCreated = () => {
      recover.generation_timeout = 9;
    };
    await expect(run({ idempotencyKey: 'k', recover, onCreated })).rejects.toThrow(JobFailedError);
    expect(keys()).toEqual(['k', 'k:r2']);
  });

  it('does not read the job when it is aborted in onCreated, and awaits onCreated for each job', async () => {
    const { run, waiter, jobs } = setup([DONE]);
    const waited = vi.spyOn(waiter, 'follow');
    const abort = new AbortController();
    await expect(run({ signal: abort.signal, onCreated: () => abort.abort('enough') })).rejects.toBe('enough');
    expect(waited).not.toHaveBeenCalled();
    expect(jobs.size).toBe(1);
  });

  it('waits half an hour unless told otherwise, and without a limit where there is none', async () => {
    const { run, clock } = setup([{}]);
    const start = clock.now();
    await expect(run()).rejects.toThrow('did not end within 1800000 ms (it was processing when last read)');
    expect(clock.now() - start).toBe(1_800_000);
    const endless = setup([{}]);
    const settled = vi.fn();
    const abort = new AbortController();
    endless.clock.after(7_200_000, () => abort.abort('enough'));
    await expect(endless.run({ timeoutMs: false, signal: abort.signal }).finally(settled)).rejects.toBe('enough');
    expect(endless.clock.timers).toBe(0);
  });

  it('has one time limit for the create, onCreated and the wait', async () => {
    const { run, clock } = setup([{}]);
    const start = clock.now();
    const onCreated = () => new Promise<void>((resolve) => void clock.after(40_000, resolve));
    await expect(run({ timeoutMs: 60_000, onCreated })).rejects.toThrow('did not end within 60000 ms');
    expect(clock.now() - start).toBe(60_000);
  });

  it('does not create again after a wait that ended without a final job', async () => {
    const { run, keys } = setup([{}]);
    const recover = { generation_timeout: 5, generation_failed: 5 };
    await expect(run({ idempotencyKey: 'k', recover, timeoutMs: 60_000 })).rejects.toThrow(WaitTimeoutError);
    expect(keys()).toEqual(['k']);
  });

  it.each([
    [{ generation_time_out: 1 }, 'recover has no option "generation_time_out". Did you mean "generation_timeout"?'],
    [{ generation_timeout: -1 }, 'recover.generation_timeout must be a whole number of further tries, or'],
    [{ generation_failed: { model: 'x' } }, 'recover.generation_failed must be a whole number of further tries, or'],
    [7, 'recover must be an object with rules by error code, not 7.'],
  ])('refuses recover: %o before it creates anything', async (recover, message) => {
    const { run, sent } = setup([DONE]);
    await expect(run({ recover: recover as never })).rejects.toThrow(message);
    expect(sent).toEqual([]);
  });

  it('ends with what onCreated throws, whatever that is; the job goes on', async () => {
    for (const reason of [
      new Error('no disk'),
      new ConflictError('mine', { ...wire, status: 409, code: 'character_pending' }),
    ]) {
      const { run, sent, jobs } = setup([DONE]);
      const onCreated = async () => Promise.reject(reason);
      await expect(run({ idempotencyKey: 'k', onCreated })).rejects.toBe(reason);
      expect(sent).toHaveLength(1);
      expect(jobs.size).toBe(1);
    }
  });

  it('calls onCreated in the async context of its caller', async () => {
    const { run } = setup([pending(30), DONE]);
    const tenant = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    await tenant.run('tenant-7', () => run({ onCreated: () => seen.push(tenant.getStore()) }));
    expect(seen).toEqual(['tenant-7', 'tenant-7']);
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

  it('waits out a character under review, under its own key', async () => {
    const { run, sent, refusals } = setup([DONE]);
    refusals.push(underReview(20_000), underReview(5000));
    await run();
    const [key] = sent.map((one) => one.key);
    expect(sent).toEqual([
      { key, atMs: 0 },
      { key, atMs: 20_000 },
      { key, atMs: 25_000 },
    ]);
  });

  it('sends a new key at once when the service repeats its refusal of the own key as it was', async () => {
    const { run, sent, refusals, jobs } = setup([DONE]);
    refusals.push(underReview(20_000), underReview(20_000), underReview(20_000), underReview(20_000));
    await run({ idempotencyKey: 'k' });
    expect(sent).toEqual([
      { key: 'k', atMs: 0 },
      { key: 'k', atMs: 20_000 },
      { key: 'k:w1', atMs: 20_000 },
      { key: 'k', atMs: 40_000 },
      { key: 'k:w2', atMs: 40_000 },
    ]);
    expect(jobs.size).toBe(1);
  });

  it('tries the own key again first, so that a repeated program is not charged twice', async () => {
    const { run, keys, refusals, jobs } = setup([DONE]);
    refusals.push(underReview(20_000), underReview(5000));
    await run({ idempotencyKey: 'k' });
    expect(keys()).toEqual(['k', 'k', 'k']);
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
    const reason = new Error('no');
    const create = async () => Promise.reject(reason);
    const result = createAndWait({ create, waiter, key: 'key', shortKey: 'key' });
    result.catch(() => {});
    await settle();
    await settle();
    process.off('unhandledRejection', seen);
    await expect(result).rejects.toBe(reason);
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
