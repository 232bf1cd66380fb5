import { type Experimental_VideoModelV4, type ImageModelV4, NoSuchModelError, type ProviderV4 } from '@ai-sdk/provider';
import { type ClientOptions, GenClient, type ImageModel, type VideoModel } from '../index.js';
import { createImageModel } from './image-model.js';
import { createVideoModel } from './video-model.js';

/** The service as an AI SDK provider (for `generateImage`, `experimental_generateVideo` and a provider registry). */
export interface GenProvider extends ProviderV4 {
  /** An image model: `gen.image('svc-image-pro')`. */
  image(modelId: ImageModel | (string & {})): ImageModelV4;
  /** `image` under the registries' name. */
  imageModel(modelId: ImageModel | (string & {})): ImageModelV4;
  /** A video model: `gen.video('svc-video-pro')`. */
  video(modelId: VideoModel | (string & {})): Experimental_VideoModelV4;
  /** `video` under the registries' name. */
  videoModel(modelId: VideoModel | (string & {})): Experimental_VideoModelV4;
}

/** A client or its options (left out, everything comes from the environment). */
export type GenProviderSettings = { readonly client: GenClient } | ClientOptions;

/**
 * Makes a provider, and its client on the first call. A missing option is an error of that call and not of the import.
 */
export function createGen(settings: GenProviderSettings = {}): GenProvider {
  let made: GenClient | undefined;
  const client = () => {
    made ??= 'client' in settings ? settings.client : new GenClient(settings);
    return made;
  };
  const image = (modelId: string) => createImageModel(client, modelId);
  const video = (modelId: string) => createVideoModel(client, modelId);
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

/** The provider set up by GEN_API_KEY and GEN_BASE_URL. */
export const gen: GenProvider = createGen();
