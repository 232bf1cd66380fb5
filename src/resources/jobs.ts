import { type JobRef, jobIdOf, type OutputInfo, type OutputRange, outputHeaders } from '../downloading/output.js';
import type { Job } from '../schemas/job.js';
import { decodeJob } from '../transport/decode-body.js';
import { path } from '../transport/path.js';
import { type RequestPromise, requestPromise } from '../transport/request-promise.js';
import type { RequestOptions, RequestPath, Transport } from '../transport/transport.js';

/** How to fetch a file. */
export interface OutputOptions extends RequestOptions {
  /** These bytes only. @default all of it */
  readonly range?: OutputRange | undefined;
  /** The part's ETag; a changed file comes whole. */
  readonly ifRange?: string | undefined;
}

/** Jobs and their files (spec: GET /v1/jobs/{job_id}). */
export class Jobs {
  readonly #transport: Transport;

  /** @internal Made by the client. */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The job as it stands. Throws a NotFoundError for an unknown id (one of another account is unknown too). */
  get(id: string, options?: RequestOptions): RequestPromise<Job> {
    return this.#transport.send(
      { method: 'GET', path: path`/v1/jobs/${id}`, lane: 'jobs.get', noStore: true, decode: decodeJob },
      options,
    );
  }

  /**
   * The file as a streaming Response (spec: GET /v1/jobs/{job_id}/output). Storage behind a redirect never sees the
   * key. The link expires at `providerOutputExpiresAt`. Throws a DownloadError without a file, or with an expired one.
   */
  output(job: JobRef, options: OutputOptions = {}, requestOptions?: RequestOptions): RequestPromise<Response> {
    const { range, ifRange, ...rest } = options;
    const headers = () => outputHeaders(range, ifRange);
    return this.#transport.open(
      { method: 'GET', path: outputPath(job), lane: 'jobs.output', headers },
      { ...rest, ...requestOptions },
    );
  }

  /** The file's size and type, without its bytes (spec: HEAD /v1/jobs/{job_id}/output). */
  outputInfo(job: JobRef, options?: RequestOptions): RequestPromise<OutputInfo> {
    const head = this.#transport.open({ method: 'HEAD', path: outputPath(job), lane: 'jobs.output' }, options);
    const answer = head.withResponse().then(async ({ data: _, response, ...meta }) => {
      const { outputInfoOf } = await import('../downloading/output-info.js');
      return { meta: () => meta, response: () => response, data: () => outputInfoOf(response) };
    });
    return requestPromise(answer);
  }
}

function outputPath(job: JobRef): RequestPath {
  return path`/v1/jobs/${jobIdOf(job)}/output`;
}
