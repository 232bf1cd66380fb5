// Retries a call until an attempt succeeds or the policy gives up. No other module imports p-retry.
import pRetry from 'p-retry';
import { markArrived } from '../../errors/gen-error.js';
import { APIError, GenError } from '../../errors/index.js';
import { backoff, FILE_BACKOFF, noEarlier, spread } from '../../rules/backoff.js';
import { failureKindOf, isRateLimited, isTransient } from '../../rules/failure-kind.js';
import { mayAppearLater } from '../../rules/files.js';
import { sleep } from '../../runtime/deadline.js';
import { type Call, type Layer, requestEvent } from '../call.js';
import { waitsForRateLimit } from './rate-limit.js';

const RETRY = { firstMs: 500, maxMs: 8_000 };
/** Maximum total wait for 429s with a `Retry-After`, as a multiple of `maxRetryAfterMs`. */
const MAX_WAIT_FACTOR = 10;

interface RetryProgress {
  /** Number of 429s since the last failure of another kind. */
  waits: number;
  /** Total time waited for 429s. */
  waitedMs: number;
  /** If true, an attempt got no usable response, so the service may have processed it. */
  responseLost: boolean;
  /** Number of waits for a file that the service is still publishing, and the time left for such waits. */
  fileWaits: number;
  fileLeftMs?: number;
}

interface Failure {
  readonly error: Error;
  /** Retries that the call may still consume. */
  readonly retriesLeft: number;
}

/** Sends attempts until one succeeds or the policy gives up. Rejects with the last error. */
export const retryLayer: Layer = async (call, next) => {
  const progress: RetryProgress = { waits: 0, waitedMs: 0, responseLost: false, fileWaits: 0 };
  let current = call;
  let failures = 0;
  const consumesRetry = (error: Error) => !isRateLimited(error) && !isUnpublished(call, error);
  try {
    return await pRetry(
      (attemptNumber) => {
        current = { ...call, attemptNumber, failures };
        return next(current);
      },
      {
        // Without retries left, p-retry gives up before it calls shouldRetry. The extra retry is for 429s.
        retries: call.maxRetries + 1,
        minTimeout: 0,
        signal: call.signal,
        shouldConsumeRetry: ({ error }) => consumesRetry(error),
        async shouldRetry({ error, retriesLeft, retriesConsumed }) {
          if (!(await waitToRetry(current, progress, { error, retriesLeft: retriesLeft - 1 }))) return false;
          failures = retriesConsumed + (consumesRetry(error) ? 1 : 0);
          return true;
        },
      },
    );
  } catch (error) {
    if (progress.responseLost && GenError.isInstance(error)) markArrived(error);
    throw error;
  }
};

/** Waits until the call may be retried. Returns false if it may not. */
async function waitToRetry<T>(call: Call<T>, progress: RetryProgress, failure: Failure): Promise<boolean> {
  const { core } = call;
  const { error, retriesLeft } = failure;
  const retryAfterMs = APIError.isInstance(error) ? error.retryAfterMs : undefined;
  const kind = failureKindOf(error);
  progress.responseLost ||= kind === 'lost';
  // An attempt that created nothing counts as unsent if the caller aborts during the pause.
  const createdNothing = kind === 'throttled' || kind === 'unsent';
  if (createdNothing) call.sent.mayHaveArrived = progress.responseLost;
  if (createdNothing && !progress.responseLost) await call.record?.unsent();
  if (!call.repeatable || (retryAfterMs !== undefined && retryAfterMs > core.config.maxRetryAfterMs)) return false;
  if (isRateLimited(error)) return waitFor429(call, progress, retryAfterMs);
  if (isUnpublished(call, error)) return waitForFile(call, progress, error);
  if (retriesLeft <= 0 || !isTransient(error)) return false;
  progress.waits = 0;
  const delayMs = Math.max(retryAfterMs ?? 0, spread(backoff(RETRY, call.failures + 1), core.config.random.next()));
  return pauseBeforeRetry(call, delayMs, error);
}

/** Returns true if the service may still be publishing the requested file. */
function isUnpublished({ kind }: Call<unknown>, error: unknown): boolean {
  return kind.type === 'stream' && kind.request.publishingMs !== undefined && mayAppearLater(error);
}

/** Waits for a file that the service is still publishing. Returns false if the time to publish the file is over. */
async function waitForFile<T>(call: Call<T>, progress: RetryProgress, error: Error): Promise<boolean> {
  const { kind } = call;
  if (kind.type !== 'stream') return false;
  progress.fileLeftMs ??= (await kind.request.publishingMs?.()) ?? 0;
  if (progress.fileLeftMs <= 0) return false;
  progress.fileWaits += 1;
  const delayMs = Math.min(progress.fileLeftMs, backoff(FILE_BACKOFF, progress.fileWaits));
  progress.fileLeftMs -= delayMs;
  return pauseBeforeRetry(call, delayMs, error);
}

async function pauseBeforeRetry(call: Call<unknown>, delayMs: number, error: Error): Promise<true> {
  const { core, signal } = call;
  core.observer()?.onRetry({ ...requestEvent(call), delayMs, error });
  await sleep(core.clock, delayMs, signal);
  return true;
}

/** Waits out a 429. Returns false if the call may not wait longer. */
async function waitFor429<T>(
  call: Call<T>,
  progress: RetryProgress,
  retryAfterMs: number | undefined,
): Promise<boolean> {
  const { core, limit, trace } = call;
  const { maxRetryAfterMs, random } = core.config;
  const pauseMs = spread(backoff(RETRY, progress.waits + 1), random.next());
  const waitMs = Math.max(retryAfterMs ?? 0, pauseMs);
  const maxMs = Math.max(maxRetryAfterMs * (retryAfterMs === undefined ? 1 : MAX_WAIT_FACTOR), retryAfterMs ?? 0);
  if (call.neverWaits || progress.waitedMs + waitMs > maxMs) return false;
  progress.waits += 1;
  progress.waitedMs += waitMs;
  // The rate limit layer pauses all calls for that time.
  if (retryAfterMs !== undefined && retryAfterMs >= pauseMs && waitsForRateLimit(call)) return true;
  const delayMs = noEarlier(waitMs, random.next());
  core.observer()?.onWait({ callId: trace?.callId ?? '', limit, waitMs: delayMs, queued: 0, reason: 'pause' });
  await sleep(core.clock, delayMs, call.signal);
  if (trace) trace.limitWaitMs += delayMs;
  return true;
}
