import type { DefaultVideoModel, OpenString, VideoModel } from '../catalog.js';
import type { Waiter } from '../polling/wait-for-job.js';
import { checkVideo } from '../preflight/check-video.js';
import type { CreatedJob } from '../schemas/created-job.js';
import type { RequestOptions } from '../schemas/request-options.js';
import type { CheckedVideoParams, VideoParams } from '../schemas/video-params.js';
import type { RequestPromise } from '../transport/request-promise.js';
import type { Transport } from '../transport/transport.js';
import { type CreateOptionsOf, createAndAwait, type FinalJob, type JobMaker, jobRequest } from './created-jobs.js';

/** Video jobs, and source-video edits by `intent` (spec: POST /v1/videos). */
export class Videos {
  readonly #jobs: JobMaker;

  /** @internal Made by the client. */
  constructor(transport: Transport, waiter: Waiter) {
    this.#jobs = { transport, waiter };
  }

  /**
   * Starts a video job; resolves as soon as the service has accepted it.
   * Throws a PreflightError (for what the documented rules refuse, before any call) or an APIError (when the service refuses).
   */
  create<M extends VideoModel | OpenString = DefaultVideoModel, P extends VideoParams = VideoParams>(
    params: CheckedVideoParams<M, P>,
    options?: RequestOptions,
  ): RequestPromise<CreatedJob> {
    return this.#jobs.transport.send(request(params), options);
  }

  /**
   * Starts a video job and waits until its file is there.
   * Throws a JobError when the job ends otherwise and a WaitTimeoutError after `timeoutMs`; a create that was refused
   * throws as `create` does. A reference or character still under review is waited for and submitted again.
   */
  createAndWait<
    M extends VideoModel | OpenString = DefaultVideoModel,
    P extends VideoParams = VideoParams,
    Throws extends boolean = true,
  >(params: CheckedVideoParams<M, P>, options?: CreateOptionsOf<Throws>): Promise<FinalJob<Throws>> {
    return createAndAwait(this.#jobs, request(params), options);
  }
}

function request(body: object) {
  return jobRequest({ name: 'videos.create', path: '/v1/videos', lane: 'videos.create', body, check: checkVideo });
}
