import { type Experimental_VideoModelV4, type ImageModelV4, NoSuchModelError, type ProviderV4 } from '@ai-sdk/provider';
import type { ImageModel, VideoModel } from '../catalog.js';
import type { GenClient } from '../client.js';
import { checkClientOptions } from '../client-options.js';
import * as option from '../options.js';
import { GenImageModel, type GenProviderSettings, GenVideoModel, modelSource } from './models.js';

/** The service as an AI SDK provider: `generateImage`, `experimental_generateVideo` and a provider registry take it. */
export interface GenProvider extends ProviderV4 {
  /** An image model, for example `gen.image('svc-image-pro')`. */
  image(modelId: ImageModel | (string & {})): ImageModelV4;
  /** The same as `image`, under the name that registries use. */
  imageModel(modelId: ImageModel | (string & {})): ImageModelV4;
  /** A video model, for example `gen.video('svc-video-pro')`. */
  video(modelId: VideoModel | (string & {})): Experimental_VideoModelV4;
  /** The same as `video`, under the name that registries use. */
  videoModel(modelId: VideoModel | (string & {})): Experimental_VideoModelV4;
}

/**
 * Makes a provider. The client is made on the first call, so that a missing option is an error of that call and not of
 * the import. Throws a GenError for a setting that does not exist.
 */
export function createGen(settings: GenProviderSettings = {}): GenProvider {
  checkProviderSettings(settings);
  const source = modelSource(settings);
  const image = (modelId: string) => new GenImageModel(source, modelId);
  const video = (modelId: string) => new GenVideoModel(source, modelId);
  const refuse = (modelType: 'languageModel' | 'embeddingModel') => (modelId: string) => {
    throw new NoSuchModelError({ modelId, modelType });
  };
  return {
    specificationVersion: 'v4',
    image,
    imageModel: image,
    video,
    videoModel: video,
    languageModel: refuse('languageModel'),
    embeddingModel: refuse('embeddingModel'),
  };
}

const WITH_CLIENT = option.optionsOf({ client: option.methods<GenClient>('withOptions', 'waitForJob') });

/** Throws a GenError for a setting that does not exist, or that cannot be right. What is missing shows at the first call. */
function checkProviderSettings(settings: GenProviderSettings): void {
  if ('client' in settings) option.checkOptions('createGen', WITH_CLIENT, settings);
  else checkClientOptions(settings);
}

/** The provider with everything from the environment (GEN_API_KEY, GEN_BASE_URL). */
export const gen: GenProvider = createGen();
