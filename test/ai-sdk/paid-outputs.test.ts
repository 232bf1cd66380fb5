// Paid outputs aren't lost. An interrupted download continues, and the error for a failed download contains the job and key.
import {
  generateImage,
  experimental_generateVideo as generateVideo,
  experimental_getVideoStatus as getVideoStatus,
  experimental_startVideo as startVideo,
} from 'ai';
import { AuthenticationError, DownloadError, GenClient, WaitTimeoutError } from 'gen-client';
import { createGen, type GenProvider } from 'gen-client/ai-sdk';
import { createSandbox, type SandboxOptions } from 'gen-client/sandbox';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { advanceUntil } from '../support/advance-until.js';
import { providerOnSandbox, QUICK } from './provider-setup.js';

const prompt = 'a fox at dawn';
const providerOptions = QUICK;
const OUTPUT = /\/output$/;
const KEYED = { gen: { ...QUICK.gen, idempotencyKey: 'order-17' } };

afterEach(() => {
  vi.useRealTimers();
});

/** Creates a provider that interrupts the first `times` downloads after some bytes. */
function interruptedProvider(times: number, options: SandboxOptions & { bytes?: number } = {}) {
  const { bytes = 100, ...sandboxOptions } = options;
  const sandbox = createSandbox({ jobDurationMs: 0, limits: 'off', ...sandboxOptions });
  let interruptionsLeft = times;
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const response = await sandbox.fetch(new Request(input, init));
    const isFile = response.ok && /^(image|video)\//.test(response.headers.get('content-type') ?? '');
    if (!isFile || !response.body || interruptionsLeft <= 0) return response;
    interruptionsLeft--;
    const { status, headers } = response;
    return new Response(response.body.pipeThrough(cutAfter(bytes)), { status, headers });
  };
  const { apiKey, baseUrl } = sandbox;
  const client = new GenClient({ apiKey, baseUrl, fetch, rateLimit: 'off', maxRetries: 1 });
  return { sandbox, gen: createGen({ client }) };
}

function cutAfter(bytes: number): TransformStream<Uint8Array, Uint8Array> {
  return new TransformStream({
    transform(chunk, controller) {
      controller.enqueue(chunk.slice(0, bytes));
      controller.error(new TypeError('terminated'));
    },
  });
}

describe('a download', () => {
  it.each([
    [
      'generateImage',
      (gen: GenProvider) => generateImage({ model: gen.image('svc-image-fast'), prompt, providerOptions }),
    ],
    [
      'generateVideo',
      (gen: GenProvider) => generateVideo({ model: gen.video('svc-video-fast'), prompt, providerOptions }),
    ],
    [
      'generateVideo with poll',
      (gen: GenProvider) => generateVideo({ model: gen.video('svc-video-fast'), prompt, poll: { intervalMs: 1 } }),
    ],
  ])('continues after an interruption (%s)', async (_, generate) => {
    const { gen, sandbox } = interruptedProvider(1);
    await generate(gen);
    expect(sandbox.jobs).toHaveLength(1);
    expect(sandbox.requests.filter(({ headers }) => headers.range === 'bytes=100-')).not.toHaveLength(0);
  });

  it.each([{}, { poll: { intervalMs: 1 } }])(
    'causes a DownloadError that contains the job and key if it is always interrupted (%o)',
    async (wait) => {
      vi.useFakeTimers();
      const { gen, sandbox } = interruptedProvider(1_000, { bytes: 0 });
      sandbox.faults.add({ match: { method: 'HEAD', path: OUTPUT }, status: 500 });
      const generation = generateVideo({ model: gen.video('svc-video-fast'), prompt, providerOptions: KEYED, ...wait });
      const error = await advanceUntil(generation).catch((thrown: unknown) => thrown);
      const [job] = sandbox.jobs;
      expect(error).toBeInstanceOf(DownloadError);
      expect(error).toMatchObject({ jobId: job?.id, idempotencyKey: 'order-17', recovery: 'retry' });
      expect(sandbox.jobs).toHaveLength(1);
    },
  );

  it('that fails while others succeed adds a warning and a metadata entry with its job and key', async () => {
    const { gen, sandbox } = providerOnSandbox({ jobDurationMs: 0 });
    sandbox.faults.add({ match: { method: 'GET', path: OUTPUT }, status: 410, code: 'gone', times: 1 });
    const model = gen.image('svc-image-fast');
    const { images, warnings, providerMetadata } = await generateImage({ model, prompt, n: 3, providerOptions: KEYED });
    expect(images).toHaveLength(2);
    expect(providerMetadata.gen?.images).toHaveLength(3);
    const missing = providerMetadata.gen?.images[2] as Record<string, string>;
    expect(sandbox.jobs.map(({ id }) => id)).toContain(missing.jobId);
    expect(missing).toMatchObject({ status: 'completed', error: expect.stringContaining('could not be downloaded') });
    expect(warnings).toEqual([
      expect.objectContaining({
        message: expect.stringContaining(`job ${missing.jobId}, idempotency key ${missing.idempotencyKey}`),
      }),
    ]);
  });

  it('waits until the service publishes the file', async () => {
    const { gen, sandbox } = providerOnSandbox({ jobDurationMs: 0 });
    sandbox.faults.add({ match: { method: 'GET', path: OUTPUT }, status: 404, code: 'not_found', times: 2 });
    const { images, warnings } = await generateImage({ model: gen.image('svc-image-fast'), prompt });
    expect({ images: images.length, warnings }).toEqual({ images: 1, warnings: [] });
  });

  it('causes an error that lists all paid jobs if every output fails', async () => {
    const { gen, sandbox } = providerOnSandbox({ jobDurationMs: 0 });
    sandbox.faults.add({ match: { method: 'GET', path: OUTPUT }, status: 410, code: 'gone', times: 3 });
    const generation = generateImage({ model: gen.image('svc-image-fast'), prompt, n: 3, providerOptions: QUICK });
    const error = await generation.catch((thrown: Error) => thrown);
    for (const { id } of sandbox.jobs) expect(String(error)).toContain(id);
  });
});

describe('a wait', () => {
  it('that times out while others succeed adds a metadata entry for the running job', async () => {
    const { gen, sandbox } = providerOnSandbox({ jobDurationMs: 0 });
    sandbox.outcomes.next({ status: 'completed', durationMs: 600_000 });
    const options = { gen: { ...QUICK.gen, timeoutMs: 200 } };
    const model = gen.image('svc-image-fast');
    const { images, providerMetadata } = await generateImage({ model, prompt, n: 2, providerOptions: options });
    expect(images).toHaveLength(1);
    const running = sandbox.jobs.find(({ status }) => status !== 'completed');
    expect(providerMetadata.gen?.images).toEqual([
      expect.objectContaining({ status: 'completed' }),
      expect.objectContaining({ jobId: running?.id }),
    ]);
  });

  it('survives 20 failed polls by the core', async () => {
    vi.useFakeTimers();
    const { gen, sandbox } = providerOnSandbox({ jobDurationMs: 1_000 });
    const model = gen.video('svc-video-fast');
    const generation = generateVideo({ model, prompt, poll: { intervalMs: 1_000 } });
    sandbox.faults.add({ match: { method: 'GET', path: /^\/v1\/jobs\/[^/]+$/ }, status: 500, times: 20 });
    const { videos, providerMetadata } = await advanceUntil(generation);
    expect(videos).toHaveLength(1);
    expect(providerMetadata.gen?.videos).toHaveLength(1);
    expect(sandbox.jobs).toHaveLength(1);
  });

  it('fails with a permanent error from a poll, including the job', async () => {
    const { gen, sandbox } = providerOnSandbox();
    const model = gen.video('svc-video-fast');
    const { operation } = await startVideo({ model, prompt });
    sandbox.faults.add({ match: { method: 'GET' }, status: 401, code: 'invalid_api_key' });
    const error = await getVideoStatus(model, { operation }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(AuthenticationError);
    expect(error).toMatchObject({ message: expect.stringContaining(sandbox.jobs[0]?.id ?? '') });
  });

  it('fails after timeoutMs, even in another process', async () => {
    const { gen, sandbox } = providerOnSandbox({ jobDurationMs: 60_000 });
    const model = gen.video('svc-video-fast');
    const { operation } = await startVideo({ model, prompt, providerOptions: { gen: { timeoutMs: 1 } } });
    const poll = expect.poll(() => getVideoStatus(model, { operation }).catch((thrown: unknown) => thrown));
    await poll.toBeInstanceOf(WaitTimeoutError);
    expect(sandbox.jobs).toHaveLength(1);
  });
});

describe("a call's files", () => {
  const image = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  const deletions = (sandbox: ReturnType<typeof createSandbox>) =>
    sandbox.requests.filter(({ method, path }) => method === 'DELETE' && path.startsWith('/v1/uploads/'));

  it("are deleted after the job only with cleanup: 'after-job'", async () => {
    const { gen, sandbox } = providerOnSandbox({ jobDurationMs: 0 });
    const model = gen.image('svc-image-fast');
    const generate = (options: object) => {
      const providerOptions = { gen: { ...QUICK.gen, ...options } };
      return generateImage({ model, prompt: { text: prompt, images: [image] }, providerOptions });
    };
    await generate({});
    expect(deletions(sandbox)).toHaveLength(0);
    await generate({ cleanup: 'after-job' });
    expect(deletions(sandbox)).toHaveLength(1);
  });
});
