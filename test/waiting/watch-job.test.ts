// Progress of a job: watchJob, onUpdate, and estimate.
import { describe, expect, it } from 'vitest';
import { createSandbox } from '../../src/sandbox/index.js';
import type { Job } from '../../src/schemas/job.js';
import { type JobUpdate, watchJob } from '../../src/waiting/job-iterables.js';
import { countedSignal, rejection } from '../transport/support.js';
import { running, startProcess } from './processes.js';

const PARAMS = { model: 'svc-video-fast', duration: 5, resolution: '720p', prompt: 'a fox at dawn' } as const;
const CALL = { call: 'videos', model: 'svc-video-fast', duration: 5, resolution: '720p' } as const;

/** Sets up a service with a manual clock. Its jobs take a minute. */
function setup() {
  const sandbox = createSandbox({ clock: 'manual', jobDurationMs: 60_000, limits: 'off' });
  const client = sandbox.client();
  /** Advances the clock until `work` settles. */
  const advanceUntilSettled = async <T>(work: Promise<T>): Promise<T> => {
    let isPending = true;
    const close = () => {
      isPending = false;
    };
    work.then(close, close);
    for (let second = 0; isPending && second < 600; second++) await sandbox.advance(1_000);
    return work;
  };
  return { sandbox, client, advanceUntilSettled };
}

async function collect(iterable: AsyncIterable<JobUpdate>): Promise<JobUpdate[]> {
  const updates: JobUpdate[] = [];
  for await (const update of iterable) updates.push(update);
  return updates;
}

describe('watchJob', () => {
  it('yields at each poll, and ends with the final job, progress 1, and etaMs 0', async () => {
    const { client, advanceUntilSettled } = setup();
    const { job } = await client.videos.create(PARAMS);
    const updates = await advanceUntilSettled(collect(client.watchJob(job)));
    expect(updates.length).toBeGreaterThan(3);
    for (const { progress, etaMs } of updates.slice(0, -1)) expect([progress, etaMs]).toEqual([undefined, undefined]);
    expect(updates.at(-1)).toMatchObject({ job: { status: 'completed' }, progress: 1, etaMs: 0 });
  });

  it('estimates from completed jobs: progress grows to at most 0.99, and etaMs is the time left', async () => {
    const { client, advanceUntilSettled } = setup();
    expect(client.estimate(CALL).durationMs).toBeUndefined();
    await advanceUntilSettled(client.videos.createAndWait(PARAMS));
    expect(client.estimate(CALL).durationMs).toBe(60_000);
    const { job } = await client.videos.create(PARAMS);
    const updates = await advanceUntilSettled(collect(client.watchJob(job.id)));
    const values = updates.map(({ progress }) => progress ?? Number.NaN);
    expect(values.slice(0, -1).every((progress) => progress >= 0 && progress <= 0.99)).toBe(true);
    expect(values.toSorted((a, b) => a - b)).toEqual(values);
    const [first] = updates;
    expect((first?.progress ?? 0) * 60_000 + (first?.etaMs ?? 0)).toBeCloseTo(60_000, -3);
  });

  it("learns each model, duration, and resolution separately, but shares estimates between a model's aliases", async () => {
    const { client, advanceUntilSettled } = setup();
    await advanceUntilSettled(client.videos.createAndWait(PARAMS));
    expect(client.estimate({ ...CALL, duration: 10 }).durationMs).toBeUndefined();
    expect(client.estimate({ ...CALL, resolution: '480p' }).durationMs).toBeUndefined();
    expect(client.estimate({ ...CALL, model: 'svc-video-gen-2-fast' }).durationMs).toBe(60_000);
  });

  it('throws like waitForJob', async () => {
    const { sandbox, client, advanceUntilSettled } = setup();
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected' });
    const { job } = await client.videos.create(PARAMS);
    await expect(advanceUntilSettled(collect(client.watchJob(job)))).rejects.toMatchObject({ name: 'JobFailedError' });
    await expect(collect(client.watchJob('' as string))).rejects.toThrow('waitForJob accepts a job or its ID');
    const reason = new Error('enough');
    await expect(collect(client.watchJob(job, { signal: AbortSignal.abort(reason) }))).rejects.toBe(reason);
  });

  it('yields a final job once, without a poll', async () => {
    const { sandbox, client, advanceUntilSettled } = setup();
    const job: Job = await advanceUntilSettled(client.videos.createAndWait(PARAMS));
    const requests = sandbox.requests.length;
    expect(await collect(client.watchJob(job))).toEqual([{ job, progress: 1, etaMs: 0 }]);
    expect(sandbox.requests).toHaveLength(requests);
  });

  it('stops polling immediately when the loop ends', async () => {
    const { sandbox, client, advanceUntilSettled } = setup();
    const { job } = await client.videos.create(PARAMS);
    const loop = async () => {
      for await (const _ of client.watchJob(job)) break;
    };
    await advanceUntilSettled(loop());
    const requests = sandbox.requests.length;
    await sandbox.advance(60_000);
    expect(sandbox.requests).toHaveLength(requests);
  });

  it('yields the same values that onUpdate receives', async () => {
    const { client, advanceUntilSettled } = setup();
    await advanceUntilSettled(client.videos.createAndWait(PARAMS));
    const reported: unknown[] = [];
    const onUpdate = (job: Job, progress: object) => reported.push({ job, ...progress });
    const { job } = await client.videos.create(PARAMS);
    const updates = await advanceUntilSettled(collect(client.watchJob(job, { onUpdate })));
    expect(reported).toEqual(updates);
  });
});

it("watchJob ends immediately with its signal's reason, leaves no listener, and tolerates a rejecting onUpdate", async () => {
  const warnings: string[] = [];
  const { clock, jobWaits, polledIds } = startProcess(running, { warn: (message) => void warnings.push(message) });
  const { controller, signal, listeners } = countedSignal();
  const onUpdate = async () => Promise.reject(new Error('the screen is off'));
  const outcome = rejection(collect(watchJob('a', jobWaits, { pollIntervalMs: 1_000, signal, onUpdate })));
  await clock.advance(500);
  expect(listeners()).toBe(1);
  controller.abort('enough');
  expect(await outcome).toBe('enough');
  expect(listeners()).toBe(0);
  expect(warnings).toEqual(['onUpdate failed, and the wait for job a continues: the screen is off']);
  await clock.advance(60_000);
  expect(polledIds).toEqual(['a']);
});
