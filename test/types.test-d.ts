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

test('undocumented fields of a job are available through extra, as unknown', () => {
  expectTypeOf<Job>().not.toHaveProperty('anything');
  expectTypeOf(extra({} as Job).anything).toEqualTypeOf<unknown>();
});

test('model aliases are typed by kind', () => {
  expectTypeOf<ImageModel | VideoModel>().toEqualTypeOf<ModelAlias>();
  expectTypeOf<EditModel>().toEqualTypeOf<'svc-video-pro' | 'svc-video-fast' | 'svc-video-mini'>();
});

test('values are typed by model, and several models share only their common values', () => {
  expectTypeOf<DurationOf<'svc-video-fast'>>().toEqualTypeOf<4 | 5 | 6 | 8 | 10>();
  expectTypeOf<DurationOf<'svc-video-pro' | 'svc-video-mini'>>().toEqualTypeOf<4 | 5 | 6 | 8 | 10>();
  expectTypeOf<VideoResolutionOf<'svc-video-gen-2-5' | 'svc-video-pro'>>().toEqualTypeOf<'480p' | '720p' | '1080p'>();
  expectTypeOf<ImageRatioOf<'svc-image-pro'>>().toEqualTypeOf<
    (typeof MODELS)['svc-image-pro']['aspectRatios'][number]
  >();
  expectTypeOf<7>().toExtend<DurationOf<'svc-video-next'>>();
  expectTypeOf<typeof DEFAULT_VIDEO_MODEL>().toEqualTypeOf<'svc-video-fast'>();
});

test('error codes include the documented ones and accept any other', () => {
  expectTypeOf<'prompt_required' | 'dispatch_disabled' | 'something_new'>().toExtend<RequestErrorCode>();
  expectTypeOf<Extract<JobErrorCode, 'generation_failed'>>().toEqualTypeOf<'generation_failed'>();
  expectTypeOf<Extract<RequestErrorCode, 'promt_required'>>().toEqualTypeOf<never>();
});

test('isCompleted narrows a job', () => {
  const job: Job = completed;
  if (isCompleted(job)) expectTypeOf(job).toEqualTypeOf<CompletedJob>();
  expectTypeOf([job].filter(isCompleted)).toEqualTypeOf<CompletedJob[]>();
});

test("mocks of a test runner can replace a client's videos", async () => {
  const mocked: Pick<GenClient, 'videos'> = {
    videos: { create: vi.fn(async () => created), createAndWait: vi.fn(async () => completed) },
  };
  const untyped: Videos = { create: vi.fn().mockResolvedValue(created), createAndWait: vi.fn() };
  expectTypeOf(mocked.videos.create({ prompt: 'x' })).toEqualTypeOf<RequestPromise<CreatedJob>>();
  expectTypeOf(untyped.createAndWait({ prompt: 'x' })).resolves.toEqualTypeOf<CompletedJob>();
  vi.spyOn(client.videos, 'create').mockResolvedValue(created);
  expectTypeOf<Awaited<ReturnType<Videos['create']>>>().toEqualTypeOf<CreatedJob>();
});

test('params have exactly the documented fields', () => {
  type Documented<Call extends keyof typeof DOCUMENTED_FIELDS> = (typeof DOCUMENTED_FIELDS)[Call][number];
  expectTypeOf<keyof ImageParams>().toEqualTypeOf<Documented<'images'>>();
  expectTypeOf<keyof VideoParams>().toEqualTypeOf<Documented<'videos' | 'videoEdits'>>();
  expectTypeOf<keyof VideoEditParams | 'content'>().toEqualTypeOf<Documented<'videoEdits'>>();
  expectTypeOf<keyof CharacterParams | 'mode'>().toEqualTypeOf<Documented<'characters'>>();
  expectTypeOf<keyof RegisterCharacterParams | 'mode'>().toEqualTypeOf<Documented<'registration'>>();
});
