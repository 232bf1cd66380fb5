import type { EditModel, OpenString } from '../catalog.js';
import type { Waiter } from '../polling/wait-for-job.js';
import { checkVideoEdit } from '../preflight/check-video-edit.js';
import type { CreatedJob } from '../schemas/created-job.js';
import type { RequestOptions } from '../schemas/request-options.js';
import type { CheckedVideoEditParams, VideoEditParams } from '../schemas/video-edit-params.js';
import type { RequestPromise } from '../transport/request-promise.js';
import type { Transport } from '../transport/transport.js';
import { type CreateOptionsOf, createAndAwait, type FinalJob, type JobMaker, jobRequest } from './created-jobs.js';

/** Transforms, restyles and extensions of an existing video (spec: POST /v1/video-edits). */
export class VideoEdits {
  readonly #jobs: JobMaker;

  /** @internal Made by the client. */
  constructor(transport: Transport, waiter: Waiter) {
    this.#jobs = { transport, waiter };
  }

  /**
   * Starts an edit; resolves as soon as the service has accepted it.
   * Throws a PreflightError (for what the documented rules refuse, before any call) or an APIError (when the service refuses).
   */
  create<M extends EditModel | OpenString, P extends VideoEditParams>(
    params: CheckedVideoEditParams<M, P>,
    options?: RequestOptions,
  ): RequestPromise<CreatedJob> {
    return this.#jobs.transport.send(request(params), options);
  }

  /**
   * Starts an edit and waits until its file is there.
   * Throws a JobError when the job ends otherwise and a WaitTimeoutError after `timeoutMs`; a create that was refused
   * throws as `create` does. A reference or character still under review is waited for and submitted again.
   */
  createAndWait<M extends EditModel | OpenString, P extends VideoEditParams, Throws extends boolean = true>(
    params: CheckedVideoEditParams<M, P>,
    options?: CreateOptionsOf<Throws>,
  ): Promise<FinalJob<Throws>> {
    return createAndAwait(this.#jobs, request(params), options);
  }
}

function request(body: object) {
  return jobRequest({ name: 'videoEdits.create', path: '/v1/video-edits', body, check: checkVideoEdit });
}
