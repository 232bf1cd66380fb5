import type { LaneWait } from './limits/rate-limiter.js';

/** How much the logger is told. */
export type LogLevel = 'off' | 'error' | 'warn' | 'info' | 'debug';

/** Where the client writes what it does: `console`, pino, winston and the like fit. Secrets are never among it. */
export interface Logger {
  error(message: string, fields?: object): void;
  warn(message: string, fields?: object): void;
  info(message: string, fields?: object): void;
  debug(message: string, fields?: object): void;
}

/** One attempt of a call, as the hooks see it. */
export interface RequestEvent {
  /** The HTTP method. */
  readonly method: string;
  /** The path below the base URL, without its query; for a direct upload its origin and path. */
  readonly path: string;
  /** The documented rate limit that the call counts against, if any. */
  readonly lane: string | undefined;
  /** 1 for the first attempt. */
  readonly attempt: number;
}

/** How an attempt ended. */
export interface ResponseEvent extends RequestEvent {
  /** HTTP status; undefined when no answer came. */
  readonly status: number | undefined;
  /** Milliseconds from sending to the end of the answer (of its head, for a stream). */
  readonly durationMs: number;
  /** The service's id for the request, when it sent one. */
  readonly requestId: string | undefined;
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
export interface WaitEvent extends Omit<LaneWait, 'lane'> {
  /** The lane that is full or paused; undefined for a call without one. */
  readonly lane: string | undefined;
}

/** Told of every attempt, retry and wait. Observing only: what a hook returns or throws changes nothing. */
export interface Hooks {
  /** Before an attempt. */
  readonly onRequest?: ((event: RequestEvent) => void) | undefined;
  /** After an attempt, failed or not. */
  readonly onResponse?: ((event: ResponseEvent) => void) | undefined;
  /** Before a failed attempt is repeated. */
  readonly onRetry?: ((event: RetryEvent) => void) | undefined;
  /** A call waits for its lane; for a free slot, or because the service said so. */
  readonly onWait?: ((event: WaitEvent) => void) | undefined;
}
