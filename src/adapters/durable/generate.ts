import { detachedRules } from '../../client/run-calls.js';
import { GenError } from '../../errors/index.js';
import { nextDetachedStep } from '../../rules/detached-run.js';
import { errorJson } from '../../rules/failure-kind.js';
import { DEFAULT_WAIT_MS } from '../../rules/limits.js';
import * as option from '../../rules/options.js';
import { type JobRunState, type Recover, type RunEvent, startRun } from '../../rules/run-state.js';
import { extra, isFields } from '../../schemas/envelope.js';
import { invalidValueMessage } from '../../schemas/format-value.js';
import { type CompletedJob, JOB_CALLS, type JobCall } from '../../schemas/job.js';
import { shortenKey } from '../../transport/idempotency.js';
import type { StoredOutput } from '../storage/copy-output.js';
import type { StoreEvent } from './activities.js';
import type { DurableEngine, Json } from './engines.js';

/** Options for {@link generate}. */
export interface GenerateOptions {
  /** Namespace of the create: `images`, `videos`, `videoEdits`, or `characters`. */
  readonly call: JobCall;
  /** Body of the create, as JSON. Pass files as upload IDs or URLs. */
  readonly params: object;
  /**
   * Idempotency key of the first create. Pass your order's ID and not the engine's run ID, so that a fork or a restart finds
   * the paid job. Runs with the same key share a job.
   */
  readonly key: string;
  /**
   * Timeout for the run's waits in milliseconds, or `false` for none. After a timeout, the run fails with a
   * WaitTimeoutError, and the job continues.
   * @default 1_800_000 (30 min)
   */
  readonly timeoutMs?: number | false | undefined;
  /**
   * Retries for failed jobs by error code, as in `createAndWait`: a number of retries, or a list of models to retry with.
   * @default {}: a failed job ends the run
   */
  readonly recover?: Recover | undefined;
  /** If true, copies the file to the activities' `destination` before the run ends. @default false */
  readonly store?: boolean | undefined;
}

const GENERATE_OPTIONS = option.optionsOf({
  call: option.oneOf(...JOB_CALLS),
  params: option.anObject,
  key: option.text,
  timeoutMs: option.timeoutOrFalse,
  recover: option.anything,
  store: option.flag,
});

/** Result of a durable run. */
export interface GeneratedJob extends CompletedJob {
  /** Stored file, if `store` is true. */
  stored?: StoredOutput;
}

/** Prefix of step names. The names of a version never change, so that old runs can be replayed. */
const STEP_VERSION = 'gen1';

/**
 * Creates a job and waits for it inside a workflow. An activity that the engine repeats never creates or charges a
 * second job. Fails through `engine.fail` for a failed job, a rejected create, a timeout, or an invalid option.
 *
 * @example
 * const job = await generate(cloudflareEngine(step, activities, { NonRetryableError }), {
 *   call: 'videos',
 *   params: { prompt: 'a fox at dawn', webhook_url: `https://example.com/hook?run=${event.payload.order}` },
 *   key: event.payload.order,
 * });
 */
export async function generate(engine: DurableEngine, options: GenerateOptions): Promise<GeneratedJob> {
  checkEngine(engine);
  const { call, params, key } = options ?? {};
  let run = runOrFail(engine, () => startRunWith(options));
  const eventOf = (output: Json) => runOrFail(engine, () => storedEvent(output));
  const name = stepNames(key);
  let stored: StoredOutput | undefined;
  for (;;) {
    const { step, tries } = run;
    switch (step.type) {
      case 'create': {
        const { recover } = run.rules;
        const input = { call, params, key: step.key, model: step.model, recover } as object as Json;
        run = nextDetachedStep(run, eventOf(await engine.call(name('create'), 'create', input)));
        break;
      }
      case 'read':
        run = nextDetachedStep(run, eventOf(await engine.call(name('read'), 'read', { jobId: step.jobId })));
        break;
      case 'store': {
        const event: StoreEvent = eventOf(await engine.call(name('store'), 'store', { job: extra(step.job) } as Json));
        run = nextDetachedStep(run, event);
        ({ stored } = event);
        break;
      }
      case 'wait':
        run = nextDetachedStep(run, { type: 'waited', woken: await engine.wait(name('wait'), step.jobId, step.ms) });
        break;
      default:
        if (step.type === 'fail') throw engine.fail(step.error);
        if (step.error !== null) throw engine.fail({ ...step.error, ...(step.refusal && { cause: step.refusal }) });
        return { ...(step.job as CompletedJob), tries, ...(stored && { stored }) };
    }
  }
}

function checkEngine(engine: unknown): void {
  const isEngine = ['call', 'wait', 'fail'].every(
    (name) => typeof engine === 'object' && engine !== null && typeof Reflect.get(engine, name) === 'function',
  );
  if (isEngine) return;
  throw new GenError(
    invalidValueMessage(
      'generate: engine',
      'an adapter such as inngestEngine(…), or an object with call, wait, and fail',
      engine,
    ),
  );
}

/** Returns the result of `work`. Fails the run for a GenError, which the engine would retry forever. */
function runOrFail<T>(engine: DurableEngine, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!GenError.isInstance(error)) throw error;
    return engine.fail(errorJson(error));
  }
}

/** Starts a run. Throws a GenError for an invalid option. */
function startRunWith(options: GenerateOptions): JobRunState {
  option.checkOptions('generate', GENERATE_OPTIONS, options);
  for (const [name, example] of REQUIRED_OPTIONS) {
    if (options?.[name] === undefined) throw new GenError(`generate: ${name} is missing. Pass ${example}.`);
  }
  const { key, timeoutMs = DEFAULT_WAIT_MS, recover, store = false } = options;
  return startRun({ key, shortKey: shortenKey(key), rules: detachedRules({ timeoutMs, recover, stores: store }) });
}

const REQUIRED_OPTIONS = [
  ['call', `call: 'videos'`],
  ['params', `params: { prompt: 'a fox at dawn' }`],
  ['key', `key: 'order-17'`],
] as const;

/** Parses the result of an activity, as the engine stored it. */
function storedEvent(output: Json): RunEvent {
  if (isFields(output) && EVENTS.includes(String(output.type))) return output as RunEvent;
  throw new GenError('generate: call() did not return the result of the activity. Return it unchanged.');
}

const EVENTS: readonly string[] = ['job', 'failed', 'stored'];

/** Returns a function that names a run's steps. Names contain the key, so that a workflow can have several runs. */
function stepNames(key: string): (kind: string) => string {
  const counts: Record<string, number> = {};
  return (kind) => {
    counts[kind] = (counts[kind] ?? 0) + 1;
    return `${STEP_VERSION} ${kind} ${counts[kind]} ${shortenKey(key)}`;
  };
}
