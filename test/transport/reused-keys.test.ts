import { createSandbox } from 'gen-client/sandbox';
import { beforeEach, expect, test } from 'vitest';

const REUSED = ['idempotency_key_reused: the first call with this key had other params'];
let sandbox = createSandbox();
let client = sandbox.client();
beforeEach(() => {
  sandbox = createSandbox({ jobDurationMs: 0 });
  client = sandbox.client();
});
const warningsOf = async (params: Parameters<typeof client.videos.create>[0], idempotencyKey?: string) =>
  (await client.videos.create(params, { idempotencyKey })).warnings;

test('a key with other params gives its first job and a warning, each time', async () => {
  const first = await client.videos.create({ prompt: 'a fox' }, { idempotencyKey: 'order-1' });
  const again = await client.videos.create({ prompt: 'a whale' }, { idempotencyKey: 'order-1' });
  expect(again.job.id).toBe(first.job.id);
  expect([first.warnings, again.warnings]).toEqual([[], REUSED]);
  expect(await warningsOf({ prompt: 'a whale', idempotency_key: 'order-1' })).toEqual(REUSED);
  expect(await warningsOf({ prompt: 'a fox' }, 'order-1')).toEqual([]);
});

test('the same params give none, in any order of their fields and in another client of the account', async () => {
  expect(await warningsOf({ prompt: 'a fox', duration: 5 }, 'order-1')).toEqual([]);
  client = sandbox.client();
  expect(await warningsOf({ duration: 5, prompt: 'a fox' }, 'order-1')).toEqual([]);
  expect(await warningsOf({ duration: 10, prompt: 'a fox' }, 'order-1')).toEqual(REUSED);
});

test('a file that is uploaded again is no other param', async () => {
  const fox = () => new Blob([new Uint8Array([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10])], { type: 'image/png' });
  expect(await warningsOf({ prompt: 'it wakes', first_frame_upload_id: fox() }, 'order-1')).toEqual([]);
  expect(await warningsOf({ prompt: 'it wakes', first_frame_upload_id: fox() }, 'order-1')).toEqual([]);
});

test('a key whose first call was refused is free for other params', async () => {
  sandbox.faults.add({ match: { path: '/v1/videos' }, status: 422, code: 'invalid_prompt' });
  await expect(warningsOf({ prompt: 'no' }, 'order-1')).rejects.toMatchObject({ status: 422 });
  expect(await warningsOf({ prompt: 'a fox' }, 'order-1')).toEqual([]);
});

test('createAndWait counts as a first call, and another account does not', async () => {
  await client.videos.createAndWait({ prompt: 'a fox' }, { idempotencyKey: 'order-1' });
  expect(await warningsOf({ prompt: 'a whale' }, 'order-1')).toEqual(REUSED);
  client = sandbox.client({ apiKey: sandbox.createKey({ account: 'other' }) });
  expect(await warningsOf({ prompt: 'a whale' }, 'order-1')).toEqual([]);
});
