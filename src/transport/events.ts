// What happens to calls and jobs, told to whoever listens: hooks, and the runtime's diagnostics channels.

import { builtIn } from '../runtime/platform.js';
import type { JobCall, JobStatus } from '../schemas/job.js';

/** A channel of `node:diagnostics_channel`. */
export interface EventChannel {
  readonly hasSubscribers: boolean;
  publish(message: unknown): void;
}

/** A TracingChannel of `node:diagnostics_channel`. */
export interface TraceChannel {
  /** Undefined on a runtime that does not say. */
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

/** What the channel `gen-client:job` traces. */
export interface JobTrace {
  /** The namespace that creates the job. */
  readonly call: JobCall;
  /** The body of the create. It may hold what must not be shown. */
  readonly params: unknown;
  readonly label?: string | undefined;
  /** Where the same call also waits for the job: settles when that call is over, whichever way. */
  readonly waits?: Promise<unknown> | undefined;
  /** Known once the job is accepted. */
  jobId?: string | undefined;
  /** The last event of the job. */
  event?: JobEvent | undefined;
  error?: unknown;
}

/** What the channel `gen-client:request` traces. */
export interface RequestTrace {
  /** The same as in the events of the hooks. */
  readonly callId: string;
  /** The method as users call it, for example `videos.create`. */
  readonly name: string;
  /** The path below the base URL, without its query; undefined for a direct upload. */
  readonly path: string | undefined;
  readonly job?: JobTrace | undefined;
  attempts: number;
  /** Milliseconds that the call has waited for its rate limit. */
  limitWaitMs: number;
  error?: unknown;
}

/** What the channel `gen-client:wait` traces. */
export interface WaitTrace {
  readonly jobId: string;
  error?: unknown;
}

interface DiagnosticsChannel {
  channel(name: string): EventChannel;
  tracingChannel(name: string): TraceChannel;
}

/** The channels, where the runtime has them. */
export function openChannels(): Channels | undefined {
  const diagnostics = builtIn<DiagnosticsChannel>('diagnostics_channel');
  const traces = (name: string) => diagnostics?.tracingChannel(`gen-client:${name}`);
  const [job, request, wait] = [traces('job'), traces('request'), traces('wait')];
  return diagnostics && job && request && wait && { events: diagnostics.channel('gen-client:job'), job, request, wait };
}

/** The channel, where somebody listens to it. */
export function ifSubscribed(channel: TraceChannel | undefined): TraceChannel | undefined {
  return channel?.hasSubscribers === false ? undefined : channel;
}

/** Does `work`, and tells its start and its end where somebody listens. */
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
  const ended = () => {
    channel.asyncStart.publish(message);
    channel.asyncEnd.publish(message);
  };
  return outcome.then(
    (value) => {
      ended();
      return value;
    },
    (error: unknown) => {
      message.error = error;
      channel.error.publish(message);
      ended();
      throw error;
    },
  );
}

/** Does `work`, and tells its start, and its end only where it fails: a job ends long after its create. */
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

/** Tells that what a trace is about has failed, which is its end. */
export function traceFailed(channel: TraceChannel | undefined, message: { error?: unknown }, error: unknown): void {
  message.error = error;
  for (const name of ['error', 'asyncStart', 'asyncEnd'] as const) channel?.[name].publish(message);
}

/** How much is logged. */
export type LogLevel = 'off' | 'error' | 'warn' | 'info' | 'debug';

/** Where the client writes what it does: `console`, pino, winston and the like fit. Secrets are never among it. */
export interface Logger {
  /** Takes errors. The client has none to write: what a call fails with is thrown. */
  error(message: string, fields?: object): void;
  /** Takes what is doubtful, such as a hook that failed. */
  warn(message: string, fields?: object): void;
  /** Takes retries and waits. */
  info(message: string, fields?: object): void;
  /** Takes every attempt. */
  debug(message: string, fields?: object): void;
}

/** One attempt of a call, as the hooks see it. */
export interface RequestEvent {
  /** The same for every attempt, retry and wait of one call. */
  readonly callId: string;
  /** The HTTP method. */
  readonly method: string;
  /** The path below the base URL, without its query. For a direct upload, its origin and path. */
  readonly path: string;
  /** The documented rate limit that the call counts against, if any. */
  readonly limit: string | undefined;
  /** 1 for the first attempt. */
  readonly attempt: number;
  /** Milliseconds that the call has waited for its rate limit so far. */
  readonly limitWaitMs: number;
  /** The idempotency key of a call that creates something; undefined for any other. */
  readonly idempotencyKey: string | undefined;
}

/** How an attempt ended. */
export interface ResponseEvent extends RequestEvent {
  /** HTTP status; undefined when no answer came. */
  readonly status: number | undefined;
  /** Milliseconds from sending to the end of the answer (of its head, for a stream). */
  readonly durationMs: number;
  /** The service's id for the request, when it sent one. */
  readonly requestId: string | undefined;
  /** Bytes of the body that was read; undefined where the body is streamed to the caller, or no response came. */
  readonly receivedBytes: number | undefined;
  /** Tokens that the service quoted, for the response to a create. */
  readonly quotedTokens: number | undefined;
  /** What went wrong, if anything did. */
  readonly error: unknown;
}

/** A failed attempt that will be repeated. */
export interface RetryEvent extends RequestEvent {
  /** Milliseconds until the next attempt. */
  readonly delayMs: number;
  /** What the attempt failed with. */
  readonly error: Error;
}

/** A call that waits its turn. */
export interface WaitEvent {
  /** The call that waits. */
  readonly callId: string;
  /** The rate limit that is full or paused; undefined for a call without one. */
  readonly limit: string | undefined;
  /** Estimated wait in milliseconds; 0 for a budget. */
  readonly waitMs: number;
  /** Calls that wait for it, this one included. */
  readonly queued: number;
  /** `limit`: the limit is reached. `pause`: the service asked to wait. `budget`: other creates reserve what is missing. */
  readonly reason: 'limit' | 'pause' | 'budget';
}

/**
 * What happened to a job. Each phase of a job is reported once per process, however the SDK learns of it. A process
 * that has not created the job knows only what it has read.
 */
export interface JobEvent {
  /** `accepted` by the service, `final`, or its file `stored` by saveOutput or copyOutput. */
  readonly phase: 'accepted' | 'final' | 'stored';
  /** The service's job id. */
  readonly jobId: string;
  /** The namespace that created the job. Undefined where this process knows only the id, from a webhook. */
  readonly call?: JobCall | undefined;
  /** Model alias that the job runs on. */
  readonly model?: string | undefined;
  /** The key that the job was created under, where this process created it. */
  readonly idempotencyKey?: string | undefined;
  /** The `label` of the call that created the job, where this process created it. */
  readonly label?: string | undefined;
  /** Where the job stands. */
  readonly status: JobStatus;
  /** The error code of a failed job. Undefined if this process knows its end only from a webhook. */
  readonly errorCode?: string | undefined;
  /** Tokens that were quoted and reserved at acceptance. */
  readonly quotedTokens?: number | undefined;
  /** Tokens that were charged: 0 for a failed job. Undefined where the service has not said it yet. */
  readonly chargedTokens?: number | undefined;
  /** Tokens left on the account when the job was accepted. */
  readonly balanceTokens?: number | undefined;
  /** ISO timestamp at which the service created the job. */
  readonly createdAt?: string | undefined;
  /** ISO timestamp at which the job ended. */
  readonly endedAt?: string | undefined;
  /** Milliseconds from the acceptance to this phase, where this process saw both. */
  readonly waitedMs?: number | undefined;
}

/** Told of every job, attempt, retry and wait. Observing only: what a hook returns or throws changes nothing. */
export interface Hooks {
  /** Before an attempt. */
  readonly onRequest?: ((event: RequestEvent) => void) | undefined;
  /** After an attempt, failed or not. */
  readonly onResponse?: ((event: ResponseEvent) => void) | undefined;
  /** Before a failed attempt is repeated. */
  readonly onRetry?: ((event: RetryEvent) => void) | undefined;
  /** A job was accepted, has ended, or its file is stored. Once per phase, job and process. */
  readonly onJob?: ((event: JobEvent) => void) | undefined;
  /** Called when a call waits for a slot of its rate limit, for the end of a 429, or for room in its budget. */
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
