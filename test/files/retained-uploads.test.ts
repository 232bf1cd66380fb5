// A create's uploads remain on the service if a job may use them, even if a later call with the same file is rejected.
import { describe, expect, it } from 'vitest';
import { GenClient, GenError } from '../../src/index.js';
import { CLOCK, systemClock } from '../../src/runtime/clock.js';
import type { Sandbox } from '../../src/sandbox/index.js';
import { countRemaining, createService, png, prompt } from './by-value-setup.js';
import { failure } from './support.js';

const CREATE = { method: 'POST', path: '/v1/videos' } as const;
const loseResponse = ({ faults }: Sandbox) => faults.add({ match: CREATE, commitThenDrop: true, times: 1 });
const failJob = ({ outcomes }: Sandbox) => outcomes.next({ status: 'failed', errorCode: 'generation_rejected' });

type Call = (client: GenClient, params: { prompt: string; first_frame_upload_id: Blob }) => Promise<unknown>;
const create: Call = ({ videos }, params) => videos.create(params);
const createAndWait: Call = ({ videos }, params) => videos.createAndWait(params);

describe("an upload isn't deleted because a later call is rejected", () => {
  it.each<[string, (sandbox: Sandbox) => void, Call]>([
    ['that was created', () => {}, create],
    ['that has completed', () => {}, createAndWait],
    ['that has failed', failJob, createAndWait],
    ['whose create lost its response', loseResponse, create],
    ['whose createAndWait lost its response', loseResponse, createAndWait],
  ])('if it belongs to a job %s', async (_, prepare, call) => {
    const { sandbox } = createService();
    const client = sandbox.client({ maxRetries: 0 });
    const params = { prompt, first_frame_upload_id: png() };
    prepare(sandbox);
    await call(client, params).catch(() => {});
    sandbox.faults.add({ match: CREATE, status: 402, code: 'insufficient_balance', times: 1 });
    expect(await failure(client.videos.create(params))).toMatchObject({ code: 'insufficient_balance' });
    expect(countRemaining(sandbox)).toBe(1);
    expect(sandbox.jobs).toHaveLength(1);
  });
});

describe('the error lists the remaining uploads', () => {
  const params = () => ({ prompt, first_frame_upload_id: png(), last_frame_upload_id: png() });

  it("after a wait's timeout, because the job continues with them", async () => {
    const { sandbox, client } = createService({ clock: 'manual', jobDurationMs: 60_000 });
    const timeoutError = failure(client.videos.createAndWait(params(), { timeoutMs: 20_000 }));
    await sandbox.advance(30_000);
    const { uploadIds } = (await timeoutError) as Error & { uploadIds?: string[] };
    expect(uploadIds?.toSorted()).toEqual([...(sandbox.jobs[0]?.uploadIds ?? [])].sort());
    expect(uploadIds).toHaveLength(2);
  });

  it('after onCreated throws', async () => {
    const { sandbox, client } = createService();
    const error = new GenError('the table is full');
    const onCreated = () => {
      throw error;
    };
    expect(await failure(client.videos.createAndWait(params(), { onCreated }))).toBe(error);
    expect(error.uploadIds).toHaveLength(2);
    expect(countRemaining(sandbox)).toBe(2);
  });

  it('unless there are none or the job has ended', async () => {
    const { sandbox } = createService();
    const client = sandbox.client({ maxRetries: 0 });
    for (const call of [create, createAndWait]) {
      loseResponse(sandbox);
      expect(await failure(call(client, { prompt } as never))).not.toHaveProperty('uploadIds');
    }
    failJob(sandbox);
    const error = await failure(client.videos.createAndWait(params()));
    expect(error).toMatchObject({ code: 'generation_rejected' });
    expect(error).not.toHaveProperty('uploadIds');
  });
});

it.each([
  ['shares its upload with a concurrent call', false, 1],
  ["is uploaded separately by a concurrent call on Workers, where calls can't wait for each other", true, 2],
])('a file %s', async (_, perRequest, times) => {
  const { sandbox, log } = createService();
  const { apiKey, baseUrl, fetch } = sandbox;
  const { now, after } = systemClock;
  const client = new GenClient({ apiKey, baseUrl, fetch, ...{ [CLOCK]: { now, after, perRequest } } });
  const params = { prompt, first_frame_upload_id: png() };
  await Promise.all([client.videos.create(params), client.videos.create(params)]);
  expect(log().filter((line) => line === 'POST /v1/uploads')).toHaveLength(times);
});
