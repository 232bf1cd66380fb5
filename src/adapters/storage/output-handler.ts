import { isDevelopment } from '../../client/config.js';
import type { OutputInfo } from '../../downloading/output.js';
import { JobFile, type OutputClient, requireOutputClient } from '../../downloading/output-source.js';
import { APIError, DownloadError, GenError, NotFoundError } from '../../errors/index.js';
import { explainsMissingFile, isMissing, isPart, isUnsatisfiable } from '../../rules/files.js';
import { anObject, callback, checkOptions, optionsOf } from '../../rules/options.js';
import { singleRange } from '../../runtime/byte-range.js';
import { readUpTo } from '../../runtime/bytes.js';
import { callObserver } from '../../runtime/callbacks.js';
import { systemClock } from '../../runtime/clock.js';
import { startDeadline } from '../../runtime/deadline.js';
import { setAndEvict } from '../../runtime/set-and-evict.js';
import { FIRST_BYTES, mediaTypeOf } from '../../schemas/file-type.js';
import { safeContentType } from '../../schemas/media-type.js';
import { handlerMistake } from '../../webhooks/handler-call.js';
import type { GetOptions, OutputSource } from './destination.js';
import { fileResponse, plainResponse } from './output-response.js';
import { pageFailureOf } from './page-failure.js';

/** Options for `createOutputHandler`. */
export interface OutputHandlerOptions {
  /** Client that downloads the files. Pages never see its API key. */
  readonly client: OutputClient;
  /** Returns true if the request's user may see the job's file. Look the job up in your own data. */
  readonly authorize: (request: Request, jobId: string) => boolean | Promise<boolean>;
  /**
   * Returns the job ID of a request. @default `?job=`, or the path segment that looks like a job ID (without an extension),
   * or the last segment
   */
  readonly jobId?: ((request: Request) => string) | undefined;
  /**
   * Returns your copy of a job's file: `r2(…)`, `s3(…)`, or an object with your own `get`. Views of a copy don't count
   * against the service's rate limit. If there is none, or `get` doesn't respond within 10 seconds, the service serves the
   * file. @default the service
   */
  readonly source?: ((jobId: string, request: Request) => MaybeSource | Promise<MaybeSource>) | undefined;
  /**
   * Called with errors that the page didn't cause: `authorize` or `source` threw, or the service failed. Errors that it
   * throws are ignored.
   */
  readonly onError?: ((error: unknown, request: Request) => unknown) | undefined;
}

type MaybeSource = OutputSource | undefined | null;

const HANDLER_OPTIONS = optionsOf({
  client: anObject,
  authorize: callback,
  jobId: callback,
  source: callback,
  onError: callback,
});

/** A path segment that looks like a job ID. The extension is for players that need one. */
const JOB_ID = /^(job_[\w-]+)(?:\.\w{1,5})?$/;
/** Timeout for a source's response headers. After it, the handler falls back to the service. */
const SOURCE_TIMEOUT_MS = 10_000;
/** Maximum cached media types. */
const MAX_TYPES = 1_000;

/** Serves the file of a request's job. */
export type OutputHandler = (request: Request) => Promise<Response>;

/**
 * Creates a web handler that serves finished files to browsers, which can't use a job's authenticated link. It supports
 * HEAD, ranges, conditional requests, and `?download` in the URL. Responds 404 to an unauthorized request or an unknown
 * job, and 409 if the job is not finished.
 *
 * @example
 * export const GET = createOutputHandler({
 *   client,
 *   authorize: async (request, jobId) => (await ownerOf(jobId)) === (await userOf(request)),
 * });
 */
export function createOutputHandler(options: OutputHandlerOptions): OutputHandler {
  checkOptions('createOutputHandler', HANDLER_OPTIONS, options);
  requireOutputClient('createOutputHandler({ client, authorize })', options?.client);
  if (options.authorize === undefined) {
    throw new GenError(
      'createOutputHandler: authorize is missing, so everybody could see every file. Pass a function (request, jobId) that returns true if the request may see the file.',
    );
  }
  const types = new Map<string, string | undefined>();
  return async (request) => {
    const mistake = handlerMistake('The output handler', request);
    if (mistake) {
      callObserver(() => options.onError?.(mistake, request));
      return new Response(mistake.message, { status: 500 });
    }
    const output = new OutputRequest(options, request, types);
    return output.respond().catch((error: unknown) => output.respondToError(error));
  };
}

class OutputRequest {
  readonly #options: OutputHandlerOptions;
  readonly #request: Request;
  readonly #isHead: boolean;
  /** Media types of jobs whose first bytes were requested. */
  readonly #types: Map<string, string | undefined>;
  #jobId: string | undefined;
  /** True until `authorize` has returned, because errors of the app's functions aren't about the job. */
  #isInApp = true;

  constructor(options: OutputHandlerOptions, request: Request, types: Map<string, string | undefined>) {
    this.#options = options;
    this.#request = request;
    this.#types = types;
    this.#isHead = request.method === 'HEAD';
  }

  async respond(): Promise<Response> {
    const { authorize } = this.#options;
    const request = this.#request;
    if (request.method !== 'GET' && !this.#isHead) return plainResponse(405, { allow: 'GET, HEAD' });
    const url = new URL(request.url);
    const jobId = this.#requestedJob(url);
    // Only `true` authorizes, not a user object or a Response that was returned by mistake.
    if (jobId === undefined || (await authorize(request, jobId)) !== true) return this.#notFound(jobId);
    this.#isInApp = false;
    this.#jobId = jobId;
    const file = await this.#read(jobId, this.#getOptions());
    if (isUnsatisfiable(file.status)) {
      const range = file.headers.get('content-range');
      return plainResponse(416, range === null ? {} : { 'content-range': range });
    }
    const contentType = await this.#typeOf(jobId, file.headers.get('content-type') ?? '');
    return fileResponse(request, file, { jobId, contentType, isDownload: url.searchParams.has('download') });
  }

  /** Returns the response to an error. Calls `onError` if the page didn't cause it. */
  respondToError(error: unknown): Response {
    if (this.#request.signal?.aborted) return new Response(null, { status: 499 });
    if (this.#isInApp) {
      this.#report(error);
      return plainResponse(500);
    }
    if (NotFoundError.isInstance(error)) return this.#notFound(this.#jobId);
    const { status, isReported, retryAfterMs } = pageFailureOf(error);
    if (isReported) this.#report(error);
    const pause = retryAfterMs === undefined ? undefined : { 'retry-after': `${Math.ceil(retryAfterMs / 1_000)}` };
    return plainResponse(status, pause);
  }

  /** Returns a 404, the same for an unknown job and for one that this request may not see. */
  #notFound(jobId: string | undefined): Response {
    const reason =
      jobId === undefined ? 'The request contains no job ID' : `The requested ID is "${jobId.slice(0, 80)}"`;
    return plainResponse(404, {}, isDevelopment() ? ` ${reason}. Pass jobId to createOutputHandler to change it.` : '');
  }

  /** Returns the request's job ID, or undefined if it is missing, ambiguous, or invalid. */
  #requestedJob(url: URL): string | undefined {
    const { jobId } = this.#options;
    const id = jobId ? jobId(this.#request) : jobIdIn(url);
    return typeof id !== 'string' || id === '' || /^\.{1,2}$|\p{C}/u.test(id) ? undefined : id;
  }

  /** Reads the file, or a range of it, from the copy if there is one, and otherwise from the service. */
  async #read(jobId: string, options: GetOptions): Promise<Response> {
    return (await this.#copy(jobId, options)) ?? (await this.#file(jobId, options));
  }

  /**
   * Returns the Content-Type to send. If the file's type isn't specific, detects it from the first bytes, which are
   * requested once per job, because players begin with a HEAD or a request for two bytes.
   */
  async #typeOf(jobId: string, label: string): Promise<string> {
    if (safeContentType(label) !== undefined) return label;
    if (!this.#types.has(jobId)) {
      const { signal } = this.#request;
      const options = { method: 'GET', range: `bytes=0-${FIRST_BYTES - 1}`, signal } as const;
      const file = await this.#read(jobId, options).catch(() => undefined);
      if (file === undefined) return label;
      const { bytes: head } = await readUpTo(file.body, FIRST_BYTES);
      setAndEvict(this.#types, jobId, mediaTypeOf({ head }), MAX_TYPES);
    }
    return this.#types.get(jobId) ?? label;
  }

  /** Reads the copy. If the store fails, calls `onError` and returns undefined. */
  async #copy(jobId: string, options: GetOptions): Promise<Response | undefined> {
    const { source } = this.#options;
    if (source === undefined) return undefined;
    try {
      const response = await this.#withTimeout(async (signal) =>
        (await source(jobId, this.#request))?.get({ ...options, signal }),
      );
      if (response === undefined || isFile(response, options)) return response;
      response.body?.cancel().catch(() => undefined);
      if (!isMissing(response.status))
        throw new GenError(
          `The copy of job ${jobId} could not be read: its store returned HTTP status ${response.status}.`,
        );
    } catch (error) {
      if (!this.#request.signal?.aborted) this.#report(error);
    }
    return undefined;
  }

  /** Applies the timeout to the headers only, because the page reads the body at its own pace. */
  async #withTimeout(read: (signal: AbortSignal) => Promise<Response | undefined>): Promise<Response | undefined> {
    const timeoutError = () =>
      new GenError(`The source did not respond within ${SOURCE_TIMEOUT_MS} ms, so the service sends the file.`);
    const deadline = startDeadline({
      clock: systemClock,
      ms: SOURCE_TIMEOUT_MS,
      signal: this.#request.signal,
      late: timeoutError,
    });
    const drop = (response: Response | undefined) => void response?.body?.cancel().catch(() => undefined);
    let response: Response | undefined;
    try {
      response = await deadline.race(read(deadline.signal), drop);
      return response;
    } finally {
      // The signal must still abort the body when the page disconnects.
      if (response === undefined) deadline.end();
      else deadline.pause();
    }
  }

  async #file(jobId: string, options: GetOptions): Promise<Response> {
    const { jobs } = this.#options.client;
    const { method, range, ifRange, signal } = options;
    const file = new JobFile(this.#options.client, jobId, { signal });
    try {
      if (method === 'HEAD') return headOf(await jobs.outputInfo(jobId, { signal }));
      const conditions = { ...(range !== undefined && { range }), ...(ifRange !== undefined && { ifRange }) };
      const response = await jobs.output(jobId, { signal, resume: true, ...conditions });
      if (isFile(response, options)) return response;
      response.body?.cancel().catch(() => undefined);
      throw new DownloadError(`The service sent a part of the file of job ${jobId} that was not requested.`, {
        jobId,
        code: 'interrupted',
      });
    } catch (cause) {
      if (APIError.isInstance(cause) && isUnsatisfiable(cause.status))
        return new Response(null, { status: cause.status, headers: cause.headers });
      // The job's status explains why it has no file.
      if (explainsMissingFile(cause)) throw cause;
      return file.explainErrors(() => Promise.reject(cause));
    }
  }

  #getOptions(): GetOptions {
    const { headers, signal } = this.#request;
    const range = this.#isHead ? undefined : singleRange(headers.get('range'));
    const ifRange = range === undefined ? undefined : (headers.get('if-range') ?? undefined);
    return { method: this.#isHead ? 'HEAD' : 'GET', range, ifRange, signal };
  }

  #report(error: unknown): void {
    const { onError } = this.#options;
    if (onError) callObserver(() => onError(error, this.#request));
  }
}

/** Returns true if a response is the file or the requested range. */
function isFile({ ok, status, headers }: Response, { range }: GetOptions): boolean {
  return isPart(status) ? range !== undefined && headers.has('content-range') : ok || isUnsatisfiable(status);
}

/** Returns `?job=`, or the path segment that looks like a job ID, or the last segment. */
function jobIdIn(url: URL): string | undefined {
  const params = url.searchParams.getAll('job');
  if (params.length > 0) return params.length > 1 ? undefined : params[0];
  const parts = url.pathname.split('/').filter((part) => part !== '');
  const id = parts.map((part) => JOB_ID.exec(decodePart(part) ?? '')?.[1]).findLast((id) => id !== undefined);
  return id ?? decodePart(parts.at(-1) ?? '');
}

function decodePart(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}

function headOf({ contentType, sizeBytes, etag, lastModified, acceptsRanges }: OutputInfo): Response {
  const values = {
    'content-type': contentType,
    'content-length': sizeBytes === undefined ? undefined : `${sizeBytes}`,
    etag,
    'last-modified': lastModified,
    'accept-ranges': acceptsRanges ? 'bytes' : undefined,
  };
  const headers = new Headers();
  for (const [name, value] of Object.entries(values)) if (value !== undefined) headers.set(name, value);
  return new Response(null, { headers });
}
