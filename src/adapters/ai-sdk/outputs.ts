import type { ImageModelV4CallOptions, SharedV4Warning } from '@ai-sdk/provider';
import type { GenClient } from '../../client/client.js';
import type { CreateOptions } from '../../client/create-options.js';
import { APIError, DownloadError, GenError, JobError, WaitTimeoutError } from '../../errors/index.js';
import { systemClock, systemRandom } from '../../runtime/clock.js';
import type { CompletedJob, CreatedJob, Job } from '../../schemas/job.js';
import type { PreparedCall, VideoCall } from './settings.js';

/** One finished file with the job that made it. */
export interface Output {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly mediaType: string;
  readonly metadata: OutputMetadata;
}

/** What `providerMetadata.gen` says of each output: the job, what it cost, and why its file is missing. */
type OutputMetadata = Record<string, string | number>;

/** An output, or why there is none. `paid` describes the job where it is paid for all the same. */
export type OutputOutcome<T> =
  | { readonly done: T }
  | { readonly error: unknown; readonly paid?: OutputMetadata | undefined };

/** What a call with several outputs came to. */
interface Settled<T> {
  readonly done: readonly T[];
  readonly warnings: readonly SharedV4Warning[];
  /** The jobs that are paid for and whose file is missing. */
  readonly unread: readonly OutputMetadata[];
}

/** A call with a key for each of its outputs. */
export interface KeyedCall<Call> extends PreparedCall {
  readonly call: Call;
  readonly keys: readonly string[];
}

/** Makes one paid job for each key and reads its file. */
export async function makeOutputs(
  client: GenClient,
  mediaType: 'image' | 'video',
  { body, own, call, keys, ...prepared }: KeyedCall<ImageModelV4CallOptions | VideoCall>,
) {
  const warnings = [...prepared.warnings];
  const { abortSignal: signal } = call;
  const make = async (key: string): Promise<OutputOutcome<Output>> => {
    let last: CreatedJob | undefined;
    const onCreated = (created: CreatedJob) => {
      last = created;
      warnings.push(...serviceWarnings(created));
    };
    const options: Omit<CreateOptions, 'throwOnFailure'> = {
      ...own.options,
      idempotencyKey: key,
      headers: plainHeaders(call.headers),
      signal,
      onCreated,
    };
    try {
      const job =
        mediaType === 'image'
          ? await client.images.createAndWait(body as never, options)
          : await client.videos.createAndWait(body as never, options);
      return await readOutput(client, job, { mediaType, signal, idempotencyKey: last?.idempotencyKey ?? key });
    } catch (error) {
      // A job that failed costs nothing. One that still runs is paid for.
      if (last === undefined || JobError.isInstance(error)) return { error };
      const seen = WaitTimeoutError.isInstance(error) ? error.job : undefined;
      return { error, paid: jobMetadata(seen ?? last.job, last) };
    }
  };
  const { done, unread, ...settled } = await settleOutputs(keys.map(make), signal);
  const metadata = [...done.map((output) => output.metadata), ...unread];
  return { done, metadata, warnings: [...warnings, ...settled.warnings] };
}

interface OutputRead {
  readonly mediaType: 'image' | 'video';
  readonly signal: AbortSignal | undefined;
  readonly idempotencyKey: string | undefined;
}

/** The finished file of a job, read whole. What cannot be read is a DownloadError that names the job and its key. */
export async function readOutput(
  client: GenClient,
  job: CompletedJob,
  { mediaType, signal, idempotencyKey }: OutputRead,
): Promise<OutputOutcome<Output>> {
  const metadata = jobMetadata(job, { idempotencyKey });
  try {
    const response = await client.jobs.output(job, { resume: true }, { signal });
    const bytes = new Uint8Array(await response.arrayBuffer());
    const fallback = mediaType === 'image' ? 'image/png' : 'video/mp4';
    return { done: { bytes, mediaType: response.headers.get('content-type') ?? fallback, metadata } };
  } catch (cause) {
    signal?.throwIfAborted();
    const error = unreadableOutput(job.id, idempotencyKey, cause);
    return { error, paid: { ...metadata, error: error.message } };
  }
}

function unreadableOutput(jobId: string, idempotencyKey: string | undefined, cause: unknown): DownloadError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const isNamed = DownloadError.isInstance(cause) || APIError.isInstance(cause);
  return new DownloadError(
    `The file of job ${jobId} could not be read: ${reason} The job is paid for: read it with client.jobs.output(${JSON.stringify(jobId)}).`,
    { jobId, idempotencyKey, code: isNamed ? cause.code : 'interrupted', cause },
  );
}

/**
 * Lets every output come to its end. Those that succeeded are paid for and are given back even when others failed; each
 * failure is a warning then. When all failed, or the caller aborted, one failure is thrown as it is: of a job that is
 * paid for, where there is one.
 */
export async function settleOutputs<T>(
  outcomes: readonly Promise<OutputOutcome<T>>[],
  signal: AbortSignal | undefined,
): Promise<Settled<T>> {
  const results = (await Promise.allSettled(outcomes)).map(
    (result): OutputOutcome<T> => (result.status === 'fulfilled' ? result.value : { error: result.reason }),
  );
  signal?.throwIfAborted();
  const done = results.flatMap((result) => ('done' in result ? [result.done] : []));
  const failures = results.flatMap((result) => ('error' in result ? [result] : []));
  const unread = failures.flatMap(({ paid }) => (paid ? [paid] : []));
  if (done.length === 0) throw firstOf(failures, unread);
  const warnings = failures.map(({ error }): SharedV4Warning => {
    return { type: 'other', message: `One of ${results.length} outputs failed: ${describeError(error)}` };
  });
  return { done, warnings, unread };
}

/** The error of a call without any output. It names the jobs that are paid for, since nothing else can. */
function firstOf(
  failures: readonly { readonly error: unknown; readonly paid?: OutputMetadata | undefined }[],
  unread: readonly OutputMetadata[],
): unknown {
  const { error, paid } = failures.find((failure) => failure.paid) ?? failures[0] ?? {};
  const others = unread.filter((metadata) => metadata !== paid).map(({ jobId }) => jobId);
  if (others.length > 0 && GenError.isInstance(error)) error.message += ` Also paid for: ${others.join(', ')}.`;
  return error;
}

/** An error in a line, with the job and the key that it names. */
function describeError(error: unknown): string {
  if (!GenError.isInstance(error)) return error instanceof Error ? error.message : String(error);
  const { jobId, idempotencyKey } = error.toJSON();
  const names = [typeof jobId === 'string' && `job ${jobId}`, idempotencyKey && `idempotency key ${idempotencyKey}`];
  const known = names.filter(Boolean).join(', ');
  return known === '' ? error.message : `${error.message} (${known})`;
}

/** The job as metadata: plain JSON, what is unknown left out. */
export function jobMetadata(job: Job, made: { readonly idempotencyKey?: string | undefined } = {}): OutputMetadata {
  const facts = {
    jobId: job.id,
    status: job.status,
    modelId: job.modelId,
    quotedTokenCost: job.quotedTokenCost,
    finalTokenCost: job.finalTokenCost,
    idempotencyKey: made.idempotencyKey,
  };
  const known = Object.entries(facts).filter((fact): fact is [string, string | number] => fact[1] != null);
  return Object.fromEntries(known);
}

/** The service's own warnings on a create, in the AI SDK's form. */
export function serviceWarnings(created: CreatedJob): SharedV4Warning[] {
  return created.warnings.map((message) => ({ type: 'other', message }));
}

/** The `response` part of a result: the service's answers are many, so it has no headers of one. */
export function responseMetadata(modelId: string): { timestamp: Date; modelId: string; headers: undefined } {
  return { timestamp: new Date(systemClock.now()), modelId, headers: undefined };
}

/** The calls that share a headers object, and how many of them run. */
interface CallGroup {
  readonly base: string;
  inFlight: number;
}

type CallHeaders = Record<string, string | undefined> | undefined;

/**
 * Gives each output its own key, and a repeated call the same keys.
 *
 * The core splits a call into parts that run side by side, and repeats a failed part. All parts of a `doGenerate` share one
 * headers object. For `doStart` the core copies the headers, but passes on the caller's `providerOptions`. So calls that
 * share the object and overlap are parts and get different keys. A later one is a repeat and gets the first one's.
 */
export function createOutputKeys() {
  const groups = new WeakMap<object, CallGroup>();
  /** Runs one call with its keys. They are chosen before anything is awaited, because parts arrive together. */
  return async <T>(
    { headers, n, shared }: { readonly headers?: CallHeaders; readonly n: number; readonly shared: object | undefined },
    ownKey: string | undefined,
    run: (keys: readonly string[]) => Promise<T>,
  ): Promise<T> => {
    const known = shared && groups.get(shared);
    const group = known ?? { base: ownKey ?? keyFromHeaders(headers) ?? systemRandom.uuid(), inFlight: 0 };
    if (shared) groups.set(shared, group);
    const part = group.inFlight++;
    const prefix = part === 0 ? group.base : `${group.base}:part-${part + 1}`;
    try {
      return await run(Array.from({ length: n }, (_, at) => (at === 0 ? prefix : `${prefix}:${at + 1}`)));
    } finally {
      group.inFlight--;
    }
  };
}

/** The `Idempotency-Key` among the headers, whatever its case. */
function keyFromHeaders(headers: CallHeaders): string | undefined {
  return Object.entries(headers ?? {}).find(([name]) => name.toLowerCase() === 'idempotency-key')?.[1];
}

/** The headers that go to the service with each request: without the key, which each output has its own of. */
export function plainHeaders(headers: CallHeaders): Record<string, string> {
  const kept = Object.entries(headers ?? {}).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && entry[0].toLowerCase() !== 'idempotency-key',
  );
  return Object.fromEntries(kept);
}
