import { APICallError } from '@ai-sdk/provider';
import { createProviderRegistry, generateImage, wrapImageModel } from 'ai';
import { GenClient, JobFailedError, PreflightError } from 'gen-client';
import { createGen, type GenProvider } from 'gen-client/ai-sdk';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createsOf, providerOnSandbox, QUICK } from './provider-setup.js';

const PNG = [0x89, 0x50, 0x4e, 0x47];
const prompt = 'a fox at dawn';

/** Generates an image with the fast model. */
const generate = (gen: GenProvider, settings: Partial<Parameters<typeof generateImage>[0]> = {}) =>
  generateImage({ model: gen.image('svc-image-fast'), prompt, providerOptions: QUICK, ...settings });

afterEach(() => {
  vi.useRealTimers();
});

describe('generateImage', () => {
  it('returns the file, with its job and cost in the metadata', async () => {
    const { gen, sandbox } = providerOnSandbox();
    const { image, images, providerMetadata } = await generate(gen);
    expect([...image.uint8Array.slice(0, 4)]).toEqual(PNG);
    expect(image.mediaType).toBe('image/png');
    expect(images).toHaveLength(1);
    const [job] = sandbox.jobs;
    expect(providerMetadata.gen?.images).toEqual([
      expect.objectContaining({ jobId: job?.id, finalTokenCost: job?.finalTokenCost, status: 'completed' }),
    ]);
  });

  it('creates one job per image, and reuses the jobs if the call is repeated with its key', async () => {
    const { gen, sandbox } = providerOnSandbox();
    const headers = { 'Idempotency-Key': 'order-17' };
    for (let call = 0; call < 2; call++) {
      await generate(gen, { n: 3, headers });
      expect(sandbox.jobs).toHaveLength(3);
    }
  });

  it.each([
    ['unchanged', (params: object) => params],
    ['copied by a middleware', (params: object) => ({ ...params })],
  ])('pays once when the core retries a call %s', async (variant, transform) => {
    const { gen, sandbox } = providerOnSandbox();
    let calls = 0;
    const model = wrapImageModel({
      model: gen.image('svc-image-fast'),
      middleware: {
        specificationVersion: 'v4',
        transformParams: async ({ params }) => transform(params) as typeof params,
        async wrapGenerate({ doGenerate }) {
          const result = await doGenerate();
          if (++calls > 1) return result;
          throw new APICallError({
            message: 'response lost',
            url: 'https://proxy.invalid',
            requestBodyValues: {},
            isRetryable: true,
            responseHeaders: { 'retry-after-ms': '1' },
          });
        },
      },
    });
    const { images } = await generate(gen, { model });
    expect(calls).toBe(2);
    expect(images).toHaveLength(1);
    expect(sandbox.jobs).toHaveLength(1);
    // The retry of a split call's part reuses that part's job.
    calls = 0;
    const { providerMetadata } = await generate(gen, { model, n: 2, maxImagesPerCall: 1 });
    const jobs = providerMetadata.gen?.images as { jobId: string }[];
    if (variant === 'unchanged')
      expect([new Set(jobs.map(({ jobId }) => jobId)).size, sandbox.jobs.length]).toEqual([2, 3]);
  });

  it("maps size and aspect ratio to one of the model's ratios, and warns about unsupported settings", async () => {
    const { gen, sandbox } = providerOnSandbox();
    const model = gen.image('svc-image-pro');
    const bySize = await generate(gen, { model, size: '1920x1088' });
    const byRatio = await generate(gen, { model, aspectRatio: '21:9', size: '512x512', seed: 7 });
    const unsupported = await generate(gen, { model, size: '1000x333' });
    expect(createsOf(sandbox, '/v1/images').map((body) => body.ratio)).toEqual(['16:9', '21:9', undefined]);
    expect(bySize.warnings).toEqual([expect.objectContaining({ type: 'compatibility', feature: 'size' })]);
    expect(byRatio.warnings.map((warning) => 'feature' in warning && warning.feature)).toEqual(['seed', 'size']);
    expect(unsupported.warnings).toEqual([expect.objectContaining({ type: 'unsupported', feature: 'size' })]);
  });

  it("uploads the prompt's images, and passes URLs unchanged", async () => {
    const { gen, sandbox, client } = providerOnSandbox();
    const { image } = await generate(gen);
    const images = [image.uint8Array, 'https://example.com/fox.png'];
    await generate(gen, { prompt: { text: 'the same fox, older', images } });
    const body = createsOf(sandbox, '/v1/images')[1];
    expect(body?.reference_image_urls).toEqual(['https://example.com/fox.png']);
    const [uploadId] = (body?.reference_upload_ids ?? []) as string[];
    await expect(client.uploads.delete(uploadId ?? '')).resolves.toBeDefined();
  });

  it('throws the typed errors of the client', async () => {
    const { gen, sandbox } = providerOnSandbox();
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected' });
    const error = await generate(gen).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(JobFailedError);
    expect(error).toMatchObject({ code: 'generation_rejected', recovery: 'change_request' });
    await expect(generate(gen, { aspectRatio: '21:9' })).rejects.toBeInstanceOf(PreflightError);
    expect(sandbox.jobs).toHaveLength(1);
  });

  it('returns the paid images, with a warning for a failed one', async () => {
    const { gen, sandbox } = providerOnSandbox();
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_failed' });
    const { images, warnings } = await generate(gen, { n: 3 });
    expect(images).toHaveLength(2);
    expect(warnings).toEqual([expect.objectContaining({ message: expect.stringContaining('generation_failed') })]);
  });

  it("rejects with the abort's reason, and the job continues", async () => {
    const { gen, sandbox } = providerOnSandbox({ jobDurationMs: 60_000 });
    const controller = new AbortController();
    const generation = generate(gen, { abortSignal: controller.signal });
    await expect.poll(() => sandbox.jobs.length).toBe(1);
    const reason = new Error('the user left');
    controller.abort(reason);
    await expect(generation).rejects.toBe(reason);
    expect(['queued', 'processing']).toContain(sandbox.jobs[0]?.status);
  });

  it('finds image and video models in a provider registry', () => {
    const registry = createProviderRegistry({ gen: providerOnSandbox().gen });
    expect(registry.imageModel('gen:svc-image-fast').modelId).toBe('svc-image-fast');
    expect(registry.videoModel('gen:svc-video-mini').modelId).toBe('svc-video-mini');
  });

  it('reports a missing client option in the call, not at import', async () => {
    const incomplete = createGen({ apiKey: 'k' });
    await expect(generate(incomplete)).rejects.toThrow(/baseUrl/);
    await expect(new GenClient({ apiKey: 'k' }).jobs.get('job_1')).rejects.toThrow(/baseUrl/);
    expect(() => incomplete.languageModel('svc-image-fast')).toThrow(/No such languageModel/);
  });
});

it('rejects a mask before anything is paid', async () => {
  const { gen, sandbox } = providerOnSandbox();
  const image = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  const masked = { model: gen.image('svc-image-pro'), prompt: { text: 'a hat', images: [image], mask: image } };
  await expect(generateImage(masked)).rejects.toThrow('generateImage: the service does not support masked edits.');
  expect(sandbox.jobs).toEqual([]);
});
