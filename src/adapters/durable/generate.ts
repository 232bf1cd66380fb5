import * as z from 'zod/mini';
import { type CallKind, lastingRules } from '../../client/run-calls.js';
import { GenError } from '../../errors/index.js';
import { errorJson } from '../../rules/failure-kind.js';
import { DEFAULT_WAIT_MS } from '../../rules/limits.js';
import * as option from '../../rules/options.js';
import { nextStep } from '../../rules/run.js';
import { type JobRunState, type Recover, type RunEvent, startRun } from '../../rules/run-state.js';
import { extra, isFields } from '../../schemas/envelope.js';
import { type CompletedJob, JOB_CALLS } from '../../schemas/job.js';
import { mustBe } from '../../schemas/show.js';
import { shortenKey } from '../../transport/idempotency.js';
import type { StoredOutput } from '../storage/copy-output.js';
import type { StoreEvent } from './activities.js';
import type { DurableEngine, Json } from './engines.js';

/** What a durable run makes, and how. */
export interface GenerateOptions {
  /** Whose `create` it is: `images`, `videos`, `videoEdits` or `characters`. */
  readonly call: CallKind;
  /** The body of the create, as JSON. Files are given as upload ids or URLs. */
  readonly params: object;
  /**
   * The key of the first create: a key makes one job, however often it is sent. Take your order's own id, an argument of the
   * run, and not the engine's id of the run: a fork or a restart of the run then finds the job that is paid.
   */
  readonly key: string;
  /**
   * Milliseconds that the waits of the run may add up to before it fails with a WaitTimeoutError; its job goes on. `false`
   * for no limit. It is for the run, not for a try.
   * @default 1_800_000 (30 min)
   */
  readonly timeoutMs?: number | false | undefined;
  /**
   * How to go on after a failed job, by its error code, as in `createAndWait`: a number of further tries, or one try with
   * each of some models.
   * @default {}: a failed job ends the run
   */
  readonly recover?: Recover | undefined;
  /** Whether the file is copied to the `destination` of the activities before the run ends. @default false */
  readonly store?: boolean | undefined;
}

const GENERATE_OPTIONS = z.strictObject({
  call: option.oneOf(...JOB_CALLS),
  params: option.anObject,
  key: option.text,
  timeoutMs: option.timeLimit,
  recover: z.optional(z.any()),
  store: option.flag,
});

/** What a durable run gives. */
export interface GeneratedJob extends CompletedJob {
  /** The file in the store, where `store` was asked for. */
  stored?: StoredOutput;
}

/** The names of the steps begin with their version. Names of a version never change, so that old runs can be replayed. */
const STEP_VERSION = 'gen1';

/**
 * Makes a job and waits for its end inside a workflow. It can be replayed at any point: it uses no clock, no random number
 * and no network of its own, only the engine. However often the engine repeats or forgets an activity, a run makes one job
 * and is charged once.
 *
 * A webhook wakes a wait early. When it is lost, the next read finds the job: waits grow from ten seconds to at most five
 * minutes, so that a run of half an hour takes at most 60 steps.
 *
 * Throws, by `engine.fail`, the error of the job, of a refused create, of the time limit, or of an option that cannot be right:
 * no engine repeats it.
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
  let run = orFail(engine, () => begin(options));
  const remembered = (output: Json) => orFail(engine, () => rememberedEvent(output));
  const name = stepNames(key);
  let stored: StoredOutput | undefined;
  for (;;) {
    const { step, tries } = run;
    switch (step.type) {
      case 'create': {
        const { recover } = run.rules;
        const input = { call, params, key: step.key, model: step.model, recover } as object as Json;
        run = nextStep(run, remembered(await engine.call(name('create'), 'create', input)));
        break;
      }
      case 'read':
        run = nextStep(run, remembered(await engine.call(name('read'), 'read', { jobId: step.jobId })));
        break;
      case 'store': {
        const event: StoreEvent = remembered(
          await engine.call(name('store'), 'store', { job: extra(step.job) } as Json),
        );
        run = nextStep(run, event);
        ({ stored } = event);
        break;
      }
      case 'wait':
        run = nextStep(run, { type: 'waited', woken: await engine.wait(name('wait'), step.jobId, step.ms) });
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
    mustBe('generate: engine', 'an adapter such as inngestEngine(…), or an object with call, wait and fail', engine),
  );
}

/** What `work` gives. A mistake ends the run: an engine would repeat any other error for ever, and nothing would mend it. */
function orFail<T>(engine: DurableEngine, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!GenError.isInstance(error)) throw error;
    return engine.fail(errorJson(error));
  }
}

/** The run that the options ask for. Throws a GenError for those that cannot be right. */
function begin(options: GenerateOptions): JobRunState {
  option.checkOptions('generate', GENERATE_OPTIONS, options);
  for (const [name, example] of NEEDED) {
    if (options?.[name] === undefined) throw new GenError(`generate: ${name} is missing. Pass ${example}.`);
  }
  const { key, timeoutMs = DEFAULT_WAIT_MS, recover, store = false } = options;
  return startRun({ key, shortKey: shortenKey(key), rules: lastingRules({ timeoutMs, recover, stores: store }) });
}

const NEEDED = [
  ['call', `call: 'videos'`],
  ['params', `params: { prompt: 'a fox at dawn' }`],
  ['key', `key: 'order-17'`],
] as const;

/** What the engine remembers of an activity. */
function rememberedEvent(output: Json): RunEvent {
  if (isFields(output) && EVENTS.includes(String(output.type))) return output as RunEvent;
  throw new GenError('generate: call() did not return the result of the activity. Return it unchanged.');
}

const EVENTS: readonly string[] = ['job', 'failed', 'stored'];

/** The names of the steps of a run. They hold its key, so that a workflow can have several runs. */
function stepNames(key: string): (kind: string) => string {
  const counts: Record<string, number> = {};
  return (kind) => {
    counts[kind] = (counts[kind] ?? 0) + 1;
    return `${STEP_VERSION} ${kind} ${counts[kind]} ${shortenKey(key)}`;
  };
}
