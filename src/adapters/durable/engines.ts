// Adapters for workflow engines. Their types are structural, so no engine is imported.
import { errorFromJson, type GenErrorJson } from '../../rules/failure-kind.js';
import { anything, checkOptions, must, optionsOf, required, text } from '../../rules/options.js';

/** A JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [field: string]: Json };

/** Activity of a durable run: a create, a poll, or a copy of the file. */
export type ActivityName = 'create' | 'read' | 'store';

/** Activities that accept and return JSON. Engines can repeat them at any time without a second job or charge. */
export type Activities = Readonly<Record<ActivityName, (input: Json) => Promise<Json>>>;

/** Functions of a workflow engine. Step names are unique within a run, and the same in every replay. */
export interface DurableEngine {
  /** Runs an activity at least once, and returns its first result in every replay. */
  call(step: string, activity: ActivityName, input: Json): Promise<Json>;
  /**
   * Waits for `ms` milliseconds, or until a webhook reports the job's end. Returns true if a webhook ended the wait. Without
   * a job (`null`), no webhook can.
   */
  wait(step: string, jobId: string | null, ms: number): Promise<boolean>;
  /** Ends the workflow with an error that the engine must not retry. */
  fail(error: GenErrorJson): never;
}

const FUNCTION = required('the function or class of your engine', (value) => typeof value === 'function');

/** Cloudflare rejects any other event type, but only once the run waits. */
const EVENT_TYPE = must(
  'at most 100 letters, digits, "_", and "-", and must not start with "-"',
  (value) => typeof value === 'string' && /^[A-Za-z0-9_][A-Za-z0-9_-]{0,99}$/.test(value),
);

/** Options of each engine. Validated before anything is created. */
const ENGINES = {
  cloudflareEngine: optionsOf({ NonRetryableError: FUNCTION, eventType: EVENT_TYPE }),
  inngestEngine: optionsOf({ NonRetriableError: FUNCTION, event: text }),
  restateEngine: optionsOf({ TerminalError: FUNCTION, TimeoutError: FUNCTION }),
  workflowEngine: optionsOf({ hook: anything, sleep: FUNCTION, FatalError: FUNCTION }),
} as const;

/** Methods of a `WorkflowStep` that a run uses. */
export interface CloudflareStep {
  /** Runs a step once, and stores its result. */
  do(name: string, callback: () => Promise<Json>): Promise<Json>;
  /** Sleeps without occupying the process. */
  sleep(name: string, ms: number): Promise<void>;
  /** Waits for an event. Throws after the timeout. */
  waitForEvent(name: string, options: { readonly type: string; readonly timeout: number }): Promise<unknown>;
}

/** Options for {@link cloudflareEngine}. */
export interface CloudflareOptions {
  /** Class from `cloudflare:workflows`. */
  readonly NonRetryableError: new (
    message: string,
    name?: string,
  ) => Error;
  /**
   * Type of the event that the webhook receiver sends to the instance: at most 100 letters, digits, `_`, and `-`.
   * @default 'gen-client-job'
   */
  readonly eventType?: string | undefined;
}

/**
 * Creates an adapter for Cloudflare Workflows. Your webhook receiver sends the event to the instance that its URL identifies:
 * `(await env.VIDEOS.get(run)).sendEvent({ type: 'gen-client-job', payload: event })`.
 *
 * @example
 * const engine = cloudflareEngine(step, createActivities(new GenClient()), { NonRetryableError });
 */
export function cloudflareEngine(
  step: CloudflareStep,
  activities: Activities,
  options: CloudflareOptions,
): DurableEngine {
  checkOptions('cloudflareEngine', ENGINES.cloudflareEngine, options);
  const { NonRetryableError, eventType = 'gen-client-job' } = options;
  return {
    call: (name, activity, input) => step.do(name, () => activities[activity](input)),
    async wait(name, jobId, ms) {
      if (jobId === null) return sleepUninterrupted(step.sleep(name, ms));
      return step.waitForEvent(name, { type: eventType, timeout: ms }).then(
        () => true,
        (error: unknown) => {
          if (isTimeout(error)) return false;
          throw error;
        },
      );
    },
    fail(error) {
      throw new NonRetryableError(error.message, error.name);
    },
  };
}

/** Matches Cloudflare's WorkflowTimeoutError by its text, because RPC doesn't reliably preserve the class. */
function isTimeout(error: unknown): boolean {
  return /TimeoutError|\btimed out\b/.test(error instanceof Error ? `${error.name}: ${error.message}` : String(error));
}

/** Methods of Inngest's step tools that a run uses. */
export interface InngestStep {
  /** Runs a step once, and stores its result. */
  run(id: string, callback: () => Promise<Json>): Promise<unknown>;
  /** Sleeps without occupying the process. */
  sleep(id: string, ms: number): Promise<void>;
  /** Waits for an event. Returns null after the timeout. */
  waitForEvent(
    id: string,
    options: { readonly event: string; readonly timeout: number; readonly if: string },
  ): Promise<unknown>;
}

/** Options for {@link inngestEngine}. */
export interface InngestOptions {
  /** Class from the package `inngest`. */
  readonly NonRetriableError: new (
    message: string,
    options?: { readonly cause?: unknown },
  ) => Error;
  /** Name of the event whose `data` is the webhook event. @default 'gen-client/job' */
  readonly event?: string | undefined;
}

/**
 * Creates an adapter for Inngest. Your webhook receiver forwards the verified event:
 * `await inngest.send({ name: 'gen-client/job', data: event })`.
 *
 * @example
 * const engine = inngestEngine(step, createActivities(new GenClient()), { NonRetriableError });
 */
export function inngestEngine(step: InngestStep, activities: Activities, options: InngestOptions): DurableEngine {
  checkOptions('inngestEngine', ENGINES.inngestEngine, options);
  const { NonRetriableError, event = 'gen-client/job' } = options;
  return {
    call: async (name, activity, input) => (await step.run(name, () => activities[activity](input))) as Json,
    async wait(name, jobId, ms) {
      if (jobId === null) return sleepUninterrupted(step.sleep(name, ms));
      const matchesJob = `async.data.data.job.id == ${JSON.stringify(jobId)}`;
      return (await step.waitForEvent(name, { event, timeout: ms, if: matchesJob })) !== null;
    },
    fail(error) {
      throw new NonRetriableError(`${error.name}: ${error.message}`, { cause: error });
    },
  };
}

/** Methods of Restate's `WorkflowContext` that a run uses. */
export interface RestateContext {
  /** Runs an action once, and stores its result. */
  run(name: string, action: () => Promise<Json>): PromiseLike<Json>;
  /** Sleeps without occupying the process. */
  sleep(ms: number, name?: string): PromiseLike<void>;
  /** Returns the durable promise with this name. A handler of the workflow resolves it. */
  promise(name: string): { get(): { orTimeout(ms: number): PromiseLike<unknown> } };
}

/** Options for {@link restateEngine}. */
export interface RestateOptions {
  /** Class from `@restatedev/restate-sdk`. */
  readonly TerminalError: new (
    message: string,
  ) => Error;
  /** Class from `@restatedev/restate-sdk`. */
  readonly TimeoutError: new () => Error;
}

/**
 * Creates an adapter for Restate workflows. A shared handler of the workflow receives the webhook, and resolves the durable
 * promise named by the job's ID: `ctx.promise(event.data.job.id).resolve(null)`.
 *
 * @example
 * const engine = restateEngine(ctx, createActivities(new GenClient()), restate);
 */
export function restateEngine(ctx: RestateContext, activities: Activities, options: RestateOptions): DurableEngine {
  // Callers can pass the entire module, so other names are not validated.
  const { TerminalError, TimeoutError } = options;
  checkOptions('restateEngine', ENGINES.restateEngine, { TerminalError, TimeoutError });
  // A durable promise stays resolved, so let it wake only one wait.
  const woken = new Set<string>();
  return {
    call: async (name, activity, input) => ctx.run(name, () => activities[activity](input)),
    async wait(name, jobId, ms) {
      if (jobId === null || woken.has(jobId)) return sleepUninterrupted(ctx.sleep(ms, name));
      try {
        await ctx.promise(jobId).get().orTimeout(ms);
        woken.add(jobId);
        return true;
      } catch (error) {
        if (error instanceof TimeoutError) return false;
        throw error;
      }
    },
    fail(error) {
      throw new TerminalError(`${error.name}: ${error.message}`);
    },
  };
}

/** Methods of the class `DBOS` that a run uses. */
export interface DbosSteps {
  /** Runs a step once, and stores its result. */
  runStep(step: () => Promise<Json>, config: { readonly name: string }): Promise<Json>;
  /** Sleeps durably, across restarts. */
  sleep(ms: number): Promise<void>;
  /** Waits for a message. Returns null after the timeout. */
  recv(topic: string, timeoutSeconds: number): Promise<unknown>;
}

/**
 * Creates an adapter for DBOS. Your webhook receiver sends a message to the workflow that its URL identifies, with the job's
 * ID as its topic: `await DBOS.send(run, 'webhook', event.data.job.id)`.
 *
 * @example
 * const engine = dbosEngine(DBOS, createActivities(new GenClient()));
 */
export function dbosEngine(dbos: DbosSteps, activities: Activities): DurableEngine {
  return {
    call: (name, activity, input) => dbos.runStep(() => activities[activity](input), { name }),
    async wait(_name, jobId, ms) {
      if (jobId === null) return sleepUninterrupted(dbos.sleep(ms));
      return (await dbos.recv(jobId, ms / 1000)) !== null;
    },
    fail(error) {
      throw errorFromJson(error);
    },
  };
}

/** Options for {@link workflowEngine}. */
export interface WorkflowOptions {
  /** The run's hook, from `createHook`. Your webhook receiver resumes it. Without a hook, the job is only polled. */
  readonly hook?: PromiseLike<unknown> | undefined;
  /** Function from the package `workflow`. */
  readonly sleep: (ms: number) => Promise<void>;
  /** Class from the package `workflow`. */
  readonly FatalError: new (
    message: string,
  ) => Error;
}

/**
 * Creates an adapter for Vercel Workflow. `activity` is your step function, which starts with `'use step'`. Your webhook
 * receiver resumes the hook by its token: `await resumeHook(token, event)`.
 *
 * @example
 * const engine = workflowEngine(activity, { hook, sleep, FatalError });
 */
export function workflowEngine(
  activity: (name: ActivityName, input: Json) => Promise<Json>,
  options: WorkflowOptions,
): DurableEngine {
  checkOptions('workflowEngine', ENGINES.workflowEngine, options);
  const { hook, sleep, FatalError } = options;
  // Share one promise until the hook is resumed, because each event resolves only one promise.
  let resumed: Promise<boolean> | undefined;
  return {
    call: (_name, name, input) => activity(name, input),
    async wait(_name, jobId, ms) {
      if (jobId === null || hook === undefined) return sleepUninterrupted(sleep(ms));
      // A hook rejects if another run owns its token. Then only the sleep ends the wait.
      resumed ??= Promise.resolve(hook).then(
        () => true,
        () => new Promise<never>(() => {}),
      );
      const isWoken = await Promise.race([resumed, sleepUninterrupted(sleep(ms))]);
      if (isWoken) resumed = undefined;
      return isWoken;
    },
    fail(error) {
      throw Object.assign(new FatalError(error.message), { cause: error });
    },
  };
}

/** Sleeps for the entire time, and returns false, because no webhook ended the wait. */
async function sleepUninterrupted(sleep: PromiseLike<void>): Promise<false> {
  await sleep;
  return false;
}
