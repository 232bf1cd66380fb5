import { JobError } from '../errors/index.js';
import { callFailure } from '../polling/call-failure.js';
import { createAndWait } from '../polling/create-and-wait.js';
import type { CreateStep } from '../polling/run-state.js';
import type { Waiter } from '../polling/wait-for-job.js';
import type { CreatedJob } from '../schemas/created-job.js';
import { isFields } from '../schemas/envelope.js';
import type { CompletedJob, Job } from '../schemas/job.js';
import { idempotencyKeyOf } from '../transport/idempotency.js';
import type { RequestPromise } from '../transport/request-promise.js';
import type { JsonRequest, ShownJob, Transport } from '../transport/transport.js';
import { type BodyFiles, filesIn } from '../uploading/body-files.js';
import type { UploadSteps } from '../uploading/upload.js';
import { CREATE_CALL_OPTIONS, type CreateCallOptions, type CreateOptions } from './create-options.js';
import { decodeCreatedJob } from './decode.js';
import { shortenKey } from './run-calls.js';

/** What a resource needs to make jobs and wait for them. */
export interface JobMaker {
  readonly transport: Transport;
  readonly waiter: Waiter;
  readonly uploads: UploadSteps;
}

/** Sends a create. Files in its body are uploaded first, and deleted where it is certain that nothing was made of them. */
export function sendCreate<T>(
  { transport, uploads }: JobMaker,
  request: JsonRequest<T>,
  options: CreateCallOptions | undefined,
): RequestPromise<T> {
  const files = filesOf(uploads, request);
  const failed = async (error: unknown) => {
    if (madeNothing(error)) await files?.remove();
  };
  return transport.send(
    { ...request, options: CREATE_CALL_OPTIONS, files: files && { copy: files.copy, upload: files.upload, failed } },
    options,
  );
}

function filesOf(uploads: UploadSteps, { name, body }: JsonRequest<unknown>): BodyFiles | undefined {
  return filesIn(uploads, body, name.startsWith('characters.') ? 'character' : undefined);
}

/** Whether the error of a create says for certain that it made nothing. An answer that was lost says nothing. */
function madeNothing(error: unknown): boolean {
  const failure = callFailure(error);
  return failure !== undefined && failure.kind !== 'lost';
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
  { transport, waiter, uploads }: JobMaker,
  request: JsonRequest<CreatedJob>,
  options: CreateOptionsOf<Throws> = {},
): Promise<FinalJob<Throws>> {
  const { idempotency_key, ...body } = isFields(request.body) ? request.body : {};
  const { signal, maxRetries, headers, preflight, budget, onUploadProgress, cleanup } = options;
  const files = filesOf(uploads, request);
  const call = (idempotencyKey: string): CreateCallOptions => ({
    signal,
    maxRetries,
    headers,
    preflight,
    budget,
    idempotencyKey,
    onUploadProgress,
  });
  // Whether a job may be running that uses the files.
  let mayRun = false;
  const create = async ({ key: idempotencyKey, model, isSecondKey }: CreateStep) => {
    const sent = { ...request, body: model === null ? body : { ...body, model }, options: CREATE_CALL_OPTIONS, files };
    mayRun = true;
    try {
      return await transport.send(isSecondKey ? { ...sent, neverWaits: true } : sent, call(idempotencyKey));
    } catch (error) {
      mayRun = !madeNothing(error);
      throw error;
    }
  };
  // A key that cannot be right is refused, and never left out.
  const isGiven = options.idempotencyKey !== undefined || idempotency_key !== undefined;
  const idempotencyKey = isGiven ? idempotencyKeyOf(options.idempotencyKey, request.body) : undefined;
  const ports = { create, waiter, shortenKey };
  try {
    const job: Job = await createAndWait(ports, { ...options, idempotencyKey });
    if (cleanup === 'after-job') await files?.remove();
    return job as FinalJob<Throws>;
  } catch (error) {
    if (JobError.isInstance(error) ? cleanup === 'after-job' : !mayRun) await files?.remove();
    throw error;
  }
}
