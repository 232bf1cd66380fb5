import type { Clock } from '../clock.js';
import type { CallKind } from '../resources/run-calls.js';

/** Milliseconds between two reads of one job (spec: poll video jobs every 10 to 15 seconds). */
const NATURAL_MS: Readonly<Record<CallKind, number>> = {
  images: 3_000,
  characters: 3_000,
  videos: 10_000,
  videoEdits: 10_000,
};
const SPREAD = 0.5;
/** The part of the limit that sleeping calls read with. The rest is for webhooks and for the caller. */
const SHARE = 7 / 8;

/** A documented limit (spec: Limits). */
interface Limit {
  readonly limit: number;
  readonly windowMs: number;
}

const READS: Limit = { limit: 120, windowMs: 60_000 };
const CREATES: Limit = { limit: 20, windowMs: 60_000 };

/** What a client tells of its limits, as far as they are known. */
type Limits = Readonly<Record<string, Partial<Limit> & { readonly inUse: number }>>;

/** How long a call sleeps before its job is read again: longer when more jobs are waited for than the limit lets read. */
export function pollDelayMs(call: CallKind, jobs: number, limits: Limits): number {
  const { limit, windowMs } = limitOf(limits, 'jobs.get', READS);
  const natural = NATURAL_MS[call] * (1 + Math.random() * SPREAD);
  const stretched = ((jobs * windowMs) / (limit * SHARE)) * (1 + Math.random() * SPREAD * SPREAD);
  return Math.round(Math.max(natural, stretched));
}

/** Gives each call that finds its rate limit full a turn of its own. */
export interface Turns {
  /** Milliseconds until the turn of a call that is told to come back in `retryAfterMs`. */
  next(retryAfterMs: number, limits: Limits): number;
}

/**
 * When hundreds of calls find the limit full, all of them are told the same time, at which only one could go. So they come
 * back one after the other, at the pace of the limit and in the order in which they came.
 */
export function createTurns(clock: Clock): Turns {
  let last = Number.NEGATIVE_INFINITY;
  return {
    next(retryAfterMs, limits) {
      const { limit, windowMs } = limitOf(limits, 'videos.create', CREATES);
      const now = clock.now();
      last = Math.max(last + windowMs / limit, now + retryAfterMs);
      return Math.ceil(last - now);
    },
  };
}

function limitOf(limits: Limits, lane: string, documented: Limit): Limit {
  const { limit = documented.limit, windowMs = documented.windowMs } = limits[lane] ?? {};
  return limit > 0 && windowMs > 0 ? { limit, windowMs } : documented;
}
