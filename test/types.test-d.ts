import { expectTypeOf, test, vi } from 'vitest';
import type {
  DurationOf,
  EditModel,
  ImageModel,
  ImageRatioOf,
  ModelAlias,
  VideoModel,
  VideoResolutionOf,
} from '../src/catalog.js';
import type { JobErrorCode, RequestErrorCode } from '../src/errors/codes.js';
import type { CompletedJob, CreatedJob, GenClient, Job, RequestPromise, VideoParams, Videos } from '../src/index.js';
import { type DEFAULT_VIDEO_MODEL, extra, isCompleted, type MODELS } from '../src/index.js';
import type { DOCUMENTED_FIELDS } from '../src/rules/fields.js';
import type { CharacterParams, RegisterCharacterParams } from '../src/schemas/character.js';
import type { ImageParams } from '../src/schemas/params.js';
import type { VideoEditParams } from '../src/schemas/video-params.js';

declare const client: GenClient;
declare const text: string;
declare const created: CreatedJob;
declare const completed: CompletedJob;

test('lists and records give what the document shows and pass the rest as unknown', () => {
  expectTypeOf<Job>().not.toHaveProperty('anything');
  expectTypeOf(extra({} as Job).anything).toEqualTypeOf<unknown>();
});

test('the kinds of alias follow from the one table', () => {
  expectTypeOf<ImageModel | VideoModel>().toEqualTypeOf<ModelAlias>();
  expectTypeOf<EditModel>().toEqualTypeOf<'svc-video-pro' | 'svc-video-fast' | 'svc-video-mini'>();
});

test('the values of a model follow from the one table, and several models have in common what all of them offer', () => {
  expectTypeOf<DurationOf<'svc-video-fast'>>().toEqualTypeOf<4 | 5 | 6 | 8 | 10>();
  expectTypeOf<DurationOf<'svc-video-pro' | 'svc-video-mini'>>().toEqualTypeOf<4 | 5 | 6 | 8 | 10>();
  expectTypeOf<VideoResolutionOf<'svc-video-gen-2-5' | 'svc-video-pro'>>().toEqualTypeOf<'480p' | '720p' | '1080p'>();
  expectTypeOf<ImageRatioOf<'svc-image-pro'>>().toEqualTypeOf<
    (typeof MODELS)['svc-image-pro']['aspectRatios'][number]
  >();
  expectTypeOf<7>().toExtend<DurationOf<'svc-video-next'>>();
  expectTypeOf<typeof DEFAULT_VIDEO_MODEL>().toEqualTypeOf<'svc-video-fast'>();
});

test('the codes are those of the tables, and any other', () => {
  expectTypeOf<'prompt_required' | 'dispatch_disabled' | 'something_new'>().toExtend<RequestErrorCode>();
  expectTypeOf<Extract<JobErrorCode, 'generation_failed'>>().toEqualTypeOf<'generation_failed'>();
  expectTypeOf<Extract<RequestErrorCode, 'promt_required'>>().toEqualTypeOf<never>();
});

test('a job is narrowed by isCompleted', () => {
  const job: Job = completed;
  if (isCompleted(job)) expectTypeOf(job).toEqualTypeOf<CompletedJob>();
  expectTypeOf([job].filter(isCompleted)).toEqualTypeOf<CompletedJob[]>();
});

test('the videos of a client can be faked with the functions of a test runner', async () => {
  const fake: Pick<GenClient, 'videos'> = {
    videos: { create: vi.fn(async () => created), createAndWait: vi.fn(async () => completed) },
  };
  const bare: Videos = { create: vi.fn().mockResolvedValue(created), createAndWait: vi.fn() };
  expectTypeOf(fake.videos.create({ prompt: 'x' })).toEqualTypeOf<RequestPromise<CreatedJob>>();
  expectTypeOf(bare.createAndWait({ prompt: 'x' })).resolves.toEqualTypeOf<CompletedJob>();
  vi.spyOn(client.videos, 'create').mockResolvedValue(created);
  expectTypeOf<Awaited<ReturnType<Videos['create']>>>().toEqualTypeOf<CreatedJob>();
});

test('the types have the documented fields, and no others', () => {
  type Documented<Call extends keyof typeof DOCUMENTED_FIELDS> = (typeof DOCUMENTED_FIELDS)[Call][number];
  expectTypeOf<keyof ImageParams>().toEqualTypeOf<Documented<'images'>>();
  expectTypeOf<keyof VideoParams>().toEqualTypeOf<Documented<'videos' | 'videoEdits'>>();
  expectTypeOf<keyof VideoEditParams | 'content'>().toEqualTypeOf<Documented<'videoEdits'>>();
  expectTypeOf<keyof CharacterParams | 'mode'>().toEqualTypeOf<Documented<'characters'>>();
  expectTypeOf<keyof RegisterCharacterParams | 'mode'>().toEqualTypeOf<Documented<'registration'>>();
});
