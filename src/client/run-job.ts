// Runs a create and the wait for its job.
import { withKey } from '../errors/gen-error.js';
import { JobError, WaitTimeoutError } from '../errors/index.js';
import { mayHaveCreated } from '../rules/failure-kind.js';
import { DEFAULT_WAIT_MS } from '../rules/limits.js';
import { checkOptions } from '../rules/options.js';
import { requireParams } from '../rules/preflight.js';
import { type RunRules, startRun } from '../rules/run-state.js';
import { nextTurn } from '../runtime/clock.js';
import { isFields } from '../schemas/envelope.js';
import type { CreatedJob, Job } from '../schemas/job.js';
import { type CreateRun, endRun } from '../transport/create-run.js';
import { idempotencyKeyOf, shortenKey } from '../transport/idempotency.js';
import type { JsonRequest, RequestFiles } from '../transport/transport.js';
import { recoverRules } from '../waiting/wait-options.js';
import { CREATE_AND_WAIT_OPTIONS, CREATE_CALL_OPTIONS, type CreateOptions } from './create-options.js';
import { type CreateDependencies, cleanUpFiles, filesInBody } from './endpoint.js';
import { executeRun } from './execute-run.js';

/** Creates a job and waits for it. The idempotency key is available immediately, even if the call is aborted. */
export function startJobRun(
  dependencies: CreateDependencies,
  request: JsonRequest<CreatedJob>,
  options: CreateOptions = {},
): { readonly idempotencyKey?: string; readonly job: Promise<Job> } {
  try {
    if (options === null) checkOptions(request.name, CREATE_CALL_OPTIONS, options);
    requireParams(request.body);
    // Throw for an invalid key. If it were replaced, a repeated call would create and charge another job.
    const key = idempotencyKeyOf(options.idempotencyKey, request.body, dependencies.transport.random);
    return { idempotencyKey: key, job: runJob(dependencies, request, key, options) };
  } catch (error) {
    return { job: Promise.reject(error) };
  }
}

/** Executes the run. Its keys replace a key in the body. */
async function runJob(
  dependencies: CreateDependencies,
  request: JsonRequest<CreatedJob>,
  key: string,
  options: CreateOptions,
): Promise<Job> {
  const { idempotency_key: bodyKey, ...body } = isFields(request.body) ? request.body : {};
  const rules = runRulesOf(options);
  const run: CreateRun = { key, rules, hasOwnKey: (options.idempotencyKey ?? bodyKey) !== undefined, creates: [] };
  const state = startRun({ key, shortKey: shortenKey(key), rules });
  const files = filesInBody(dependencies.uploads, request);
  const settleFiles = () => (options.cleanup === 'after-job' ? files?.remove() : files?.markUsed());
  let mayUseFiles = false;
  const requestFiles: RequestFiles | undefined = files && {
    ...files,
    onSuccess() {
      mayUseFiles = true;
    },
    async onFailure(error, wasSent) {
      mayUseFiles = wasSent && mayHaveCreated(error);
    },
  };
  try {
    checkOptions('createAndWait', CREATE_AND_WAIT_OPTIONS, options);
    const job = await executeRun(dependencies, { ...request, body, files: requestFiles, run }, state, options);
    await settleFiles();
    await endRun(run, true, options);
    return job;
  } catch (error) {
    const isOutcome = JobError.isInstance(error);
    await (isOutcome ? settleFiles() : cleanUpFiles(files, error, mayUseFiles));
    // Record delivery on the next tick. If the program crashes first, it gets the outcome again.
    if (isOutcome) void nextTurn().then(() => endRun(run, true));
    else await endRun(run, !WaitTimeoutError.isInstance(error) && !mayHaveCreated(error), options);
    throw withKey(error, key);
  }
}

function runRulesOf({ timeoutMs = DEFAULT_WAIT_MS, resubmitPending = true, recover }: CreateOptions): RunRules {
  return {
    timeoutMs: timeoutMs === false ? null : timeoutMs,
    resubmitPending,
    recover: recoverRules(recover),
  };
}
