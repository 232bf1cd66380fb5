import { newRateLimit, type RateLimitState, SLOW_START_MS } from './rate-limit.js';

/** The stored format. Times are relative to `at`, so a full limit of 300 calls takes a kilobyte. */
interface StoredRateLimit {
  readonly at: number;
  readonly open: Readonly<Record<string, number>>;
  /** When calls ended. Each is relative to the previous one. */
  readonly ended: readonly number[];
  readonly longest: number;
  readonly queue: readonly (readonly [who: string, afterMs: number, isUrgent?: 1])[];
  readonly pause: number;
  readonly slow?: { readonly size: number; readonly accepted: number; readonly calls: readonly string[] };
}

/** Extra lifetime of a state, in case the clock is set back. */
const SPARE_MS = 60_000;

/** Returns the state as text, with its lifetime in milliseconds, or null if nothing is left to store. */
export function encodeRateLimit(state: RateLimitState): { readonly value: string; readonly ttlMs: number } | null {
  const { open, ended, longestMs, queue, pausedUntilMs, slowStart, seenMs } = state;
  const leases = [...open.values(), ...queue.map(({ untilMs }) => untilMs)];
  const slowMs = slowStart === undefined ? 0 : pausedUntilMs + SLOW_START_MS;
  const overMs = Math.max((ended.at(-1) ?? 0) + longestMs, pausedUntilMs, slowMs, ...leases);
  if (overMs <= seenMs) return null;
  const after = (untilMs: number) => Math.ceil(untilMs - seenMs);
  const stored: StoredRateLimit = {
    at: seenMs,
    open: Object.fromEntries([...open].map(([id, untilMs]) => [id, after(untilMs)])),
    ended: ended.map((endedMs, at) => after(endedMs) - after(ended[at - 1] ?? seenMs)),
    longest: longestMs,
    queue: queue.map(({ who, untilMs, isUrgent }) => (isUrgent ? [who, after(untilMs), 1] : [who, after(untilMs)])),
    // A pause that ended long ago no longer matters.
    pause: Math.max(-SLOW_START_MS, after(pausedUntilMs)),
    ...(slowStart && { slow: { ...slowStart, calls: [...slowStart.calls] } }),
  };
  return { value: JSON.stringify(stored), ttlMs: Math.ceil(overMs - seenMs) + SPARE_MS };
}

/** Decodes the text of {@link encodeRateLimit}. Returns undefined if it's anything else. */
export function decodeRateLimit(value: string | undefined): RateLimitState | undefined {
  if (value === undefined) return newRateLimit();
  const stored = parsed(value);
  if (typeof stored?.at !== 'number' || !Array.isArray(stored.ended) || !Array.isArray(stored.queue)) return undefined;
  const { at, open, ended, longest, queue, pause, slow } = stored;
  let endedMs = at;
  return {
    open: new Map(Object.entries(open).map(([id, afterMs]) => [id, at + afterMs])),
    ended: ended.map((afterMs) => {
      endedMs += afterMs;
      return endedMs;
    }),
    longestMs: longest,
    queue: queue.map(([who, afterMs, isUrgent]) => ({ who, untilMs: at + afterMs, isUrgent: isUrgent === 1 })),
    pausedUntilMs: at + pause,
    slowStart: slow && { ...slow, calls: new Set(slow.calls) },
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
