import {
  type Experimental_VideoModelV4,
  type Experimental_VideoModelV4OperationStartResult,
  type Experimental_VideoModelV4OperationStatusResult,
  type Experimental_VideoModelV4Result,
  type ImageModelV4,
  type ImageModelV4CallOptions,
  type ImageModelV4Result,
  NoSuchModelError,
  type ProviderV4,
} from '@ai-sdk/provider';
import type { ImageModel, VideoModel } from '../../catalog.js';
import type { GenClient } from '../../client/client.js';
import { type ClientOptions, checkClientOptions } from '../../client/client-options.js';
import * as option from '../../rules/options.js';
import { isFields } from '../../schemas/envelope.js';
import { createOutputKeys, createOutputs, type KeyedCall, responseMetadata } from './outputs.js';
import { prepareImage, prepareVideo, rejectWaitingOptions, type VideoCall } from './settings.js';
import { operationStatus, startJobs, toVideo } from './video-operation.js';

/** Workflows use these symbols to serialize class instances between steps. */
const WORKFLOW_SERIALIZE: unique symbol = Symbol.for('workflow-serialize');
const WORKFLOW_DESERIALIZE: unique symbol = Symbol.for('workflow-deserialize');

/** A client, or client options, which default to the environment. */
export type GenProviderSettings = { readonly client: GenClient } | ClientOptions;

/** Client options that are safe to serialize: no key, secret, header, or function. */
type PlainOptions = Pick<
  ClientOptions,
  'baseUrl' | 'timeoutMs' | 'maxRetries' | 'maxRetryAfterMs' | 'preflight' | 'rateLimit'
>;

/** A model in a workflow's storage. It never contains the API key, which each process reads from its environment. */
interface SerializedModel {
  readonly modelId: string;
  readonly config: PlainOptions;
}

/** Source of the client that a provider's models share. */
interface ModelSource {
  /** Created by the first call, so that a missing option fails that call and not the import. */
  readonly client: () => Promise<GenClient>;
  /** Options from which another process creates an equal client, with the key of its environment. */
  readonly config: () => PlainOptions;
}

function modelSource(settings: GenProviderSettings): ModelSource {
  let created: GenClient | undefined;
  return {
    async client() {
      if ('client' in settings) return settings.client;
      // Workflows load this module in a VM that rejects the stream that ky creates at import.
      const { GenClient } = await import('../../client/client.js');
      created ??= new GenClient(settings);
      return created;
    },
    config: () =>
      'client' in settings ? plainOptions({ baseUrl: clientBaseUrl(settings.client) }) : plainOptions(settings),
  };
}

function plainOptions(options: ClientOptions): PlainOptions {
  const { baseUrl, timeoutMs, maxRetries, maxRetryAfterMs, preflight, rateLimit } = options;
  const all = { baseUrl: baseUrl && String(baseUrl), timeoutMs, maxRetries, maxRetryAfterMs, preflight, rateLimit };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

function clientBaseUrl(client: GenClient): string | undefined {
  const { baseUrl } = client.toJSON();
  return typeof baseUrl === 'string' ? baseUrl : undefined;
}

/**
 * An image model for `generateImage`. One `doGenerate` creates all outputs of a call. Workflows serialize its ID and base URL,
 * but never the API key.
 */
class GenImageModel implements ImageModelV4 {
  readonly specificationVersion = 'v4';
  readonly provider = 'gen.image';
  readonly modelId: string;
  /** A single call creates all outputs. If the core split the call, a failed part would discard the paid outputs of the others. */
  readonly maxImagesPerCall = Number.MAX_SAFE_INTEGER;
  readonly supportsFileInputs = true;
  readonly supportsMaskInputs = false;
  readonly #source: ModelSource;
  readonly #withKeys = createOutputKeys();

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
    const image = prepareImage(this.modelId, call);
    return this.#withKeys(
      { call, optionKey: image.parsed.idempotencyKey },
      this.#source.client,
      async (client, keys) => {
        const { done, metadata, ...result } = await createOutputs(client, 'image', { call, keys, ...image });
        return {
          ...result,
          images: done.map((output) => output.bytes),
          isRetryable: false,
          providerMetadata: { gen: { images: metadata } },
          response: responseMetadata(this.modelId),
        };
      },
    );
  }
}

/**
 * A video model for `experimental_generateVideo`, and for the start and status calls. Workflows serialize its ID and base URL,
 * but never the API key.
 */
class GenVideoModel implements Experimental_VideoModelV4 {
  readonly specificationVersion = 'v4';
  readonly provider = 'gen.video';
  readonly modelId: string;
  /** A single call creates all outputs. If the core split the call, a failed part would discard the paid outputs of the others. */
  readonly maxVideosPerCall = Number.MAX_SAFE_INTEGER;
  readonly #source: ModelSource;
  readonly #outputKeys = createOutputKeys();
  /** The core calls `handleWebhookOption` concurrently for all parts of a call, and then starts the parts in order. */
  readonly #webhookCalls = new WeakMap<object, { parts: number }>();
  /** Webhook URLs of parts that haven't started. */
  readonly #partUrls: string[] = [];

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
    return this.#withKeys(call, async (client, video) => {
      const { done, metadata, ...result } = await createOutputs(client, 'video', video);
      return {
        ...result,
        videos: done.map(toVideo),
        providerMetadata: { gen: { videos: metadata } },
        response: responseMetadata(this.modelId),
      };
    });
  }

  async doStart(call: VideoCall): Promise<Experimental_VideoModelV4OperationStartResult> {
    return this.#withKeys(call, (client, video) => {
      rejectWaitingOptions(video.parsed);
      return startJobs(client, this.modelId, video);
    });
  }

  async doStatus({ operation, abortSignal }: StatusCall): Promise<Experimental_VideoModelV4OperationStatusResult> {
    return operationStatus(await this.#source.client(), this.modelId, { operation, signal: abortSignal });
  }

  async handleWebhookOption({ webhook }: WebhookOption): Promise<WebhookResult> {
    const call = this.#webhookCalls.get(webhook) ?? { parts: 0 };
    call.parts++;
    this.#webhookCalls.set(webhook, call);
    // Another call may pass the same function.
    queueMicrotask(() => this.#webhookCalls.delete(webhook));
    const { url, received } = await webhook();
    if (call.parts > 1) this.#partUrls.push(url);
    return { webhookUrl: url, received };
  }

  async #withKeys<T>(call: VideoCall, run: (client: GenClient, video: KeyedCall<VideoCall>) => Promise<T>): Promise<T> {
    const part = call.webhookUrl === undefined ? -1 : this.#partUrls.indexOf(call.webhookUrl);
    if (part >= 0) this.#partUrls.splice(part, 1);
    const video = prepareVideo(this.modelId, call);
    const keyOptions = { call, optionKey: video.parsed.idempotencyKey, isPart: part >= 0 };
    return this.#outputKeys(keyOptions, this.#source.client, (client, keys) => run(client, { call, keys, ...video }));
  }
}

type StatusCall = Parameters<NonNullable<Experimental_VideoModelV4['doStatus']>>[0];
type HandleWebhook = NonNullable<Experimental_VideoModelV4['handleWebhookOption']>;
type WebhookOption = Parameters<HandleWebhook>[0];
type WebhookResult = Awaited<ReturnType<HandleWebhook>>;

/** AI SDK provider for `generateImage`, `experimental_generateVideo`, and provider registries. */
export interface GenProvider extends ProviderV4 {
  /** Returns an image model, for example `gen.image('svc-image-pro')`. */
  image(modelId: ImageModel | (string & {})): ImageModelV4;
  /** Alias of `image`, for registries. */
  imageModel(modelId: ImageModel | (string & {})): ImageModelV4;
  /** Returns a video model, for example `gen.video('svc-video-pro')`. */
  video(modelId: VideoModel | (string & {})): Experimental_VideoModelV4;
  /** Alias of `video`, for registries. */
  videoModel(modelId: VideoModel | (string & {})): Experimental_VideoModelV4;
}

/**
 * Creates an AI SDK provider. The first call creates its client, so a missing option fails that call and not the import.
 * Throws a GenError for an unknown or invalid setting.
 *
 * @example
 * const gen = createGen({ apiKey, baseUrl });
 * const model = gen.image('svc-image-pro');
 */
export function createGen(settings: GenProviderSettings = {}): GenProvider {
  checkProviderSettings(settings);
  const source = modelSource(settings);
  const image = (modelId: string) => new GenImageModel(source, modelId);
  const video = (modelId: string) => new GenVideoModel(source, modelId);
  const reject = (modelType: 'languageModel' | 'embeddingModel') => (modelId: string) => {
    throw new NoSuchModelError({ modelId, modelType });
  };
  return {
    specificationVersion: 'v4',
    image,
    imageModel: image,
    video,
    videoModel: video,
    languageModel: reject('languageModel'),
    embeddingModel: reject('embeddingModel'),
  };
}

const WITH_CLIENT = option.optionsOf({ client: option.methods('withOptions', 'waitForJob') });

/** Throws a GenError for an unknown or invalid setting. A missing setting fails the first call. */
function checkProviderSettings(settings: GenProviderSettings): void {
  if (isFields(settings) && 'client' in settings) option.checkOptions('createGen', WITH_CLIENT, settings);
  else checkClientOptions(settings);
}

/** Provider with options from the environment (`GEN_API_KEY`, `GEN_BASE_URL`). */
export const gen: GenProvider = createGen();
