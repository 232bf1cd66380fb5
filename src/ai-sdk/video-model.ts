import type {
  Experimental_VideoModelV4,
  Experimental_VideoModelV4OperationStartResult,
  Experimental_VideoModelV4OperationStatusResult,
  Experimental_VideoModelV4Result,
} from '@ai-sdk/provider';
import { WORKFLOW_DESERIALIZE, WORKFLOW_SERIALIZE } from '@workflow/serde';
import type { GenClient } from '../client.js';
import { type ModelSource, modelSource, type SerializedModel } from './model-source.js';
import { createOutputKeys, createWebhookOpener, keyFromHeaders, plainHeaders } from './output-keys.js';
import { makeOutputs, responseMetadata } from './outputs.js';
import { readProviderOptions, refuseWaitingOptions } from './provider-options.js';
import { type PreparedVideo, prepareVideo, type VideoCall } from './video-call.js';
import { operationStatus, startJobs, toVideo } from './video-operation.js';

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
  readonly #openWebhook = createWebhookOpener();

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

  async doGenerate(call: VideoCall): Promise<Experimental_VideoModelV4Result> {
    return this.#withKeys(call, 'calls', generateVideos);
  }

  async doStart(call: VideoCall): Promise<Experimental_VideoModelV4OperationStartResult> {
    return this.#withKeys(call, 'starts', (client, { modelId, ...start }) => {
      refuseWaitingOptions(start.video.own);
      return startJobs(client, modelId, start);
    });
  }

  async doStatus({ operation, abortSignal }: StatusCall): Promise<Experimental_VideoModelV4OperationStatusResult> {
    return operationStatus(await this.#source.client(), this.modelId, { operation, signal: abortSignal });
  }

  async handleWebhookOption({ webhook }: WebhookOption): Promise<WebhookAnswer> {
    const { url, received } = await this.#openWebhook(webhook);
    return { webhookUrl: url, received };
  }

  /** Runs one call with a key for each output. The keys are taken before anything is awaited: parts of a call come together. */
  async #withKeys<T>(
    call: VideoCall,
    split: 'calls' | 'starts',
    run: (client: GenClient, video: VideoRun) => Promise<T>,
  ): Promise<T> {
    const { modelId } = this;
    const own = readProviderOptions(call.providerOptions);
    const { keys, settled } = this.#outputKeys(call, own.idempotencyKey ?? keyFromHeaders(call.headers), split);
    try {
      return await run(await this.#source.client(), { modelId, call, video: prepareVideo(modelId, call, own), keys });
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

async function generateVideos(
  client: GenClient,
  { modelId, call, video, keys }: VideoRun,
): Promise<Experimental_VideoModelV4Result> {
  const { done, warnings, unread } = await makeOutputs(client, keys, {
    mediaType: 'video',
    body: video.body,
    options: video.own.options,
    headers: plainHeaders(call.headers),
    signal: call.abortSignal,
  });
  return {
    videos: done.map(toVideo),
    warnings: [...video.warnings, ...warnings],
    providerMetadata: { gen: { videos: [...done.map((output) => output.metadata), ...unread] } },
    response: responseMetadata(modelId),
  };
}
