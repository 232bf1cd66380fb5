// The state of a rate limit as text, for a store.
import { newRateLimit, type RateLimitState } from './rate-limit.js';

/** What is stored. Times are told from `at`: a full limit of 300 calls is kept in a kilobyte. */
interface StoredRateLimit {
  readonly at: number;
  readonly open: Readonly<Record<string, number>>;
  /** Each from the one before. */
  readonly rest: readonly number[];
  readonly line: readonly (readonly [who: string, afterMs: number])[];
  readonly pause: number;
  readonly trial?: string;
}

/** The first call after a pause is waited for so long. */
const TRIAL_KEPT_MS = 60 * 60_000;
/** A state is kept for longer than it matters, so that a clock that was set back does not lose it. */
const SPARE_MS = 60_000;

/** The state as text, and for how many milliseconds it matters; null for a limit that is as good as new. */
export function encodeRateLimit(state: RateLimitState): { readonly value: string; readonly ttlMs: number } | null {
  const { open, resting, line, pausedUntilMs, trial, seenMs } = state;
  const leases = [...open.values(), ...line.map(([, untilMs]) => untilMs)];
  const trialMs = trial === undefined ? 0 : Math.max(seenMs, pausedUntilMs) + TRIAL_KEPT_MS;
  const overMs = Math.max(resting.at(-1) ?? 0, pausedUntilMs, trialMs, ...leases);
  if (overMs <= seenMs) return null;
  const after = (untilMs: number) => Math.ceil(untilMs - seenMs);
  const stored: StoredRateLimit = {
    at: seenMs,
    open: Object.fromEntries([...open].map(([id, untilMs]) => [id, after(untilMs)])),
    rest: resting.map((freeMs, at) => after(freeMs) - after(resting[at - 1] ?? seenMs)),
    line: line.map(([who, untilMs]) => [who, after(untilMs)]),
    pause: Math.max(0, after(pausedUntilMs)),
    ...(trial !== undefined && { trial }),
  };
  return { value: JSON.stringify(stored), ttlMs: Math.ceil(overMs - seenMs) + SPARE_MS };
}

/** What {@link encodeRateLimit} has written. Undefined for something else. */
export function decodeRateLimit(value: string | undefined): RateLimitState | undefined {
  if (value === undefined) return newRateLimit();
  const stored = parsed(value);
  if (typeof stored?.at !== 'number' || !Array.isArray(stored.rest) || !Array.isArray(stored.line)) return undefined;
  const { at, open, rest, line, pause, trial } = stored;
  let freeMs = at;
  return {
    open: new Map(Object.entries(open).map(([id, afterMs]) => [id, at + afterMs])),
    resting: rest.map((afterMs) => {
      freeMs += afterMs;
      return freeMs;
    }),
    line: line.map(([who, afterMs]) => [who, at + afterMs]),
    pausedUntilMs: at + pause,
    trial,
    seenMs: at,
  };
}

function parsed(text: string): StoredRateLimit | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
