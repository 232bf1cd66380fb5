import type { CallKind } from '../resources/run-calls.js';
import { DOCUMENTED_LIMITS, type LaneLimit, READ_SHARE, VIDEO_POLL_MS } from '../rules/limits.js';
import { systemRandom } from '../runtime/clock.js';

/** Milliseconds between two reads of one job. */
const NATURAL_MS: Readonly<Record<CallKind, number>> = {
  images: 3_000,
  characters: 3_000,
  videos: VIDEO_POLL_MS.least,
  videoEdits: VIDEO_POLL_MS.least,
};
const SPREAD = 0.5;

/** What a client tells of its limits, as far as they are known. */
type Limits = Readonly<Record<string, Partial<LaneLimit> & { readonly inUse: number }>>;

/** How long a call sleeps before its job is read again: longer when more jobs are waited for than the limit lets read. */
export function pollDelayMs(call: CallKind, jobs: number, limits: Limits): number {
  const { limit, windowMs } = laneLimit(limits, 'jobs.get', DOCUMENTED_LIMITS['jobs.get']);
  const natural = NATURAL_MS[call] * (1 + systemRandom.next() * SPREAD);
  const stretched = ((jobs * windowMs) / (limit * READ_SHARE)) * (1 + systemRandom.next() * SPREAD * SPREAD);
  return Math.round(Math.max(natural, stretched));
}

function laneLimit(limits: Limits, lane: string, documented: LaneLimit): LaneLimit {
  const { limit = documented.limit, windowMs = documented.windowMs } = limits[lane] ?? {};
  return limit > 0 && windowMs > 0 ? { limit, windowMs } : documented;
}
