// createAndWait and waitForJobs as programs use them. For the order of steps, see test/rules/run-keys.
import { AsyncLocalStorage } from 'node:async_hooks';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import type { CreateOptions } from '../../src/client/create-options.js';
import { JobFailedError, NotFoundError, WaitTimeoutError } from '../../src/errors/index.js';
import { CLOCK } from '../../src/runtime/clock.js';
import type { Job } from '../../src/schemas/job.js';
import { waitForJobs } from '../../src/waiting/job-iterables.js';
import { fakeTimers } from '../support/fake-timers.js';
import { quiet } from '../support/quiet.js';
import { countedSignal, created, json, PROMPT, rejection, stubbed } from '../transport/support.js';
import { done, running, startProcess } from './processes.js';
import { settle, virtualClock } from './virtual-clock.js';

beforeAll(quiet);

const DONE = { status: 'completed', providerOutputUrl: 'https://x.example/output' };
const failed = (errorCode: string, errorData = {}): Partial<Job> => ({ status: 'failed', errorCode, errorData });
const pending = (retry_after: number) => failed('reference_asset_pending', { retry_after });
const underReview = (seconds: number) => () =>
  json({ error: { code: 'character_pending' } }, { status: 409, headers: { 'retry-after': `${seconds}` } });

/** Sets up a service that creates one job per key. Each job ends after half a second with the next of `outcomes`. */
function setup(outcomes: Partial<Job>[]) {
  const clock = virtualClock();
  const start = clock.now();
  const jobs = new Map<string, { readonly job: Job; readonly readyAt: number; readonly end: Partial<Job> }>();
  const sent: { key: string; atMs: number }[] = [];
  const models: unknown[] = [];
  const rejections: (() => Response)[] = [];
  const respond = (id: string) => {
    const { job, readyAt, end } = jobs.get(id) ?? { job: running('none'), readyAt: 0, end: {} };
    return json({ data: { job: clock.now() >= readyAt ? { ...job, ...end } : job } });
  };
  const { client, requests } = stubbed(
    ({ method, url, headers, body }) => {
      if (method === 'GET') return respond(decodeURIComponent(url.split('/').at(-1) ?? ''));
      const key = String(headers['idempotency-key']);
      sent.push({ key, atMs: clock.now() - start });
      models.push(JSON.parse(body).model);
      const rejection = rejections.shift();
      if (rejection) return rejection();
      const id = `job_${key}`;
      const end = (outcomes.length > 1 && !jobs.has(id) ? outcomes.shift() : outcomes[0]) ?? {};
      if (!jobs.has(id)) jobs.set(id, { job: { ...running(id) }, readyAt: clock.now() + 500, end });
      return respond(id);
    },
    { [CLOCK]: clock } as object,
  );
  const countPolls = () => requests.filter(({ method }) => method === 'GET').length;
  const defaults = { idempotencyKey: 'k', pollIntervalMs: 1_000 };
  const run = (options: CreateOptions = {}) =>
    clock.until(client.videos.createAndWait(PROMPT, { ...defaults, ...options }));
  return { clock, run, sent, models, jobs, rejections, countPolls, keys: () => sent.map(({ key }) => key) };
}

describe('createAndWait', () => {
  it('creates once with its idempotency key, awaits onCreated before it polls, and returns the finished job', async () => {
    const { run, keys, countPolls, clock } = setup([DONE]);
    const onCreated = vi.fn(async () => {
      await settle();
      expect(countPolls()).toBe(0);
    });
    await expect(run({ onCreated })).resolves.toMatchObject(DONE);
    expect(onCreated).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ idempotencyKey: 'k', job: expect.objectContaining({ id: 'job_k' }) }),
    );
    expect(keys()).toEqual(['k']);
    expect(clock.timers).toBe(0);
  });

  it("resubmits a job with a pending reference under derived keys, each time after the service's Retry-After", async () => {
    const { run, sent, jobs } = setup([pending(30), pending(600), DONE]);
    const onCreated = vi.fn();
    await expect(run({ onCreated })).resolves.toMatchObject({ id: 'job_k:r3' });
    expect(sent).toEqual([
      { key: 'k', atMs: 0 },
      { key: 'k:r2', atMs: 31_000 },
      { key: 'k:r3', atMs: 632_000 },
    ]);
    expect(onCreated).toHaveBeenCalledTimes(3);
    // A crashed program that repeats its call gets the same job.
    await expect(run()).resolves.toMatchObject({ id: 'job_k:r3' });
    expect(jobs.size).toBe(3);
  });

  it('recovers from the failures listed in `recover`, and reports its earlier jobs', async () => {
    const { run, keys, models } = setup([failed('generation_timeout'), failed('generation_unavailable'), DONE]);
    const recover = { generation_timeout: 2, generation_unavailable: { models: ['svc-video-mini'] } };
    const job = await run({ recover });
    expect(keys()).toEqual(['k', 'k:r2', 'k:r3']);
    expect(models).toEqual([undefined, undefined, 'svc-video-mini']);
    expect(job.tries).toEqual([
      { jobId: 'job_k', idempotencyKey: 'k', status: 'failed', errorCode: 'generation_timeout' },
      { jobId: 'job_k:r2', idempotencyKey: 'k:r2', status: 'failed', errorCode: 'generation_unavailable' },
      { jobId: 'job_k:r3', idempotencyKey: 'k:r3', status: 'completed' },
    ]);
  });

  it('copies `recover` at the start, and fails with the last error and its earlier jobs', async () => {
    const { run } = setup([failed('generation_timeout')]);
    const recover = { generation_timeout: 1 };
    const onCreated = () => {
      recover.generation_timeout = 9;
    };
    const error = await rejection(run({ recover, onCreated }));
    expect(error).toBeInstanceOf(JobFailedError);
    expect(error).toMatchObject({ code: 'generation_timeout', job: { id: 'job_k:r2', tries: [{}, {}] } });
  });

  it("calls onCreated once per job, in the caller's async context, even if a later create is first rejected", async () => {
    const { run, rejections, sent } = setup([pending(30), DONE]);
    const tenant = new AsyncLocalStorage<string>();
    const created: string[] = [];
    const onCreated = ({ job }: { job: Job }) => {
      if (created.push(`${job.id} of ${tenant.getStore()}`) === 1) rejections.push(underReview(5));
    };
    await tenant.run('tenant-7', () => run({ onCreated }));
    expect(sent).toHaveLength(3);
    expect(created).toEqual(['job_k of tenant-7', 'job_k:r2 of tenant-7']);
  });

  it('rejects immediately, without a poll, if onCreated throws or aborts', async () => {
    for (const reason of [new Error('no disk'), Object.assign(new Error('mine'), { code: 'character_pending' })]) {
      const { run, sent, jobs } = setup([DONE]);
      await expect(run({ onCreated: async () => Promise.reject(reason) })).rejects.toBe(reason);
      expect([sent.length, jobs.size]).toEqual([1, 1]);
    }
    const { run, countPolls, jobs } = setup([DONE]);
    const abort = new AbortController();
    await expect(run({ signal: abort.signal, onCreated: () => abort.abort('enough') })).rejects.toBe('enough');
    expect([countPolls(), jobs.size]).toEqual([0, 1]);
  });

  it('has one timeout for the create, onCreated, the wait, and all resubmissions', async () => {
    const { run, clock, keys } = setup([{}]);
    const start = clock.now();
    const onCreated = () => new Promise<void>((resolve) => void clock.after(40_000, resolve));
    const recover = { generation_timeout: 5, generation_failed: 5 };
    await expect(run({ timeoutMs: 60_000, onCreated, recover })).rejects.toThrow('did not finish within 60000 ms');
    expect(clock.now() - start).toBe(60_000);
    expect(keys()).toEqual(['k']);
    const resubmitting = setup([pending(30)]);
    await expect(resubmitting.run({ timeoutMs: 70_000 })).rejects.toThrow(JobFailedError);
    expect(resubmitting.clock.now() - start).toBeLessThan(70_000);
    expect(resubmitting.sent).toHaveLength(3);
  });

  it.each([
    ['the same key while the rejections differ', [20, 5], [0, 20, 25], ['k', 'k', 'k']],
    [
      'a new key immediately if a rejection is repeated unchanged',
      [20, 20, 20, 20],
      [0, 20, 20, 40, 40],
      ['k', 'k', 'k:w1', 'k', 'k:w2'],
    ],
  ])('waits for a character under review with %s', async (_, rejected, seconds, sentKeys) => {
    const { run, sent, keys, rejections, jobs } = setup([DONE]);
    rejections.push(...rejected.map(underReview));
    await run();
    expect(keys()).toEqual(sentKeys);
    expect(sent.map(({ atMs }) => atMs / 1_000)).toEqual(seconds);
    expect(jobs.size).toBe(1);
  });

  it.each([{ resubmitPending: false }, { timeoutMs: 30_000 }])(
    'throws the rejection of a character under review with %j',
    async (options) => {
      const { run, rejections, sent } = setup([DONE]);
      rejections.push(underReview(60));
      await expect(run(options)).rejects.toMatchObject({ code: 'character_pending' });
      expect(sent).toHaveLength(1);
    },
  );

  it('rejects immediately on an abort in every phase, and leaves no timer', async () => {
    for (const phase of [0, 3_000, 20_000]) {
      const { clock, rejections, run } = setup([pending(60)]);
      if (phase === 0) rejections.push(underReview(60));
      const abort = new AbortController();
      clock.after(phase + 100, () => abort.abort('enough'));
      const start = clock.now();
      await expect(run({ signal: abort.signal })).rejects.toBe('enough');
      expect(clock.now() - start).toBe(phase + 100);
      expect(clock.timers).toBe(0);
    }
  });
});

describe('an onCreated that never settles rejects the call', () => {
  fakeTimers();

  const startCall = async (options: CreateOptions) => {
    const { client } = stubbed(() => json(created()));
    const onCreated = () => new Promise(() => {});
    const outcome = rejection(client.videos.createAndWait(PROMPT, { idempotencyKey: 'k', onCreated, ...options }));
    await vi.advanceTimersByTimeAsync(900);
    // Other test files in this process may have timers.
    const timers = vi.getTimerCount();
    return async () => {
      await vi.advanceTimersByTimeAsync(200);
      const error = await outcome;
      expect(vi.getTimerCount()).toBeLessThan(timers);
      return error;
    };
  };

  it('after timeoutMs, with the job and its key in the error', async () => {
    const error = await (await startCall({ timeoutMs: 1_000 }))();
    expect(error).toBeInstanceOf(WaitTimeoutError);
    expect(error).toMatchObject({ jobId: 'job_1', idempotencyKey: 'k', timeoutMs: 1_000, recovery: 'wait_again' });
    expect(String(error)).toContain('onCreated did not settle within 1000 ms (timeoutMs). Job job_1 continues');
  });

  it('immediately on an abort', async () => {
    const caller = new AbortController();
    const outcome = await startCall({ signal: caller.signal });
    caller.abort(new Error('left'));
    expect(await outcome()).toMatchObject({ message: 'left' });
  });
});

describe('waitForJobs', () => {
  /** Creates jobs a, b, and c, which end in the order c, a, b. */
  function startThreeJobs(b: Partial<Job> = DONE) {
    const ends: Record<string, number> = { a: 20_000, b: 40_000, c: 5_000 };
    const { clock, scheduler, jobWaits } = startProcess((id, atMs) => {
      const end = ends[id];
      if (end !== undefined) return atMs < end ? running(id) : { ...done(id), ...(id === 'b' && b) };
      const wire = { recovery: 'none', method: 'GET', url: 'https://x.example' } as const;
      throw new NotFoundError('no such job', { ...wire, status: 404, code: 'job_not_found' });
    });
    const collect = async (ids: string[], options = {}) => {
      const yielded: string[] = [];
      for await (const job of waitForJobs(ids, jobWaits, options)) yielded.push(`${job.id} ${job.status}`);
      return yielded;
    };
    return { clock, scheduler, jobWaits, collect };
  }

  it('yields the jobs in completion order, including failed ones', async () => {
    const { clock, collect } = startThreeJobs({ status: 'failed' });
    const ids = ['a', 'b', 'c'];
    await expect(clock.until(collect(ids))).resolves.toEqual(['c completed', 'a completed', 'b failed']);
    expect(clock.timers).toBe(0);
    await expect(clock.until(collect(ids, { throwOnFailure: true }))).rejects.toThrow(JobFailedError);
  });

  it('yields jobs that end while its consumer processes another one', async () => {
    const { clock, jobWaits } = startThreeJobs();
    const yielded: string[] = [];
    const loop = async () => {
      for await (const { id } of waitForJobs(['a', 'b', 'c'], jobWaits)) {
        if (yielded.push(id) === 1) await new Promise<void>((resolve) => clock.after(60_000, resolve));
      }
    };
    await clock.until(loop());
    expect(yielded).toEqual(['c', 'a', 'b']);
  });

  it('yields all other jobs before it throws the error of a failed wait', async () => {
    const { clock, jobWaits, collect } = startThreeJobs();
    const yielded: string[] = [];
    const loop = async () => {
      for await (const job of waitForJobs(['unknown', 'a', 'c'], jobWaits)) yielded.push(job.id);
    };
    await expect(clock.until(loop())).rejects.toThrow(NotFoundError);
    expect(yielded).toEqual(['c', 'a']);
    await expect(clock.until(collect([]))).resolves.toEqual([]);
    await expect(clock.until(collect(['no', 'none']))).rejects.toThrow('2 jobs could not be waited for.');
  });

  it('ends all waits when the loop ends or is aborted, and leaves no listener', async () => {
    const { clock, scheduler, jobWaits } = startThreeJobs();
    const first = async () => {
      for await (const job of waitForJobs(['a', 'b', 'c'], jobWaits)) return job.id;
    };
    await expect(clock.until(first())).resolves.toBe('c');
    await settle();
    expect(scheduler.busy).toBe(false);
    const { controller, signal, listeners } = countedSignal();
    clock.after(1_000, () => controller.abort('enough'));
    const start = clock.now();
    const loop = async () => {
      for await (const _ of waitForJobs(['b'], jobWaits, { signal, pollIntervalMs: 60_000 }));
    };
    await expect(clock.until(loop())).rejects.toBe('enough');
    expect(clock.now() - start).toBe(1_000);
    expect(scheduler.busy).toBe(false);
    expect(listeners()).toBe(0);
  });
});
