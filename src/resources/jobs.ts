import type { Job } from '../schemas/job.js';
import { decodeJob } from '../transport/decode-body.js';
import { path } from '../transport/path.js';
import type { RequestPromise } from '../transport/request-promise.js';
import type { RequestOptions, Transport } from '../transport/transport.js';

/** Jobs and their finished files (spec: GET /v1/jobs/{job_id}). */
export class Jobs {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The job as it stands. Throws a NotFoundError for an unknown id, or one of another account. */
  get(id: string, options?: RequestOptions): RequestPromise<Job> {
    return this.#transport.send(
      { method: 'GET', path: path`/v1/jobs/${id}`, lane: 'jobs.get', noStore: true, decode: decodeJob },
      options,
    );
  }
}
