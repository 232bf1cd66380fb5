import type { ImageModelV4CallOptions, SharedV4Warning } from '@ai-sdk/provider';
import type { GenClient } from '../../client/client.js';
import type { CreateOptions } from '../../client/create-options.js';
import { APIError, DownloadError, GenError, JobError, PreflightError, WaitTimeoutError } from '../../errors/index.js';
import { systemClock, systemRandom } from '../../runtime/clock.js';
import type { CompletedJob, CreatedJob, Job } from '../../schemas/job.js';
import type { PreparedCall, VideoCall } from './settings.js';

/** A finished file and its job. */
export interface Output {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly mediaType: string;
  readonly metadata: OutputMetadata;
}

/** An output's entry in `providerMetadata.gen`: its job, its cost, and any error. */
type OutputMetadata = Record<string, string | number>;

/** An output, or the error that prevented it. `paid` describes the job if it was charged anyway. */
export type OutputOutcome<T> =
  | { readonly done: T }
  | { readonly error: unknown; readonly paid?: OutputMetadata | undefined };

/** The outputs of a call. */
interface SettledOutputs<T> {
  readonly done: readonly T[];
  readonly warnings: readonly SharedV4Warning[];
  /** Paid jobs whose file is missing. */
  readonly missing: readonly OutputMetadata[];
}

/** A call with one key per output. */
export interface KeyedCall<Call> extends PreparedCall {
  readonly call: Call;
  readonly keys: readonly string[];
}

/** Creates one job per key, and downloads its file. */
export async function createOutputs(
  client: GenClient,
  mediaType: 'image' | 'video',
  { body, parsed, call, keys, ...prepared }: KeyedCall<ImageModelV4CallOptions | VideoCall>,
) {
  const warnings = [...prepared.warnings];
  const { abortSignal: signal } = call;
  const createOutput = async (key: string): Promise<OutputOutcome<Output>> => {
    let lastCreated: CreatedJob | undefined;
    const onCreated = (created: CreatedJob) => {
      lastCreated = created;
      warnings.push(...serviceWarnings(created));
    };
    const options: Omit<CreateOptions, 'throwOnFailure'> = {
      ...parsed.options,
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
      return await readOutput(client, job, { mediaType, signal, idempotencyKey: lastCreated?.idempotencyKey ?? key });
    } catch (error) {
      // A failed job isn't charged. A running one is.
      if (lastCreated === undefined || JobError.isInstance(error)) return { error };
      const polled = WaitTimeoutError.isInstance(error) ? error.job : undefined;
      return { error, paid: jobMetadata(polled ?? lastCreated.job, lastCreated) };
    }
  };
  const { done, missing, ...settled } = await settleOutputs(keys.map(createOutput), signal);
  const metadata = [...done.map((output) => output.metadata), ...missing];
  return { done, metadata, warnings: [...warnings, ...settled.warnings] };
}

interface ReadOutputOptions {
  readonly mediaType: 'image' | 'video';
  readonly signal: AbortSignal | undefined;
  readonly idempotencyKey: string | undefined;
}

/** Downloads a job's file. Throws a DownloadError with the job and its key. */
export async function readOutput(
  client: GenClient,
  job: CompletedJob,
  { mediaType, signal, idempotencyKey }: ReadOutputOptions,
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
  const hasCode = DownloadError.isInstance(cause) || APIError.isInstance(cause);
  return new DownloadError(
    `The file of job ${jobId} could not be downloaded: ${reason} The job is paid. Download the file with client.jobs.output(${JSON.stringify(jobId)}).`,
    { jobId, idempotencyKey, code: hasCode ? cause.code : 'interrupted', cause },
  );
}

/**
 * Waits for all outputs. Returns those that succeeded, because they are paid, with a warning for each failure. If all failed
 * or the caller aborted, throws one of the errors, preferably that of a paid job.
 */
export async function settleOutputs<T>(
  outcomes: readonly Promise<OutputOutcome<T>>[],
  signal: AbortSignal | undefined,
): Promise<SettledOutputs<T>> {
  const results = (await Promise.allSettled(outcomes)).map(
    (result): OutputOutcome<T> => (result.status === 'fulfilled' ? result.value : { error: result.reason }),
  );
  signal?.throwIfAborted();
  const done = results.flatMap((result) => ('done' in result ? [result.done] : []));
  const failures = results.flatMap((result) => ('error' in result ? [result] : []));
  const missing = failures.flatMap(({ paid }) => (paid ? [paid] : []));
  if (done.length === 0) throw errorOfCall(failures, missing);
  const warnings = failures.map(({ error }): SharedV4Warning => {
    return { type: 'other', message: `One of ${results.length} outputs failed: ${describeError(error)}` };
  });
  return { done, warnings, missing };
}

/** Returns the error of a call without outputs. Its message lists the paid jobs, because nothing else does. */
function errorOfCall(
  failures: readonly { readonly error: unknown; readonly paid?: OutputMetadata | undefined }[],
  missing: readonly OutputMetadata[],
): unknown {
  const { error, paid } = failures.find((failure) => failure.paid) ?? failures[0] ?? {};
  const others = missing.filter((metadata) => metadata !== paid).map(({ jobId }) => jobId);
  if (others.length > 0 && GenError.isInstance(error)) error.message += ` Also paid: ${others.join(', ')}.`;
  return error;
}

/** Formats an error, its job, and its key in one line. */
function describeError(error: unknown): string {
  if (!GenError.isInstance(error)) return error instanceof Error ? error.message : String(error);
  const { jobId, idempotencyKey } = error.toJSON();
  const parts = [typeof jobId === 'string' && `job ${jobId}`, idempotencyKey && `idempotency key ${idempotencyKey}`];
  const details = parts.filter(Boolean).join(', ');
  return details === '' ? error.message : `${error.message} (${details})`;
}

/** Returns a job's metadata as JSON, without undefined values. */
export function jobMetadata(job: Job, created: { readonly idempotencyKey?: string | undefined } = {}): OutputMetadata {
  const fields = {
    jobId: job.id,
    status: job.status,
    modelId: job.modelId,
    quotedTokenCost: job.quotedTokenCost,
    finalTokenCost: job.finalTokenCost,
    idempotencyKey: created.idempotencyKey,
  };
  const entries = Object.entries(fields).filter((field): field is [string, string | number] => field[1] != null);
  return Object.fromEntries(entries);
}

/** Converts the service's warnings to those of the AI SDK. */
export function serviceWarnings(created: CreatedJob): SharedV4Warning[] {
  return created.warnings.map((message) => ({ type: 'other', message }));
}

/** Returns the `response` of a result, without headers, because a call has several responses. */
export function responseMetadata(modelId: string): { timestamp: Date; modelId: string; headers: undefined } {
  return { timestamp: new Date(systemClock.now()), modelId, headers: undefined };
}

type CallHeaders = Record<string, string | undefined> | undefined;

/** The part of a call that determines its keys. */
interface KeyedCoreCall {
  readonly n: number;
  readonly headers?: CallHeaders;
}

/** Calls that start at the same time. */
interface ConcurrentCalls {
  calls: number;
}

/** Matches a key that the core generated for `doStart`, one for each part of a call. */
const CORE_KEY = /^aisdk_/;

/**
 * Returns a function that chooses a key for each output and runs a call with the keys. With `maxVideosPerCall`, the
 * core splits a call into concurrent parts that share the caller's key. All parts would get the same job, so they are
 * rejected before anything is sent. A generated key is found by the call's objects, because the core retries a failed
 * `doGenerate` with the same ones.
 */
export function createOutputKeys() {
  const starts = new Map<unknown, ConcurrentCalls>();
  const generated = new WeakMap<object, string>();
  return async <T>(
    {
      call,
      optionKey,
      isPart = false,
    }: { readonly call: KeyedCoreCall; readonly optionKey: string | undefined; readonly isPart?: boolean },
    client: () => Promise<GenClient>,
    run: (client: GenClient, keys: readonly string[]) => Promise<T>,
  ): Promise<T> => {
    const { n, headers = call } = call;
    const callerKey = optionKey ?? keyFromHeaders(call.headers);
    const concurrent = starts.get(callerKey ?? headers);
    const start = concurrent ?? { calls: 0 };
    starts.set(callerKey ?? headers, start);
    start.calls++;
    // A middleware may copy the call, but it retains the headers object.
    const repeated = generated.get(call) ?? (concurrent ? undefined : generated.get(headers));
    const key = callerKey ?? repeated ?? systemRandom.uuid();
    for (const object of [call, headers]) if (!generated.has(object)) generated.set(object, key);
    // By the time this resolves, all parts have started.
    const sharedClient = await client().finally(() => starts.delete(callerKey ?? headers));
    const isSplit = start.calls > 1 || (isPart && !CORE_KEY.test(key));
    if (callerKey !== undefined && isSplit) throw splitError(key);
    return run(
      sharedClient,
      Array.from({ length: n }, (_, at) => (at === 0 ? key : `${key}:${at + 1}`)),
    );
  };
}

function splitError(key: string): PreflightError {
  const fix = 'Leave out maxVideosPerCall and maxImagesPerCall: one call creates all n outputs.';
  return new PreflightError(
    `idempotencyKey: several calls with "${key}" started at the same time, so none was sent. ${fix}`,
    { code: 'idempotency_key_reused', param: 'idempotencyKey' },
  );
}

/** Returns the `Idempotency-Key` header. Ignores case. */
function keyFromHeaders(headers: CallHeaders): string | undefined {
  return Object.entries(headers ?? {}).find(([name]) => name.toLowerCase() === 'idempotency-key')?.[1];
}

/** Returns the request headers without the key, because each output has its own. */
export function plainHeaders(headers: CallHeaders): Record<string, string> {
  const plain = Object.entries(headers ?? {}).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && entry[0].toLowerCase() !== 'idempotency-key',
  );
  return Object.fromEntries(plain);
}
