// Namespaces whose calls create jobs.
import type { DefaultVideoModel, EditModel, ImageModel, OpenString, VideoModel } from '../catalog.js';
import { callSite, seenFrom } from '../errors/gen-error.js';
import { mayHaveCreated } from '../rules/failure-kind.js';
import type { CreatedJob, JobCall } from '../schemas/job.js';
import type { CheckedImageParams, ImageParams } from '../schemas/params.js';
import type {
  CheckedVideoEditParams,
  CheckedVideoParams,
  VideoEditParams,
  VideoParams,
} from '../schemas/video-params.js';
import type { CallResult, JsonRequest, RequestPromise } from '../transport/transport.js';
import {
  CREATE_CALL_OPTIONS,
  type CreateCallOptions,
  type CreateOptionsOf,
  type FinalJob,
  type FinalJobPromise,
} from './create-options.js';
import { type CreateDependencies, cleanUpFiles, createRequest, filesInBody } from './endpoint.js';
import { startJobRun } from './run-job.js';

/** `create` and `createAndWait` of one namespace. The public interfaces type the params by model. */
export interface Creating {
  create(params: object, options?: CreateCallOptions): RequestPromise<CreatedJob>;
  createAndWait<Throws extends boolean = true>(
    params: object,
    options?: CreateOptionsOf<Throws>,
  ): FinalJobPromise<Throws>;
}

export function createNamespace(dependencies: CreateDependencies, call: JobCall): Creating {
  const createAndWait = <Throws extends boolean = true>(body: object, options?: CreateOptionsOf<Throws>) => {
    const site = callSite(createAndWait);
    const { job, idempotencyKey } = startJobRun(dependencies, createRequest(call, body), options);
    const tracedJob = job.catch((error) => {
      throw seenFrom(error, site);
    });
    // Programs start many jobs and await them in order. An early failure must not be an unhandled rejection.
    tracedJob.catch(() => {});
    return Object.assign(tracedJob as Promise<FinalJob<Throws>>, { idempotencyKey });
  };
  return {
    create: (body, options) => sendCreate(dependencies, createRequest(call, body), options),
    createAndWait,
  };
}

/** Sends a create. Uploads the files in its body first, and deletes the uploads if no job was created. */
export function sendCreate<Data>(
  { transport, uploads }: CreateDependencies,
  request: JsonRequest<Data>,
  options: CreateCallOptions | undefined,
): RequestPromise<Data> {
  const files = filesInBody(uploads, request);
  const onFailure = (error: unknown, wasSent: boolean) => cleanUpFiles(files, error, wasSent && mayHaveCreated(error));
  return transport.send(
    {
      ...request,
      options: CREATE_CALL_OPTIONS,
      files: files && { ...files, onSuccess: files.markUsed, onFailure },
    },
    options,
  );
}

/** Image jobs. */
export interface Images {
  /**
   * Starts an image job. Resolves when the service has accepted it. Throws a PreflightError before the request if
   * the params break a documented rule, and an APIError if the service rejects them.
   *
   * @example
   * const { job } = await client.images.create({ prompt: 'a fox at dawn', ratio: '16:9' });
   * await db.save(job.id);
   */
  create<Model extends ImageModel | OpenString, Params extends ImageParams>(
    params: CheckedImageParams<Model, Params>,
    options?: CreateCallOptions,
  ): CallResult<CreatedJob, Params>;

  /**
   * Starts an image job and waits for its file. Throws what `create` throws, a JobError if the job doesn't complete,
   * and a WaitTimeoutError after `timeoutMs`. Resubmits a job whose reference or character is still under review.
   *
   * @example
   * const image = await client.images.createAndWait({ prompt: 'a fox at dawn' });
   * await saveOutput(client, image, 'images/');
   */
  createAndWait<Model extends ImageModel | OpenString, Params extends ImageParams, Throws extends boolean = true>(
    params: CheckedImageParams<Model, Params>,
    options?: CreateOptionsOf<Throws>,
  ): FinalJobPromise<Throws>;
}

/** Video jobs, and source-video edits by `intent`. */
export interface Videos {
  /**
   * Starts a video job. Resolves when the service has accepted it. Throws a PreflightError before the request if
   * the params break a documented rule, and an APIError if the service rejects them.
   *
   * @example
   * const { job } = await client.videos.create(
   *   { model: 'svc-video-pro', prompt: 'a fox at dawn', webhook_url: 'https://example.com/webhooks' },
   *   { idempotencyKey: 'order-42' },
   * );
   */
  create<Model extends VideoModel | OpenString = DefaultVideoModel, Params extends VideoParams = VideoParams>(
    params: CheckedVideoParams<Model, Params>,
    options?: CreateCallOptions,
  ): CallResult<CreatedJob, Params>;

  /**
   * Starts a video job and waits for its file. Throws what `create` throws, a JobError if the job doesn't complete, and
   * a WaitTimeoutError after `timeoutMs`. Resubmits a job whose reference or character is still under review.
   *
   * @example
   * const video = await client.videos.createAndWait(
   *   { prompt: 'a fox at dawn', duration: 6 },
   *   { onCreated: ({ job }) => db.save(job.id), timeoutMs: 20 * 60_000 },
   * );
   * await saveOutput(client, video, 'videos/');
   */
  createAndWait<
    Model extends VideoModel | OpenString = DefaultVideoModel,
    Params extends VideoParams = VideoParams,
    Throws extends boolean = true,
  >(params: CheckedVideoParams<Model, Params>, options?: CreateOptionsOf<Throws>): FinalJobPromise<Throws>;
}

/** Edits of existing videos: transform, restyle, or extend. */
export interface VideoEdits {
  /**
   * Starts an edit. Resolves when the service has accepted it. Throws a PreflightError before the request if
   * the params break a documented rule, and an APIError if the service rejects them.
   *
   * @example
   * const { job } = await client.videoEdits.create({
   *   model: 'svc-video-pro',
   *   prompt: 'make it snow',
   *   source_video_upload_id: fromPath('clip.mp4'),
   * });
   */
  create<Model extends EditModel | OpenString, Params extends VideoEditParams>(
    params: CheckedVideoEditParams<Model, Params>,
    options?: CreateCallOptions,
  ): CallResult<CreatedJob, Params>;

  /**
   * Starts an edit and waits for its file. Throws what `create` throws, a JobError if the job doesn't complete, and a
   * WaitTimeoutError after `timeoutMs`. Resubmits a job whose reference or character is still under review.
   *
   * @example
   * const edit = await client.videoEdits.createAndWait({
   *   model: 'svc-video-pro',
   *   prompt: 'make it snow',
   *   source_video_upload_id: fromPath('clip.mp4'),
   * });
   */
  createAndWait<Model extends EditModel | OpenString, Params extends VideoEditParams, Throws extends boolean = true>(
    params: CheckedVideoEditParams<Model, Params>,
    options?: CreateOptionsOf<Throws>,
  ): FinalJobPromise<Throws>;
}
