import type { ImageModel, OpenString } from '../catalog.js';
import { checkImage } from '../preflight/check-image.js';
import type { CreatedJob } from '../schemas/created-job.js';
import type { CheckedImageParams, ImageParams } from '../schemas/image-params.js';
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

/** Image jobs (spec: POST /v1/images). */
export interface Images {
  /**
   * Starts an image job. Resolves as soon as the service has accepted it. Throws a PreflightError before the call when the
   * documented rules refuse the params, and an APIError when the service refuses them.
   *
   * @example
   * const { job } = await client.images.create({ prompt: 'a fox at dawn', ratio: '16:9' });
   * await db.save(job.id);
   */
  create<M extends ImageModel | OpenString, P extends ImageParams>(
    params: CheckedImageParams<M, P>,
    options?: CreateCallOptions,
  ): CallResult<CreatedJob, P>;

  /**
   * Starts an image job and waits until its file is there. Throws what `create` throws, a JobError when the job does not
   * complete, and a WaitTimeoutError after `timeoutMs`. A reference or character that is still under review is waited for,
   * and the job is submitted again.
   *
   * @example
   * const image = await client.images.createAndWait({ prompt: 'a fox at dawn' });
   * await saveOutput(client, image, 'images/');
   */
  createAndWait<M extends ImageModel | OpenString, P extends ImageParams, Throws extends boolean = true>(
    params: CheckedImageParams<M, P>,
    options?: CreateOptionsOf<Throws>,
  ): Promise<FinalJob<Throws>>;
}

/** The image calls of a client. */
export function createImagesResource(jobs: JobMaker): Images {
  return {
    create: (params, options) => sendCreate(jobs, request(params), options),
    createAndWait: (params, options) => createAndAwait(jobs, request(params), options),
  };
}

function request(body: object) {
  return jobRequest({ name: 'images.create', call: 'images', path: '/v1/images', body, check: checkImage });
}
