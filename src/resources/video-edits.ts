import type { EditModel, OpenString } from '../catalog.js';
import { checkVideoEdit } from '../preflight/check-video-edit.js';
import type { CreatedJob } from '../schemas/created-job.js';
import type { CheckedVideoEditParams, VideoEditParams } from '../schemas/video-edit-params.js';
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

/** Transforms, restyles and extensions of an existing video (spec: POST /v1/video-edits). */
export interface VideoEdits {
  /**
   * Starts an edit. Resolves as soon as the service has accepted it. Throws a PreflightError before the call when the
   * documented rules refuse the params, and an APIError when the service refuses them.
   */
  create<M extends EditModel | OpenString, P extends VideoEditParams>(
    params: CheckedVideoEditParams<M, P>,
    options?: CreateCallOptions,
  ): CallResult<CreatedJob, P>;

  /**
   * Starts an edit and waits until its file is there. Throws what `create` throws, a JobError when the job does not
   * complete, and a WaitTimeoutError after `timeoutMs`. A reference or character that is still under review is waited for,
   * and the job is submitted again.
   *
   * @example
   * const edit = await client.videoEdits.createAndWait({
   *   model: 'svc-video-pro',
   *   prompt: 'make it snow',
   *   source_video_upload_id: fromPath('clip.mp4'),
   * });
   */
  createAndWait<M extends EditModel | OpenString, P extends VideoEditParams, Throws extends boolean = true>(
    params: CheckedVideoEditParams<M, P>,
    options?: CreateOptionsOf<Throws>,
  ): Promise<FinalJob<Throws>>;
}

/** The edit calls of a client. */
export function createVideoEditsResource(jobs: JobMaker): VideoEdits {
  return {
    create: (params, options) => sendCreate(jobs, request(params), options),
    createAndWait: (params, options) => createAndAwait(jobs, request(params), options),
  };
}

function request(body: object) {
  return jobRequest({
    name: 'videoEdits.create',
    call: 'videoEdits',
    path: '/v1/video-edits',
    body,
    check: checkVideoEdit,
  });
}
