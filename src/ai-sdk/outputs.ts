import type { SharedV4Warning } from '@ai-sdk/provider';
import type { GenClient } from '../client.js';
import { systemClock } from '../clock.js';
import type { CreatedJob } from '../schemas/created-job.js';
import type { CompletedJob, Job } from '../schemas/job.js';

/** One finished file with the job that made it. */
export interface Output {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly mediaType: string;
  readonly metadata: OutputMetadata;
}

/** What `providerMetadata.gen` says of each output: the job and what it cost. */
export type OutputMetadata = Record<string, string | number>;

/** What a call with several outputs came to. */
export interface Settled<T> {
  readonly done: readonly T[];
  readonly warnings: readonly SharedV4Warning[];
}

/**
 * Lets every output come to its end. Those that succeeded are paid for and are given back even when others failed; each
 * failure is a warning then. When all failed, or the caller aborted, the first failure is thrown as it is.
 */
export async function settle<T>(tasks: readonly Promise<T>[], signal: AbortSignal | undefined): Promise<Settled<T>> {
  const results = await Promise.allSettled(tasks);
  signal?.throwIfAborted();
  const done = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  const failures: unknown[] = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
  if (done.length === 0) throw failures[0];
  return {
    done,
    warnings: failures.map((failure) => ({
      type: 'other',
      message: `One of ${tasks.length} outputs failed: ${failure instanceof Error ? failure.message : String(failure)}`,
    })),
  };
}

/** The finished file of a job, read whole. */
export async function readOutput(client: GenClient, job: CompletedJob, options: ReadOptions): Promise<Output> {
  const response = await client.jobs.output(job, {}, { signal: options.signal });
  const fallback = options.created.mediaType === 'image' ? 'image/png' : 'video/mp4';
  return {
    bytes: new Uint8Array(await response.arrayBuffer()),
    mediaType: response.headers.get('content-type') ?? fallback,
    metadata: describeJob(job, options.created),
  };
}

/** What goes along with a job on its way to a file. */
export interface ReadOptions {
  readonly signal: AbortSignal | undefined;
  readonly created: { readonly mediaType: 'image' | 'video'; readonly idempotencyKey?: string | undefined };
}

/** The job as metadata: plain JSON, what is unknown left out. */
export function describeJob(job: Job, made: { readonly idempotencyKey?: string | undefined } = {}): OutputMetadata {
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
export function responseOf(modelId: string): { timestamp: Date; modelId: string; headers: undefined } {
  return { timestamp: new Date(systemClock.now()), modelId, headers: undefined };
}
