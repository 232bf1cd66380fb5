// Options and results of `create` and `createAndWait`.
import { describe, expect, it } from 'vitest';
import type { CreateOptions } from '../../src/client/create-options.js';
import type { GenClient, JobEvent } from '../../src/index.js';
import { json, rejection, stubbed } from '../transport/support.js';

const DONE = {
  id: 'job_1',
  status: 'completed',
  providerOutputUrl: 'https://service.test/prefix/v1/jobs/job_1/output',
  providerOutputExpiresAt: '2026-03-02T10:00:00.000Z',
};
const response = () => json({ data: { job: DONE, quoted_token_cost: 7, balance_tokens: 93 } });

type Call = (client: GenClient, params: object | undefined, options?: CreateOptions | null) => PromiseLike<unknown>;
const CALLS: readonly (readonly [string, Call])[] = [
  ['create', ({ videos }, params, options) => videos.create(params as never, options as never)],
  ['createAndWait', ({ videos }, params, options) => videos.createAndWait(params as never, options as never)],
];

describe.each(CALLS)('videos.%s', (_, call) => {
  it('sends its params with the headers and idempotency key of its options', async () => {
    const { client, requests } = stubbed(response);
    await call(client, { prompt: 'x' }, { headers: { 'x-tenant': 'ann' }, idempotencyKey: 'order-1' });
    expect(requests).toMatchObject([
      { method: 'POST', headers: { 'x-tenant': 'ann', 'idempotency-key': 'order-1' }, body: '{"prompt":"x"}' },
    ]);
  });

  it('sends invalid params if its options disable the checks', async () => {
    const { client, requests } = stubbed(response);
    const params = { prompt: 'x', duration: 3_600 };
    expect(await rejection(Promise.resolve(call(client, params)))).toMatchObject({ name: 'PreflightError' });
    await call(client, params, { preflight: false });
    expect(requests.map(({ body }) => JSON.parse(body))).toEqual([params]);
  });

  it("reports its label in the job's events, but doesn't send it", async () => {
    const events: JobEvent[] = [];
    const { client, requests } = stubbed(response, { hooks: { onJob: (event) => void events.push(event) } });
    await call(client, { prompt: 'x' }, { label: 'ann' });
    expect(events[0]).toMatchObject({
      call: 'videos',
      jobId: 'job_1',
      label: 'ann',
      quotedTokens: 7,
      balanceTokens: 93,
    });
    expect(JSON.stringify(requests)).not.toContain('ann');
  });

  it.each([
    [null, /^videos\.create: options must be an object such as \{ signal \}, not null\.$/],
    [{ label: '' }, /^label must be a non-empty string, not ""\.$/],
    [{ onUploadProgress: 5 as never }, /^onUploadProgress must be a function, not 5\.$/],
  ])('rejects the options %j before it sends anything', async (options, message) => {
    const { client, requests } = stubbed(response);
    const error = await rejection(Promise.resolve(call(client, { prompt: 'x' }, options)));
    expect(error).toMatchObject({ name: 'GenError', message: expect.stringMatching(message) });
    expect(requests).toEqual([]);
  });

  it.each([[undefined], ['a fox'], [[]]])('rejects %j as its params before it sends anything', async (params) => {
    const { client, requests } = stubbed(response);
    const error = await rejection(Promise.resolve(call(client, params as never)));
    expect(error).toMatchObject({ name: 'PreflightError' });
    expect(requests).toEqual([]);
  });
});

it('create returns fields next to the job, but not those of a job that is the entire response', async () => {
  const create = async (body: unknown) => stubbed(() => json(body)).client.images.create({ prompt: 'x' });
  const warnings: string[] = [];
  const idempotencyKey = expect.any(String);
  expect(await create({ data: { job: DONE, queue: 3 } })).toEqual({ job: DONE, queue: 3, warnings, idempotencyKey });
  expect(await create({ job: DONE, queue: 3 })).toEqual({ job: DONE, queue: 3, warnings, idempotencyKey });
  expect(await create({ data: DONE })).toEqual({ job: DONE, warnings, idempotencyKey });
  expect(await create(DONE)).toEqual({ job: DONE, warnings, idempotencyKey });
});
