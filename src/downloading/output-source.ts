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

/** What ends the reading of a file, and who is told how far it has come. */
interface JobFileOptions<Progress> {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: Progress) => unknown) | undefined;
}

/** The file of a finished job, as a client reads it. */
export class JobFile<Progress = never> {
  readonly jobId: string;
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
  /** Calls `onProgress` in the async context of the call. */
  readonly tell: (progress: Progress) => void;
  readonly #jobs: OutputClient['jobs'];

  constructor(client: OutputClient, jobId: string, { signal, onProgress }: JobFileOptions<Progress>) {
    const inContext = callerContext();
    this.jobId = jobId;
    this.clock = clockOf(client);
    this.signal = signal;
    this.tell = (progress) => onProgress && inContext(() => callObserver(() => onProgress(progress)));
    this.#jobs = client.jobs;
  }

  /** The file, to be read over any number of connections. */
  reader(): OutputReader {
    const { jobId, clock, signal } = this;
    return new OutputReader({
      ...{ jobId, clock, signal },
      open: (signal, rest) => this.#jobs.output(jobId, { signal, ...rest }),
      info: (signal) => this.#jobs.outputInfo(jobId, { signal }),
    });
  }

  info(): PromiseLike<OutputInfo> {
    return this.#jobs.outputInfo(this.jobId, { signal: this.signal });
  }

  /** Does something with the file. Rejects with an error that tells an expired link, or a job without a file, as such. */
  async explained<T>(work: () => PromiseLike<T>): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      this.signal?.throwIfAborted();
      throw await this.#refusalOf(cause);
    }
  }

  async #refusalOf(cause: unknown): Promise<unknown> {
    const { jobId, clock, signal } = this;
    const kind = fileRefusal(cause);
    if (kind === undefined || !APIError.isInstance(cause)) return cause;
    const job = await Promise.resolve(this.#jobs.get(jobId, { signal })).catch(() => undefined);
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
}

/** Checks what `call` was given, stores the file of the job by `work`, and tells the hooks of the client. */
export async function storeOutput<T, Progress>(
  call: string,
  { client, job, options }: { client: OutputClient; job: JobRef; options: JobFileOptions<Progress> },
  work: (file: JobFile<Progress>) => Promise<T>,
): Promise<T> {
  const jobId = requireJobId(call, job);
  options.signal?.throwIfAborted();
  const file = new JobFile(client, jobId, options);
  const store = () => work(file);
  return client.jobs.storing ? client.jobs.storing({ name: call.split('(')[0] ?? '', jobId }, store) : store();
}
