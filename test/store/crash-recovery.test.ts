// After a crash, resume() loses no paid job and no order, whatever the service's responses.
import { describe, expect, it } from 'vitest';
import {
  connectionRefused,
  errorResponse,
  order,
  PRICE,
  resumeAll,
  type ServiceReply,
  simulate,
  unfinishedKeys,
  VIDEO,
} from './simulation.js';

const FAILURES: readonly [string, () => ServiceReply][] = [
  ['refuses connections', connectionRefused],
  ['responds 429', () => errorResponse(429, 'rate_limited')],
  ['responds 503 dispatch_disabled', () => errorResponse(503, 'dispatch_disabled')],
  ['responds 401', () => errorResponse(401, 'invalid_api_key')],
];

describe.each(['create', 'createAndWait'] as const)('a killed %s', (method) => {
  it.each(FAILURES)(
    'that was sent stays unfinished and reserved while the service %s, and is resumed later',
    async (_, respond) => {
      const { clock, jobs, state, open, crash } = simulate();
      const processA = open();
      state.respond = () => 'lost';
      order(processA.client, method, 'order-1').catch(() => {});
      await crash(processA);
      state.respond = respond;
      const processB = open();
      for (let start = 0; start < 2; start++) {
        expect((await clock.until(resumeAll(processB.client))).errors).toHaveLength(1);
        expect(await unfinishedKeys(processB.client)).toEqual(['order-1']);
        expect((await processB.budget.usage()).unresolved).toEqual(['order-1']);
      }
      state.respond = () => 'created';
      expect(await clock.until(resumeAll(processB.client))).toEqual({ keys: ['order-1'], errors: [] });
      expect([jobs.size, await processB.budget.usage()]).toMatchObject([1, { spentTokens: PRICE, reservedTokens: 0 }]);
      expect(await unfinishedKeys(processB.client)).toEqual([]);
    },
  );

  it.each(FAILURES)(
    "that wasn't sent stays unfinished without a reservation while the service %s, and is resumed later",
    async (_, respond) => {
      const { clock, posted, state, open, crash } = simulate();
      const processA = open({ rateLimit: 'wait', limits: { 'videos.create': { limit: 1, windowMs: 600_000 } } });
      await clock.until(processA.client.videos.create(VIDEO, { idempotencyKey: 'first' }));
      order(processA.client, method, 'order-1').catch(() => {});
      await crash(processA);
      state.respond = respond;
      const processB = open();
      for (let start = 0; start < 2; start++) {
        expect((await clock.until(resumeAll(processB.client))).errors).toHaveLength(1);
        expect(await unfinishedKeys(processB.client)).toEqual(['order-1']);
        expect(await processB.budget.usage()).toMatchObject({ reservedTokens: 0 });
      }
      state.respond = () => 'created';
      expect((await clock.until(resumeAll(processB.client))).keys).toEqual(['order-1']);
      expect(posted.filter((key) => key === 'first')).toEqual(['first']);
    },
  );
});

describe("a create that resume() can't complete", () => {
  it.each([
    ['an unknown job', { name: 'NotFoundError', jobId: 'job_2' }, ({ jobs }: Simulation) => jobs.delete('order-1')],
    [
      'a rejected create',
      { code: 'insufficient_balance' },
      ({ state, jobs }: Simulation) => {
        jobs.delete('order-1');
        state.respond = () => errorResponse(402, 'insufficient_balance');
      },
    ],
  ])(
    'because of %s is reported by the next resume() if the loop ends early, and then removed',
    async (cause, error, change) => {
      const simulation = simulate();
      const { clock, state, open, crash } = simulation;
      const processA = open({ budget: { unknownPrice: () => PRICE } });
      if (cause === 'a rejected create') state.respond = (key) => (key === 'order-1' ? 'lost' : 'created');
      await clock.until(processA.client.videos.create(VIDEO, { idempotencyKey: 'order-2' }));
      processA.client.videos.create(VIDEO, { idempotencyKey: 'order-1' }).catch(() => {});
      await crash(processA);
      change(simulation);
      const processB = open();
      const endLoopEarly = async () => {
        for await (const _ of processB.client.resume()) break;
      };
      await clock.until(endLoopEarly());
      expect((await unfinishedKeys(processB.client)).sort()).toEqual(['order-1', 'order-2']);
      const { keys, errors } = await clock.until(resumeAll(processB.client));
      expect([keys, errors]).toMatchObject([['order-2'], [{ ...error, idempotencyKey: 'order-1' }]]);
      await clock.advance(10);
      expect(await unfinishedKeys(processB.client)).toEqual([]);
    },
  );
});

type Simulation = ReturnType<typeof simulate>;

it("a job that a live process waits for isn't resumed until the wait ends", async () => {
  const { clock, jobs, open } = simulate();
  const [processA, processB] = [open(), open()];
  const { job } = await clock.until(processA.client.videos.create(VIDEO, { idempotencyKey: 'order-1' }));
  for (const serviceJob of jobs.values()) serviceJob.status = 'processing';
  const stop = new AbortController();
  const wait = processA.client.waitForJob(job, { signal: stop.signal }).catch(() => {});
  await clock.advance(10);
  for (const { client } of [processA, processB])
    expect(await clock.until(resumeAll(client))).toEqual({ keys: [], errors: [] });
  stop.abort();
  await wait;
  await clock.advance(10);
  for (const serviceJob of jobs.values()) serviceJob.status = 'completed';
  expect(await clock.until(resumeAll(processB.client))).toEqual({ keys: ['order-1'], errors: [] });
});

it('a create killed during the pause after a 429 counts as unsent, and blocks no budget', async () => {
  const { clock, state, open, crash } = simulate();
  const processA = open({ maxRetries: 3 });
  state.respond = () => new Response('{}', { status: 429, headers: { 'retry-after': '60' } });
  processA.client.videos.create(VIDEO, { idempotencyKey: 'order-1' }).catch(() => {});
  await crash(processA);
  state.respond = () => 'created';
  const processB = open();
  expect(await processB.budget.usage()).toMatchObject({ reservedTokens: 0, unresolved: [] });
  await clock.until(processB.client.videos.create(VIDEO));
});

it('a createAndWait that is aborted while it is recorded leaves no unfinished create', async () => {
  let unsentCreates = 0;
  for (let ms = 0; ms < 60; ms += 3) {
    const { clock, jobs, open } = simulate();
    const { client, life } = open();
    life.delayMs = 5;
    const stop = new AbortController();
    const call = client.videos.createAndWait(VIDEO, { signal: stop.signal }).catch(() => {});
    await clock.advance(ms);
    stop.abort();
    await clock.until(call);
    await clock.advance(100);
    if (jobs.size > 0) continue;
    unsentCreates += 1;
    expect([ms, await clock.until(unfinishedKeys(client))]).toEqual([ms, []]);
  }
  expect(unsentCreates).toBeGreaterThan(5);
});

it("a failed job that the loop hasn't reached before a crash is yielded by the next resume()", async () => {
  const { clock, state, open, crash } = simulate();
  const processA = open();
  state.outcomes = [{}, { status: 'failed', errorCode: 'generation_rejected' }];
  const first = await clock.until(processA.client.videos.create(VIDEO, { idempotencyKey: 'order-1' }));
  const second = await clock.until(processA.client.videos.create(VIDEO, { idempotencyKey: 'order-2' }));
  const loop = async () => {
    for await (const job of processA.client.waitForJobs([first.job.id, second.job.id])) {
      if (job.id === first.job.id) return new Promise<never>(() => {});
    }
  };
  void loop();
  await clock.advance(60_000);
  await crash(processA);
  expect((await clock.until(resumeAll(open().client))).keys.sort()).toEqual(['order-1', 'order-2']);
});

it('a job whose file has expired is yielded once', async () => {
  const { clock, jobs, open } = simulate();
  const processA = open();
  await clock.until(processA.client.videos.create(VIDEO, { idempotencyKey: 'order-1' }));
  for (const job of jobs.values()) job.expiresAt = new Date(clock.now() - 1).toISOString();
  const yielded: string[] = [];
  const resume = async () => {
    for await (const { idempotencyKey } of processA.client.resume()) yielded.push(idempotencyKey);
  };
  for (let start = 0; start < 2; start++) await clock.until(resume());
  expect(yielded).toEqual(['order-1']);
});

it("an unverified event doesn't finish a create in the ledger", async () => {
  const { clock, jobs, open } = simulate();
  const { client } = open();
  const { job } = await clock.until(client.videos.create(VIDEO, { idempotencyKey: 'order-1' }));
  for (const serviceJob of jobs.values()) serviceJob.status = 'processing';
  client.notify({ type: 'job.completed', data: { job: { id: job.id, status: 'completed' } } });
  await clock.advance(1_000);
  for await (const { phase } of client.unfinishedCreates()) expect(phase).toBe('accepted');
});

describe('on Workers, where a request can end without cleanup', () => {
  it('the create of an ended request counts as lost after 30 s, and another isolate resumes it', async () => {
    const { clock, state, open } = simulate({ perRequest: true });
    const [isolate, other] = [open(), open()];
    state.respond = () => 'lost';
    // An ended request's timers don't fire.
    const { after } = clock;
    clock.after = () => () => {};
    isolate.client.videos.create(VIDEO, { idempotencyKey: 'order-1' }).catch(() => {});
    await clock.advance(10);
    clock.after = after;
    state.respond = () => 'created';
    await clock.advance(31_000);
    const next = isolate.client.videos.create(VIDEO).then(
      () => 'created',
      (error) => error.reason,
    );
    expect(await clock.until(next)).toBe('unresolved');
    expect(await clock.until(resumeAll(other.client))).toEqual({ keys: ['order-1'], errors: [] });
    expect(await clock.until(other.budget.usage())).toMatchObject({ spentTokens: PRICE, reservedTokens: 0 });
  });

  it('the next request repeats failed writes', async () => {
    const { clock, state, open } = simulate({ perRequest: true });
    const { client, budget, life } = open();
    const { after } = clock;
    state.respond = () => {
      life.isDisconnected = true;
      return 'created';
    };
    await clock.until(client.videos.create(VIDEO));
    clock.after = () => () => {};
    await clock.advance(60_000);
    clock.after = after;
    life.isDisconnected = false;
    expect(await clock.until(budget.usage())).toMatchObject({ spentTokens: PRICE, reservedTokens: 0 });
  });
});
