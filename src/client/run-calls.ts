// What the drivers of a run outside of this process (the queue's worker, durable runs) need of the client.
import { GenError } from '../errors/index.js';
import { callFailure } from '../rules/failure-kind.js';
import type { RequestOptions } from '../rules/options.js';
import type { Recover, RunEvent, RunRules } from '../rules/run-state.js';
import type { CreatedJob, Job, JobCall } from '../schemas/job.js';
import { mustBe } from '../schemas/show.js';
import { recoverRules } from '../waiting/wait-options.js';

/** Throws a GenError where `client` is not a GenClient, before anything is opened. */
export function checkClient(owner: string, client: unknown): void {
  const isClient =
    typeof client === 'object' && client !== null && typeof Reflect.get(client, 'withOptions') === 'function';
  if (!isClient) throw new GenError(mustBe(`${owner}: client`, 'a GenClient', client));
}

/** The namespaces whose `create` makes a job. */
export type CallKind = JobCall;

/** The rules of a run that goes on over restarts of its process. */
export function lastingRules({
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
    persistent: true,
    stores,
    pollMs: null,
    retryMs,
  };
}

export interface RunCreate {
  readonly call: CallKind;
  readonly params: Readonly<Record<string, unknown>>;
  readonly key: string;
  /** Replaces the model of the params; null keeps it. */
  readonly model: string | null;
}

/** Sends a create under the key of its run, which replaces one that stands in the body. */
export async function sendRunCreate(
  client: { readonly [Call in CallKind]: { create(params: never, options?: RequestOptions): PromiseLike<CreatedJob> } },
  { call, params, key: idempotencyKey, model }: RunCreate,
  options: RequestOptions = {},
): Promise<CreatedJob> {
  const { idempotency_key: _, ...body } = params;
  const namespace = client[call];
  return namespace.create({ ...body, ...(model !== null && { model }) } as never, { ...options, idempotencyKey });
}

/** What a call to the service came to: the event for its run, and what only this process can know of it. */
export interface SeenCall {
  readonly event: RunEvent;
  readonly job?: Job;
  readonly error?: unknown;
}

/** Makes a call that answers with a job. Throws what is not an error of this package: an abort, a defect. */
export async function seeCall(call: () => PromiseLike<Job>): Promise<SeenCall> {
  try {
    const job = await call();
    return { event: { type: 'job', job }, job };
  } catch (error) {
    const failure = callFailure(error);
    if (failure === undefined) throw error;
    return { event: { type: 'failed', failure }, error };
  }
}
