import { WORKFLOW_DESERIALIZE, WORKFLOW_SERIALIZE } from '@workflow/serde';
import { generateImage } from 'ai';
import { GenClient } from 'gen-client';
import { createGen } from 'gen-client/ai-sdk';
import { afterEach, expect, it, vi } from 'vitest';
import { providerOnSandbox, QUICK } from './provider-setup.js';

afterEach(() => vi.unstubAllEnvs());

interface Serializable {
  [WORKFLOW_SERIALIZE](model: object): unknown;
  [WORKFLOW_DESERIALIZE](serialized: unknown): { modelId: string };
}

/** Serializes a model as a workflow does, and deserializes it as another process does. */
function roundTrip<M extends object>(model: M): { serialized: unknown; restored: M } {
  const statics = model.constructor as object as Serializable;
  const serialized: unknown = JSON.parse(JSON.stringify(statics[WORKFLOW_SERIALIZE](model)));
  return { serialized, restored: statics[WORKFLOW_DESERIALIZE](serialized) as object as M };
}

const SETTINGS = {
  apiKey: 'key-for-tests-123456',
  webhookSecret: 'whsec-for-tests',
  headers: { 'x-tenant': 'secret-tenant' },
  baseUrl: new URL('https://api.example/prefix'),
  maxRetries: 2,
};

it('serializes a model with its ID and options, without keys, secrets, or headers', () => {
  for (const model of [createGen(SETTINGS).image('svc-image-pro'), createGen(SETTINGS).video('svc-video-pro')]) {
    const { serialized, restored } = roundTrip(model);
    expect(serialized).toEqual({
      modelId: model.modelId,
      config: { baseUrl: 'https://api.example/prefix', maxRetries: 2 },
    });
    expect(restored.modelId).toBe(model.modelId);
    expect(restored.provider).toBe(model.provider);
    expect(roundTrip(restored).serialized).toEqual(serialized);
  }
});

it("serializes a client's model with its base URL", () => {
  const client = new GenClient({ apiKey: 'key-for-tests-123456', baseUrl: 'https://api.example' });
  const { serialized } = roundTrip(createGen({ client }).video('svc-video-pro'));
  expect(serialized).toEqual({ modelId: 'svc-video-pro', config: { baseUrl: 'https://api.example' } });
});

it('reads the API key of a restored model from the environment', async () => {
  const { sandbox, gen } = providerOnSandbox();
  const service = await sandbox.listen({ port: 0 });
  try {
    const { restored } = roundTrip(createGen({ baseUrl: service.url }).image('svc-image-fast'));
    vi.stubEnv('GEN_API_KEY', sandbox.apiKey);
    const { image } = await generateImage({ model: restored, prompt: 'a fox', providerOptions: QUICK });
    expect(image.mediaType).toBe('image/png');
    expect(gen.image('svc-image-fast').provider).toBe(restored.provider);
  } finally {
    await service.close();
  }
});
