import type {
  Experimental_VideoModelV4OperationStartResult,
  Experimental_VideoModelV4OperationStatusResult,
  JSONValue,
} from '@ai-sdk/provider';
import type { GenClient } from '../client.js';
import { GenError } from '../errors/index.js';
import type { Job } from '../schemas/job.js';
import { isFinal } from '../schemas/job.js';
import { describeJob, type Output, readOutput, responseOf, serviceWarnings, settle } from './outputs.js';
import type { PreparedVideo } from './video-call.js';

/** What `experimental_startVideo` gives and `experimental_getVideoStatus` takes, in any process. */
interface Operation {
  readonly jobIds: readonly string[];
  /** The core reads an operation once after its webhook, and takes "pending" for a failure then. */
  readonly webhook: boolean;
}

/** Starts one job for each key. Jobs that were made count even when others were refused. */
export async function startJobs(
  client: GenClient,
  modelId: string,
  start: { readonly video: PreparedVideo; readonly keys: readonly string[]; readonly call: StartCall },
): Promise<Experimental_VideoModelV4OperationStartResult> {
  const { video, keys, call } = start;
  const tasks = keys.map((idempotencyKey) =>
    client.videos.create(video.body as never, { idempotencyKey, headers: call.headers, signal: call.signal }),
  );
  const { done, warnings } = await settle(tasks, call.signal);
  const operation = { jobIds: done.map(({ job }) => job.id), webhook: call.webhook };
  return {
    operation,
    warnings: [...video.warnings, ...done.flatMap(serviceWarnings), ...warnings],
    providerMetadata: { gen: { videos: done.map((created) => describeJob(created.job, created)) } },
    response: responseOf(modelId),
  };
}

/** What a start takes from the call beside the body. */
export interface StartCall {
  readonly headers: Record<string, string>;
  readonly signal: AbortSignal | undefined;
  readonly webhook: boolean;
}

/**
 * Reads where an operation stands. A read that fails is "pending" and not the end: the jobs are paid for. Jobs that
 * ended otherwise throw their own JobError when none completed.
 */
export async function operationStatus(
  client: GenClient,
  modelId: string,
  asked: { readonly operation: JSONValue; readonly signal: AbortSignal | undefined },
): Promise<Experimental_VideoModelV4OperationStatusResult> {
  const { jobIds, webhook } = readOperation(asked.operation);
  const response = responseOf(modelId);
  const { signal } = asked;
  const jobs = await Promise.all(
    jobIds.map((id) =>
      webhook ? client.waitForJob(id, { signal, throwOnFailure: false }) : client.jobs.get(id, { signal }),
    ),
  );
  const videos = jobs.map((job) => describeJob(job));
  if (!jobs.every(isFinal)) return { status: 'pending', providerMetadata: { gen: { videos } }, response };
  const { done, warnings } = await settle(
    jobs.map((job) => finish(client, job, signal)),
    signal,
  );
  return {
    status: 'completed',
    videos: done.map(toVideo),
    warnings: [...warnings],
    providerMetadata: { gen: { videos: done.map((output) => output.metadata) } },
    response,
  };
}

/** An output in the core's form. */
export function toVideo(output: Output): { type: 'binary'; data: Uint8Array; mediaType: string } {
  return { type: 'binary', data: output.bytes, mediaType: output.mediaType };
}

async function finish(client: GenClient, job: Job, signal: AbortSignal | undefined): Promise<Output> {
  const completed = await client.waitForJob(job, { signal });
  return readOutput(client, completed, { signal, created: { mediaType: 'video' } });
}

function readOperation(operation: JSONValue): Operation {
  if (typeof operation === 'object' && operation !== null && 'jobIds' in operation) {
    const { jobIds, webhook } = operation;
    if (Array.isArray(jobIds) && jobIds.length > 0 && jobIds.every((id) => typeof id === 'string')) {
      return { jobIds, webhook: webhook === true };
    }
  }
  throw new GenError('operation must be what experimental_startVideo gave for this provider: { jobIds, webhook }.');
}
