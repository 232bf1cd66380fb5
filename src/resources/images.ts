import type { ImageModel, OpenString } from '../catalog.js';
import type { Waiter } from '../polling/wait-for-job.js';
import { checkImage } from '../preflight/check-image.js';
import type { CreatedJob } from '../schemas/created-job.js';
import type { CheckedImageParams, ImageParams } from '../schemas/image-params.js';
import type { RequestOptions } from '../schemas/request-options.js';
import type { RequestPromise } from '../transport/request-promise.js';
import type { Transport } from '../transport/transport.js';
import { type CreateOptionsOf, createAndAwait, type FinalJob, type JobMaker, jobRequest } from './created-jobs.js';

/** Image jobs (spec: POST /v1/images). */
export class Images {
  readonly #jobs: JobMaker;

  /** @internal Made by the client. */
  constructor(transport: Transport, waiter: Waiter) {
    this.#jobs = { transport, waiter };
  }

  /**
   * Starts an image job; resolves as soon as the service has accepted it.
   * Throws a PreflightError (for what the documented rules refuse, before any call) or an APIError (when the service refuses).
   */
  create<M extends ImageModel | OpenString, P extends ImageParams>(
    params: CheckedImageParams<M, P>,
    options?: RequestOptions,
  ): RequestPromise<CreatedJob> {
    return this.#jobs.transport.send(request(params), options);
  }

  /**
   * Starts an image job and waits until its file is there.
   * Throws a JobError when the job ends otherwise and a WaitTimeoutError after `timeoutMs`; a create that was refused
   * throws as `create` does. A reference or character still under review is waited for and submitted again.
   */
  createAndWait<M extends ImageModel | OpenString, P extends ImageParams, Throws extends boolean = true>(
    params: CheckedImageParams<M, P>,
    options?: CreateOptionsOf<Throws>,
  ): Promise<FinalJob<Throws>> {
    return createAndAwait(this.#jobs, request(params), options);
  }
}

function request(body: object) {
  return jobRequest({ name: 'images.create', path: '/v1/images', body, check: checkImage });
}
