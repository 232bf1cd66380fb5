import { AsyncLocalStorage } from 'node:async_hooks';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fromPath } from '../../src/adapters/node/index.js';
import type { CreateOptions } from '../../src/client/create-options.js';
import { type ClientOptions, GenClient } from '../../src/index.js';
import {
  bodyOf,
  countLines,
  countRemaining,
  createCalls,
  createService,
  mp3,
  mp4,
  png,
  prompt,
} from './by-value-setup.js';
import { failure } from './support.js';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gen-by-value-'));
  await writeFile(join(directory, 'fox.png'), new Uint8Array(await png().arrayBuffer()));
});
afterAll(() => rm(directory, { recursive: true }));

describe('files instead of upload IDs', () => {
  const edit = () => ({ model: 'svc-video-pro', prompt, source_video_upload_id: mp4() }) as const;
  const reference = () => ({ prompt, reference_upload_ids: [png()] });
  const frames = () => ({ prompt, first_frame_upload_id: png(), last_frame_upload_id: png() });
  const references = () => ({
    prompt,
    reference_image_upload_ids: [png(), png()],
    reference_video_upload_ids: [mp4()],
    reference_audio_upload_ids: [mp3()],
  });
  const creates: [string, (client: GenClient) => Promise<unknown>][] = [
    ['videos.create', ({ videos }) => videos.create(frames())],
    ['videos.createAndWait', ({ videos }) => videos.createAndWait(references())],
    [
      'an edit by intent',
      ({ videos }) => videos.createAndWait({ prompt, intent: 'video_edit', source_video_upload_id: mp4() }),
    ],
    ['videoEdits.create', ({ videoEdits }) => videoEdits.create(edit())],
    [
      'videoEdits.createAndWait',
      ({ videoEdits }) => videoEdits.createAndWait({ ...edit(), reference_image_upload_ids: [png()] }),
    ],
    ['images.create', ({ images }) => images.create(reference())],
    ['images.createAndWait', ({ images }) => images.createAndWait(reference())],
    ['characters.register', ({ characters }) => characters.register({ name: 'Fox', upload_id: png() })],
    ['characters.create', ({ characters }) => characters.create({ name: 'Fox', ...reference() })],
    ['characters.createAndWait', ({ characters }) => characters.createAndWait({ name: 'Fox', ...reference() })],
  ];
  it.each(creates)('are accepted by %s', async (_, call) => {
    const { client, sandbox, log } = createService();
    await call(client);
    const create = sandbox.requests.find(({ method, path }) => method === 'POST' && !path.startsWith('/v1/uploads'));
    expect(create?.status).toBe(200);
    expect(create?.body).toMatch(/"upl_\w+"/);
    expect(countLines(log(), 'DELETE')).toBe(0);
  });

  it('can be a path, bytes, and a Response next to an upload ID', async () => {
    const { client, sandbox } = createService();
    const { upload_id } = await client.uploads.upload(png());
    await client.videos.create({
      prompt,
      reference_image_upload_ids: [
        fromPath(join(directory, 'fox.png')),
        upload_id,
        new Uint8Array(await png().arrayBuffer()),
        new Response(png(), { headers: { 'content-length': '5000' } }),
      ],
    });
    const ids = bodyOf(sandbox.requests.at(-1)).reference_image_upload_ids;
    expect(ids).toHaveLength(4);
    expect(ids[1]).toBe(upload_id);
    expect(new Set(ids).size).toBe(4);
  });

  it("leave the params unchanged, and let withResponse return the create's response", async () => {
    const { client } = createService();
    const params = { prompt, first_frame_upload_id: png() };
    const { data, attempts } = await client.videos.create(params).withResponse();
    expect([data.job.status, attempts]).toEqual(['completed', 1]);
    expect(params.first_frame_upload_id).toBeInstanceOf(Blob);
  });

  it('are sent with the original params even if the caller changes them meanwhile', async () => {
    const { client, sandbox } = createService();
    const params = { prompt, reference_image_upload_ids: [png()] };
    const call = client.videos.create(params);
    params.prompt = 'another';
    params.reference_image_upload_ids.push(png());
    await call;
    const body = bodyOf(sandbox.requests.at(-1));
    expect([body.prompt, body.reference_image_upload_ids.length]).toEqual([prompt, 1]);
  });

  it('are uploaded concurrently', async () => {
    const { sandbox } = createService();
    const { apiKey, baseUrl } = sandbox;
    let puts = 0;
    const fetch: ClientOptions['fetch'] = async (url, init) => {
      if (init.method === 'PUT') {
        puts += 1;
        await expect.poll(() => puts).toBe(3);
      }
      return sandbox.fetch(url, init);
    };
    // Uses the real clock, which runs while the uploads are blocked.
    const client = new GenClient({ apiKey, baseUrl, fetch });
    await client.videos.create({ prompt, reference_image_upload_ids: [png(), png(), png()] });
  });
});

describe('a create rejects before any bytes are sent for an invalid', () => {
  const large = { name: 'large', type: 'audio/mpeg', size: 16 * 1024 * 1024 + 1, stream: () => mp3().stream() };
  const invalidParams: [string, () => object, string, string?][] = [
    ['prompt', () => ({ first_frame_upload_id: png() }), 'prompt', 'prompt_required'],
    [
      'combination of files',
      () => ({ prompt, first_frame_upload_id: png(), reference_image_upload_ids: [png()] }),
      'first_frame_upload_id',
      'reference_combination_not_supported',
    ],
    [
      'video instead of an image, next to a valid image',
      () => ({ prompt, reference_image_upload_ids: [png(), mp4()] }),
      'reference_image_upload_ids[1]: an image is required, but this file is video/mp4.',
    ],
    ['image instead of a clip', () => ({ prompt, reference_video_upload_ids: [png()] }), 'a video is required'],
    [
      'clip instead of audio',
      () => ({ prompt, reference_audio_upload_ids: [mp4()] }),
      'reference_audio_upload_ids[0]: an audio file is required',
    ],
    [
      'size over the documented maximum',
      () => ({ prompt, reference_audio_upload_ids: [mp3(), large] }),
      'reference_audio_upload_ids[1]',
      'upload_too_large',
    ],
    [
      'stream without a length',
      () => ({ prompt, first_frame_upload_id: png().stream() }),
      'uploads.upload(file, { sizeBytes })',
    ],
  ];
  it.each(invalidParams)('%s', async (_, params, message, code = 'upload_invalid') => {
    const { client, log } = createService();
    for (const call of createCalls(client)) {
      const error = await failure(call(params()));
      expect(error).toMatchObject({ name: 'PreflightError', code });
      expect(error.message).toContain(message);
    }
    expect(log()).toEqual([]);
  });

  it.each<[string, (client: GenClient) => Promise<unknown>, RegExp]>([
    [
      "object that isn't a file",
      ({ videos }) => videos.create({ prompt, first_frame_upload_id: { path: 'fox.png' } as never }),
      /^first_frame_upload_id: .*fromPath/,
    ],
    [
      'path of a missing file',
      ({ characters }) => characters.register({ name: 'Fox', upload_id: fromPath(join(directory, 'no.png')) }),
      /^upload_id: .*no\.png/,
    ],
    [
      'image that is too narrow for a character',
      ({ characters }) => characters.register({ name: 'Fox', upload_id: png(299) }),
      /^upload_id: .*299 px/,
    ],
    [
      "image that is too narrow for a character's references",
      ({ characters }) => characters.create({ name: 'Fox', prompt, reference_upload_ids: [png(200)] }),
      /^reference_upload_ids\[0\]: .*200 px/,
    ],
  ])('%s', async (_, call, message) => {
    const { client, log } = createService();
    expect((await failure(call(client))).message).toMatch(message);
    expect(log()).toEqual([]);
  });
});

describe("cleanup: 'after-job'", () => {
  const params = () => ({ prompt, first_frame_upload_id: png(), last_frame_upload_id: png() });
  const run = (client: GenClient, options: CreateOptions = {}) =>
    client.videos.createAndWait(params(), { cleanup: 'after-job', ...options });

  it("deletes a completed job's uploads, which otherwise remain", async () => {
    const { client, sandbox } = createService();
    await client.videos.createAndWait(params());
    expect(countRemaining(sandbox)).toBe(2);
    await run(client);
    expect(countRemaining(sandbox)).toBe(2);
  });

  it('deletes uploads after a failed job, even if the call resolves', async () => {
    const { client, sandbox } = createService();
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected' });
    await expect(run(client)).rejects.toMatchObject({ code: 'generation_rejected' });
    sandbox.outcomes.next({ status: 'blocked' });
    expect(await run(client, { throwOnFailure: false })).toMatchObject({ status: 'blocked' });
    expect(countRemaining(sandbox)).toBe(0);
  });

  it('retains uploads after a timeout or an abort, because the job continues', async () => {
    const { client, sandbox } = createService({ clock: 'manual', jobDurationMs: 60_000 });
    const timeoutError = failure(run(client, { timeoutMs: 20_000 }));
    await sandbox.advance(30_000);
    expect(await timeoutError).toMatchObject({ name: 'WaitTimeoutError' });
    const controller = new AbortController();
    const abortError = failure(run(client, { signal: controller.signal, onCreated: () => controller.abort() }));
    await sandbox.advance(100);
    expect(await abortError).toMatchObject({ name: 'AbortError' });
    expect(countRemaining(sandbox)).toBe(4);
  });

  it('is an option of createAndWait only', async () => {
    const { client, log } = createService();
    await expect(client.videos.create(params(), { cleanup: 'after-job' } as never)).rejects.toThrow(
      'has no option "cleanup"',
    );
    await expect(run(client, { cleanup: 'always' as never })).rejects.toThrow('cleanup must be one of "after-job"');
    await expect(client.jobs.get('job_1', { onUploadProgress() {} } as never)).rejects.toThrow('has no option');
    expect(log()).toEqual([]);
  });
});

describe('files are uploaded once, however often the create is sent,', () => {
  it("for a create's retries", async () => {
    const { client, sandbox, log } = createService();
    sandbox.faults.add({ match: { method: 'POST', path: '/v1/videos' }, status: 500, times: 2 });
    await client.videos.createAndWait({ prompt, first_frame_upload_id: png() });
    expect([countLines(log(), 'POST /v1/uploads/complete'), countLines(log(), 'POST /v1/videos')]).toEqual([1, 3]);
  });

  it('for resubmissions after a pending reference, and with other models', async () => {
    const { client, sandbox, log } = createService();
    sandbox.outcomes.next({ status: 'failed', errorCode: 'reference_asset_pending', errorData: { retry_after: 1 } });
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_unavailable' });
    const job = await client.videos.createAndWait(
      { prompt, first_frame_upload_id: png() },
      { recover: { generation_unavailable: { models: ['svc-video-mini'] } }, cleanup: 'after-job' },
    );
    expect(job.modelId).toBe('svc-video-mini');
    expect(job.tries).toHaveLength(3);
    expect(countLines(log(), 'POST /v1/uploads/complete')).toBe(1);
    const creates = sandbox.requests.filter(({ path }) => path === '/v1/videos');
    expect(new Set(creates.map((create) => bodyOf(create).first_frame_upload_id)).size).toBe(1);
    expect(countRemaining(sandbox)).toBe(0);
  });
});

it('a call repeated with its idempotency key returns its first job and deletes its new uploads', async () => {
  const { client, sandbox } = createService();
  const options = { idempotencyKey: 'order-17', cleanup: 'after-job' } as const;
  const create = () => client.videos.createAndWait({ prompt, first_frame_upload_id: png() }, options);
  const first = await create();
  expect((await create()).id).toBe(first.id);
  expect(sandbox.jobs).toHaveLength(1);
  expect(countRemaining(sandbox)).toBe(0);
});

it("onUploadProgress reports the total of all files in its call's async context", async () => {
  const { client } = createService();
  const tenant = new AsyncLocalStorage<string>();
  const progress: number[] = [];
  const onUploadProgress: CreateOptions['onUploadProgress'] = ({ sentBytes, totalBytes }) => {
    if (totalBytes === 300_000 && tenant.getStore() === 'a') progress.push(sentBytes);
    throw new Error('ignored');
  };
  const params = { prompt, reference_image_upload_ids: [png(300, 200_000), png(300, 100_000)] };
  await tenant.run('a', () => client.videos.create(params, { onUploadProgress }));
  expect(progress).toEqual([...progress].sort((a, b) => a - b));
  expect(progress.at(-1)).toBe(300_000);
  expect(progress.length).toBeGreaterThan(3);
});
