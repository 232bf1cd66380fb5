import type { ImageModelV4, ImageModelV4CallOptions, ImageModelV4Result, SharedV4Warning } from '@ai-sdk/provider';
import type { GenClient } from '../client.js';
import { readProviderOptions } from './call-options.js';
import { IMAGE_REFERENCE, sendInputs } from './inputs.js';
import { makeOutputs } from './make-outputs.js';
import { createOutputKeys, keyFromHeaders, plainHeaders } from './output-keys.js';
import { type Output, responseOf } from './outputs.js';
import { imageSettings, unsupported } from './settings.js';

/** An image model of the service for `generateImage`. All outputs of a call come from one `doGenerate`. */
export function createImageModel(client: () => GenClient, modelId: string): ImageModelV4 {
  const outputKeys = createOutputKeys();
  return {
    specificationVersion: 'v4',
    provider: 'gen.image',
    modelId,
    // One call makes all outputs, so that one failing cannot lose the others that are paid for.
    maxImagesPerCall: Number.MAX_SAFE_INTEGER,
    supportsFileInputs: true,
    supportsMaskInputs: false,
    async doGenerate(call) {
      const own = readProviderOptions(call.providerOptions);
      const { keys, settled } = outputKeys(call, own.idempotencyKey ?? keyFromHeaders(call.headers));
      try {
        return await generate(client(), { modelId, call, own, keys });
      } finally {
        settled();
      }
    },
  };
}

async function generate(
  client: GenClient,
  job: {
    readonly modelId: string;
    readonly call: ImageModelV4CallOptions;
    readonly own: ReturnType<typeof readProviderOptions>;
    readonly keys: readonly string[];
  },
): Promise<ImageModelV4Result> {
  const { call, own, modelId } = job;
  const { fields, warnings } = imageSettings(modelId, call);
  if (call.mask) warnings.push(unsupported('mask', 'The service documents no masked edits.'));
  const files = (call.files ?? []).map((file) => ({ file, slot: IMAGE_REFERENCE }));
  const inputs = await sendInputs(client, files, call.abortSignal);
  const body = { model: modelId, prompt: call.prompt ?? '', ...fields, ...inputs.fields, ...own.fields };
  const made = await makeOutputs(client, job.keys, {
    mediaType: 'image',
    body,
    wait: own.wait,
    headers: plainHeaders(call.headers),
    signal: call.abortSignal,
    inputs,
  });
  return result(modelId, made.done, [...warnings, ...made.warnings]);
}

function result(modelId: string, outputs: readonly Output[], warnings: SharedV4Warning[]): ImageModelV4Result {
  return {
    images: outputs.map((output) => output.bytes),
    isRetryable: false,
    warnings,
    providerMetadata: { gen: { images: outputs.map((output) => output.metadata) } },
    response: responseOf(modelId),
  };
}
