import * as z from 'zod/mini';
import { abortSignal, callback, count, flag, methods, milliseconds } from '../options.js';
import type { OutputDestination } from './destination.js';

/** How far a copy has come. */
export interface CopyProgress {
  /** Bytes that the store has taken in this attempt; begins at 0 again when the put is repeated. */
  readonly receivedBytes: number;
  /** Size of the file in bytes. */
  readonly totalBytes: number;
}

/** What `copyOutput` takes beside the job and the destination. */
export interface CopyOutputOptions {
  /** Told how far the copy has come, after each piece. It only observes: what it throws changes nothing. */
  readonly onProgress?: ((progress: CopyProgress) => unknown) | undefined;
  /** Ends the copy at once; it rejects with the signal's own reason, and no object is there. */
  readonly signal?: AbortSignal | undefined;
  /** Whether an object of another job, or another size, is replaced. @default false */
  readonly overwrite?: boolean | undefined;
  /** How often a request to the store that failed is sent again. The download heals itself besides. @default 5 */
  readonly retries?: number | undefined;
  /**
   * Milliseconds in which the store must take the next bytes, or answer; after the last byte a second more for each
   * megabyte. @default 60_000
   */
  readonly timeoutMs?: number | undefined;
}

/** The options of `copyOutput`. */
export const COPY_OPTIONS = z.strictObject({
  onProgress: callback,
  signal: abortSignal,
  overwrite: flag,
  retries: count,
  timeoutMs: milliseconds,
});

/** The members of a destination. Others may stand beside them: a destination is often an object with a life of its own. */
export const DESTINATION = z.strictObject({ destination: methods<OutputDestination>('put') });
