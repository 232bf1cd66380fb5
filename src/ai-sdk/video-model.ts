import type {
  Experimental_VideoModelV4,
  Experimental_VideoModelV4CallOptions,
  Experimental_VideoModelV4OperationStartResult,
  Experimental_VideoModelV4OperationStatusResult,
  Experimental_VideoModelV4Result,
} from '@ai-sdk/provider';
import { WORKFLOW_DESERIALIZE, WORKFLOW_SERIALIZE } from '@workflow/serde';
import type { GenClient } from '../client.js';
import { readProviderOptions } from './call-options.js';
import { discardInputs } from './inputs.js';
import { makeOutputs } from './make-outputs.js';
import { type ModelSource, modelSource, type SerializedModel } from './model-source.js';
import { createOutputKeys, keyFromHeaders, plainHeaders } from './output-keys.js';
import { responseOf } from './outputs.js';
import { type PreparedVideo, prepareVideo } from './video-call.js';
import { operationStatus, startJobs, toVideo } from './video-operation.js';

type VideoCall = Experimental_VideoModelV4CallOptions & { readonly webhookUrl?: string };

/**
 * A video model of the service for `experimental_generateVideo` and the start and status calls. A workflow may hand the
 * model from one step to another: it takes its model id and its base URL along, and never the API key.
 */
export class GenVideoModel implements Experimental_VideoModelV4 {
  readonly specificationVersion = 'v4';
  readonly provider = 'gen.video';
  readonly modelId: string;
  /** One call makes all outputs, so that one failing cannot lose the others that are paid for. */
  readonly maxVideosPerCall = Number.MAX_SAFE_INTEGER;
  readonly #source: ModelSource;
  readonly #outputKeys = createOutputKeys();

  constructor(source: ModelSource, modelId: string) {
    this.#source = source;
    this.modelId = modelId;
  }

  static [WORKFLOW_SERIALIZE](model: GenVideoModel): SerializedModel {
    return { modelId: model.modelId, config: model.#source.config() };
  }

  static [WORKFLOW_DESERIALIZE]({ modelId, config }: SerializedModel): GenVideoModel {
    return new GenVideoModel(modelSource(config), modelId);
  }

  doGenerate(call: VideoCall): Promise<Experimental_VideoModelV4Result> {
    return this.#withKeys(call, generate);
  }

  doStart(call: VideoCall): Promise<Experimental_VideoModelV4OperationStartResult> {
    return this.#withKeys(call, start);
  }

  async doStatus({ operation, abortSignal }: StatusCall): Promise<Experimental_VideoModelV4OperationStatusResult> {
    return operationStatus(await this.#source.client(), this.modelId, { operation, signal: abortSignal });
  }

  async handleWebhookOption({ webhook }: WebhookOption): Promise<WebhookAnswer> {
    const { url, received } = await webhook();
    return { webhookUrl: url, received };
  }

  /** Runs one call with a key for each output; uploads are taken back when no job came of them. */
  async #withKeys<T>(call: VideoCall, run: (client: GenClient, video: VideoRun) => Promise<T>): Promise<T> {
    const { modelId } = this;
    const client = await this.#source.client();
    const callersKey = readProviderOptions(call.providerOptions).idempotencyKey ?? keyFromHeaders(call.headers);
    const { keys, settled } = this.#outputKeys(call, callersKey);
    try {
      return await run(client, { modelId, call, video: await prepareVideo(client, modelId, call), keys });
    } finally {
      settled();
    }
  }
}

type StatusCall = Parameters<NonNullable<Experimental_VideoModelV4['doStatus']>>[0];
type HandleWebhook = NonNullable<Experimental_VideoModelV4['handleWebhookOption']>;
type WebhookOption = Parameters<HandleWebhook>[0];
type WebhookAnswer = Awaited<ReturnType<HandleWebhook>>;

interface VideoRun {
  readonly modelId: string;
  readonly call: VideoCall;
  readonly video: PreparedVideo;
  readonly keys: readonly string[];
}

async function start(client: GenClient, { modelId, call, video, keys }: VideoRun) {
  const startCall = {
    headers: plainHeaders(call.headers),
    signal: call.abortSignal,
    webhook: call.webhookUrl !== undefined,
  };
  try {
    return await startJobs(client, modelId, { video, keys, call: startCall });
  } catch (error) {
    await discardInputs(client, video.inputs);
    throw error;
  }
}

async function generate(
  client: GenClient,
  { modelId, call, video, keys }: VideoRun,
): Promise<Experimental_VideoModelV4Result> {
  const { done, warnings } = await makeOutputs(client, keys, {
    mediaType: 'video',
    body: video.body,
    wait: video.own.wait,
    headers: plainHeaders(call.headers),
    signal: call.abortSignal,
    inputs: video.inputs,
  });
  return {
    videos: done.map(toVideo),
    warnings: [...video.warnings, ...warnings],
    providerMetadata: { gen: { videos: done.map((output) => output.metadata) } },
    response: responseOf(modelId),
  };
}
