// The line of runs that wait outside of any process for a slot of a rate limit.
import type { LaneLimit } from './limits.js';

/** When the last places of a line come, earliest first: at most as many as the rate limit has slots. */
export type Places = readonly number[];

/** What a run gets: when its place comes, and the line behind it. */
export interface TakenPlace {
  readonly atMs: number;
  readonly places: Places;
}

/** A slot is free a window after its call was answered, which is some time after the run was woken for its place. */
const LATE_SHARE = 0.03;
/** Clocks and timers are not exact. */
const LATE_MS = 200;

/**
 * The next place of a line: at once while slots are free, and else a window after the place that has the slot before it.
 * So no window contains more places than slots, and runs are served in the order in which they came. `notBeforeMs` is when
 * the rate limit is known to be full until.
 */
export function takePlace(before: Places, { limit, windowMs }: LaneLimit, notBeforeMs: number): TakenPlace {
  const previous = before.length < limit ? undefined : before[before.length - limit];
  const freeMs = previous === undefined ? 0 : previous + windowMs * (1 + LATE_SHARE) + LATE_MS;
  // Never before the place in front.
  const atMs = Math.ceil(Math.max(notBeforeMs, freeMs, before.at(-1) ?? 0));
  return { atMs, places: [...before, atMs].slice(-limit) };
}
