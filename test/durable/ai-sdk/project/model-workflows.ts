// Workflows like those that @ai-sdk/workflow tests providers with.
import { experimental_generateVideo } from '@ai-sdk/workflow/video';
import { gen } from 'gen-client/ai-sdk';

export async function generateVideo(prompt: string) {
  'use workflow';
  return experimental_generateVideo({ model: gen.video('svc-video-mini'), prompt });
}

export async function describeModels() {
  'use workflow';
  return describe(gen.image('svc-image-pro'), gen.video('svc-video-mini'));
}

async function describe(...models: { modelId: string; provider: string }[]) {
  'use step';
  return models.map(({ modelId, provider }) => `${provider} ${modelId}`);
}
