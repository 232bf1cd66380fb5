// Calls of detached runs, which wait outside of this process: those of queue workers and durable workflows.
import { GenError } from '../errors/index.js';
import { type CallFailure, callFailure, pollFailure } from '../rules/failure-kind.js';
import type { RequestOptions } from '../rules/options.js';
import type { Recover, RunEvent, RunRules } from '../rules/run-state.js';
import { invalidValueMessage } from '../schemas/format-value.js';
import type { CreatedJob, Job, JobCall } from '../schemas/job.js';
import { DETACHED, type DetachedCall } from '../transport/call.js';
import { recoverRules } from '../waiting/wait-options.js';

/** Throws a GenError if `client` is not a GenClient. Call it before you open anything. */
export function checkClient(owner: string, client: unknown): void {
  const isClient =
    typeof client === 'object' && client !== null && typeof Reflect.get(client, 'withOptions') === 'function';
  if (!isClient) throw new GenError(invalidValueMessage(`${owner}: client`, 'a GenClient', client));
}

/** Returns the rules of a run that continues after its process restarts. */
export function detachedRules({
  timeoutMs,
  recover,
  stores = false,
  retryMs = null,
}: {
  readonly timeoutMs: number | false;
  readonly recover: Recover | undefined;
  readonly stores?: boolean;
  readonly retryMs?: number | null;
}): RunRules {
  return {
    timeoutMs: timeoutMs === false || timeoutMs === Number.POSITIVE_INFINITY ? null : timeoutMs,
    resubmitPending: true,
    recover: recoverRules(recover),
    stores,
    retryMs,
  };
}

export interface RunCreate {
  readonly call: JobCall;
  readonly params: Readonly<Record<string, unknown>>;
  readonly key: string;
  /** Model that replaces the one in the params, or null to keep it. */
  readonly model: string | null;
}

type Creator = { create(params: never, options?: RequestOptions): PromiseLike<CreatedJob> };

/**
 * Sends a detached run's create. The run's key replaces the one in the body. If no slot is free, rejects with a
 * RateLimitError that contains the time until one is. The run retains its position in the queue.
 */
export async function sendRunCreate(
  client: { readonly [Call in JobCall]: Creator },
  { call, params, key: idempotencyKey, model }: RunCreate,
  options: RequestOptions = {},
  detached: DetachedCall = {},
): Promise<CreatedJob> {
  const { idempotency_key: _, ...body } = params;
  const create = { ...body, ...(model !== null && { model }) };
  const runOptions = { idempotencyKey, [DETACHED]: detached };
  return client[call].create(create as never, { ...options, ...runOptions } as RequestOptions);
}

/** Result of a call: the event for its run, and the job or error, which aren't stored. */
export interface StepResult {
  readonly event: RunEvent;
  readonly job?: Job;
  readonly error?: unknown;
}

/** Sends a create, and returns its job or its interpreted failure. Throws any other error, such as an abort. */
export function createResultOf(create: () => PromiseLike<Job>): Promise<StepResult> {
  return resultOf(create, callFailure);
}

/**
 * Polls a detached run's job, and returns it, or a failure interpreted as a wait does. If no slot is free, the failure
 * contains the time until one is.
 */
export function pollRunJob(
  client: { readonly jobs: { get(id: string, options?: RequestOptions): PromiseLike<Job> } },
  jobId: string,
  options: RequestOptions = {},
  detached: DetachedCall = {},
): Promise<StepResult> {
  return resultOf(() => client.jobs.get(jobId, { ...options, [DETACHED]: detached } as RequestOptions), pollFailure);
}

async function resultOf(
  call: () => PromiseLike<Job>,
  failureOf: (error: unknown) => CallFailure | undefined,
): Promise<StepResult> {
  try {
    const job = await call();
    return { event: { type: 'job', job }, job };
  } catch (error) {
    const failure = failureOf(error);
    if (failure === undefined) throw error;
    return { event: { type: 'failed', failure }, error };
  }
}
