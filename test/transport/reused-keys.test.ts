import { createBudget, GenClient } from 'gen-client';
import { createSandbox } from 'gen-client/sandbox';
import { beforeEach, describe, expect, it, test } from 'vitest';
import { persistentStore } from '../support/persistent-store.js';
import { created, json, stubbed } from './support.js';

const REUSED = { name: 'PreflightError', code: 'idempotency_key_reused', param: 'idempotencyKey' };
let sandbox = createSandbox();
let client = sandbox.client();
beforeEach(() => {
  sandbox = createSandbox({ jobDurationMs: 0 });
  client = sandbox.client();
});
const warningsOf = async (params: Parameters<typeof client.videos.create>[0], idempotencyKey?: string) =>
  (await client.videos.create(params, { idempotencyKey })).warnings;

test('an idempotency key reused with different params is rejected each time with its job, without a request', async () => {
  const { job } = await client.videos.create({ prompt: 'a fox' }, { idempotencyKey: 'order-1' });
  const sent = sandbox.requests.length;
  const reused = client.videos.create({ prompt: 'a whale' }, { idempotencyKey: 'order-1' });
  await expect(reused).rejects.toMatchObject({ ...REUSED, message: expect.stringContaining(`(job ${job.id})`) });
  await expect(warningsOf({ prompt: 'a whale', idempotency_key: 'order-1' })).rejects.toMatchObject(REUSED);
  expect(sandbox.requests).toHaveLength(sent);
  expect(await warningsOf({ prompt: 'a fox' }, 'order-1')).toEqual([]);
});

test('an idempotency key that another process used with different params is rejected, if they share a store', async () => {
  const store = persistentStore();
  const { job } = await sandbox.client({ store }).images.create({ prompt: 'a fox' }, { idempotencyKey: 'order-1' });
  const { apiKey, baseUrl, fetch } = sandbox;
  // Like another process, a client with another clock doesn't share the memory of keys.
  const other = new GenClient({ apiKey, baseUrl, fetch, store });
  const reused = other.images.create({ prompt: 'a whale' }, { idempotencyKey: 'order-1' });
  await expect(reused).rejects.toMatchObject({ ...REUSED, message: expect.stringContaining(job.id) });
});

test("the same params aren't rejected, whatever their field order and in any client of the account", async () => {
  expect(await warningsOf({ prompt: 'a fox', duration: 5 }, 'order-1')).toEqual([]);
  client = sandbox.client();
  expect(await warningsOf({ duration: 5, prompt: 'a fox' }, 'order-1')).toEqual([]);
  await expect(warningsOf({ duration: 10, prompt: 'a fox' }, 'order-1')).rejects.toMatchObject(REUSED);
});

test('an idempotency key whose first call was rejected can be reused with different params', async () => {
  sandbox.faults.add({ match: { path: '/v1/videos' }, status: 422, code: 'invalid_prompt' });
  await expect(warningsOf({ prompt: 'no' }, 'order-1')).rejects.toMatchObject({ status: 422 });
  expect(await warningsOf({ prompt: 'a fox' }, 'order-1')).toEqual([]);
});

test('an idempotency key is shared by create and createAndWait, but not by two accounts', async () => {
  await client.videos.createAndWait({ prompt: 'a fox' }, { idempotencyKey: 'order-1' });
  await expect(warningsOf({ prompt: 'a whale' }, 'order-1')).rejects.toMatchObject(REUSED);
  client = sandbox.client({ apiKey: sandbox.createKey({ account: 'other' }) });
  expect(await warningsOf({ prompt: 'a whale' }, 'order-1')).toEqual([]);
});

test.each([
  ['an image model', { mediaType: 'image', modelId: 'svc-image-pro' }],
  ['another media type', { mediaType: 'image' }],
  ['a model of another kind', { modelId: 'svc-image-pro' }],
])("an idempotency key that created %s before is rejected with that job's ID", async (_, fields) => {
  const { client } = stubbed(() => {
    const job = { ...JSON.parse(created('job_old')).data.job, mediaType: undefined, ...fields };
    return json({ success: true, data: { job, quoted_token_cost: 4 } });
  });
  const budget = createBudget({ maxTokens: 100, scope: crypto.randomUUID(), unknownPrice: () => 10 });
  const reused = client.videos.create({ prompt: 'a fox' }, { idempotencyKey: 'order-1', budget });
  await expect(reused).rejects.toMatchObject({ ...REUSED, message: expect.stringContaining('(job job_old)') });
  expect(await budget.usage()).toMatchObject({ spentTokens: 0, reservedTokens: 0 });
});

test('an idempotency key in use is rejected with different params, but not with the same ones', async () => {
  const first = client.videos.create({ prompt: 'a fox' }, { idempotencyKey: 'order-1' });
  await expect(warningsOf({ prompt: 'a whale' }, 'order-1')).rejects.toMatchObject(REUSED);
  expect(await warningsOf({ prompt: 'a fox' }, 'order-1')).toEqual([]);
  await first;
});

test('an idempotency key can be reused with another webhook URL', async () => {
  expect(await warningsOf({ prompt: 'a fox', webhook_url: 'https://a.example/hook' }, 'order-1')).toEqual([]);
  expect(await warningsOf({ prompt: 'a fox', webhook_url: 'https://b.example/hook' }, 'order-1')).toEqual([]);
});

describe('a reused idempotency key', () => {
  const isRejected = async (first: object, second: object) => {
    const { client } = stubbed(() => json(created()), { preflight: false });
    await client.videos.create({ prompt: 'a fox', ...first }, { idempotencyKey: 'k' });
    const reused = client.videos.create({ prompt: 'a fox', ...second }, { idempotencyKey: 'k' });
    return reused.then(
      () => false,
      ({ code }) => code === 'idempotency_key_reused',
    );
  };

  it.each<[string, object, object, boolean]>([
    ['another value', { seed: 1 }, { seed: 2 }, true],
    ['an additional field', {}, { seed: 1 }, true],
    ['a nested value', { a: { b: [1] } }, { a: { b: [2] } }, true],
    ['an array in another order', { a: [1, 2] }, { a: [2, 1] }, true],
    ['fields in another order', { a: 1, b: 2, c: 3 }, { c: 3, b: 2, a: 1 }, false],
    ['nested fields in another order', { a: { b: 1, c: 2 } }, { a: { c: 2, b: 1 } }, false],
    ['another upload', { first_frame_upload_id: 'upl_1' }, { first_frame_upload_id: 'upl_2' }, false],
    ['a key in the body', {}, { idempotency_key: 'k' }, false],
    ['a field whose name ends like the key', { my_idempotency_key: 'a' }, { my_idempotency_key: 'b' }, true],
  ])('is rejected for %s (%j, then %j): %s', async (_, first, second, expected) => {
    expect(await isRejected(first, second)).toBe(expected);
  });

  it('is evicted after a thousand others, so that memory is bounded', async () => {
    const { client } = stubbed(() => json(created()), { rateLimit: 'off' });
    const create = (idempotencyKey: string, prompt: string) => client.videos.create({ prompt }, { idempotencyKey });
    await create('first', 'a');
    for (let at = 0; at < 999; at++) await create(`other-${at}`, 'a');
    await expect(create('first', 'b')).rejects.toMatchObject({ code: 'idempotency_key_reused' });
    for (let at = 0; at < 1_000; at++) await create(`more-${at}`, 'a');
    await create('first', 'b');
  });
});
