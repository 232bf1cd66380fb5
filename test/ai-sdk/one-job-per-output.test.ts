// With a caller's key, each output has a separate job.
import { generateImage, experimental_generateVideo as generateVideo } from 'ai';
import type { GenProvider } from 'gen-client/ai-sdk';
import { describe, expect, it } from 'vitest';
import { providerOnSandbox, QUICK } from './provider-setup.js';

const prompt = 'a fox runs through snow';
const KEY_IN_HEADERS = { headers: { 'Idempotency-Key': 'order-19' }, providerOptions: QUICK };
const KEY_IN_OPTIONS = { providerOptions: { gen: { ...QUICK.gen, idempotencyKey: 'order-19' } } };

const KEYS = [
  ['headers', KEY_IN_HEADERS],
  ['providerOptions', KEY_IN_OPTIONS],
] as const;

/** Creates the webhooks of one call. */
function webhooks() {
  let calls = 0;
  return {
    async webhook() {
      // The URL of a call's second part is created later than that of the first.
      const part = calls++ % 2;
      for (let turn = 0; turn < part * 20; turn++) await new Promise((resolve) => setImmediate(resolve));
      return { url: `https://example.com/hook/${part}`, received: Promise.resolve({ headers: {}, body: '{}' }) };
    },
  };
}

const WAITS: readonly (readonly [string, () => object])[] = [
  ["the client's wait", () => ({})],
  ['poll', () => ({ poll: { intervalMs: 5 } })],
  ['a webhook', webhooks],
];

describe.each(WAITS)('with %s', (_, wait) => {
  const generate = (gen: GenProvider, key: object, settings: object = {}) =>
    generateVideo({ model: gen.video('svc-video-fast'), prompt, n: 2, ...key, ...wait(), ...settings });

  it.each(KEYS)('creates two jobs for two videos, and reuses them (key in %s)', async (_, key) => {
    const { gen, sandbox } = providerOnSandbox();
    const { videos, providerMetadata } = await generate(gen, key);
    expect(videos).toHaveLength(2);
    const jobs = (providerMetadata.gen?.videos ?? []) as { jobId: string }[];
    expect(new Set(jobs.map(({ jobId }) => jobId))).toEqual(new Set(sandbox.jobs.map(({ id }) => id)));
    expect(sandbox.jobs).toHaveLength(2);
    await generate(gen, key);
    expect(sandbox.jobs).toHaveLength(2);
  });

  it.each(KEYS)('rejects a call that the core splits, before anything is paid (key in %s)', async (_, key) => {
    const { gen, sandbox } = providerOnSandbox();
    const error = await generate(gen, key, { maxVideosPerCall: 1 }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'PreflightError', code: 'idempotency_key_reused' });
    expect(String(error)).toContain('Leave out maxVideosPerCall');
    expect(sandbox.requests).toEqual([]);
    // Without maxVideosPerCall, the call creates both.
    expect((await generate(gen, key)).videos).toHaveLength(2);
    expect(sandbox.jobs).toHaveLength(2);
  });

  it('creates different videos for a call that the core splits without a key', async () => {
    const { gen, sandbox } = providerOnSandbox();
    const { videos } = await generate(gen, { providerOptions: QUICK }, { maxVideosPerCall: 1 });
    expect(videos).toHaveLength(2);
    expect(sandbox.jobs).toHaveLength(2);
  });

  it('creates one job for a call that is repeated while its job runs', async () => {
    const { gen, sandbox } = providerOnSandbox({ jobDurationMs: 100 });
    const request = () => generateVideo({ model: gen.video('svc-video-fast'), prompt, ...KEY_IN_HEADERS, ...wait() });
    const first = request();
    await new Promise((resolve) => setTimeout(resolve, 5));
    await Promise.all([first, request()]);
    expect(sandbox.jobs).toHaveLength(1);
  });
});

it('rejects an image call with a key that the core splits, before anything is paid', async () => {
  const { gen, sandbox } = providerOnSandbox();
  const model = gen.image('svc-image-fast');
  const generation = generateImage({ model, prompt, n: 2, maxImagesPerCall: 1, ...KEY_IN_OPTIONS });
  await expect(generation).rejects.toMatchObject({ name: 'PreflightError', code: 'idempotency_key_reused' });
  expect(sandbox.requests).toEqual([]);
});
