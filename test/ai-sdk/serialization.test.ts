import { WORKFLOW_DESERIALIZE, WORKFLOW_SERIALIZE } from '@workflow/serde';
import { generateImage } from 'ai';
import { GenClient } from 'gen-client';
import { createGen } from 'gen-client/ai-sdk';
import { afterEach, expect, it, vi } from 'vitest';
import { providerOnSandbox, QUICK } from './provider-setup.js';

afterEach(() => vi.unstubAllEnvs());

interface Serializable {
  [WORKFLOW_SERIALIZE](model: object): unknown;
  [WORKFLOW_DESERIALIZE](stored: unknown): { modelId: string };
}

/** Serializes a model like a workflow, and restores it like another process. */
function acrossProcesses<M extends object>(model: M): { stored: unknown; again: M } {
  const statics = model.constructor as object as Serializable;
  const stored: unknown = JSON.parse(JSON.stringify(statics[WORKFLOW_SERIALIZE](model)));
  return { stored, again: statics[WORKFLOW_DESERIALIZE](stored) as object as M };
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
    const { stored, again } = acrossProcesses(model);
    expect(stored).toEqual({
      modelId: model.modelId,
      config: { baseUrl: 'https://api.example/prefix', maxRetries: 2 },
    });
    expect(again.modelId).toBe(model.modelId);
    expect(again.provider).toBe(model.provider);
    expect(acrossProcesses(again).stored).toEqual(stored);
  }
});

it("serializes a client's model with its base URL", () => {
  const client = new GenClient({ apiKey: 'key-for-tests-123456', baseUrl: 'https://api.example' });
  const { stored } = acrossProcesses(createGen({ client }).video('svc-video-pro'));
  expect(stored).toEqual({ modelId: 'svc-video-pro', config: { baseUrl: 'https://api.example' } });
});

it("a restored model reads the key from its process's environment", async () => {
  const { sandbox, gen } = providerOnSandbox();
  const service = await sandbox.listen({ port: 0 });
  try {
    const { again } = acrossProcesses(createGen({ baseUrl: service.url }).image('svc-image-fast'));
    vi.stubEnv('GEN_API_KEY', sandbox.apiKey);
    const { image } = await generateImage({ model: again, prompt: 'a fox', providerOptions: QUICK });
    expect(image.mediaType).toBe('image/png');
    expect(gen.image('svc-image-fast').provider).toBe(again.provider);
  } finally {
    await service.close();
  }
});
