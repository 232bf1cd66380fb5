// What happens to calls and jobs, told to whoever listens: hooks, and the runtime's diagnostics channels.

import { builtIn } from '../runtime/platform.js';
import type { JobCall } from '../schemas/job.js';
import type { JobEvent } from './hooks.js';

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
  laneWaitMs: number;
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
export function heard(channel: TraceChannel | undefined): TraceChannel | undefined {
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
