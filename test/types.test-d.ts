import { expectTypeOf, test } from 'vitest';
import type {
  APIError,
  Character,
  CompletedJob,
  CreatedJob,
  EditModel,
  GenClient,
  ImageModel,
  Job,
  ModelAlias,
  ModelList,
  Recovery,
  RequestPromise,
  VideoModel,
} from '../src/index.js';

declare const client: GenClient;
declare const text: string;

test('a create gives the created job, and the answer beside it', () => {
  expectTypeOf(client.videos.create({ prompt: 'x' })).toEqualTypeOf<RequestPromise<CreatedJob>>();
  expectTypeOf(client.images.create({ prompt: 'x' })).resolves.toEqualTypeOf<CreatedJob>();
  expectTypeOf<CreatedJob['warnings']>().toEqualTypeOf<string[]>();
  expectTypeOf<CreatedJob['idempotencyKey']>().toEqualTypeOf<string>();
  expectTypeOf<CreatedJob['quoted_token_cost']>().toEqualTypeOf<number | undefined>();
});

test('createAndWait gives a completed job, or any final one where nothing is thrown', () => {
  expectTypeOf(client.videos.createAndWait({ prompt: 'x' })).resolves.toEqualTypeOf<CompletedJob>();
  expectTypeOf(client.characters.createAndWait({ name: 'a', prompt: 'x' }, {})).resolves.toEqualTypeOf<CompletedJob>();
  expectTypeOf(client.images.createAndWait({ prompt: 'x' }, { throwOnFailure: false })).resolves.toEqualTypeOf<Job>();
  expectTypeOf<CompletedJob>().toExtend<Job>();
});

test('lists and records give what the document shows and pass the rest as unknown', () => {
  expectTypeOf(client.models.list()).resolves.toEqualTypeOf<ModelList>();
  expectTypeOf(client.characters.register({ name: 'a', upload_id: 'b' })).resolves.toEqualTypeOf<Character>();
  expectTypeOf<Job['anything']>().toEqualTypeOf<unknown>();
});

test('the kinds of alias follow from the one table', () => {
  expectTypeOf<ImageModel | VideoModel>().toEqualTypeOf<ModelAlias>();
  expectTypeOf<EditModel>().toEqualTypeOf<'svc-video-pro' | 'svc-video-fast' | 'svc-video-mini'>();
});

test('an error says what to do as a closed set', () => {
  expectTypeOf<APIError['recovery']>().toEqualTypeOf<Recovery>();
});

test('what a model lacks does not compile, what is not known of a model does', () => {
  // @ts-expect-error svc-video-fast has no 7 seconds
  client.videos.create({ model: 'svc-video-fast', prompt: 'x', duration: 7 });
  // @ts-expect-error the default model has no 4k
  client.videos.create({ prompt: 'x', resolution: '4k' });
  // @ts-expect-error svc-image-fast has no 21:9
  client.images.create({ model: 'svc-image-fast', prompt: 'x', ratio: '21:9' });
  // @ts-expect-error frames exclude reference images
  client.videos.create({ prompt: 'x', first_frame_url: 'a', reference_images: ['b'] });
  // @ts-expect-error an edit needs a source
  client.videoEdits.create({ model: 'svc-video-pro', prompt: 'x' });
  client.videos.create({ model: 'svc-video-next', prompt: 'x', duration: 7, resolution: '8k' });
  client.videos.create({ model: text, prompt: 'x', duration: 7, resolution: '8k' });
});
