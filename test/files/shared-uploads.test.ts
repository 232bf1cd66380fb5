import { utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fromPath } from '../../src/adapters/node/index.js';
import type { SandboxOptions } from '../../src/sandbox/index.js';
import { persistentStore } from '../support/persistent-store.js';
import { bodyOf, createService, png, prompt } from './by-value-setup.js';
import { failure } from './support.js';

const CREATES = { method: 'POST', path: '/v1/videos' } as const;

function setUp(options: SandboxOptions = {}) {
  const { sandbox, client } = createService({ limits: 'off', ...options });
  const requestsTo = (line: string) =>
    sandbox.requests.filter(({ method, path }) => `${method} ${path}`.startsWith(line));
  const countUploads = () => requestsTo('POST /v1/uploads/complete').length;
  const frames = () => requestsTo('POST /v1/videos').map((create): string => bodyOf(create).first_frame_upload_id);
  const keys = () => requestsTo('POST /v1/videos').map(({ headers }) => headers['idempotency-key']);
  return { sandbox, client, requestsTo, countUploads, frames, keys };
}

describe('an object is uploaded once while its upload exists', () => {
  it('by consecutive calls, concurrent calls, and several clients of an account', async () => {
    const { sandbox, client, countUploads, frames } = setUp();
    const file = png();
    await client.videos.create({ prompt, first_frame_upload_id: file });
    const create = () => client.videos.create({ prompt, first_frame_upload_id: file });
    await Promise.all([create(), create(), client.videos.createAndWait({ prompt, first_frame_upload_id: file })]);
    await sandbox.client().videos.create({ prompt, first_frame_upload_id: file, last_frame_upload_id: file });
    expect(countUploads()).toBe(1);
    expect(new Set(frames()).size).toBe(1);
    const other = sandbox.client({ apiKey: sandbox.createKey({ account: 'other' }) });
    await other.videos.create({ prompt, first_frame_upload_id: file });
    expect(countUploads()).toBe(2);
  });

  it('by concurrent calls, one of which fails', async () => {
    const { sandbox, client, countUploads } = setUp();
    const file = png();
    const abort = new AbortController();
    sandbox.faults.add({ match: { method: 'POST', path: '/v1/uploads', nth: 1 }, status: 400, code: 'upload_invalid' });
    const first = client.videos.create({ prompt, first_frame_upload_id: file }, { signal: abort.signal });
    const second = client.videos.create({ prompt, first_frame_upload_id: file });
    await expect(first).rejects.toMatchObject({ name: 'UploadError' });
    expect((await second).job.id).toBeTruthy();
    expect(countUploads()).toBe(1);
  });

  it('unless its content has changed', async () => {
    const { client, countUploads } = setUp();
    const bytes = await png().bytes();
    const path = join(tmpdir(), `shared-upload-${process.pid}.png`);
    await writeFile(path, bytes);
    const onDisk = fromPath(path);
    for (let at = 0; at < 2; at++) {
      await client.videos.create({ prompt, first_frame_upload_id: bytes, last_frame_upload_id: onDisk });
    }
    expect(countUploads()).toBe(2);
    bytes[100] = 7;
    await utimes(path, 1, 1);
    await client.videos.create({ prompt, first_frame_upload_id: bytes, last_frame_upload_id: onDisk });
    expect(countUploads()).toBe(4);
  });

  it('and again after its upload was deleted', async () => {
    const { client, countUploads, frames, requestsTo } = setUp();
    const file = png();
    await client.videos.createAndWait({ prompt, first_frame_upload_id: file });
    await client.uploads.delete(frames()[0] ?? '');
    await client.videos.createAndWait({ prompt, first_frame_upload_id: file });
    expect(countUploads()).toBe(2);
    expect(requestsTo('POST /v1/videos').map(({ status }) => status)).toEqual([200, 200]);
  });

  it('and is deleted by cleanup after its last job, so the next job needs another upload', async () => {
    const { client, countUploads, requestsTo } = setUp();
    const file = png();
    const run = () => client.videos.createAndWait({ prompt, first_frame_upload_id: file }, { cleanup: 'after-job' });
    await Promise.all([run(), run()]);
    expect([countUploads(), requestsTo('DELETE').length]).toEqual([1, 1]);
    await run();
    expect([countUploads(), requestsTo('DELETE').length]).toEqual([2, 2]);
  });

  it("and retained for a recovering call, even if another call's cleanup runs", async () => {
    const { client, sandbox, requestsTo, countUploads } = setUp({ clock: 'manual' });
    const file = png();
    sandbox.outcomes.next({ status: 'failed', errorCode: 'reference_asset_pending', errorData: { retry_after: 60 } });
    const params = { prompt, first_frame_upload_id: file };
    const first = client.videos.createAndWait(params);
    await sandbox.advance(0);
    const second = client.videos.createAndWait(params, { cleanup: 'after-job' });
    for (let at = 0; at < 40; at++) await sandbox.advance(5_000);
    expect([(await first).status, (await second).status]).toEqual(['completed', 'completed']);
    expect([countUploads(), requestsTo('DELETE').length]).toEqual([1, 0]);
  });

  it("and a rejected call doesn't delete an earlier call's upload", async () => {
    const { sandbox, client, requestsTo } = setUp();
    const params = { prompt, first_frame_upload_id: png() };
    await client.videos.create(params);
    sandbox.faults.add({ match: CREATES, status: 400, code: 'invalid_request', times: 1 });
    await expect(client.videos.create(params)).rejects.toMatchObject({ status: 400 });
    expect(requestsTo('DELETE')).toEqual([]);
  });
});

describe('an upload deleted by the service', () => {
  const NOT_FOUND = { status: 404, code: 'reference_upload_not_found' };

  it('is uploaded again once, and the create is retried with its idempotency key', async () => {
    const { sandbox, client, countUploads, frames, keys } = setUp();
    const params = { prompt, first_frame_upload_id: png() };
    await client.videos.create(params);
    sandbox.faults.add({ match: CREATES, ...NOT_FOUND, times: 1 });
    const { idempotencyKey } = await client.videos.create(params);
    expect(countUploads()).toBe(2);
    const [first, rejected, again] = frames();
    expect(rejected).toBe(first);
    expect(again).not.toBe(first);
    expect(keys().slice(1)).toEqual([idempotencyKey, idempotencyKey]);
    await client.videos.create(params);
    expect(frames().at(-1)).toBe(again);
  });

  it('needs a derived idempotency key if the service repeats its first rejection', async () => {
    const { sandbox, client, countUploads, keys } = setUp();
    const params = { prompt, first_frame_upload_id: png() };
    await client.videos.create(params);
    sandbox.faults.add({ match: CREATES, ...NOT_FOUND, times: 2 });
    const { idempotencyKey } = await client.videos.create(params, { idempotencyKey: 'order-1' });
    expect(idempotencyKey).toBe('order-1:f1');
    expect(keys().slice(1)).toEqual(['order-1', 'order-1', 'order-1:f1']);
    expect(countUploads()).toBe(2);
  });

  it('needs a derived idempotency key of at most 255 characters, so that resume() can retry it', async () => {
    const { sandbox, keys } = setUp();
    const client = sandbox.client({ store: persistentStore(), maxRetries: 0 });
    const params = { prompt, first_frame_upload_id: png() };
    await client.videos.create(params);
    sandbox.faults.add({ match: CREATES, ...NOT_FOUND, times: 2 });
    sandbox.faults.add({ match: CREATES, status: 500, code: 'internal_error', times: 1 });
    const error = await failure(client.videos.create(params, { idempotencyKey: 'k'.repeat(255) }));
    const { idempotencyKey } = error as Error & { idempotencyKey?: string };
    expect(idempotencyKey).toMatch(/^k{128}-[0-9a-f]{64}:f1$/);
    for await (const { job } of client.resume()) expect(job.status).toBe('completed');
    expect(keys().slice(-2)).toEqual([idempotencyKey, idempotencyKey]);
  });

  it('is an error if this call uploaded it', async () => {
    const { sandbox, client, countUploads } = setUp();
    sandbox.faults.add({ match: CREATES, ...NOT_FOUND, times: 1 });
    const create = client.videos.create({ prompt, first_frame_upload_id: png() });
    await expect(create).rejects.toMatchObject({ code: 'reference_upload_not_found' });
    expect(countUploads()).toBe(1);
  });
});
