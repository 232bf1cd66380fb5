// Under a key of the caller's, each output has one job, on every way in which the AI SDK's core splits a call.
import { experimental_generateVideo as generateVideo } from 'ai';
import type { GenProvider } from 'gen-client/ai-sdk';
import { describe, expect, it } from 'vitest';
import { providerOnSandbox, QUICK } from './provider-setup.js';

const prompt = 'a fox runs through snow';
const KEY_IN_HEADERS = { headers: { 'Idempotency-Key': 'order-19' }, providerOptions: QUICK };
const KEY_IN_OPTIONS = { providerOptions: { gen: { ...QUICK.gen, idempotencyKey: 'order-19' } } };

function webhooks() {
  let opened = 0;
  return {
    async webhook() {
      // The second part of a call has its webhook later than the first.
      const part = opened++ % 2;
      for (let turn = 0; turn < part * 20; turn++) await new Promise((resolve) => setImmediate(resolve));
      return { url: `https://example.com/hook/${part}`, received: Promise.resolve({ headers: {}, body: '{}' }) };
    },
  };
}

const WAYS: readonly (readonly [string, () => object])[] = [
  ['a wait of the SDK', () => ({})],
  ['poll', () => ({ poll: { intervalMs: 5 } })],
  ['a webhook', webhooks],
];

describe.each(WAYS)('with %s', (way, how) => {
  const KEYS = [
    [undefined, 'headers', KEY_IN_HEADERS],
    [undefined, 'providerOptions', KEY_IN_OPTIONS],
    // With poll and webhook, the core copies the headers: only the caller's providerOptions show that parts belong together.
    ...(way === 'a wait of the SDK' ? ([[1, 'headers', KEY_IN_HEADERS]] as const) : []),
    ...(way === 'a webhook' ? [] : ([[1, 'providerOptions', KEY_IN_OPTIONS]] as const)),
  ] as const;
  const ask = (gen: GenProvider, most: number | undefined, key: object) =>
    generateVideo({
      model: gen.video('svc-video-fast'),
      prompt,
      n: 2,
      ...(most !== undefined && { maxVideosPerCall: most }),
      ...key,
      ...how(),
    });

  it.each(KEYS)(
    'two videos are two jobs, and the same two again (maxVideosPerCall %s, key in %s)',
    async (most, _in, key) => {
      const { gen, sandbox } = providerOnSandbox();
      const { videos, providerMetadata } = await ask(gen, most, key);
      expect(videos).toHaveLength(2);
      const jobs = (providerMetadata.gen?.videos ?? []) as { jobId: string }[];
      expect(new Set(jobs.map(({ jobId }) => jobId))).toEqual(new Set(sandbox.jobs.map(({ id }) => id)));
      expect(sandbox.jobs).toHaveLength(2);
      await ask(gen, most, key);
      expect(sandbox.jobs).toHaveLength(2);
    },
  );

  it('a call that the core splits is never paid for more often than its outputs, however often it is made', async () => {
    const { gen, sandbox } = providerOnSandbox();
    for (let time = 0; time < 3; time++) {
      const error = await ask(gen, 1, KEY_IN_OPTIONS).then(() => undefined, String);
      // What is refused names the job that is paid for.
      if (error !== undefined) expect(error).toContain(`(job ${sandbox.jobs[0]?.id})`);
    }
    expect(sandbox.jobs.length).toBeLessThanOrEqual(2);
  });

  it('a request that comes twice while its job runs makes one job', async () => {
    const { gen, sandbox } = providerOnSandbox({ jobDurationMs: 100 });
    const ask = () => generateVideo({ model: gen.video('svc-video-fast'), prompt, ...KEY_IN_HEADERS, ...how() });
    const first = ask();
    await new Promise((resolve) => setTimeout(resolve, 5));
    await Promise.all([first, ask()]);
    expect(sandbox.jobs).toHaveLength(1);
  });
});
