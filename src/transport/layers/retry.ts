// Only importer of p-retry: sends a call until an attempt succeeds or the policy gives up.
import pRetry from 'p-retry';
import { markArrived } from '../../errors/gen-error.js';
import { APIError, GenError } from '../../errors/index.js';
import { backoff, FILE_BACKOFF, noEarlier, spread } from '../../rules/backoff.js';
import { failureKindOf, isRateLimited, isTransient } from '../../rules/failure-kind.js';
import { mayComeLater } from '../../rules/files.js';
import { sleep } from '../../runtime/deadline.js';
import { type Call, type Layer, requestEvent, type Turn } from '../call.js';
import { waitsForRateLimit } from './rate-limit.js';

const RETRY = { firstMs: 500, mostMs: 8_000 };
/** A call stops waiting for 429s that name a time after this many times `maxRetryAfterMs` in all: it must come to an end. */
const MAX_WAITS = 10;

interface RetryProgress {
  turn: Turn;
  /** How often and how long the call has waited for 429s; the count starts again after another failure. */
  waits: number;
  waitedMs: number;
  /** Whether an attempt had no usable answer, so that it may have arrived. */
  responseLost: boolean;
  /** Waits for a file that the service is still publishing, and how long they may continue. */
  fileWaits: number;
  fileLeftMs?: number;
}

/** Makes attempts until one succeeds or the policy gives up. Rejects with the last error. */
export const retryLayer: Layer = async (call, next) => {
  const progress: RetryProgress = { turn: call.turn, waits: 0, waitedMs: 0, responseLost: false, fileWaits: 0 };
  try {
    return await pRetry(
      (number) => {
        progress.turn = { number, failures: progress.turn.failures, error: progress.turn.error };
        return next({ ...call, turn: progress.turn });
      },
      {
        // p-retry throws at zero retries left before it calls shouldRetry, so a 429 would end a call with maxRetries: 0.
        retries: Number.POSITIVE_INFINITY,
        minTimeout: 0,
        signal: call.signal,
        shouldConsumeRetry: ({ error }) => !isRateLimited(error) && !isUnpublished(call, error),
        shouldRetry: ({ error, retriesConsumed }) =>
          waitToRetry({ ...call, turn: progress.turn }, progress, error, retriesConsumed),
      },
    );
  } catch (error) {
    if (progress.responseLost && GenError.isInstance(error)) markArrived(error);
    throw error;
  }
};

/** Whether the call is sent again. Resolves when it is time to. */
async function waitToRetry<T>(
  call: Call<T>,
  progress: RetryProgress,
  error: Error,
  failures: number,
): Promise<boolean> {
  const { core, signal } = call;
  progress.turn = { ...progress.turn, error };
  const askedMs = APIError.isInstance(error) ? error.retryAfterMs : undefined;
  const kind = failureKindOf(error);
  // What has surely made no job counts as not sent, should the caller leave during the pause.
  progress.responseLost ||= kind === 'lost';
  const madeNothing = kind === 'throttled' || kind === 'unsent';
  if (madeNothing) call.sent.mayHaveArrived = progress.responseLost;
  if (madeNothing && !progress.responseLost) await call.record?.unsent();
  if (!call.repeatable || (askedMs !== undefined && askedMs > core.config.maxRetryAfterMs)) return false;
  if (isRateLimited(error)) return waitFor429(call, progress, askedMs);
  if (isUnpublished(call, error)) return waitForFile(call, progress, error);
  if (failures >= call.maxRetries || !isTransient(error)) return false;
  progress.waits = 0;
  progress.turn = { ...progress.turn, failures: failures + 1 };
  const delayMs = Math.max(askedMs ?? 0, spread(backoff(RETRY, failures + 1), core.config.random.next()));
  core.observer()?.onRetry({ ...requestEvent(call), delayMs, error });
  await sleep(core.clock, delayMs, signal);
  return true;
}

/** True if a file was requested that the service may still be publishing. */
function isUnpublished({ kind }: Call<unknown>, error: unknown): boolean {
  return kind.type === 'stream' && kind.request.publishingMs !== undefined && mayComeLater(error);
}

/** Waits for a file that the service is still publishing. False if it should be there. */
async function waitForFile<T>(call: Call<T>, progress: RetryProgress, error: Error): Promise<boolean> {
  const { core, kind, signal } = call;
  if (kind.type !== 'stream') return false;
  progress.fileLeftMs ??= (await kind.request.publishingMs?.()) ?? 0;
  if (progress.fileLeftMs <= 0) return false;
  progress.fileWaits += 1;
  const delayMs = Math.min(progress.fileLeftMs, backoff(FILE_BACKOFF, progress.fileWaits));
  progress.fileLeftMs -= delayMs;
  core.observer()?.onRetry({ ...requestEvent(call), delayMs, error });
  await sleep(core.clock, delayMs, signal);
  return true;
}

/** Waits out a 429. False when the call must not wait any longer. */
async function waitFor429<T>(call: Call<T>, progress: RetryProgress, askedMs: number | undefined): Promise<boolean> {
  const { core, limit, trace } = call;
  const { maxRetryAfterMs, random } = core.config;
  const pauseMs = spread(backoff(RETRY, progress.waits + 1), random.next());
  const waitMs = Math.max(askedMs ?? 0, pauseMs);
  const mostMs = Math.max(maxRetryAfterMs * (askedMs === undefined ? 1 : MAX_WAITS), askedMs ?? 0);
  if (call.neverWaits || progress.waitedMs + waitMs > mostMs) return false;
  progress.waits += 1;
  progress.waitedMs += waitMs;
  // The rate limit is paused for everyone, for no longer than was asked.
  if (askedMs !== undefined && askedMs >= pauseMs && waitsForRateLimit(call)) return true;
  // Never earlier than asked, and not all at once.
  const delayMs = noEarlier(waitMs, random.next());
  core.observer()?.onWait({ callId: trace?.callId ?? '', limit, waitMs: delayMs, queued: 0, reason: 'pause' });
  await sleep(core.clock, delayMs, call.signal);
  if (trace) trace.limitWaitMs += delayMs;
  return true;
}
