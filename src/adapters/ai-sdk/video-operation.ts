import type {
  Experimental_VideoModelV4OperationStartResult,
  Experimental_VideoModelV4OperationStatusResult,
  JSONValue,
} from '@ai-sdk/provider';
import type { GenClient } from '../../client/client.js';
import { APIError, GenError } from '../../errors/index.js';
import { pollFailure } from '../../rules/failure-kind.js';
import { systemClock } from '../../runtime/clock.js';
import { isFields } from '../../schemas/envelope.js';
import { isFinal, type Job } from '../../schemas/job.js';
import { waitTimeoutError } from '../../waiting/wait.js';
import {
  jobMetadata,
  type KeyedCall,
  type Output,
  plainHeaders,
  readOutput,
  responseMetadata,
  serviceWarnings,
  settleOutputs,
} from './outputs.js';
import type { VideoCall } from './settings.js';

/** The operation that `experimental_startVideo` returns. Any process can pass it to `experimental_getVideoStatus`. */
interface Operation {
  readonly jobIds: readonly string[];
  readonly idempotencyKeys: readonly (string | undefined)[];
  /** If true, the core polls only once, after the webhook, and treats "pending" as a failure. */
  readonly webhook: boolean;
  readonly pollIntervalMs?: number;
  /** Deadline of the wait, in milliseconds since the epoch, and its timeout. */
  readonly limit?: { readonly untilMs: number; readonly timeoutMs: number };
}

/** Creates one job per key. Returns the created jobs even if others were rejected. */
export async function startJobs(
  client: GenClient,
  modelId: string,
  video: KeyedCall<VideoCall>,
): Promise<Experimental_VideoModelV4OperationStartResult> {
  const { keys, call } = video;
  const { maxRetries, preflight, label, timeoutMs, pollIntervalMs } = video.parsed.options;
  const options = {
    ...(maxRetries !== undefined && { maxRetries }),
    ...(preflight !== undefined && { preflight }),
    ...(label !== undefined && { label }),
    headers: plainHeaders(call.headers),
    signal: call.abortSignal,
  };
  const tasks = keys.map(async (idempotencyKey) => ({
    done: await client.videos.create(video.body as never, { ...options, idempotencyKey }),
  }));
  const { done, warnings } = await settleOutputs(tasks, call.abortSignal);
  return {
    operation: {
      jobIds: done.map(({ job }) => job.id),
      idempotencyKeys: done.map((created) => created.idempotencyKey),
      webhook: call.webhookUrl !== undefined,
      ...(pollIntervalMs !== undefined && { pollIntervalMs }),
      ...(typeof timeoutMs === 'number' && { limit: { untilMs: systemClock.now() + timeoutMs, timeoutMs } }),
    },
    warnings: [...video.warnings, ...done.flatMap(serviceWarnings), ...warnings],
    // Not `videos`, because the core appends the final `videos` to it, so each job would appear twice.
    providerMetadata: { gen: { jobs: done.map((created) => jobMetadata(created.job, created)) } },
    response: responseMetadata(modelId),
  };
}

/**
 * Polls an operation. If a poll fails but a later one can succeed, returns "pending", because the jobs are paid. If no
 * job completed, throws the JobError of one of them.
 */
export async function operationStatus(
  client: GenClient,
  modelId: string,
  request: { readonly operation: JSONValue; readonly signal: AbortSignal | undefined },
): Promise<Experimental_VideoModelV4OperationStatusResult> {
  const operation = readOperation(request.operation);
  const { jobIds, idempotencyKeys } = operation;
  const { signal } = request;
  const jobs = await Promise.all(jobIds.map((id) => pollJob(client, id, { operation, signal })));
  const keyOf = (at: number) => ({ idempotencyKey: idempotencyKeys[at] });
  const finalJobs = jobs.filter((job) => job !== undefined).filter(isFinal);
  if (finalJobs.length < jobs.length) {
    const metadata = jobs.flatMap((job, at) => (job === undefined ? [] : [jobMetadata(job, keyOf(at))]));
    return {
      status: 'pending',
      ...(metadata.length === jobs.length && { providerMetadata: { gen: { jobs: metadata } } }),
      response: responseMetadata(modelId),
    };
  }
  const outcomes = finalJobs.map(async (job, at) => {
    const completed = await client.waitForJob(job, { signal });
    return readOutput(client, completed, { mediaType: 'video', signal, ...keyOf(at) });
  });
  const { done, warnings, missing } = await settleOutputs(outcomes, signal);
  return {
    status: 'completed',
    videos: done.map(toVideo),
    warnings: [...warnings],
    providerMetadata: { gen: { videos: [...done.map((output) => output.metadata), ...missing] } },
    response: responseMetadata(modelId),
  };
}

export function toVideo(output: Output): { type: 'binary'; data: Uint8Array; mediaType: string } {
  return { type: 'binary', data: output.bytes, mediaType: output.mediaType };
}

/** Polls a job. Returns undefined if the poll failed but a later one can succeed. */
async function pollJob(
  client: GenClient,
  id: string,
  { operation, signal }: { readonly operation: Operation; readonly signal: AbortSignal | undefined },
): Promise<Job | undefined> {
  const { webhook, limit, pollIntervalMs } = operation;
  const remainingMs = limit && Math.max(1, limit.untilMs - systemClock.now());
  if (webhook) return client.waitForJob(id, { signal, pollIntervalMs, timeoutMs: remainingMs, throwOnFailure: false });
  const job = await client.jobs.get(id, { signal }).catch((error: unknown) => {
    signal?.throwIfAborted();
    const kind = pollFailure(error)?.kind;
    if (kind === 'lost' || kind === 'throttled') return undefined;
    if (GenError.isInstance(error) && APIError.isInstance(error)) error.message = `Job ${id}: ${error.message}`;
    throw error;
  });
  const isExpired = limit !== undefined && limit.untilMs <= systemClock.now() && !(job && isFinal(job));
  if (isExpired) throw waitTimeoutError({ id, job, timeoutMs: limit.timeoutMs, cause: undefined });
  return job;
}

function readOperation(operation: JSONValue): Operation {
  const { jobIds } = isFields(operation) ? operation : {};
  if (Array.isArray(jobIds) && jobIds.length > 0) return operation as object as Operation;
  throw new GenError('operation must be what experimental_startVideo returned for this provider: { jobIds, webhook }.');
}
