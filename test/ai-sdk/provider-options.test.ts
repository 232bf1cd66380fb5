import { generateImage, experimental_generateVideo as generateVideo, experimental_startVideo as startVideo } from 'ai';
import { GenClient, WaitTimeoutError } from 'gen-client';
import { createGen } from 'gen-client/ai-sdk';
import { createSandbox } from 'gen-client/sandbox';
import { describe, expect, it } from 'vitest';
import { createsOf, providerOnSandbox, QUICK } from './provider-setup.js';

const prompt = 'a fox at dawn';

describe('providerOptions.gen', () => {
  it.each([
    ['idempotencykey', 'Did you mean "idempotencyKey"?'],
    ['timeout', 'Did you mean "timeoutMs"?'],
    ['poll_interval_ms', 'Did you mean "pollIntervalMs"?'],
    ['signal', 'Use one of idempotencyKey, '],
    ['budget', 'Use one of idempotencyKey, '],
  ])('rejects the unknown field %s before anything is sent', async (name, fix) => {
    const { gen, sandbox } = providerOnSandbox();
    const model = gen.image('svc-image-fast');
    const generation = generateImage({ model, prompt, providerOptions: { gen: { [name]: 'x' } } });
    await expect(generation).rejects.toThrow(`providerOptions.gen has no option "${name}". `);
    await expect(generation).rejects.toThrow(fix);
    expect(sandbox.requests).toHaveLength(0);
  });

  it.each([
    [{ timeoutMs: '1000' }, 'timeoutMs'],
    [{ recover: { generation_rejected: 1 } }, 'generation_rejected'],
    [{ idempotencyKey: null }, 'idempotencyKey'],
    [{ idempotency_key: null }, 'idempotencyKey must be a string'],
  ])('rejects %o before anything is sent', async (options, message) => {
    const { gen, sandbox } = providerOnSandbox();
    const model = gen.video('svc-video-fast');
    for (const wait of [{}, { poll: { intervalMs: 5 } }]) {
      const generation = generateVideo({ model, prompt, providerOptions: { gen: options }, ...wait });
      await expect(generation).rejects.toThrow(message);
    }
    expect(sandbox.requests).toHaveLength(0);
  });

  it("sends the service's fields unchanged", async () => {
    const { gen, sandbox } = providerOnSandbox();
    const model = gen.video('svc-video-fast');
    const fields = { resolution: '720p', camera_fixed: true, watermark: false, safety_identifier: 'user-1' };
    await generateVideo({ model, prompt, providerOptions: { gen: { ...QUICK.gen, ...fields } } });
    const [body] = createsOf(sandbox, '/v1/videos');
    expect(body).toEqual({ model: 'svc-video-fast', prompt, ...fields });
  });

  it('waits for at most timeoutMs', async () => {
    const { gen } = providerOnSandbox({ jobDurationMs: 60_000 });
    const generation = generateImage({
      model: gen.image('svc-image-fast'),
      prompt,
      providerOptions: { gen: { timeoutMs: 50 } },
    });
    await expect(generation).rejects.toBeInstanceOf(WaitTimeoutError);
  });

  it('recovers from a failed job, and reports the last job', async () => {
    const { gen, sandbox } = providerOnSandbox({ jobDurationMs: 0 });
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_failed' });
    const { images, providerMetadata } = await generateImage({
      model: gen.image('svc-image-fast'),
      prompt,
      providerOptions: { gen: { ...QUICK.gen, recover: { generation_failed: 1 } } },
    });
    expect(images).toHaveLength(1);
    expect(sandbox.jobs).toHaveLength(2);
    const [entry] = (providerMetadata.gen?.images ?? []) as Record<string, string>[];
    expect(entry?.jobId).toBe(sandbox.jobs.find(({ status }) => status === 'completed')?.id);
  });

  it.each([{}, { poll: { intervalMs: 5 } }])(
    "adds the label to the job's events, but never sends it (%o)",
    async (wait) => {
      const sandbox = createSandbox({ jobDurationMs: 0, limits: 'off' });
      const { apiKey, baseUrl, fetch } = sandbox;
      const labels: unknown[] = [];
      const hooks = {
        onJob: (event: { phase: string; label?: string | undefined }) => void labels.push([event.phase, event.label]),
      };
      const model = createGen({ client: new GenClient({ apiKey, baseUrl, fetch, hooks }) }).video('svc-video-fast');
      await generateVideo({ model, prompt, providerOptions: { gen: { ...QUICK.gen, label: 'user-7' } }, ...wait });
      expect(labels.slice(0, 2)).toEqual([
        ['accepted', 'user-7'],
        ['final', 'user-7'],
      ]);
      expect(JSON.stringify(sandbox.requests)).not.toContain('user-7');
    },
  );

  it.each(['recover', 'cleanup'])('rejects %s before anything is sent if the AI SDK waits', async (name) => {
    const { gen, sandbox } = providerOnSandbox();
    const value = name === 'cleanup' ? 'after-job' : { generation_failed: 1 };
    const settings = { model: gen.video('svc-video-fast'), prompt, providerOptions: { gen: { [name]: value } } };
    await expect(startVideo(settings)).rejects.toThrow(`providerOptions.gen.${name}`);
    await expect(generateVideo({ ...settings, poll: { intervalMs: 5 } })).rejects.toThrow('without poll and webhook');
    expect(sandbox.requests).toHaveLength(0);
  });
});
