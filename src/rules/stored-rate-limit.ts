import { newRateLimit, type RateLimitState, SLOW_START_MS } from './rate-limit.js';

/** The stored format. Times are relative to `at`, so that a limit with 300 calls takes only a kilobyte. */
interface StoredRateLimit {
  readonly at: number;
  readonly inFlight: Readonly<Record<string, number>>;
  /** Each time is relative to the previous one. */
  readonly endTimes: readonly number[];
  readonly maxCoolDown: number;
  readonly queue: readonly (readonly [owner: string, afterMs: number, isUrgent?: 1])[];
  readonly pause: number;
  readonly slow?: { readonly size: number; readonly accepted: number; readonly calls: readonly string[] };
}

/** Extra lifetime of a stored state, in case the clock is set back. */
const EXTRA_MS = 60_000;

/**
 * Encodes a state as a string with a lifetime in milliseconds. Returns null if the state equals that of an unused
 * limit.
 */
export function encodeRateLimit(state: RateLimitState): { readonly value: string; readonly ttlMs: number } | null {
  const { inFlight, endTimes, maxCoolDownMs, queue, pausedUntilMs, slowStart, changedMs } = state;
  const leases = [...inFlight.values(), ...queue.map(({ untilMs }) => untilMs)];
  const slowMs = slowStart === undefined ? 0 : pausedUntilMs + SLOW_START_MS;
  const endMs = Math.max((endTimes.at(-1) ?? 0) + maxCoolDownMs, pausedUntilMs, slowMs, ...leases);
  if (endMs <= changedMs) return null;
  const relativeMs = (untilMs: number) => Math.ceil(untilMs - changedMs);
  const stored: StoredRateLimit = {
    at: changedMs,
    inFlight: Object.fromEntries([...inFlight].map(([id, untilMs]) => [id, relativeMs(untilMs)])),
    endTimes: endTimes.map((endedMs, at) => relativeMs(endedMs) - relativeMs(endTimes[at - 1] ?? changedMs)),
    maxCoolDown: maxCoolDownMs,
    queue: queue.map(({ owner, untilMs, isUrgent }) =>
      isUrgent ? [owner, relativeMs(untilMs), 1] : [owner, relativeMs(untilMs)],
    ),
    // A pause that ended long ago no longer matters.
    pause: Math.max(-SLOW_START_MS, relativeMs(pausedUntilMs)),
    ...(slowStart && { slow: { ...slowStart, calls: [...slowStart.calls] } }),
  };
  return { value: JSON.stringify(stored), ttlMs: Math.ceil(endMs - changedMs) + EXTRA_MS };
}

/** Decodes the value of {@link encodeRateLimit}. Returns undefined if it's anything else. */
export function decodeRateLimit(value: string | undefined): RateLimitState | undefined {
  if (value === undefined) return newRateLimit();
  const stored = parseStored(value);
  if (typeof stored?.at !== 'number' || !Array.isArray(stored.endTimes) || !Array.isArray(stored.queue))
    return undefined;
  const { at, inFlight, endTimes, maxCoolDown, queue, pause, slow } = stored;
  let endedMs = at;
  return {
    inFlight: new Map(Object.entries(inFlight).map(([id, afterMs]) => [id, at + afterMs])),
    endTimes: endTimes.map((afterMs) => {
      endedMs += afterMs;
      return endedMs;
    }),
    maxCoolDownMs: maxCoolDown,
    queue: queue.map(([owner, afterMs, isUrgent]) => ({ owner, untilMs: at + afterMs, isUrgent: isUrgent === 1 })),
    pausedUntilMs: at + pause,
    slowStart: slow && { ...slow, calls: new Set(slow.calls) },
    changedMs: at,
  };
}

function parseStored(text: string): StoredRateLimit | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
