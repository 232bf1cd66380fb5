import { callObserver } from '../callbacks.js';
import { systemClock } from '../clock.js';
import { APIError, ConnectionError, DownloadError, GenError, RateLimitError, TimeoutError } from '../errors/index.js';
import type { OutputInfo } from '../resources/output.js';
import { explainRefusal } from '../resources/output-refusal.js';
import type { GetOptions } from './destination.js';
import { checkHandlerOptions, type OutputHandlerOptions } from './handler-options.js';
import { singleRange } from './http-range.js';
import { fileResponse, plainResponse } from './output-response.js';

/** What a page is told when a job has no file. */
const FILE_STATUS: Readonly<Record<string, number>> = {
  output_expired: 410,
  job_not_finished: 409,
  job_without_output: 404,
};

/** Serves the file of a job that the request names. */
export type OutputHandler = (request: Request) => Promise<Response>;

/**
 * Makes a web handler for GET and HEAD that shows finished files to a browser, which cannot use the authenticated link of a
 * job. It serves ranges, so that videos can be sought, conditions and HEAD. The job's id is `?job=` where there is one, else
 * the last part of the path. Who is not authorized, and a job that is unknown, are both answered with 404; a job that is not
 * finished with 409.
 *
 * @example
 * export const GET = createOutputHandler({
 *   client,
 *   authorize: async (request, jobId) => (await ownerOf(jobId)) === (await userOf(request)),
 * });
 */
export function createOutputHandler(options: OutputHandlerOptions): OutputHandler {
  checkHandlerOptions(options);
  return async (request) => {
    const handling = new Handling(options, request);
    return handling.answer().catch((error: unknown) => handling.failed(error));
  };
}

/** Marks what was thrown by a function of the app. */
class OwnFailure {
  readonly thrown: unknown;

  constructor(thrown: unknown) {
    this.thrown = thrown;
  }
}

/** One request. */
class Handling {
  readonly #options: OutputHandlerOptions;
  readonly #request: Request;
  readonly #isHead: boolean;

  constructor(options: OutputHandlerOptions, request: Request) {
    this.#options = options;
    this.#request = request;
    this.#isHead = request.method === 'HEAD';
  }

  async answer(): Promise<Response> {
    const { authorize, disposition, cacheControl = 'private, no-cache', filename } = this.#options;
    const request = this.#request;
    if (request.method !== 'GET' && !this.#isHead) return plainResponse(405, { allow: 'GET, HEAD' });
    const url = new URL(request.url);
    const jobId = jobIdIn(url);
    // Only true lets a request through: a user object, or a Response returned by mistake, does not.
    if (jobId === undefined || (await this.#own(() => authorize(request, jobId))) !== true) return plainResponse(404);
    const found = (await this.#copy(jobId)) ?? (await this.#file(jobId));
    if (found.status === 416)
      return plainResponse(416, { 'content-range': found.headers.get('content-range') ?? 'bytes */*' });
    const name = filename ? await this.#own(() => filename(jobId, request), found) : jobId;
    const isSaved = disposition === 'attachment' || url.searchParams.has('download');
    return fileResponse(request, found, { name, isSaved, cacheControl });
  }

  /** The answer for an error; what is not the page's fault is told to `onError`. */
  failed(error: unknown): Response {
    if (this.#request.signal?.aborted) return new Response(null, { status: 499 });
    const isOwn = error instanceof OwnFailure;
    const { status, headers }: PageAnswer = isOwn ? { status: 500 } : statusFor(error);
    if (status >= 500) this.#tell(isOwn ? error.thrown : error);
    return plainResponse(status, headers);
  }

  /** The copy of the file, where there is one. A store that fails is told of, and the service is read instead. */
  async #copy(jobId: string): Promise<Response | undefined> {
    const request = this.#request;
    try {
      const source = await this.#options.source?.(jobId, request);
      const response = await source?.get(this.#asked());
      if (response === undefined || response.ok || response.status === 416) return response;
      await response.body?.cancel();
      if (response.status !== 404) throw new GenError(`The copy of job ${jobId} was answered with ${response.status}.`);
    } catch (error) {
      if (!request.signal?.aborted) this.#tell(error);
    }
    return undefined;
  }

  async #file(jobId: string): Promise<Response> {
    const { jobs } = this.#options.client;
    const { range, ifRange, signal } = this.#asked();
    try {
      if (this.#isHead) return headOf(await jobs.outputInfo(jobId, { signal }));
      const conditions = { ...(range !== undefined && { range }), ...(ifRange !== undefined && { ifRange }) };
      return await jobs.output(jobId, { signal, resume: true, ...conditions });
    } catch (cause) {
      if (APIError.isInstance(cause) && cause.status === 416)
        return new Response(null, { status: 416, headers: cause.headers });
      // Only the job tells why it has no file, unless the service has said it.
      const isTold = APIError.isInstance(cause) && (cause.status === 409 || cause.code === 'job_not_found');
      const job = async () => (isTold ? undefined : jobs.get(jobId, { signal }));
      throw isTold ? cause : await explainRefusal({ jobId, cause, job, now: systemClock.now() });
    }
  }

  #asked(): GetOptions {
    const { headers, signal } = this.#request;
    const range = this.#isHead ? undefined : singleRange(headers.get('range'));
    const ifRange = range === undefined ? undefined : (headers.get('if-range') ?? undefined);
    return { method: this.#isHead ? 'HEAD' : 'GET', range, ifRange, signal };
  }

  /** Calls what the app has given. Whatever it throws is the app's own trouble, and never an answer about the job. */
  async #own<T>(call: () => T | Promise<T>, found?: Response): Promise<T> {
    try {
      return await call();
    } catch (cause) {
      await found?.body?.cancel();
      throw new OwnFailure(cause);
    }
  }

  #tell(error: unknown): void {
    const { onError } = this.#options;
    if (onError) callObserver(() => onError(error, this.#request));
  }
}

/** The id of the job: `?job=` where there is one, else the last part of the path. A doubtful one is none. */
function jobIdIn(url: URL): string | undefined {
  const asked = url.searchParams.getAll('job');
  const last = url.pathname.split('/').findLast((part) => part !== '') ?? '';
  const id = asked.length > 0 ? asked[0] : decoded(last);
  return asked.length > 1 || !id || /^\.{1,2}$|\p{C}/u.test(id) ? undefined : id;
}

function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}

/** The answer to a HEAD, from what is known of a file. */
function headOf({ contentType, sizeBytes, etag, lastModified, acceptsRanges }: OutputInfo): Response {
  const told = {
    'content-type': contentType,
    'content-length': sizeBytes === undefined ? undefined : `${sizeBytes}`,
    etag,
    'last-modified': lastModified,
    'accept-ranges': acceptsRanges ? 'bytes' : undefined,
  };
  const headers = new Headers();
  for (const [name, value] of Object.entries(told)) if (value !== undefined) headers.set(name, value);
  return new Response(null, { headers });
}

interface PageAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What a page is told of an error. The account's own trouble is never the page's. */
function statusFor(error: unknown): PageAnswer {
  if (DownloadError.isInstance(error)) {
    return { status: FILE_STATUS[error.code] ?? 502 };
  }
  if (RateLimitError.isInstance(error)) {
    return { status: 503, headers: { 'retry-after': `${Math.ceil((error.retryAfterMs ?? 1_000) / 1_000)}` } };
  }
  if (APIError.isInstance(error)) {
    const isOfJob = [404, 409, 410].includes(error.status);
    return { status: isOfJob ? error.status : 502 };
  }
  if (TimeoutError.isInstance(error)) return { status: 504 };
  return { status: ConnectionError.isInstance(error) ? 502 : 500 };
}
