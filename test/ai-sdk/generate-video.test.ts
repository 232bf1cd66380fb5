import {
  experimental_generateVideo as generateVideo,
  experimental_getVideoStatus as getVideoStatus,
  experimental_startVideo as startVideo,
} from 'ai';
import { JobFailedError } from 'gen-client';
import { createGen, type GenProvider } from 'gen-client/ai-sdk';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { advanceUntil } from '../support/advance-until.js';
import { deferred } from '../support/deferred.js';
import { createsOf, providerOnSandbox, QUICK } from './provider-setup.js';

const prompt = 'a fox runs through snow';

/** Generates a video with the fast model. */
const generate = (gen: GenProvider, settings: Partial<Parameters<typeof generateVideo>[0]> = {}) =>
  generateVideo({ model: gen.video('svc-video-fast'), prompt, providerOptions: QUICK, ...settings });

afterEach(() => {
  vi.useRealTimers();
});

describe('experimental_generateVideo', () => {
  it('returns the MP4, with its job and cost in the metadata', async () => {
    const { gen, sandbox } = providerOnSandbox();
    const { video, providerMetadata } = await generate(gen, { duration: 4 });
    expect(new TextDecoder().decode(video.uint8Array.slice(4, 8))).toBe('ftyp');
    expect(video.mediaType).toBe('video/mp4');
    expect(providerMetadata.gen?.videos).toEqual([
      expect.objectContaining({ jobId: sandbox.jobs[0]?.id, status: 'completed' }),
    ]);
  });

  it("waits for the core's webhook", async () => {
    const { gen, sandbox } = providerOnSandbox();
    const { promise: received, resolve: deliver } = deferred<{ headers: Record<string, string>; body: string }>();
    const webhook = async () => ({ url: 'https://example.com/hook', received });
    const generation = generate(gen, { webhook });
    await expect.poll(() => sandbox.jobs.length).toBe(1);
    deliver({ headers: {}, body: '{}' });
    const { videos } = await generation;
    expect(videos).toHaveLength(1);
    expect(createsOf(sandbox, '/v1/videos')[0]?.webhook_url).toBe('https://example.com/hook');
  });

  it('pays once if responses to its create are lost', async () => {
    vi.useFakeTimers();
    const { gen, sandbox } = providerOnSandbox();
    sandbox.faults.add({ match: { method: 'POST', path: '/v1/videos' }, commitThenDrop: true, times: 3 });
    await advanceUntil(generate(gen, { poll: { intervalMs: 10 } }));
    expect(sandbox.jobs).toHaveLength(1);
  });

  it('maps resolution, ratio, and audio, and warns about unsupported settings', async () => {
    const { gen, sandbox } = providerOnSandbox();
    const settings = { resolution: '1920x1080', duration: 5, fps: 24, seed: 3, generateAudio: true } as const;
    const { warnings } = await generate(gen, { model: gen.video('svc-video-pro'), ...settings });
    expect(createsOf(sandbox, '/v1/videos')[0]).toMatchObject({
      resolution: '1080p',
      aspect_ratio: '16:9',
      duration: 5,
      seed: 3,
      generate_audio: true,
    });
    expect(warnings).toEqual([expect.objectContaining({ feature: 'fps' })]);
  });

  it('uploads frames and references', async () => {
    const { gen, sandbox, client } = providerOnSandbox();
    const job = await client.images.createAndWait({ prompt: 'a fox' }, { pollIntervalMs: 5 });
    const png = new Uint8Array(await (await client.jobs.output(job)).arrayBuffer());
    await generate(gen, { prompt: { text: prompt, image: png } });
    await generate(gen, {
      frameImages: [
        { image: png, frameType: 'first_frame' },
        { image: png, frameType: 'last_frame' },
      ],
    });
    const video = { data: 'https://example.com/a.mp4', mediaType: 'video/mp4' };
    await generate(gen, { inputReferences: [png, video] });
    const id = expect.any(String);
    expect(createsOf(sandbox, '/v1/videos')).toMatchObject([
      { first_frame_upload_id: id },
      { first_frame_upload_id: id, last_frame_upload_id: id },
      { reference_image_upload_ids: [id], reference_video_urls: [video.data] },
    ]);
  });

  it('throws the typed error of a failed job, with and without poll', async () => {
    const { gen, sandbox } = providerOnSandbox();
    for (const wait of [{}, { poll: { intervalMs: 5 } }]) {
      sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_unavailable' });
      const failure = await generate(gen, wait).catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(JobFailedError);
      expect(failure).toMatchObject({ code: 'generation_unavailable' });
    }
  });
});

describe('experimental_startVideo and experimental_getVideoStatus', () => {
  it('continue a video in another process with only its operation', async () => {
    const { gen, sandbox } = providerOnSandbox({ clock: 'manual', jobDurationMs: 5000 });
    const started = await startVideo({ model: gen.video('svc-video-fast'), prompt });
    const operation = JSON.parse(JSON.stringify(started.operation));
    const { apiKey, baseUrl, fetch } = sandbox;
    const model = createGen({ apiKey, baseUrl, fetch }).video('svc-video-fast');
    expect(await getVideoStatus(model, { operation })).toMatchObject({ status: 'pending' });
    await sandbox.advance(5000);
    const status = await getVideoStatus(model, { operation });
    expect(status).toMatchObject({ status: 'completed', videos: [{ type: 'binary', mediaType: 'video/mp4' }] });
    expect(sandbox.jobs).toHaveLength(1);
  });

  it("reject another provider's operation", async () => {
    const { gen } = providerOnSandbox();
    const generation = getVideoStatus(gen.video('svc-video-fast'), { operation: { taskId: 'x' } });
    await expect(generation).rejects.toThrow(/experimental_startVideo/);
  });
});
