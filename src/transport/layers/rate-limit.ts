import { RateLimitError } from '../../errors/index.js';
import { isRateLimited } from '../../rules/failure-kind.js';
import { abortable } from '../../runtime/deadline.js';
import type { RateLimitWait, Release } from '../../store/rate-limit.js';
import type { RateLimits } from '../../store/rate-limits.js';
import { type Call, detachedCall, detailsOf, type Layer, type Slot } from '../call.js';
import { digestOfKey } from '../idempotency.js';
import { loadLogin } from './attempt.js';

/** Pause of the rate limit after a 429 without `Retry-After`. */
const DEFAULT_PAUSE_MS = 1_000;

/** How long a key is used before its key function is called again. */
const KEY_FRESH_MS = 1_000;

export function waitsForRateLimit({ limit, core: { config } }: Call<unknown>): boolean {
  return limit !== undefined && config.rateLimit === 'wait';
}

/**
 * Acquires a slot of the rate limit before the attempt, and releases it when the response's headers arrive, which starts the
 * slot's window. A 429 pauses the rate limit before the slot is released.
 */
export const rateLimitLayer: Layer = async (call, next) => {
  const { core } = call;
  // The account is unknown until the key function returns.
  const login = core.config.needsLogin ? await loadLogin(call) : undefined;
  if (login) call.sent.account = login.account;
  const limits = login ? core.limitsOf(login.account) : core.limits();
  if (!limits) return next(call);
  const startMs = core.clock.now();
  let release: Release | undefined = call.neverWaits
    ? await acquireFreeSlot(limits, call)
    : await waitForSlot(limits, call);
  // The key may have changed during the wait.
  const secret = core.clock.now() - startMs < KEY_FRESH_MS ? login?.key : undefined;
  const slot: Slot = {
    outcome: 'unused',
    end() {
      release?.(this.outcome);
      release = undefined;
    },
  };
  try {
    return await next({ ...call, secret, slot });
  } catch (error) {
    pauseLimit(limits, call, error);
    throw error;
  } finally {
    slot.end();
  }
};

/** Throws a RateLimitError if no slot is free. Doesn't use a slot. */
export async function requireFreeSlot(call: Call<unknown>): Promise<void> {
  const { core, limit, signal } = call;
  if (limit === undefined || core.config.rateLimit === 'off') return;
  const limits = core.config.needsLogin ? core.limitsOf(await core.account(signal)) : core.limits();
  if (limits) (await acquireFreeSlot(limits, call))('unused');
}

/** Waits for a slot, and reports the wait. */
async function waitForSlot(limits: RateLimits, { core, limit = '', signal, trace }: Call<unknown>): Promise<Release> {
  const { warn, clock } = core;
  const startMs = clock.now();
  let hasWaited = false;
  const onWait = (wait: RateLimitWait) => {
    hasWaited = true;
    core.observer()?.onWait({ callId: trace?.callId ?? '', ...wait });
  };
  try {
    const release = await limits.acquire(limit, { signal, warn, onWait: trace && onWait });
    if (!signal?.aborted) return release;
    // The call was aborted in the same tick.
    release('unused');
    throw signal.reason;
  } finally {
    if (trace && hasWaited) trace.limitWaitMs += clock.now() - startMs;
  }
}

/** Pauses the rate limit for all calls, unless the 429 requests a longer wait than `maxRetryAfterMs`. */
function pauseLimit(limits: RateLimits, { core, limit }: Call<unknown>, error: unknown): void {
  if (limit === undefined || !isRateLimited(error)) return;
  const { retryAfterMs = DEFAULT_PAUSE_MS } = error;
  if (retryAfterMs <= core.config.maxRetryAfterMs) limits.pause(limit, retryAfterMs);
}

/** Acquires a free slot, or throws a RateLimitError with the time until the next one. */
async function acquireFreeSlot(limits: RateLimits, call: Call<unknown>): Promise<Release> {
  const { core, limit = '', idempotencyKey, attemptNumber, signal, options } = call;
  const detached = detachedCall(options);
  const run =
    detached && idempotencyKey !== undefined
      ? { id: digestOfKey(idempotencyKey), isUrgent: detached.isUrgent ?? false }
      : undefined;
  // After an abort, release a slot that was acquired too late.
  const slotOrWaitMs = await abortable(limits.tryAcquire(limit, core, run), signal, (release) => {
    if (typeof release === 'function') release('unused');
  });
  if (typeof slotOrWaitMs === 'function') return slotOrWaitMs;
  const message = `The limit of ${limit} is reached, so the call was not sent. The next slot is free in ${Math.ceil(slotOrWaitMs)} ms.`;
  throw new RateLimitError(message, {
    status: 429,
    code: 'rate_limited',
    recovery: 'wait_and_retry',
    ...detailsOf(call),
    attempts: Math.max(0, attemptNumber - 1),
    retryAfterMs: slotOrWaitMs,
  });
}
