import { APIError, DownloadError, GenError } from '../errors/index.js';
import { fileRefusal } from '../rules/files.js';
import { callerContext, callObserver } from '../runtime/callbacks.js';
import { type Clock, clockOf } from '../runtime/clock.js';
import { isFields } from '../schemas/envelope.js';
import type { Job } from '../schemas/job.js';
import { showKind } from '../schemas/show.js';
import { type JobRef, type OutputInfo, requireJobId } from './output.js';
import { OutputReader, type RestOfOutput } from './output-reader.js';

/** How a call of an {@link OutputClient} is made. */
interface OutputCallOptions {
  /** Ends the call at once. */
  readonly signal?: AbortSignal | undefined;
}

/** How a file is asked for. */
interface OutputReadOptions extends OutputCallOptions {
  readonly range?: RestOfOutput['range'] | string | undefined;
  readonly ifRange?: string | undefined;
  readonly resume?: boolean | undefined;
}

/** What reading a finished file needs of a client. A GenClient has it, and a fake is quickly written. */
export interface OutputClient {
  /** The three calls on a job and its file. */
  readonly jobs: {
    get(id: string, options?: OutputCallOptions): PromiseLike<Job>;
    output(job: string, options?: OutputReadOptions): PromiseLike<Response>;
    outputInfo(job: string, options?: OutputCallOptions): PromiseLike<OutputInfo>;
    /** Tells the client's hooks that the file is stored. A fake does not need it. */
    storing?<T>(call: { readonly name: string; readonly jobId: string }, work: () => Promise<T>): Promise<T>;
  };
}

/** Throws a GenError for what is not a client; `call` is how the function is called. */
export function requireOutputClient(call: string, client: unknown): void {
  const jobs = isFields(client) ? client.jobs : undefined;
  const names = ['get', 'output', 'outputInfo'];
  if (isFields(jobs) && names.every((name) => typeof jobs[name] === 'function')) return;
  throw new GenError(`${call}: the first argument must be a GenClient, not ${showKind(client)}.`);
}

/** Whose file is read, and for how long. */
interface SourceOptions {
  readonly jobId: string;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

/** What is asked of a job's file that is to be stored. */
interface Storing<Progress> {
  readonly client: OutputClient;
  readonly job: JobRef;
  readonly options: {
    readonly signal?: AbortSignal | undefined;
    readonly onProgress?: ((progress: Progress) => unknown) | undefined;
  };
}

/** The file of a job on its way to where it is stored. */
export interface JobFile<Progress> extends SourceOptions {
  /** The file, to be read over any number of connections. */
  reader(): OutputReader;
  info(): PromiseLike<OutputInfo>;
  /** See {@link explained}. */
  explained<T>(work: () => PromiseLike<T>): Promise<T>;
  /** Calls `onProgress` in the async context of the call. */
  tell(progress: Progress): void;
}

/** Checks what `call` was given, stores the file of the job by `work`, and tells the hooks of the client. */
export async function storeOutput<T, Progress>(
  call: string,
  { client, job, options }: Storing<Progress>,
  work: (file: JobFile<Progress>) => Promise<T>,
): Promise<T> {
  const { jobs } = client;
  const jobId = requireJobId(call, job);
  const { signal, onProgress } = options;
  signal?.throwIfAborted();
  const inContext = callerContext();
  const source = { jobId, clock: clockOf(client), signal };
  const file: JobFile<Progress> = {
    ...source,
    reader: () =>
      new OutputReader({
        ...source,
        open: (signal, rest) => jobs.output(jobId, { signal, ...rest }),
      }),
    info: () => jobs.outputInfo(jobId, { signal }),
    explained: (work) => explained(client, source, work),
    tell: (progress) => onProgress && inContext(() => callObserver(() => onProgress(progress))),
  };
  const name = call.split('(')[0] ?? '';
  return jobs.storing ? jobs.storing({ name, jobId }, () => work(file)) : work(file);
}

/** Does something with the file of a job. Rejects with an error that tells an expired link, or a job without a file, as such. */
export async function explained<T>(
  client: OutputClient,
  source: SourceOptions,
  work: () => PromiseLike<T>,
): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    source.signal?.throwIfAborted();
    throw await refusalOf(client, source, cause);
  }
}

async function refusalOf(
  { jobs }: OutputClient,
  { jobId, clock, signal }: SourceOptions,
  cause: unknown,
): Promise<unknown> {
  const kind = fileRefusal(cause);
  if (kind === undefined || !APIError.isInstance(cause)) return cause;
  const job = await Promise.resolve(jobs.get(jobId, { signal })).catch(() => undefined);
  const { providerOutputExpiresAt: expiresAt, status } = job ?? {};
  const isPast = Date.parse(expiresAt ?? '') <= clock.now();
  if (isPast || kind === 'gone' || /expir/i.test(`${cause.code} ${cause.message}`)) {
    const at = expiresAt ?? undefined;
    const when = at === undefined ? 'has expired' : `expired at ${at}`;
    const message = `The link to the file of job ${jobId} ${when}. Files are kept for a while only: save each one when its job completes.`;
    return new DownloadError(message, { jobId, code: 'output_expired', expiredAt: at, cause });
  }
  if (status === undefined || status === 'completed') return cause;
  const isRunning = !['failed', 'canceled', 'blocked'].includes(status);
  const advice = isRunning ? ' Wait for it with waitForJob first.' : '';
  return new DownloadError(`Job ${jobId} has no file: its status is ${status}.${advice}`, {
    jobId,
    code: isRunning ? 'job_not_finished' : 'job_without_output',
    cause,
  });
}
