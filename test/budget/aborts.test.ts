// Aborts a program at every await: the call rejects immediately, no job is lost, and no tokens stay reserved.
import type { GenClient } from 'gen-client';
import { describe, expect, it } from 'vitest';
import { PRICE, resumeAll, simulate, VIDEO } from '../store/simulation.js';
import { MODES, pointAt } from '../support/await-points.js';
import { deferred } from '../support/deferred.js';
import { errorOf } from '../support/rejection.js';
import { countedSignal, json } from '../transport/support.js';
import { settle } from '../waiting/virtual-clock.js';

type Simulation = ReturnType<typeof simulate>;
type Open = ReturnType<Simulation['open']>;
const KEY = 'order-1';
const REASON = new Error('the caller left');
/** Longest time from an abort to the rejection. */
const ABORT_MS = 100;

interface Program {
  /** Prepares the service and the store, without aborts. */
  prepare?(world: Simulation, process: Open): Promise<unknown>;
  run(client: GenClient, signal: AbortSignal): Promise<unknown>;
}

/** Makes jobs take 15 s, and rejects the first create with a 503. */
function slowService({ clock, state, jobs }: Simulation): void {
  let isFirst = true;
  state.respond = () => {
    if (isFirst) {
      isFirst = false;
      return json({ success: false, error: { code: 'internal_error' } }, { status: 503 });
    }
    state.outcomes.push({ status: 'processing' });
    clock.after(15_000, () => {
      for (const job of jobs.values()) job.status = 'completed';
    });
    return 'created';
  };
}

/** Creates a job that takes 15 s. */
async function createSlowJob(world: Simulation, { client }: Open): Promise<void> {
  slowService(world);
  await world.clock.until(client.videos.create(VIDEO, { idempotencyKey: KEY, maxRetries: 2 }));
}

/** Creates a completed job. */
function createJob({ clock }: Simulation, { client }: Open): Promise<unknown> {
  return clock.until(client.videos.create(VIDEO, { idempotencyKey: KEY }));
}

const PROGRAMS: Readonly<Record<string, Program>> = {
  create: {
    prepare: async (world) => slowService(world),
    run: (client, signal) => client.videos.create(VIDEO, { idempotencyKey: KEY, signal, maxRetries: 2 }),
  },
  'create that waits for a slot': {
    prepare: (_, { client }) =>
      client.withOptions({ budget: undefined }).videos.create(VIDEO, { idempotencyKey: 'without a budget' }),
    run: (client, signal) => client.videos.create(VIDEO, { idempotencyKey: KEY, signal }),
  },
  'create that waits for its budget': {
    async prepare(world) {
      const { promise: responded, resolve: respond } = deferred();
      const other = world.open();
      other.life.pass = async (what, work) => {
        if (what === 'POST') await responded;
        return work();
      };
      void other.client.videos.create(VIDEO);
      for (let turn = 0; turn < 20; turn++) await settle();
      world.clock.after(4_000, () => respond());
    },
    run: (client, signal) => client.videos.create(VIDEO, { idempotencyKey: KEY, signal }),
  },
  createAndWait: {
    prepare: async (world) => slowService(world),
    run: (client, signal) =>
      client.videos.createAndWait(VIDEO, { idempotencyKey: KEY, signal, maxRetries: 2, pollIntervalMs: 4_000 }),
  },
  'createAndWait with a file': {
    prepare: async (world) => slowService(world),
    run: (client, signal) =>
      client.videos.createAndWait(
        { ...VIDEO, first_frame_upload_id: new Blob(['a fox'], { type: 'image/png' }) },
        { idempotencyKey: KEY, signal, maxRetries: 2, pollIntervalMs: 4_000, cleanup: 'after-job' },
      ),
  },
  'createAndWait that resubmits its job': {
    prepare: async ({ state }) => state.outcomes.push({ status: 'failed', errorCode: 'generation_timeout' }),
    run: (client, signal) =>
      client.videos.createAndWait(VIDEO, {
        idempotencyKey: KEY,
        signal,
        pollIntervalMs: 4_000,
        recover: { generation_timeout: 1 },
      }),
  },
  waitForJob: {
    prepare: createSlowJob,
    run: (client, signal) => client.waitForJob('job_1', { signal, pollIntervalMs: 4_000 }),
  },
  watchJob: {
    prepare: createSlowJob,
    async run(client, signal) {
      for await (const _ of client.watchJob('job_1', { signal, pollIntervalMs: 4_000 }));
    },
  },
  'jobs.get': {
    prepare: createJob,
    run: (client, signal) => client.jobs.get('job_1', { signal }),
  },
  'saveOutput after the file is stored': {
    prepare: createJob,
    run: (client, signal) => client.jobs.storing({ name: 'saveOutput', jobId: 'job_1', signal }, async () => {}),
  },
  waitForJobs: {
    async prepare(world, process) {
      await createSlowJob(world, process);
      await world.clock.until(process.client.videos.create(VIDEO, { idempotencyKey: 'other' }));
    },
    async run(client, signal) {
      for await (const _ of client.waitForJobs(['job_1', 'job_2'], { signal, pollIntervalMs: 4_000 }));
    },
  },
  'uploads.upload': {
    run: (client, signal) => client.uploads.upload(new Blob(['a fox'], { type: 'image/png' }), { signal }),
  },
  resume: {
    async prepare(world) {
      const crashed = world.open();
      world.state.respond = (key) => (key === 'lost' ? 'lost' : 'created');
      await world.clock.until(crashed.client.videos.create(VIDEO, { idempotencyKey: KEY }));
      crashed.client.videos.create(VIDEO, { idempotencyKey: 'lost' }).catch(() => {});
      for (let turn = 0; turn < 40; turn++) await settle();
      crashed.life.isDead = true;
      world.state.respond = () => 'created';
      await world.clock.advance(40_000);
    },
    async run(client, signal) {
      // `markStored` accepts no signal.
      for await (const { job } of client.resume({ signal })) client.markStored(job).catch(() => {});
    },
  },
};

/** Aborts the program at one await, and checks the result. Returns undefined if the program has fewer awaits. */
async function abortAt(program: Program, index: number, mode: (typeof MODES)[number]): Promise<string | undefined> {
  const world = simulate();
  const { clock, jobs, posted, uploads, open, charged } = world;
  const process = open({
    budget: { unknownPrice: () => PRICE },
    rateLimit: 'wait',
    limits: { 'videos.create': { limit: 1, windowMs: 10_000 } },
  });
  await program.prepare?.(world, process);
  const { controller, signal, listeners } = countedSignal();
  const point = pointAt(index, mode, () => controller.abort(REASON));
  const originalAfter = clock.after;
  clock.after = (ms, fire, options) => originalAfter(ms, () => point.fire(fire), options);
  process.life.pass = point.pass;
  let outcome: unknown = 'pending';
  const run = errorOf(program.run(process.client, signal)).then((error) => {
    outcome = error;
  });
  const position = () => `${mode}: ${point.reached ?? 'the end'}`;
  await clock.until(Promise.race([run, point.whenReached]));
  if (!point.reached) return undefined;
  clock.after = originalAfter;
  const postedBefore = posted.includes(KEY);
  for (let turn = 0; turn < 20; turn++) await settle();
  await clock.advance(ABORT_MS);
  // An abort during the last await can come too late.
  expect([REASON, undefined], position()).toContain(outcome);
  point.release();
  await run;
  await clock.advance(45_000);
  expect(listeners(), position()).toBe(0);
  // After the abort, no request may be sent, except one whose start was delayed.
  if (mode !== 'not started') expect(posted.includes(KEY), position()).toBe(postedBefore);
  const next = open();
  const { errors } = await clock.until(resumeAll(next.client));
  expect(errors, position()).toEqual([]);
  const usage = await next.budget.usage();
  const uncounted = jobs.has('without a budget') ? PRICE : 0;
  expect(usage, position()).toMatchObject({ reservedTokens: 0, unresolved: [] });
  expect(usage.spentTokens, position()).toBe(charged() - uncounted);
  // An upload may remain if the abort came with its first response, before any bytes were sent.
  expect([...uploads.values()], position()).not.toContain('PUT');
  return point.reached;
}

/** `npm run campaign -- aborts` aborts at every await. Otherwise, each mode aborts at some of them. */
const STRIDE = process.env.CAMPAIGN === 'full' ? 1 : 2 * MODES.length;

describe.each(Object.entries(PROGRAMS))('an abort at each await of %s', (_, program) => {
  it.each(MODES)('rejects immediately, and loses neither jobs nor tokens (%s)', { timeout: 60_000 }, async (mode) => {
    const failures: string[] = [];
    const first = 1 + (STRIDE > 1 ? 2 * MODES.indexOf(mode) : 0);
    for (let index = first; ; index += STRIDE) {
      const reached = await abortAt(program, index, mode).catch((error) => failures.push(String(error.message)));
      if (reached !== undefined) continue;
      expect(index).toBeGreaterThan(5);
      break;
    }
    expect(failures).toEqual([]);
  });
});
