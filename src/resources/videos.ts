import type { DefaultVideoModel, OpenString, VideoModel } from '../catalog.js';
import { checkVideo } from '../preflight/check-video.js';
import type { CreatedJob } from '../schemas/created-job.js';
import type { CheckedVideoParams, VideoParams } from '../schemas/video-params.js';
import type { CallResult } from '../transport/request-promise.js';
import type { CreateCallOptions } from './create-options.js';
import {
  type CreateOptionsOf,
  createAndAwait,
  type FinalJob,
  type JobMaker,
  jobRequest,
  sendCreate,
} from './created-jobs.js';

/** Video jobs, and source-video edits by `intent` (spec: POST /v1/videos). */
export interface Videos {
  /**
   * Starts a video job. Resolves as soon as the service has accepted it. Throws a PreflightError before the call when the
   * documented rules refuse the params, and an APIError when the service refuses them.
   *
   * @example
   * const { job } = await client.videos.create(
   *   { model: 'svc-video-pro', prompt: 'a fox at dawn', webhook_url: 'https://example.com/webhooks' },
   *   { idempotencyKey: 'order-42' },
   * );
   */
  create<M extends VideoModel | OpenString = DefaultVideoModel, P extends VideoParams = VideoParams>(
    params: CheckedVideoParams<M, P>,
    options?: CreateCallOptions,
  ): CallResult<CreatedJob, P>;

  /**
   * Starts a video job and waits until its file is there. Throws what `create` throws, a JobError when the job does not
   * complete, and a WaitTimeoutError after `timeoutMs`. A reference or character that is still under review is waited for,
   * and the job is submitted again.
   *
   * @example
   * const video = await client.videos.createAndWait(
   *   { prompt: 'a fox at dawn', duration: 6 },
   *   { onCreated: ({ job }) => db.save(job.id), timeoutMs: 20 * 60_000 },
   * );
   * await saveOutput(client, video, 'videos/');
   */
  createAndWait<
    M extends VideoModel | OpenString = DefaultVideoModel,
    P extends VideoParams = VideoParams,
    Throws extends boolean = true,
  >(params: CheckedVideoParams<M, P>, options?: CreateOptionsOf<Throws>): Promise<FinalJob<Throws>>;
}

/** The video calls of a client. */
export function createVideosResource(jobs: JobMaker): Videos {
  return {
    create: (params, options) => sendCreate(jobs, request(params), options),
    createAndWait: (params, options) => createAndAwait(jobs, request(params), options),
  };
}

function request(body: object) {
  return jobRequest({
    name: 'videos.create',
    call: 'videos',
    path: '/v1/videos',
    lane: 'videos.create',
    body,
    check: checkVideo,
  });
}
