import { isDevelopment } from '../../client/config.js';
import type { OutputInfo } from '../../downloading/output.js';
import { JobFile, type OutputClient, requireOutputClient } from '../../downloading/output-source.js';
import { APIError, DownloadError, GenError, NotFoundError } from '../../errors/index.js';
import { isMissing, isPart, isUnsatisfiable, pageAnswer, saysWhyNoFile } from '../../rules/files.js';
import { handlerMistake } from '../../rules/handler-call.js';
import { anObject, callback, checkOptions, optionsOf } from '../../rules/options.js';
import { callObserver } from '../../runtime/callbacks.js';
import { systemClock } from '../../runtime/clock.js';
import { startDeadline } from '../../runtime/deadline.js';
import type { GetOptions, OutputSource } from './destination.js';
import { fileResponse, plainResponse, singleRange } from './output-response.js';

/** What `createOutputHandler` takes. */
export interface OutputHandlerOptions {
  /** The client that reads the files. Its key never reaches the page. */
  readonly client: OutputClient;
  /**
   * Says whether this request may see the file of this job: only `true` lets it. Look the job up in your own data, by the
   * user that the request belongs to.
   */
  readonly authorize: (request: Request, jobId: string) => boolean | Promise<boolean>;
  /**
   * Returns the job id that a request names. @default `?job=`, else the part of the path that looks like a job's id (an
   * extension is dropped), else the last part
   */
  readonly jobId?: ((request: Request) => string) | undefined;
  /**
   * Where the copy of a job's file is, so that views do not count against the service's 300 reads a minute: `r2(…)`, `s3(…)`
   * or an object with a `get` of your own. Without a copy, and where `get` has no answer within ten seconds, the file is read from the
   * service. @default the service
   */
  readonly source?: ((jobId: string, request: Request) => MaybeSource | Promise<MaybeSource>) | undefined;
  /**
   * Told of what is not the page's fault: an `authorize` or a `source` that throws, and a service that cannot
   * be read. It only observes. @default nothing is called
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

/** A part of a path that looks like a job's id, without the extension that a player may want to see. */
const JOB_ID = /^(job_[\w-]+)(?:\.\w{1,5})?$/;
/** How long a source may take until the head of its answer is there. After that the service is read. */
const SOURCE_MS = 10_000;

/** Serves the file of a job that the request names. */
export type OutputHandler = (request: Request) => Promise<Response>;

/**
 * Makes a web handler for GET and HEAD that shows finished files to a browser, which cannot use the authenticated link of a
 * job. It serves ranges, so that videos can be sought, conditions and HEAD. The job's id is what `jobId` returns; without it,
 * `?job=`, else the part of the path that looks like a job's id, else the last part. Who is not authorized, and a job that is
 * unknown, are both answered with 404; a job that is not finished with 409. `?download` in the URL saves the file.
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
      'createOutputHandler needs authorize: a function (request, jobId) that returns true where the request may see the file. Without it everybody could see every file.',
    );
  }
  return async (request) => {
    const mistake = handlerMistake('The output handler', request);
    if (mistake) {
      callObserver(() => options.onError?.(mistake, request));
      return new Response(mistake.message, { status: 500 });
    }
    const handling = new Handling(options, request);
    return handling.answer().catch((error: unknown) => handling.failed(error));
  };
}

class Handling {
  readonly #options: OutputHandlerOptions;
  readonly #request: Request;
  readonly #isHead: boolean;
  #lookedFor: string | undefined;
  /** Whether a function of the app is at work: what it throws is never an answer about the job. */
  #isInApp = true;

  constructor(options: OutputHandlerOptions, request: Request) {
    this.#options = options;
    this.#request = request;
    this.#isHead = request.method === 'HEAD';
  }

  async answer(): Promise<Response> {
    const { authorize } = this.#options;
    const request = this.#request;
    if (request.method !== 'GET' && !this.#isHead) return plainResponse(405, { allow: 'GET, HEAD' });
    const url = new URL(request.url);
    const jobId = this.#jobId(url);
    // Only true lets a request through: a user object, or a Response returned by mistake, does not.
    if (jobId === undefined || (await authorize(request, jobId)) !== true) return this.#notFound(jobId);
    this.#isInApp = false;
    this.#lookedFor = jobId;
    const found = (await this.#copy(jobId)) ?? (await this.#file(jobId));
    if (isUnsatisfiable(found.status))
      return plainResponse(416, { 'content-range': found.headers.get('content-range') ?? 'bytes */*' });
    return fileResponse(request, found, { jobId, isSaved: url.searchParams.has('download') });
  }

  /** The answer for an error; `onError` is called for what is not the page's fault. */
  failed(error: unknown): Response {
    if (this.#request.signal?.aborted) return new Response(null, { status: 499 });
    if (this.#isInApp) {
      this.#tell(error);
      return plainResponse(500);
    }
    if (NotFoundError.isInstance(error)) return this.#notFound(this.#lookedFor);
    const { status, isReported, retryAfterMs } = pageAnswer(error);
    if (isReported) this.#tell(error);
    const pause = retryAfterMs === undefined ? undefined : { 'retry-after': `${Math.ceil(retryAfterMs / 1_000)}` };
    return plainResponse(status, pause);
  }

  /** The same answer for a job that is unknown and for one that this request may not see. */
  #notFound(jobId: string | undefined): Response {
    const what = jobId === undefined ? 'The request names no job' : `The id looked for is "${jobId.slice(0, 80)}"`;
    return plainResponse(404, {}, isDevelopment() ? ` ${what}. Pass jobId to createOutputHandler to change it.` : '');
  }

  /** The id of the job that the request names; undefined for a doubtful one. */
  #jobId(url: URL): string | undefined {
    const { jobId } = this.#options;
    const id = jobId ? jobId(this.#request) : askedJobId(url);
    return typeof id !== 'string' || id === '' || /^\.{1,2}$|\p{C}/u.test(id) ? undefined : id;
  }

  /** The copy of the file, where there is one. If the store fails, `onError` is called and the service is read. */
  async #copy(jobId: string): Promise<Response | undefined> {
    const { source } = this.#options;
    if (source === undefined) return undefined;
    try {
      const response = await this.#inTime(async (signal) =>
        (await source(jobId, this.#request))?.get({ ...this.#asked(), signal }),
      );
      if (response === undefined || this.#isFile(response)) return response;
      await response.body?.cancel();
      if (!isMissing(response.status))
        throw new GenError(`The copy of job ${jobId} was answered with ${response.status}.`);
    } catch (error) {
      if (!this.#request.signal?.aborted) this.#tell(error);
    }
    return undefined;
  }

  /** Whether an answer is the file, or the part of it that was asked for. */
  #isFile({ ok, status }: Response): boolean {
    return isPart(status) ? this.#asked().range !== undefined : ok || isUnsatisfiable(status);
  }

  /** Gives the source its time until the head of its answer is there. The body may take as long as the page reads it. */
  async #inTime(read: (signal: AbortSignal) => Promise<Response | undefined>): Promise<Response | undefined> {
    const late = () => new GenError(`The source has not answered within ${SOURCE_MS} ms.`);
    const deadline = startDeadline({ clock: systemClock, ms: SOURCE_MS, signal: this.#request.signal, late });
    const drop = (response: Response | undefined) => void response?.body?.cancel().catch(() => undefined);
    let response: Response | undefined;
    try {
      response = await deadline.race(read(deadline.signal), drop);
      return response;
    } finally {
      // From here on only the page ends the body.
      if (response === undefined) deadline.end();
      else deadline.pause();
    }
  }

  async #file(jobId: string): Promise<Response> {
    const { client } = this.#options;
    const { jobs } = client;
    const { range, ifRange, signal } = this.#asked();
    try {
      if (this.#isHead) return headOf(await jobs.outputInfo(jobId, { signal }));
      const conditions = { ...(range !== undefined && { range }), ...(ifRange !== undefined && { ifRange }) };
      const response = await jobs.output(jobId, { signal, resume: true, ...conditions });
      if (this.#isFile(response)) return response;
      await response.body?.cancel();
      throw new DownloadError(`The service answered with a part of the file of job ${jobId} that was not asked for.`, {
        jobId,
        code: 'interrupted',
      });
    } catch (cause) {
      if (APIError.isInstance(cause) && isUnsatisfiable(cause.status))
        return new Response(null, { status: cause.status, headers: cause.headers });
      // Only the job tells why it has no file, unless the service has said it.
      if (saysWhyNoFile(cause)) throw cause;
      return new JobFile(client, jobId, { signal }).explained(() => Promise.reject(cause));
    }
  }

  #asked(): GetOptions {
    const { headers, signal } = this.#request;
    const range = this.#isHead ? undefined : singleRange(headers.get('range'));
    const ifRange = range === undefined ? undefined : (headers.get('if-range') ?? undefined);
    return { method: this.#isHead ? 'HEAD' : 'GET', range, ifRange, signal };
  }

  #tell(error: unknown): void {
    const { onError } = this.#options;
    if (onError) callObserver(() => onError(error, this.#request));
  }
}

/** The id of the job: `?job=`, else the part of the path that looks like one, else the last part. */
function askedJobId(url: URL): string | undefined {
  const asked = url.searchParams.getAll('job');
  if (asked.length > 0) return asked.length > 1 ? undefined : asked[0];
  const parts = url.pathname.split('/').filter((part) => part !== '');
  const found = parts.map((part) => JOB_ID.exec(decoded(part) ?? '')?.[1]).findLast((id) => id !== undefined);
  return found ?? decoded(parts.at(-1) ?? '');
}

function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}

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
