import type { ImageModelV4, ImageModelV4CallOptions, ImageModelV4Result } from '@ai-sdk/provider';
import { WORKFLOW_DESERIALIZE, WORKFLOW_SERIALIZE } from '@workflow/serde';
import type { GenClient } from '../client.js';
import { IMAGE_REFERENCE, inputFields } from './inputs.js';
import { type ModelSource, modelSource, type SerializedModel } from './model-source.js';
import { createOutputKeys, keyFromHeaders, plainHeaders } from './output-keys.js';
import { makeOutputs, responseMetadata } from './outputs.js';
import { type ReadProviderOptions, readProviderOptions } from './provider-options.js';
import { imageSettings, unsupported } from './settings.js';

/**
 * An image model of the service for `generateImage`. All outputs of a call come from one `doGenerate`. A workflow may hand
 * the model from one step to another: it takes its model id and its base URL along, and never the API key.
 */
export class GenImageModel implements ImageModelV4 {
  readonly specificationVersion = 'v4';
  readonly provider = 'gen.image';
  readonly modelId: string;
  /** One call makes all outputs, so that one failing cannot lose the others that are paid for. */
  readonly maxImagesPerCall = Number.MAX_SAFE_INTEGER;
  readonly supportsFileInputs = true;
  readonly supportsMaskInputs = false;
  readonly #source: ModelSource;
  readonly #outputKeys = createOutputKeys();

  constructor(source: ModelSource, modelId: string) {
    this.#source = source;
    this.modelId = modelId;
  }

  static [WORKFLOW_SERIALIZE](model: GenImageModel): SerializedModel {
    return { modelId: model.modelId, config: model.#source.config() };
  }

  static [WORKFLOW_DESERIALIZE]({ modelId, config }: SerializedModel): GenImageModel {
    return new GenImageModel(modelSource(config), modelId);
  }

  async doGenerate(call: ImageModelV4CallOptions): Promise<ImageModelV4Result> {
    const own = readProviderOptions(call.providerOptions);
    const { keys, settled } = this.#outputKeys(call, own.idempotencyKey ?? keyFromHeaders(call.headers), 'calls');
    try {
      return await generateImages(await this.#source.client(), { modelId: this.modelId, call, own, keys });
    } finally {
      settled();
    }
  }
}

async function generateImages(
  client: GenClient,
  job: {
    readonly modelId: string;
    readonly call: ImageModelV4CallOptions;
    readonly own: ReadProviderOptions;
    readonly keys: readonly string[];
  },
): Promise<ImageModelV4Result> {
  const { call, own, modelId } = job;
  const { fields, warnings } = imageSettings(modelId, call);
  if (call.mask) warnings.push(unsupported('mask', 'The service documents no masked edits.'));
  const files = (call.files ?? []).map((file) => ({ file, slot: IMAGE_REFERENCE }));
  const made = await makeOutputs(client, job.keys, {
    mediaType: 'image',
    body: { model: modelId, prompt: call.prompt ?? '', ...fields, ...inputFields(files), ...own.fields },
    options: own.options,
    headers: plainHeaders(call.headers),
    signal: call.abortSignal,
  });
  return {
    images: made.done.map((output) => output.bytes),
    isRetryable: false,
    warnings: [...warnings, ...made.warnings],
    providerMetadata: { gen: { images: [...made.done.map((output) => output.metadata), ...made.unread] } },
    response: responseMetadata(modelId),
  };
}
