// What a worker does with a call, step by step, and in which order. Needs no Redis.
import { DelayedError, UnrecoverableError } from 'bullmq';
import { describe, expect, it } from 'vitest';
import { type GenJobData, isKnownRecord } from '../../src/adapters/bullmq/call-record.js';
import { createProcessor } from '../../src/adapters/bullmq/process-call.js';
import { BudgetExceededError, type ClientOptions, createBudget, GenError } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';

const NOW = Date.parse('2026-11-22T12:00:00Z');
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const FAILING = { params: { prompt: 'a fox [fail:generation_rejected]' } };
const RULES = {
  ...{ timeoutMs: null, resubmitPending: true, recover: {}, persistent: true, stores: false },
  ...{ pollMs: null, retryMs: 30_000 },
};

interface Setup {
  readonly data?: Partial<GenJobData>;
  readonly client?: ClientOptions;
  /** Parts of the workplace. */
  readonly at?: Readonly<Record<string, unknown>>;
  readonly creates?: Readonly<Record<string, (...args: never[]) => unknown>>;
  /** Jobs whose webhook has come. */
  readonly woken?: readonly string[];
  readonly token?: string | undefined;
  readonly isLocked?: boolean;
  readonly stalledCounter?: number;
  readonly id?: string;
}

type Fault = Parameters<ReturnType<typeof createSandbox>['faults']['add']>[0];

/** A worker with one call on a sandbox, and everything that it does to the queue, in order. */
function place({ data = {}, client: more = {}, at = {}, creates = {}, woken = [], ...setup }: Setup = {}) {
  const sandbox = createSandbox({ clock: 'manual', limits: 'off' });
  const whole = sandbox.client({ rateLimit: 'off', ...more });
  // As the worker has it: a full limit refuses a call instead of holding it.
  const client = whole.withoutQueue({ maxRetries: 0 });
  const done: unknown[][] = [];
  const told: Error[] = [];
  const note =
    <T>(name: string, result?: T) =>
    async (...args: readonly unknown[]) => {
      done.push([name, ...args]);
      return result as T;
    };
  const { token = 'lock-1' } = 'token' in setup ? { token: setup.token } : {};
  const queueJob = {
    ...{ id: setup.id ?? 'order-1', opts: {}, priority: 0, stalledCounter: setup.stalledCounter ?? 0 },
    data: { call: 'images', params: { prompt: 'a fox' }, ...data } as GenJobData,
    extendLock: note('extendLock', setup.isLocked ?? true),
    moveToDelayed: note('moveToDelayed'),
    updateProgress: note('updateProgress'),
    log: note('log'),
    async updateData(value: GenJobData) {
      done.push(['updateData']);
      this.data = value;
    },
    async changePriority({ priority }: { priority: number }) {
      this.priority = priority;
    },
  };
  const notes = {
    own: note('own'),
    forget: note('forget'),
    owned: async () => 1,
    takeWake: async (jobId: string) => woken.includes(jobId),
    woken: async (jobId: string) => woken.includes(jobId),
  };
  const line = { admit: note('admit', true), hasCome: note('hasCome', false), leave: note('leave') };
  const sleeper = { isDelayed: async () => true, promote: note('promote'), changePriority: note('wake') };
  const workplace = {
    ...{ rules: RULES, client, uploader: whole, notes, lockMs: 30_000, pollIntervalMs: 5_000 },
    ...{
      clock: { now: () => NOW },
      closing: new AbortController().signal,
      onError: (error: Error) => told.push(error),
    },
    queue: { getJob: async () => sleeper },
    budgetOf: (scope: string) => expect.unreachable(scope),
    creates: { ...line, hold: note('hold'), giveBack: note('giveBack'), ...creates },
    ...at,
  };
  const process = createProcessor(workplace as never);
  const lock = 'token' in setup ? setup.token : token;
  /** The error with which the worker hands the call back to the engine, or its result. */
  const work = () => process(queueJob as never, lock).catch((error: unknown) => error);
  const names = () => done.map(([name]) => name);
  const asleep = () => done.filter(([name]) => name === 'moveToDelayed').map(([, until]) => Number(until) - NOW);
  return { sandbox, client, queueJob, work, done, names, asleep, told };
}

/** The record of a call of which the service has made a job, and that waits for it. */
async function waiting(setup: Setup = {}) {
  const on = place(setup);
  await on.work();
  on.done.length = 0;
  return { ...on, jobId: on.queueJob.data.jobId ?? '' };
}

describe('a queued call', () => {
  it('is created under its id, stored before anything else is done with its job, and sleeps until its read', async () => {
    const { sandbox, queueJob, work, done, names, asleep } = place();
    expect(await work()).toBeInstanceOf(DelayedError);
    const [job] = sandbox.jobs;
    expect(sandbox.requests.map(({ headers }) => headers['idempotency-key'])).toEqual(['order-1']);
    expect(names()).toEqual([
      'extendLock',
      'extendLock',
      'updateData',
      'updateProgress',
      'own',
      'log',
      'moveToDelayed',
    ]);
    expect(done[0]).toEqual(['extendLock', 'lock-1', 30_000]);
    expect(queueJob.data).toMatchObject({ version: 1, jobId: job?.id, storedAt: NOW, run: { key: 'order-1' } });
    expect(done.slice(3)).toEqual([
      [
        'updateProgress',
        { jobId: job?.id, status: 'queued', quotedTokenCost: job?.quotedTokenCost, finalTokenCost: 0 },
      ],
      ['own', job?.id, 'order-1'],
      ['log', `${job?.id} was accepted under order-1: ${job?.quotedTokenCost} tokens.`],
      ['moveToDelayed', NOW + 5_000, 'lock-1'],
    ]);
    expect(asleep()).toEqual([5_000]);
  });

  it('needs no lock where the engine gives none', async () => {
    const { work, names } = place({ token: undefined });
    expect(await work()).toBeInstanceOf(DelayedError);
    expect(names()).not.toContain('extendLock');
  });

  it('that another worker has taken up is left to it: nothing is sent, stored or told', async () => {
    const { sandbox, work, names, told } = place({ isLocked: false });
    expect(await work()).toMatchObject({
      message: 'Another worker has taken up order-1: this one was out of reach for longer than lockDuration.',
    });
    expect([sandbox.requests.length, names(), told]).toEqual([0, ['extendLock'], []]);
  });

  it('whose worker closes is handed on for half a second, without a word', async () => {
    const { sandbox, work, names, asleep, told } = place({ at: { closing: AbortSignal.abort(new Error('closing')) } });
    expect(await work()).toBeInstanceOf(DelayedError);
    expect([sandbox.requests.length, names(), asleep(), told]).toEqual([0, ['moveToDelayed'], [500], []]);
  });

  it('is woken at once by a webhook that came while it was being worked on', async () => {
    const woken: string[] = [];
    const { sandbox, work, done } = place({ woken });
    const create = sandbox.fetch;
    expect(create).toBeDefined();
    await work();
    woken.push(sandbox.jobs[0]?.id ?? '');
    done.length = 0;
    await work();
    expect(done.map(([name]) => name)).toContain('promote');
    expect(done.at(-1)).toEqual(['wake', { priority: 0, lifo: true }]);
  });

  it('reads its job after its sleep, writes its note again first, and ends with the job when it is told', async () => {
    const told: string[] = [];
    const at = { onCompleted: (job: { id: string }, { id }: { id: string }) => told.push(job.id, id) };
    const { sandbox, queueJob, work, done, names, jobId } = await waiting({ at });
    await sandbox.advance(HOUR_MS);
    expect(await work()).toMatchObject({ id: jobId, status: 'completed' });
    expect(names()).toEqual(['own', 'extendLock', 'updateProgress', 'updateData', 'forget']);
    expect([done[0], done.at(-1)]).toEqual([
      ['own', jobId, 'order-1'],
      ['forget', jobId],
    ]);
    expect(queueJob.data.run?.step).toMatchObject({ type: 'end', job: { id: jobId } });
    expect(told).toEqual([jobId, 'order-1']);
    // Taken up again, as after a crash: it is told again, and nothing is read or stored.
    done.length = 0;
    const requests = sandbox.requests.length;
    await work();
    expect([names(), sandbox.requests.length, told.length]).toEqual([['forget'], requests, 4]);
  });

  it('fails with the error of its job, tells it once, keeps it and forgets its note', async () => {
    const told: unknown[] = [];
    const { sandbox, queueJob, work, names } = await waiting({
      data: FAILING,
      at: { onFailed: (error: Error) => told.push(error) },
    });
    await sandbox.advance(HOUR_MS);
    const error = (await work()) as Error;
    expect(error).toBeInstanceOf(UnrecoverableError);
    expect(error).toMatchObject({ message: expect.stringMatching(/^JobFailedError: /), cause: told[0] });
    expect(told).toHaveLength(1);
    expect(names()).toContain('forget');
    expect(queueJob.data.failure).toMatchObject({ name: 'JobFailedError', code: 'generation_rejected' });
    expect(queueJob.data.stalls).toBe(0);
    // Its worker died before the engine knew: the same word again, and nothing else.
    const after = place({ data: queueJob.data, stalledCounter: 1 });
    expect(await after.work()).toMatchObject({ message: error.message, cause: { name: 'JobFailedError' } });
    expect(after.names()).toEqual([]);
  });

  it('fails at its time limit with the last that is known of its job', async () => {
    const { queueJob, work, jobId } = await waiting({ at: { rules: { ...RULES, timeoutMs: 4_000 } } });
    Object.assign(queueJob, { data: { ...queueJob.data, storedAt: NOW - 5_000 } });
    expect(await work()).toMatchObject({
      message: expect.stringMatching(/^WaitTimeoutError: /),
      cause: { jobId, timeoutMs: 4_000, job: { id: jobId, status: 'queued' } },
    });
    expect(queueJob.data.failure).toMatchObject({ name: 'WaitTimeoutError' });
  });

  it('never stores a file: its record says so', async () => {
    const { queueJob, work, told, jobId } = await waiting();
    const run = { ...queueJob.data.run, step: { type: 'store', job: { id: jobId } } };
    Object.assign(queueJob, { data: { ...queueJob.data, run } });
    await work();
    expect(told).toMatchObject([{ message: 'A queued call does not store its file: onCompleted does.' }]);
  });
});

describe('the turn of a video', () => {
  const data = { call: 'videos' } as const;
  const failing = async (fault: Fault, more: Setup = {}) => {
    const on = place({ data, ...more });
    on.sandbox.faults.add({ ...fault, match: { method: 'POST', path: '/v1/videos' } });
    return { ...on, end: await on.work() };
  };

  it('is asked for before anything is uploaded or sent, and ends with the answer', async () => {
    const { sandbox, work, done, names } = place({ data });
    await work();
    expect(done[0]).toMatchObject(['admit', { id: 'order-1' }, expect.any(AbortSignal)]);
    expect(names().filter((name) => ['admit', 'leave', 'hold', 'giveBack'].includes(String(name)))).toEqual([
      'admit',
      'leave',
    ]);
    expect(done).toContainEqual(['leave', 'order-1']);
    expect(sandbox.jobs).toHaveLength(1);
  });

  it('is not asked for by other calls', async () => {
    const { work, names } = place({ data: { call: 'images' } });
    await work();
    expect(names()).not.toContain('admit');
    expect(names()).not.toContain('leave');
  });

  it('that has not come lets the call sleep, for ten minutes at most, and wakes it behind the others', async () => {
    const admit = async () => false;
    const { sandbox, work, names, asleep } = place({ data, creates: { admit } });
    expect(await work()).toBeInstanceOf(DelayedError);
    expect([sandbox.requests.length, names(), asleep()]).toEqual([0, ['moveToDelayed', 'hasCome'], [600_000]]);
    const come = place({ data, creates: { admit, hasCome: async () => true } });
    expect(await come.work()).toBeInstanceOf(DelayedError);
    expect(come.done.slice(1)).toEqual([['promote'], ['wake', { priority: 0, lifo: false }]]);
  });

  it('that finds its rate limit full holds the turns after it as long as the service says', async () => {
    const { done, asleep, end, sandbox } = await failing({ status: 429, retryAfterS: 7 });
    expect(end).toBeInstanceOf(DelayedError);
    expect(done).toContainEqual(['hold', 'order-1', 7_000]);
    expect(done.map(([name]) => name)).not.toContain('leave');
    expect(asleep()).toEqual([600_000]);
    expect(sandbox.jobs).toHaveLength(0);
  });

  it('whose call is refused, or loses its answer, is over', async () => {
    for (const fault of [{ status: 400 }, { commitThenDrop: true }] as Fault[]) {
      const { done } = await failing(fault);
      expect(done.filter(([name]) => /leave|hold|giveBack/.test(String(name)))).toEqual([['leave', 'order-1']]);
    }
  });

  it.each([
    ['until the next period of its budget', HOUR_MS, HOUR_MS],
    ['for a second where that has begun meanwhile', -HOUR_MS, 1_000],
  ])('is given back to the others by a call that sleeps %s', async (_, inMs, ms) => {
    const { work, done, asleep } = place({ data, at: { client: refusing(new Date(NOW + inMs).toISOString()) } });
    expect(await work()).toBeInstanceOf(DelayedError);
    expect(done).toContainEqual(['giveBack', 'order-1']);
    expect(asleep()).toEqual([ms]);
  });

  it('is given back to the others by a call that fails because its budget has no periods', async () => {
    const { work, done, asleep } = place({ data, at: { client: refusing(null) } });
    expect(await work()).toMatchObject({ message: 'BudgetExceededError: over budget' });
    expect([done.some(([name]) => name === 'giveBack'), asleep()]).toEqual([true, []]);
  });

  const refusing = (resetsAt: string | null) => {
    const refusal = { scope: 'ann', leftTokens: 1, estimateTokens: 8, resetsAt, reason: 'spent' as const };
    const create = () => Promise.reject(new BudgetExceededError('over budget', refusal));
    return { videos: { create }, limits: () => ({}) };
  };
});

describe('a queued call in trouble', () => {
  const boom = { onCompleted: () => Promise.reject(new Error('S3 is away')) };

  it('says what stands in the way, as an error, and pauses for a second and then twice as long, up to the longest pause', async () => {
    const { sandbox, queueJob, work, asleep, told } = await waiting({ at: boom });
    await sandbox.advance(HOUR_MS);
    for (let time = 0; time < 7; time++) expect(await work()).toBeInstanceOf(DelayedError);
    expect(asleep()).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    expect(queueJob.data.trouble).toEqual({ since: NOW, failures: 7 });
    expect(told).toEqual([]);
  });

  it('pauses no longer than retryDelayMs, also at first', async () => {
    const { sandbox, work, asleep } = await waiting({ at: { ...boom, rules: { ...RULES, retryMs: 20 } } });
    await sandbox.advance(HOUR_MS);
    await work();
    await work();
    expect(asleep()).toEqual([20, 20]);
  });

  it('fails after a day with what its callback threw as the cause, and is tried until then', async () => {
    let now = NOW;
    const failures: unknown[] = [];
    const at = { ...boom, clock: { now: () => now }, onFailed: (error: unknown) => failures.push(error) };
    const { sandbox, work } = await waiting({ at });
    await sandbox.advance(HOUR_MS);
    for (now of [NOW + 1, NOW + DAY_MS]) expect(await work()).toBeInstanceOf(DelayedError);
    now = NOW + 1 + DAY_MS;
    expect(await work()).toMatchObject({
      message: 'GenError: onCompleted failed: S3 is away',
      cause: { recovery: 'retry', cause: new Error('S3 is away') },
    });
    expect(failures).toHaveLength(1);
  });

  it('fails at once when onCompleted throws an UnrecoverableError', async () => {
    const at = { onCompleted: () => Promise.reject(new UnrecoverableError('no such customer')) };
    const { sandbox, queueJob, work, asleep } = await waiting({ at });
    await sandbox.advance(HOUR_MS);
    expect(await work()).toMatchObject({ message: 'GenError: onCompleted failed: no such customer' });
    expect(asleep()).toEqual([]);
    expect(queueJob.data.failure).toMatchObject({ message: 'onCompleted failed: no such customer' });
  });

  it('calls onFailed again while it throws, for a day, or until it throws an UnrecoverableError', async () => {
    let now = NOW;
    let thrown: Error = new Error('the log is away');
    const at = { clock: { now: () => now }, onFailed: () => Promise.reject(thrown) };
    const { sandbox, queueJob, work } = await waiting({ data: FAILING, at });
    await sandbox.advance(HOUR_MS);
    expect(await work()).toBeInstanceOf(DelayedError);
    expect(queueJob.data.failure).toBeUndefined();
    now = NOW + DAY_MS - 1;
    expect(await work()).toBeInstanceOf(DelayedError);
    const troubled = queueJob.data;
    thrown = new UnrecoverableError('give up');
    expect(await work()).toBeInstanceOf(UnrecoverableError);
    Object.assign(queueJob, { data: troubled });
    thrown = new Error('the log is away');
    now = NOW + DAY_MS;
    expect(await work()).toMatchObject({ message: expect.stringMatching(/^JobFailedError: /) });
  });

  it('tells what its own parts throw, and goes on after it', async () => {
    const reasons = [new Error('no redis'), 'no redis'];
    for (const reason of reasons) {
      const { work, asleep, told } = place({
        data: { call: 'videos' },
        creates: { admit: () => Promise.reject(reason) },
      });
      expect(await work()).toBeInstanceOf(DelayedError);
      expect([asleep(), told]).toEqual([[1_000], [new Error('no redis')]]);
    }
  });

  it('that goes on for a day fails as an error that may be tried again, with what was thrown as its cause', async () => {
    const failures: unknown[] = [];
    const trouble = { since: NOW - DAY_MS, failures: 3 };
    const { work, done } = place({
      data: { call: 'videos', trouble },
      creates: { admit: () => Promise.reject(new Error('no redis')) },
      at: { onFailed: (error: unknown) => failures.push(error) },
    });
    expect(await work()).toMatchObject({ message: 'GenError: no redis' });
    expect(failures).toEqual([expect.objectContaining({ recovery: 'retry', cause: new Error('no redis') })]);
    expect(failures[0]).toBeInstanceOf(GenError);
    expect(done).toContainEqual(['leave', 'order-1']);
  });
});

describe('a record of a newer version', () => {
  const newer = { version: 9 } as const;

  it('sleeps for half a minute as it is, and is told once', async () => {
    const { queueJob, work, names, asleep, told } = place({ data: newer });
    const before = structuredClone(queueJob.data);
    expect(isKnownRecord(before)).toBe(false);
    for (let time = 0; time < 2; time++) expect(await work()).toBeInstanceOf(DelayedError);
    expect([names(), asleep(), queueJob.data]).toEqual([['moveToDelayed', 'moveToDelayed'], [30_000, 30_000], before]);
    expect(told).toEqual([
      new GenError(
        '"order-1" was written by a newer version of gen-client, so this worker leaves it alone. Update the worker.',
      ),
    ]);
    const run = place({ data: { run: { version: 3 } as never } });
    await run.work();
    expect(run.told[0]?.message).toContain('was written by a newer version');
  });

  it('is told again after a thousand others: no more are remembered', async () => {
    const { queueJob, work, told } = place({ data: newer });
    const names = ['first', ...Array.from({ length: 999 }, (_, at) => `order-${at}`), 'first', 'last', 'first'];
    for (const id of names) await work.call(Object.assign(queueJob, { id }));
    expect(told.filter(({ message }) => message.startsWith('"first"'))).toHaveLength(2);
    expect(told).toHaveLength(1_002);
  });
});

describe('the budget of a queued call', () => {
  it('is that of its scope, and without one the client’s own', async () => {
    const scopes: string[] = [];
    const budgetOf = (scope: string) => {
      scopes.push(scope);
      return createBudget({ maxTokens: 1_000_000 });
    };
    await place({ data: { budgetScope: 'ann' }, at: { budgetOf } }).work();
    await place({ at: { budgetOf } }).work();
    expect(scopes).toEqual(['ann']);
  });
});
