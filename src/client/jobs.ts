import {
  type JobRef,
  jobIdOf,
  type OutputInfo,
  type OutputRange,
  outputHeaders,
  outputInfoOf,
} from '../downloading/output.js';
import { OutputReader, type OutputReading } from '../downloading/output-reader.js';
import { ResponseError } from '../errors/index.js';
import { publishingMs } from '../rules/files.js';
import { OUTPUT_OPTIONS, type RequestOptions } from '../rules/options.js';
import { withBody } from '../runtime/bytes.js';
import { wallOf } from '../runtime/clock.js';
import { type Job, warningsIn } from '../schemas/job.js';
import type {
  DecodeContext,
  JsonRequest,
  RequestPath,
  RequestPromise,
  StoringCall,
  Transport,
} from '../transport/transport.js';
import { decodeJob, path } from './endpoint.js';

/** Options for `jobs.output`. */
export interface OutputOptions extends RequestOptions {
  /** Bytes of the file to request. @default the entire file */
  readonly range?: OutputRange | undefined;
  /** Entity tag of the file that the range belongs to. If the file has changed, the response contains the entire file. */
  readonly ifRange?: string | undefined;
  /**
   * If true, the body resumes after an interruption with Range and If-Range, up to five times in a row without a new byte. It
   * fails with a DownloadError if the file has changed. @default false
   */
  readonly resume?: boolean | undefined;
}

/** Jobs and their finished files. */
export class Jobs {
  readonly #transport: Transport;

  /** @internal Created by the client. */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Returns the current state of a job. Throws a NotFoundError if the ID is unknown or belongs to another account.
   *
   * @example
   * const { status, errorCode } = await client.jobs.get(job.id);
   */
  get(id: string, options?: RequestOptions): RequestPromise<Job> {
    return this.#transport.send(jobRequest(id), options);
  }

  /** @internal Polls once. The poll scheduler retries. */
  pollOnce(id: string, signal: AbortSignal): RequestPromise<Job> {
    return this.#transport.send({ ...jobRequest(id), options: 'checked' }, { signal, maxRetries: 0 });
  }

  /**
   * Returns the finished file as a streaming Response. Waits up to 30 seconds after `completedAt` for a file that the
   * service is still publishing. The link expires at `providerOutputExpiresAt`.
   *
   * @example
   * const { body, headers } = await client.jobs.output(video, { resume: true });
   * const response = new Response(body, { headers: { 'content-type': headers.get('content-type') ?? 'video/mp4' } });
   */
  output(job: JobRef, options: OutputOptions = {}, requestOptions?: RequestOptions): RequestPromise<Response> {
    const { range, ifRange, resume, ...rest } = options;
    const callOptions = { ...rest, ...requestOptions };
    const read = (response: Response) => (resume ? this.#resumableResponse(job, response, callOptions) : response);
    const request = { name: 'jobs.output', method: 'GET', path: outputPath(job), limit: 'jobs.output' } as const;
    const parts = {
      headers: () => outputHeaders(range, ifRange),
      publishingMs: () => this.#publishingMs(job, callOptions),
    };
    return this.#transport.open(
      { ...request, ...parts, options: OUTPUT_OPTIONS, read },
      { ...options, ...requestOptions },
    );
  }

  /**
   * Describes the finished file without its bytes.
   *
   * @example
   * const { contentType, sizeBytes } = await client.jobs.outputInfo(video);
   */
  outputInfo(job: JobRef, options?: RequestOptions): RequestPromise<OutputInfo> {
    const request = { name: 'jobs.outputInfo', method: 'HEAD', path: outputPath(job), limit: 'jobs.output' } as const;
    return this.#transport.open({ ...request, headers: () => outputHeaders(undefined), read: outputInfoOf }, options);
  }

  /** @internal Traces `work`, which stores the file, and reports when it's done. */
  storing<T>(call: StoringCall, work: () => Promise<T>): Promise<T> {
    return this.#transport.storing(call, work);
  }

  async #publishingMs(job: JobRef, { signal, timeoutMs, headers }: RequestOptions): Promise<number> {
    const knownJob: Partial<Job> = typeof job === 'string' ? {} : job;
    const poll = () => this.get(jobIdOf(job), { signal, timeoutMs, headers }).catch(() => undefined);
    const current = knownJob.completedAt ? knownJob : await poll();
    signal?.throwIfAborted();
    return current === undefined ? 0 : publishingMs(current, wallOf(this.#transport.clock).now());
  }

  #resumableResponse(job: JobRef, response: Response, options: RequestOptions): Promise<Response> {
    return resumableResponse(response, {
      jobId: jobIdOf(job),
      clock: this.#transport.clock,
      signal: options.signal,
      open: (signal, outputOptions) => this.output(job, outputOptions, { ...options, signal }),
      info: (signal) => this.outputInfo(job, { ...options, signal }),
    });
  }
}

function jobRequest(id: string): JsonRequest<Job> {
  return {
    name: 'jobs.get',
    method: 'GET',
    path: path`/v1/jobs/${id}`,
    limit: 'jobs.get',
    extractJob: (job) => ({ job, warnings: warningsIn(undefined, job) }),
    decode(body, context) {
      const job = decodeJob(body, context);
      if (job.id !== id) throw otherJobError(context);
      return job;
    },
  };
}

/** Returns the error for a response about another job, which a shared cache may send. */
function otherJobError({ method, url, attempts }: DecodeContext): ResponseError {
  const message = `${method} ${url}: the response is about another job`;
  return new ResponseError(message, { method, url, attempts, path: 'data.job.id' });
}

function outputPath(job: JobRef): RequestPath {
  return path`/v1/jobs/${jobIdOf(job)}/output`;
}

/**
 * Returns the response with a body that resumes after an interruption if the file hasn't changed. Detects its
 * Content-Type from the first bytes. Throws a DownloadError for an HTML page or JSON.
 */
async function resumableResponse(response: Response, reading: OutputReading): Promise<Response> {
  const reader = new OutputReader(reading);
  const { contentType } = await reader.startWith(response);
  const headers = new Headers(response.headers);
  if (contentType !== undefined) headers.set('content-type', contentType);
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        const bytes = await reader.read();
        if (bytes !== undefined) return controller.enqueue(bytes);
        controller.close();
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  return withBody(response, body, headers);
}
