// What a durable run needs from a workflow engine, and an adapter for each engine. They are structural: no engine is
// imported.
import { errorFromJson, type GenErrorJson } from '../../rules/failure-kind.js';
import { anything, checkOptions, must, optionsOf, required, text } from '../../rules/options.js';

/** A JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [field: string]: Json };

/** Work of a durable run outside its workflow: a create, a poll, or a copy of the file. */
export type ActivityName = 'create' | 'read' | 'store';

/** A client's activities: JSON in, JSON out. An engine can repeat each at any time without a second job or charge. */
export type Activities = Readonly<Record<ActivityName, (input: Json) => Promise<Json>>>;

/**
 * Functions of a workflow engine for a durable run. Step names are unique within a run, and the same in every replay.
 */
export interface DurableEngine {
  /** Runs an activity at least once, and returns its first result in every replay. */
  call(step: string, activity: ActivityName, input: Json): Promise<Json>;
  /**
   * Waits for `ms` milliseconds, or until a webhook announces the end of the job. Resolves with true if a webhook woke
   * it, and with false otherwise. Without a job (`null`), nothing wakes it.
   */
  wait(step: string, jobId: string | null, ms: number): Promise<boolean>;
  /** Ends the workflow with an error that the engine must not retry. */
  fail(error: GenErrorJson): never;
}

const FUNCTION = required('the function or class of your engine', (value) => typeof value === 'function');

/** Cloudflare rejects any other event type, but only once the run waits for it. */
const EVENT_TYPE = must(
  'at most 100 letters, digits, "_", and "-", and must not start with "-"',
  (value) => typeof value === 'string' && /^[A-Za-z0-9_][A-Za-z0-9_-]{0,99}$/.test(value),
);

/** The parts of an engine that its adapter needs. Validated before anything is created. */
const ENGINES = {
  cloudflareEngine: optionsOf({ NonRetryableError: FUNCTION, eventType: EVENT_TYPE }),
  inngestEngine: optionsOf({ NonRetriableError: FUNCTION, event: text }),
  restateEngine: optionsOf({ TerminalError: FUNCTION, TimeoutError: FUNCTION }),
  workflowEngine: optionsOf({ hook: anything, sleep: FUNCTION, FatalError: FUNCTION }),
} as const;

/** The part of a `WorkflowStep` that a run needs. */
export interface CloudflareStep {
  /** Runs a step once, and stores its result. */
  do(name: string, callback: () => Promise<Json>): Promise<Json>;
  /** Sleeps without occupying the process. */
  sleep(name: string, ms: number): Promise<void>;
  /** Waits for an event. Throws if none comes in time. */
  waitForEvent(name: string, options: { readonly type: string; readonly timeout: number }): Promise<unknown>;
}

/** Options of {@link cloudflareEngine}. */
export interface CloudflareOptions {
  /** The class of `cloudflare:workflows`. */
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
 * Adapter for Cloudflare Workflows. The webhook receiver sends the event to the instance that its URL identifies:
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
      if (jobId === null) return sleepThrough(step.sleep(name, ms));
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

/** Cloudflare ends a wait with a WorkflowTimeoutError. RPC reliably passes on only its text. */
function isTimeout(error: unknown): boolean {
  return /TimeoutError|\btimed out\b/.test(error instanceof Error ? `${error.name}: ${error.message}` : String(error));
}

/** Step tools of Inngest that a run uses. */
export interface InngestStep {
  /** Runs a step once, and stores its result. */
  run(id: string, callback: () => Promise<Json>): Promise<unknown>;
  /** Sleeps without occupying the process. */
  sleep(id: string, ms: number): Promise<void>;
  /** Waits for an event. Resolves with null if none comes in time. */
  waitForEvent(
    id: string,
    options: { readonly event: string; readonly timeout: number; readonly if: string },
  ): Promise<unknown>;
}

/** Options of {@link inngestEngine}. */
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
 * Adapter for Inngest. The webhook receiver forwards the verified event:
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
      if (jobId === null) return sleepThrough(step.sleep(name, ms));
      const isOfJob = `async.data.data.job.id == ${JSON.stringify(jobId)}`;
      return (await step.waitForEvent(name, { event, timeout: ms, if: isOfJob })) !== null;
    },
    fail(error) {
      throw new NonRetriableError(`${error.name}: ${error.message}`, { cause: error });
    },
  };
}

/** The part of Restate's `WorkflowContext` that a run needs. */
export interface RestateContext {
  /** Runs an action once, and stores its result. */
  run(name: string, action: () => Promise<Json>): PromiseLike<Json>;
  /** Sleeps without occupying the process. */
  sleep(ms: number, name?: string): PromiseLike<void>;
  /** Returns the durable promise of a name. A handler of the workflow resolves it. */
  promise(name: string): { get(): { orTimeout(ms: number): PromiseLike<unknown> } };
}

/** Options of {@link restateEngine}. */
export interface RestateOptions {
  /** The class of `@restatedev/restate-sdk`. */
  readonly TerminalError: new (
    message: string,
  ) => Error;
  /** The class of `@restatedev/restate-sdk`. */
  readonly TimeoutError: new () => Error;
}

/**
 * Adapter for Restate workflows. A shared handler of the workflow receives the webhook, and resolves the durable
 * promise with the job's ID as its name: `ctx.promise(event.data.job.id).resolve(null)`.
 *
 * @example
 * const engine = restateEngine(ctx, createActivities(new GenClient()), restate);
 */
export function restateEngine(ctx: RestateContext, activities: Activities, options: RestateOptions): DurableEngine {
  // Callers can pass the entire module, so other names are not validated.
  const { TerminalError, TimeoutError } = options;
  checkOptions('restateEngine', ENGINES.restateEngine, { TerminalError, TimeoutError });
  // A durable promise stays resolved, so it wakes once.
  const woken = new Set<string>();
  return {
    call: async (name, activity, input) => ctx.run(name, () => activities[activity](input)),
    async wait(name, jobId, ms) {
      if (jobId === null || woken.has(jobId)) return sleepThrough(ctx.sleep(ms, name));
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

/** The part of the class `DBOS` that a run needs. */
export interface DbosSteps {
  /** Runs a step once, and stores its result. */
  runStep(step: () => Promise<Json>, config: { readonly name: string }): Promise<Json>;
  /** Sleeps, also across restarts. */
  sleep(ms: number): Promise<void>;
  /** Waits for a message. Resolves with null if none comes in time. */
  recv(topic: string, timeoutSeconds: number): Promise<unknown>;
}

/**
 * Adapter for DBOS. The webhook receiver sends a message to the workflow that its URL identifies, under the job's ID:
 * `await DBOS.send(run, 'webhook', event.data.job.id)`.
 *
 * @example
 * const engine = dbosEngine(DBOS, createActivities(new GenClient()));
 */
export function dbosEngine(dbos: DbosSteps, activities: Activities): DurableEngine {
  return {
    call: (name, activity, input) => dbos.runStep(() => activities[activity](input), { name }),
    async wait(_name, jobId, ms) {
      if (jobId === null) return sleepThrough(dbos.sleep(ms));
      return (await dbos.recv(jobId, ms / 1000)) !== null;
    },
    fail(error) {
      throw errorFromJson(error);
    },
  };
}

/** Options of {@link workflowEngine}. */
export interface WorkflowOptions {
  /** A hook of the run, from `createHook`. The webhook receiver resumes it. Without a hook, the job is only polled. */
  readonly hook?: PromiseLike<unknown> | undefined;
  /** The function of the package `workflow`. */
  readonly sleep: (ms: number) => Promise<void>;
  /** The class of the package `workflow`. */
  readonly FatalError: new (
    message: string,
  ) => Error;
}

/**
 * Adapter for Vercel Workflow. `activity` is your step that runs an activity: its body starts with `'use step'`. The
 * webhook receiver resumes the hook by its token: `await resumeHook(token, event)`.
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
  // One promise until the hook is resumed: a second one would miss what the first one waits for.
  let resumed: Promise<boolean> | undefined;
  return {
    call: (_name, name, input) => activity(name, input),
    async wait(_name, jobId, ms) {
      if (jobId === null || hook === undefined) return sleepThrough(sleep(ms));
      // A hook rejects if another run has its token. Then the sleep ends the wait.
      resumed ??= Promise.resolve(hook).then(
        () => true,
        () => new Promise<never>(() => {}),
      );
      const isWoken = await Promise.race([resumed, sleepThrough(sleep(ms))]);
      if (isWoken) resumed = undefined;
      return isWoken;
    },
    fail(error) {
      throw Object.assign(new FatalError(error.message), { cause: error });
    },
  };
}

/** Waits with nothing that could wake it. */
async function sleepThrough(sleeping: PromiseLike<void>): Promise<false> {
  await sleeping;
  return false;
}
