import type { ImageModelV4, ImageModelV4CallOptions, ImageModelV4Result, SharedV4Warning } from '@ai-sdk/provider';
import type { CreatedJob, GenClient } from '../index.js';
import { readProviderOptions } from './call-options.js';
import { discardInputs, IMAGE_REFERENCE, sendInputs } from './inputs.js';
import { createOutputKeys, keyFromHeaders, plainHeaders } from './output-keys.js';
import { type Output, readOutput, responseOf, serviceWarnings, settle } from './outputs.js';
import { imageSettings, unsupported } from './settings.js';

/** The one paid call of an image output: what it is made from, and under which key. */
interface ImageCall {
  readonly body: Record<string, unknown>;
  readonly options: Record<string, unknown>;
  readonly signal: AbortSignal | undefined;
  readonly onCreated: (created: CreatedJob) => void;
}

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
  let created = 0;
  const tasks = job.keys.map((idempotencyKey) =>
    makeImage(client, {
      body,
      options: { ...own.wait, idempotencyKey, headers: plainHeaders(call.headers) },
      signal: call.abortSignal,
      onCreated: (made) => {
        created++;
        warnings.push(...serviceWarnings(made));
      },
    }),
  );
  try {
    const { done, warnings: failures } = await settle(tasks, call.abortSignal);
    return result(modelId, done, [...warnings, ...failures]);
  } finally {
    if (created === 0) await discardInputs(client, inputs);
  }
}

async function makeImage(client: GenClient, call: ImageCall): Promise<Output> {
  let idempotencyKey: string | undefined;
  const job = await client.images.createAndWait(call.body as never, {
    ...call.options,
    signal: call.signal,
    onCreated: (made: CreatedJob) => {
      idempotencyKey = made.idempotencyKey;
      call.onCreated(made);
    },
  });
  return readOutput(client, job, { signal: call.signal, created: { mediaType: 'image', idempotencyKey } });
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
