import { type CreateAndWaitOptions, createAndWait } from '../polling/create-and-wait.js';
import type { CreateStep } from '../polling/run-state.js';
import type { Waiter } from '../polling/wait-for-job.js';
import type { CreatedJob } from '../schemas/created-job.js';
import { isFields } from '../schemas/envelope.js';
import type { CompletedJob, Job } from '../schemas/job.js';
import type { RequestOptions } from '../schemas/request-options.js';
import { idempotencyKeyOf } from '../transport/idempotency.js';
import type { JsonRequest, ShownJob, Transport } from '../transport/transport.js';
import { decodeCreatedJob } from './decode.js';
import { shortenKey } from './run-calls.js';

/** What `createAndWait` takes: the options of the call, of the wait (whose `timeoutMs` counts) and of the resubmission. */
export type CreateOptions = Omit<RequestOptions, 'timeoutMs'> & CreateAndWaitOptions;

/** What a resource needs to make jobs and wait for them. */
export interface JobMaker {
  readonly transport: Transport;
  readonly waiter: Waiter;
}

/** A POST that makes a job. */
export function jobRequest(
  request: Pick<JsonRequest<CreatedJob>, 'name' | 'call' | 'path' | 'body' | 'lane' | 'check'>,
): JsonRequest<CreatedJob> {
  return { method: 'POST', creates: true, decode: decodeCreatedJob, shows, ...request };
}

function shows({ job, quoted_token_cost, balance_tokens }: CreatedJob): ShownJob {
  return { job, quotedTokens: quoted_token_cost, balanceTokens: balance_tokens };
}

/** What a wait gives: a completed job, or any final one where `throwOnFailure` is false. */
export type FinalJob<Throws extends boolean> = Throws extends false ? Job : CompletedJob;

/** The options of `createAndWait` with the value of `throwOnFailure` seen by the compiler. */
export type CreateOptionsOf<Throws extends boolean> = CreateOptions & { readonly throwOnFailure?: Throws | undefined };

/**
 * Sends `request` and waits for its job. A create may fail long before its caller comes to await it: that must not be an
 * unhandled rejection, which would end the process in spite of the caller's `try`.
 */
export function createAndAwait<Throws extends boolean>(
  maker: JobMaker,
  request: JsonRequest<CreatedJob>,
  options?: CreateOptionsOf<Throws>,
): Promise<FinalJob<Throws>> {
  const job = keyedCreate(maker, request, options);
  job.catch(() => {});
  return job;
}

/** The keys of the run replace one that stands in the body. */
async function keyedCreate<Throws extends boolean>(
  { transport, waiter }: JobMaker,
  request: JsonRequest<CreatedJob>,
  options: CreateOptionsOf<Throws> = {},
): Promise<FinalJob<Throws>> {
  const { idempotency_key, ...body } = isFields(request.body) ? request.body : {};
  const { signal, maxRetries, headers, preflight, budget } = options;
  const create = ({ key: idempotencyKey, model, isSecondKey }: CreateStep) =>
    transport.send(
      { ...request, body: model === null ? body : { ...body, model }, ...(isSecondKey && { neverWaits: true }) },
      { signal, maxRetries, headers, preflight, budget, idempotencyKey },
    );
  // A key that cannot be right is refused, and never left out.
  const isGiven = options.idempotencyKey !== undefined || idempotency_key !== undefined;
  const idempotencyKey = isGiven ? idempotencyKeyOf(options.idempotencyKey, request.body) : undefined;
  const ports = { create, waiter, shortenKey };
  const job: Job = await createAndWait(ports, { ...options, idempotencyKey });
  return job as FinalJob<Throws>;
}
