// What a durable run needs of a workflow engine, and one adapter for each engine, by the shape of what the engine hands to a
// workflow: no engine is imported.
import * as z from 'zod/mini';
import { errorFromJson, type GenErrorJson } from '../../rules/failure-kind.js';
import { checkOptions, must, optional, text } from '../../rules/options.js';

/** A JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [field: string]: Json };

/** What a durable run has done for it outside of its workflow: a create, a read, or the storing of the file. */
export type ActivityName = 'create' | 'read' | 'store';

/** The activities of a client: JSON in, JSON out. Each may be repeated at any time without a second job or charge. */
export type Activities = Readonly<Record<ActivityName, (input: Json) => Promise<Json>>>;

/**
 * What a durable run needs of a workflow engine. The names of the steps are unique within a run, and the same whenever the
 * run is replayed.
 */
export interface DurableEngine {
  /** Runs an activity at least once, and remembers the first result for every replay. */
  call(step: string, activity: ActivityName, input: Json): Promise<Json>;
  /**
   * Waits for `ms` milliseconds, or until a webhook announces the end of the job. Resolves with true when it was woken, and
   * with false when the time has passed. Without a job (`null`) there is nothing that could wake it.
   */
  wait(step: string, jobId: string | null, ms: number): Promise<boolean>;
  /** Ends the workflow with an error that the engine must not repeat. */
  fail(error: GenErrorJson): never;
}

const FUNCTION = z.custom<(...args: never[]) => unknown>(
  (value) => typeof value === 'function',
  'the one of the engine',
);

/** Cloudflare refuses any other type of event, and only when the run waits for it. */
const EVENT_TYPE = must<string>(
  'at most 100 letters, digits, "_" and "-", and not begin with "-"',
  (value) => typeof value === 'string' && /^[A-Za-z0-9_][A-Za-z0-9_-]{0,99}$/.test(value),
);

/** What each adapter takes of its engine, checked before anything is created. */
const ENGINES = {
  cloudflareEngine: z.strictObject({ NonRetryableError: FUNCTION, eventType: EVENT_TYPE }),
  inngestEngine: z.strictObject({ NonRetriableError: FUNCTION, event: text }),
  restateEngine: z.strictObject({ TerminalError: FUNCTION, TimeoutError: FUNCTION }),
  workflowEngine: z.strictObject({ hook: optional(z.any()), sleep: FUNCTION, FatalError: FUNCTION }),
} as const;

/** The part of a `WorkflowStep` that a run needs. */
export interface CloudflareStep {
  /** Does a step once and keeps its result. */
  do(name: string, callback: () => Promise<Json>): Promise<Json>;
  /** Sleeps without holding the process. */
  sleep(name: string, ms: number): Promise<void>;
  /** Waits for an event; throws when none has come in time. */
  waitForEvent(name: string, options: { readonly type: string; readonly timeout: number }): Promise<unknown>;
}

/** What the adapter of Cloudflare Workflows takes. */
export interface CloudflareOptions {
  /** The class of `cloudflare:workflows`. */
  readonly NonRetryableError: new (
    message: string,
    name?: string,
  ) => Error;
  /**
   * The type of the event that the webhook receiver sends to the instance: at most 100 letters, digits, `_` and `-`.
   * @default 'gen-client-job'
   */
  readonly eventType?: string | undefined;
}

/**
 * Cloudflare Workflows. The receiver of the webhook sends the event to the instance that its URL names:
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

/** Cloudflare ends a wait whose time has passed by a WorkflowTimeoutError. Over RPC, only its text is sure to arrive. */
function isTimeout(error: unknown): boolean {
  return /TimeoutError|\btimed out\b/.test(error instanceof Error ? `${error.name}: ${error.message}` : String(error));
}

/** The part of Inngest's step tools that a run needs. */
export interface InngestStep {
  /** Does a step once and keeps its result. */
  run(id: string, callback: () => Promise<Json>): Promise<unknown>;
  /** Sleeps without holding the process. */
  sleep(id: string, ms: number): Promise<void>;
  /** Waits for an event; gives null when none has come in time. */
  waitForEvent(
    id: string,
    options: { readonly event: string; readonly timeout: number; readonly if: string },
  ): Promise<unknown>;
}

/** What the adapter of Inngest takes. */
export interface InngestOptions {
  /** The class of the package `inngest`. */
  readonly NonRetriableError: new (
    message: string,
    options?: { readonly cause?: unknown },
  ) => Error;
  /** The name of the event whose `data` is the webhook event. @default 'gen-client/job' */
  readonly event?: string | undefined;
}

/**
 * Inngest. The receiver of the webhook sends the verified event on:
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
  /** Does an action once and keeps its result. */
  run(name: string, action: () => Promise<Json>): PromiseLike<Json>;
  /** Sleeps without holding the process. */
  sleep(ms: number, name?: string): PromiseLike<void>;
  /** The durable promise of a name, which a handler of the workflow resolves. */
  promise(name: string): { get(): { orTimeout(ms: number): PromiseLike<unknown> } };
}

/** What the adapter of Restate takes. */
export interface RestateOptions {
  /** The class of `@restatedev/restate-sdk`. */
  readonly TerminalError: new (
    message: string,
  ) => Error;
  /** The class of `@restatedev/restate-sdk`. */
  readonly TimeoutError: new () => Error;
}

/**
 * A workflow of Restate. The receiver of the webhook calls a shared handler of the workflow that its URL names, and that
 * handler resolves the durable promise called by the job's id: `ctx.promise(event.data.job.id).resolve(null)`.
 *
 * @example
 * const engine = restateEngine(ctx, createActivities(new GenClient()), restate);
 */
export function restateEngine(ctx: RestateContext, activities: Activities, options: RestateOptions): DurableEngine {
  // The whole module fits, too, so that names beside these two are nothing to refuse.
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
  /** Does a step once and keeps its result. */
  runStep(step: () => Promise<Json>, config: { readonly name: string }): Promise<Json>;
  /** Sleeps, over restarts too. */
  sleep(ms: number): Promise<void>;
  /** Waits for a message; gives null when none has come in time. */
  recv(topic: string, timeoutSeconds: number): Promise<unknown>;
}

/**
 * DBOS. The receiver of the webhook sends a message to the workflow that its URL names, under the job's id:
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

/** What the adapter of Vercel Workflow takes. */
export interface WorkflowOptions {
  /** A hook of the run, by `createHook`. The receiver of the webhook resumes it. Without one, the job is only polled. */
  readonly hook?: PromiseLike<unknown> | undefined;
  /** The function of the package `workflow`. */
  readonly sleep: (ms: number) => Promise<void>;
  /** The class of the package `workflow`. */
  readonly FatalError: new (
    message: string,
  ) => Error;
}

/**
 * Vercel Workflow. `activity` is a step of yours that does an activity: its body begins with `'use step'`. The receiver of
 * the webhook resumes the hook by its token: `await resumeHook(token, event)`.
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
  // One promise until the hook is resumed: a second one would not get what the first one is waiting for.
  let resumed: Promise<boolean> | undefined;
  return {
    call: (_name, name, input) => activity(name, input),
    async wait(_name, jobId, ms) {
      if (jobId === null || hook === undefined) return sleepThrough(sleep(ms));
      // A hook that is refused, because another run has its token, wakes nobody: the sleep ends the wait.
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

/** A wait that nothing wakes. */
async function sleepThrough(sleeping: PromiseLike<void>): Promise<false> {
  await sleeping;
  return false;
}
