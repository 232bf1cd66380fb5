import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fromPath } from 'gen-client/node';
import type { Sandbox } from 'gen-client/sandbox';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeWithRedis, queuesOnSandboxes } from './queue-on-sandbox.js';

const prompt = 'the fox runs';
const PNG = new Uint8Array(5_000);
PNG.set([
  0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52, 0, 0, 1, 44, 0, 0, 1, 44,
]);
const png = () => new Blob([PNG], { type: 'image/png' });

const count = ({ requests }: Sandbox, method: string, path: string) =>
  requests.filter((request) => request.method === method && request.path.startsWith(path)).length;
const uploads = (sandbox: Sandbox) => count(sandbox, 'POST', '/v1/uploads/complete');
const deletions = (sandbox: Sandbox) => count(sandbox, 'DELETE', '/v1/uploads/');

describeWithRedis('files in queued calls', () => {
  const queues = queuesOnSandboxes();
  let directory: string;
  let path: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'gen-queued-files-'));
    path = join(directory, 'fox.png');
    await writeFile(path, PNG);
  });
  afterAll(() => rm(directory, { recursive: true }));

  it('Blobs and paths are stored in the record, and a file in two fields is uploaded once', async () => {
    const { sandbox, queue, startWorker, untilEnded, record } = queues.open();
    const fox = png();
    await queue.videos.create(
      { prompt, first_frame_upload_id: fox, last_frame_upload_id: fox, reference_audio_upload_ids: ['upl_x'] },
      { jobId: 'blob', preflight: false },
    );
    await queue.images.create({ prompt, reference_upload_ids: [fromPath(path), png()] }, { jobId: 'path' });
    const { params } = (await record('path')).data;
    expect(params.reference_upload_ids).toEqual([{ path }, { base64: expect.any(String), type: 'image/png' }]);
    sandbox.faults.add({ match: { path: '/v1/videos' }, status: 402, code: 'insufficient_balance' });
    startWorker();
    await untilEnded(2);
    const job = await record('path');
    expect(job.returnvalue).toMatchObject({ status: 'completed' });
    // Once the service accepts the create, upload IDs replace the files.
    expect(job.data.params.reference_upload_ids).toEqual([expect.any(String), expect.any(String)]);
    expect(uploads(sandbox)).toBe(3);
  });

  it('a rejected create deletes its uploads, and a manual restart uploads them again', async () => {
    const { sandbox, queue, startWorker, untilEnded, record } = queues.open();
    sandbox.faults.add({ match: { path: '/v1/videos' }, status: 402, code: 'insufficient_balance' });
    await queue.videos.create({ prompt, first_frame_upload_id: png() }, { jobId: 'order-1' });
    startWorker();
    await untilEnded(1);
    expect([uploads(sandbox), deletions(sandbox)]).toEqual([1, 1]);
    await (await record('order-1')).retry('failed');
    await expect.poll(async () => (await record('order-1')).getState()).toBe('completed');
    expect([uploads(sandbox), deletions(sandbox)]).toEqual([2, 1]);
  });

  it('an upload that fails temporarily is retried, and a permanent failure fails its call', async () => {
    const { sandbox, queue, startWorker, untilEnded, record } = queues.open({ client: { maxRetries: 0 } });
    sandbox.faults.add({ match: { path: '/v1/uploads/complete' }, status: 503, times: 1 });
    await queue.images.create({ prompt, reference_upload_ids: [png()] }, { jobId: 'temporary' });
    const removedPath = join(directory, 'removed.png');
    await writeFile(removedPath, PNG);
    await queue.images.create({ prompt, reference_upload_ids: [fromPath(removedPath)] }, { jobId: 'permanent' });
    await rm(removedPath);
    const errors: string[] = [];
    startWorker({ onFailed: ({ message }) => void errors.push(message) });
    await untilEnded(2);
    expect((await record('temporary')).returnvalue).toMatchObject({ status: 'completed' });
    expect((await record('permanent')).failedReason).toContain('this worker cannot read');
    expect(errors).toEqual([expect.stringMatching(/^reference_upload_ids\[0\]: /)]);
    expect(count(sandbox, 'POST', '/v1/images')).toBe(1);
  });

  it.each([
    ['bytes', () => PNG, 'a queued call accepts a Blob or fromPath(path)'],
    ['a stream', () => png().stream(), 'a queued call accepts a Blob or fromPath(path)'],
    ['a Blob that is too large for Redis', () => new Blob([new Uint8Array(1024 * 1024 + 1)]), 'Blobs of at most 1 MB'],
    ['a file of the wrong kind', () => new Blob(['a film'], { type: 'video/mp4' }), 'an image is required'],
    ['a missing path', () => fromPath(join(directory, 'no.png')), 'no.png'],
  ])('%s is rejected when it is queued', async (_, source, message) => {
    const { queue } = queues.open();
    const create = queue.videos.create({ prompt, first_frame_upload_id: source() });
    await expect(create).rejects.toThrow(/^first_frame_upload_id: /);
    await expect(create).rejects.toThrow(message);
    expect(await queue.queue.count()).toBe(0);
  });
});
