// Events of calls and jobs, for hooks and diagnostics channels.

import { builtIn } from '../runtime/platform.js';
import type { JobCall, JobStatus } from '../schemas/job.js';

/** A channel of `node:diagnostics_channel`. */
export interface EventChannel {
  readonly hasSubscribers: boolean;
  publish(message: unknown): void;
}

/** A TracingChannel of `node:diagnostics_channel`. */
export interface TraceChannel {
  /** Undefined if the runtime doesn't provide it. */
  readonly hasSubscribers?: boolean;
  readonly start: EventChannel & { runStores?<T>(message: unknown, run: () => T): T };
  readonly end: EventChannel;
  readonly asyncStart: EventChannel;
  readonly asyncEnd: EventChannel;
  readonly error: EventChannel;
}

/** The channels of this package. */
export interface Channels {
  /** Each {@link JobEvent}. */
  readonly events: EventChannel;
  /** A job from its create to its end; messages are {@link JobTrace}. */
  readonly job: TraceChannel;
  /** A call; messages are {@link RequestTrace}. */
  readonly request: TraceChannel;
  /** A wait for a job; messages are {@link WaitTrace}. */
  readonly wait: TraceChannel;
}

/** Message of the channel `gen-client:job`. */
export interface JobTrace {
  /** The namespace that creates the job. */
  readonly call: JobCall;
  /** The body of the create. May contain private data. */
  readonly params: unknown;
  readonly label?: string | undefined;
  /** Settles when the run of `createAndWait` or `resume` ends. Undefined for `create`. */
  readonly waits?: Promise<unknown> | undefined;
  /** Undefined until the job is accepted. */
  jobId?: string | undefined;
  /** The last event of the job. */
  event?: JobEvent | undefined;
  error?: unknown;
}

/** Message of the channel `gen-client:request`. */
export interface RequestTrace {
  /** ID of the call, as in the events of hooks. */
  readonly callId: string;
  /** Name of the SDK method, for example `videos.create`. */
  readonly name: string;
  /** Path relative to the base URL, without its query. Undefined for a direct upload. */
  readonly path: string | undefined;
  readonly job?: JobTrace | undefined;
  attempts: number;
  /** Time that the call has waited for its rate limit, in milliseconds. */
  limitWaitMs: number;
  error?: unknown;
}

/** Message of the channel `gen-client:wait`. */
export interface WaitTrace {
  readonly jobId: string;
  error?: unknown;
}

interface DiagnosticsChannel {
  channel(name: string): EventChannel;
  tracingChannel(name: string): TraceChannel;
}

/** Opens the channels, or returns undefined if the runtime has none. */
export function openChannels(): Channels | undefined {
  const diagnostics = builtIn<DiagnosticsChannel>('diagnostics_channel');
  const openTraces = (name: string) => diagnostics?.tracingChannel(`gen-client:${name}`);
  const [job, request, wait] = [openTraces('job'), openTraces('request'), openTraces('wait')];
  return diagnostics && job && request && wait && { events: diagnostics.channel('gen-client:job'), job, request, wait };
}

/** Returns the channel if it may have subscribers. */
export function ifSubscribed(channel: TraceChannel | undefined): TraceChannel | undefined {
  return channel?.hasSubscribers === false ? undefined : channel;
}

/** Runs `work`, and publishes its start and its end. */
export function traced<T>(
  channel: TraceChannel | undefined,
  message: { error?: unknown },
  work: () => Promise<T>,
): Promise<T> {
  if (!channel) return work();
  const { start } = channel;
  if (!start.runStores) start.publish(message);
  const outcome = start.runStores ? start.runStores(message, work) : work();
  channel.end.publish(message);
  const publishEnd = () => {
    channel.asyncStart.publish(message);
    channel.asyncEnd.publish(message);
  };
  return outcome.then(
    (value) => {
      publishEnd();
      return value;
    },
    (error: unknown) => {
      message.error = error;
      channel.error.publish(message);
      publishEnd();
      throw error;
    },
  );
}

/** Runs `work` and publishes its start. Publishes its end only if it fails, because a job ends long after its create. */
export function tracedStart<T>(
  channel: TraceChannel | undefined,
  message: { error?: unknown },
  work: () => Promise<T>,
): Promise<T> {
  channel?.start.publish(message);
  const outcome = work();
  channel?.end.publish(message);
  return outcome.catch((error: unknown) => {
    traceFailed(channel, message, error);
    throw error;
  });
}

/** Publishes that the traced work has failed. */
export function traceFailed(channel: TraceChannel | undefined, message: { error?: unknown }, error: unknown): void {
  message.error = error;
  for (const name of ['error', 'asyncStart', 'asyncEnd'] as const) channel?.[name].publish(message);
}

/** Log level. */
export type LogLevel = 'off' | 'error' | 'warn' | 'info' | 'debug';

/** A logger, for example `console`, pino, or winston. Secrets are never logged. */
export interface Logger {
  /** Logs an error. The client never calls this method, because failed calls throw. */
  error(message: string, fields?: object): void;
  /** Logs a possible mistake, such as a hook that failed. */
  warn(message: string, fields?: object): void;
  /** Logs a retry or a wait. */
  info(message: string, fields?: object): void;
  /** Logs an attempt. */
  debug(message: string, fields?: object): void;
}

/** An attempt of a call. */
export interface RequestEvent {
  /** ID of the call, shared by its attempts, retries, and waits. */
  readonly callId: string;
  /** HTTP method. */
  readonly method: string;
  /** Path relative to the base URL, without its query. For a direct upload, its origin and path. */
  readonly path: string;
  /** Documented rate limit of the call, if any. */
  readonly limit: string | undefined;
  /** 1 for the first attempt. */
  readonly attempt: number;
  /** Time that the call has waited for its rate limit, in milliseconds. */
  readonly limitWaitMs: number;
  /** Idempotency key of a create. Undefined for other calls. */
  readonly idempotencyKey: string | undefined;
}

/** The end of an attempt. */
export interface ResponseEvent extends RequestEvent {
  /** HTTP status. Undefined without a response. */
  readonly status: number | undefined;
  /** Milliseconds from the request to the end of the response, or of its headers for a stream. */
  readonly durationMs: number;
  /** The service's ID for the request, if it sent one. */
  readonly requestId: string | undefined;
  /** Bytes of the body. Undefined for a stream, or without a response. */
  readonly receivedBytes: number | undefined;
  /** Tokens that the service quoted for a create. */
  readonly quotedTokens: number | undefined;
  /** The error, if the attempt failed. */
  readonly error: unknown;
}

/** A failed attempt that will be retried. */
export interface RetryEvent extends RequestEvent {
  /** Milliseconds until the next attempt. */
  readonly delayMs: number;
  /** The error of the attempt. */
  readonly error: Error;
}

/** A call that waits. */
export interface WaitEvent {
  /** ID of the call. */
  readonly callId: string;
  /** Documented rate limit of the call, if any. */
  readonly limit: string | undefined;
  /** Estimated wait in milliseconds. 0 for a budget. */
  readonly waitMs: number;
  /** Number of queued calls, including this one. */
  readonly queued: number;
  /**
   * `limit`: the limit is reached. `pause`: the service requested a pause. `budget`: other creates reserve the tokens.
   */
  readonly reason: 'limit' | 'pause' | 'budget';
}

/**
 * A phase of a job. Each phase is reported once per process, whether a poll or a webhook reports it first. A process
 * that didn't create the job knows only what it has polled.
 */
export interface JobEvent {
  /** `accepted` by the service, `final`, or its file `stored` by saveOutput or copyOutput. */
  readonly phase: 'accepted' | 'final' | 'stored';
  /** Job ID. */
  readonly jobId: string;
  /** Namespace of the create. Undefined if this process knows only the ID, from a webhook. */
  readonly call?: JobCall | undefined;
  /** Alias of the job's model. */
  readonly model?: string | undefined;
  /** Idempotency key of the create, if this process created the job. */
  readonly idempotencyKey?: string | undefined;
  /** Label of the create, if this process created the job. */
  readonly label?: string | undefined;
  /** Status of the job. */
  readonly status: JobStatus;
  /** Error code of a failed job. Undefined if only a webhook has reported the job's end to this process. */
  readonly errorCode?: string | undefined;
  /** Tokens that were quoted when the job was accepted. */
  readonly quotedTokens?: number | undefined;
  /** Tokens that were charged, or 0 for a failed job. Undefined until the service reports them. */
  readonly chargedTokens?: number | undefined;
  /** Tokens left in the account when the job was accepted. */
  readonly balanceTokens?: number | undefined;
  /** ISO timestamp at which the service created the job. */
  readonly createdAt?: string | undefined;
  /** ISO timestamp at which the job ended. */
  readonly endedAt?: string | undefined;
  /** Milliseconds from the acceptance to this phase, if this process saw both. */
  readonly waitedMs?: number | undefined;
}

/** Functions that are called for each job, attempt, retry, and wait. Returned values and thrown errors have no effect. */
export interface Hooks {
  /** Called before an attempt. */
  readonly onRequest?: ((event: RequestEvent) => void) | undefined;
  /** Called after an attempt, failed or not. */
  readonly onResponse?: ((event: ResponseEvent) => void) | undefined;
  /** Called before a failed attempt is retried. */
  readonly onRetry?: ((event: RetryEvent) => void) | undefined;
  /** Called when a job is accepted, has ended, or its file is stored. Once per phase, job, and process. */
  readonly onJob?: ((event: JobEvent) => void) | undefined;
  /** Called when a call waits for a rate-limit slot, for the end of a 429, or for tokens of its budget. */
  readonly onWait?: ((event: WaitEvent) => void) | undefined;
}

const EVERY_HOOK: Readonly<Record<keyof Hooks, true>> = {
  onRequest: true,
  onResponse: true,
  onRetry: true,
  onJob: true,
  onWait: true,
};
export const HOOKS: readonly string[] = Object.keys(EVERY_HOOK);

/** The levels, each including those before it. */
export const LOG_LEVELS = ['off', 'error', 'warn', 'info', 'debug'] as const satisfies readonly LogLevel[];
