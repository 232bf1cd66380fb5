// A create and the wait for its end, as one run: of a call, or of what a crash has left of one.
import { withKey } from '../errors/gen-error.js';
import { JobError } from '../errors/index.js';
import { mayHaveCreated } from '../rules/fate.js';
import type { CreateEntry } from '../rules/ledger-entry.js';
import { resumedRun } from '../rules/resumed-run.js';
import type { CreateStep } from '../rules/run-state.js';
import { nextTurn } from '../runtime/clock.js';
import { isFields } from '../schemas/envelope.js';
import type { CreatedJob, Job } from '../schemas/job.js';
import { idempotencyKeyOf, shortenKey } from '../transport/idempotency.js';
import { endRun, keepRun, type OpenedCreate, type RunOfCreates } from '../transport/opened-create.js';
import type { JsonRequest } from '../transport/transport.js';
import { createAndWait, runRulesOf } from '../waiting/wait-for-job.js';
import type { CreateOptions } from './create-options.js';
import { createRequest, filesInBody, type JobMaker, leaveFiles } from './create-request.js';

/** Creates a job and waits for it. The keys of the run replace one that stands in the body. */
export async function runJob(
  { transport, waiter, uploads }: JobMaker,
  request: JsonRequest<CreatedJob>,
  options: CreateOptions & { readonly throwOnFailure?: boolean | undefined },
): Promise<Job> {
  const { idempotency_key: ownKey, ...body } = isFields(request.body) ? request.body : {};
  // A key that cannot be right is refused, and never left out.
  const key = idempotencyKeyOf(options.idempotencyKey, request.body, transport.random);
  const files = filesInBody(uploads, request);
  const hasOwnKey = (options.idempotencyKey ?? ownKey) !== undefined;
  const run: RunOfCreates = { key, rules: runRulesOf(options), hasOwnKey, opened: [] };
  // Whether a job may be running that uses the files.
  let mayRun = false;
  const failed = async (error: unknown, wasSent: boolean) => {
    mayRun = wasSent && mayHaveCreated(error);
  };
  const call = callOptions(options);
  const create = (waits: Promise<void>) => (step: CreateStep) => {
    mayRun = true;
    return sendStep(transport, { ...request, body, files: files && { ...files, failed }, run, waits }, step, call);
  };
  try {
    const job = await inOneTrace((waits) => {
      const ports = { create: create(waits), waiter, key, shortKey: shortenKey(key) };
      return createAndWait({ ...ports, keep: (state) => keepRun(run, state) }, options);
    });
    if (options.cleanup === 'after-job') await files?.remove();
    else files?.keep();
    await endRun(run, true);
    return job;
  } catch (error) {
    if (!JobError.isInstance(error)) await leaveFiles(files, error, mayRun);
    else if (options.cleanup === 'after-job') await files?.remove();
    else files?.keep();
    // The entry ends once the program has the outcome: one that dies before gets it again.
    if (isOutcome(error)) void nextTurn().then(() => endRun(run, true));
    else await endRun(run, false);
    throw withKey(error, key);
  }
}

/** How the run of an entry is resumed. */
export interface ResumedRun extends Pick<CreateOptions, 'signal' | 'pollIntervalMs' | 'onUpdate'> {
  /** Milliseconds for the rest of the run; false for no limit. */
  readonly timeoutMs: number | false;
}

/** Goes on with the run of a create that a process has left. Resolves with its final job, whatever its status. */
export async function resumeRunOf(
  { transport, waiter }: JobMaker,
  entry: CreateEntry,
  held: OpenedCreate,
  options: ResumedRun,
): Promise<Job> {
  const { key, label, signal } = { ...entry, ...options };
  const run: RunOfCreates = { key, rules: entry.rules, hasOwnKey: false, opened: [held] };
  const request = createRequest(entry.call, entry.params ?? {});
  // The rules have looked at the params when the create was first sent.
  const call = { signal, label, preflight: false };
  const state = resumedRun(entry, shortenKey(key), options.timeoutMs === false ? null : options.timeoutMs);
  try {
    return await inOneTrace((waits) => {
      const create = (step: CreateStep) => sendStep(transport, { ...request, run, waits }, step, call);
      const ports = { create, waiter, key, shortKey: shortenKey(key), run: state };
      return createAndWait({ ...ports, keep: (after) => keepRun(run, after) }, { ...options, throwOnFailure: false });
    });
  } finally {
    await endRun(run, false);
  }
}

/** Whether the error is the outcome of the run itself, and not the end of the wait for it. */
function isOutcome(error: unknown): boolean {
  return JobError.isInstance(error) && error.name !== 'WaitTimeoutError';
}

/** The options that each create of a run takes from its call. */
function callOptions({
  signal,
  maxRetries,
  headers,
  extraBody,
  preflight,
  budget,
  onUploadProgress,
  label,
}: CreateOptions) {
  return { signal, maxRetries, headers, extraBody, preflight, budget, onUploadProgress, label };
}

function sendStep(
  transport: JobMaker['transport'],
  request: JsonRequest<CreatedJob>,
  { key: idempotencyKey, model, isSecondKey }: CreateStep,
  options: object,
): Promise<CreatedJob> {
  const body = model === null || !isFields(request.body) ? request.body : { ...request.body, model };
  const sent: JsonRequest<CreatedJob> = {
    ...request,
    body,
    options: 'checked',
    ...(isSecondKey && { neverWaits: true }),
  };
  return transport.send(sent, { ...options, idempotencyKey });
}

/** Does the work of a run, whose creates are traced until it is over. */
async function inOneTrace<T>(work: (waits: Promise<void>) => Promise<T>): Promise<T> {
  let settle = () => {};
  const waits = new Promise<void>((resolve) => {
    settle = resolve;
  });
  return work(waits).finally(() => settle());
}
