import { APIError, DownloadError, GenError } from '../errors/index.js';
import { fileErrorKind, mayAppearLater } from '../rules/files.js';
import { callerContext, callObserver } from '../runtime/callbacks.js';
import { type Clock, clockOf } from '../runtime/clock.js';
import { isFields } from '../schemas/envelope.js';
import { formatKind } from '../schemas/format-value.js';
import type { Job } from '../schemas/job.js';
import { type JobRef, jobIdOf, type OutputInfo, requireJobId } from './output.js';
import { OutputReader, type RestOfOutput } from './output-reader.js';

interface OutputCallOptions {
  /** Aborts the call. */
  readonly signal?: AbortSignal | undefined;
}

interface OutputReadOptions extends OutputCallOptions {
  readonly range?: RestOfOutput['range'] | string | undefined;
  readonly ifRange?: string | undefined;
  readonly resume?: boolean | undefined;
}

/** Methods of a GenClient that are needed to read a finished file. Easy to fake in tests. */
export interface OutputClient {
  /** Methods for a job and its file. */
  readonly jobs: {
    get(id: string, options?: OutputCallOptions): PromiseLike<Job>;
    output(job: JobRef, options?: OutputReadOptions): PromiseLike<Response>;
    outputInfo(job: string, options?: OutputCallOptions): PromiseLike<OutputInfo>;
    /** Runs `work` and reports it to the client's hooks. A fake can omit it. */
    storing?<T>(
      call: { readonly name: string; readonly jobId: string; readonly signal?: AbortSignal | undefined },
      work: () => Promise<T>,
    ): Promise<T>;
  };
}

/** Throws a GenError if `client` is not a client. `call` is the signature in the message. */
export function requireOutputClient(call: string, client: unknown): void {
  const jobs = isFields(client) ? client.jobs : undefined;
  const names = ['get', 'output', 'outputInfo'];
  if (isFields(jobs) && names.every((name) => typeof jobs[name] === 'function')) return;
  throw new GenError(`${call}: the first argument must be a GenClient, not ${formatKind(client)}.`);
}

interface JobFileOptions<Progress> {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: Progress) => unknown) | undefined;
}

/** The file of a finished job. */
export class JobFile<Progress = never> {
  readonly jobId: string;
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
  /** Calls `onProgress` in the async context of the call. */
  readonly report: (progress: Progress) => void;
  readonly #jobs: OutputClient['jobs'];
  /** The job as passed, because it can have `completedAt`. Fakes receive only the ID. */
  readonly #job: JobRef;

  constructor(client: OutputClient, job: JobRef, { signal, onProgress }: JobFileOptions<Progress>) {
    const inContext = callerContext();
    this.jobId = jobIdOf(job);
    this.clock = clockOf(client);
    this.signal = signal;
    this.report = (progress) => onProgress && inContext(() => callObserver(() => onProgress(progress)));
    this.#jobs = client.jobs;
    this.#job = client.jobs.storing ? job : this.jobId;
  }

  /** Reads the file over any number of connections. */
  reader(): OutputReader {
    const { jobId, clock, signal } = this;
    return new OutputReader({
      ...{ jobId, clock, signal },
      open: (signal, rest) => this.#jobs.output(this.#job, { signal, ...rest }),
      info: (signal) => this.#jobs.outputInfo(jobId, { signal }),
    });
  }

  info(): Promise<OutputInfo> {
    return this.explainErrors(() => this.#jobs.outputInfo(this.jobId, { signal: this.signal }));
  }

  /** Calls `work`, and explains its error if the link has expired or the job has no file. */
  async explainErrors<T>(work: () => PromiseLike<T>): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      this.signal?.throwIfAborted();
      throw await this.#explain(cause);
    }
  }

  async #explain(cause: unknown): Promise<unknown> {
    const { jobId, clock, signal } = this;
    const kind = fileErrorKind(cause);
    if (kind === undefined || !APIError.isInstance(cause)) return cause;
    const { providerOutputExpiresAt: expiresAt, status } = {
      ...(await Promise.resolve(this.#jobs.get(jobId, { signal })).catch(() => undefined)),
    };
    const hasExpired = Date.parse(expiresAt ?? '') <= clock.now();
    if (hasExpired || kind === 'gone' || /expir/i.test(`${cause.code} ${cause.message}`)) {
      const expiredAt = expiresAt ?? undefined;
      const when = expiredAt === undefined ? 'has expired' : `expired at ${expiredAt}`;
      const message = `The link to the file of job ${jobId} ${when}. The service deletes files. Save each file when its job completes.`;
      return new DownloadError(message, { jobId, code: 'output_expired', expiredAt, cause });
    }
    // The job is paid. A later request can succeed, but a new job would be charged again.
    if (status === 'completed' && mayAppearLater(cause)) return Object.assign(cause, { recovery: 'retry_later' });
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

/** Validates the arguments, stores the job's file with `work`, and reports that to the client's hooks. */
export async function storeOutput<T, Progress>(
  call: string,
  { client, job, options }: { client: OutputClient; job: JobRef; options: JobFileOptions<Progress> },
  work: (file: JobFile<Progress>) => Promise<T>,
): Promise<T> {
  const jobId = requireJobId(call, job);
  options.signal?.throwIfAborted();
  const file = new JobFile(client, job, options);
  const store = () => work(file);
  const { signal } = options;
  return client.jobs.storing ? client.jobs.storing({ name: call.split('(')[0] ?? '', jobId, signal }, store) : store();
}
