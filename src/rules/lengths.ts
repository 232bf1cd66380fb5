// How long jobs take, learned from those that completed, and how far a running one is.
import { modelCapabilities } from '../catalog.js';
import type { PricedCall } from '../schemas/budget.js';

/** The last lengths of one class of jobs, in milliseconds, the newest last. */
export type Lengths = readonly number[];

/** So many lengths are remembered of a class. */
const REMEMBERED_LENGTHS = 20;
/** The share that is cut off at each end before the mean is taken: a stalled job says nothing about the others. */
const TRIMMED = 0.2;

/** Jobs of one class take about as long: the same model, duration and resolution. */
export function lengthClassOf({ call, model, duration, resolution }: PricedCall): string {
  const alias = model && [model, modelCapabilities(model)?.sameAs ?? model].sort()[0];
  return JSON.stringify([call, alias ?? null, duration ?? null, resolution ?? null]);
}

/** The lengths with one more. */
export function withLength(lengths: Lengths, ms: number): Lengths {
  return [...lengths, ms].slice(-REMEMBERED_LENGTHS);
}

/** What a job of the class will take, in milliseconds: the trimmed mean; undefined while no job of it has completed. */
export function expectedMs(lengths: Lengths): number | undefined {
  if (lengths.length === 0) return undefined;
  const sorted = [...lengths].sort((a, b) => a - b);
  const cut = Math.floor(sorted.length * TRIMMED);
  const kept = sorted.slice(cut, sorted.length - cut);
  return Math.round(kept.reduce((sum, ms) => sum + ms, 0) / kept.length);
}

/** How far a job is, estimated from the lengths of earlier ones. */
export interface JobProgress {
  /** Milliseconds until the job ends; undefined while no job of its kind has completed, 0 at the end. */
  readonly etaMs: number | undefined;
  /** The share of the job that is done, from 0 to 0.99, and 1 at the end. It never falls. Undefined as `etaMs` is. */
  readonly share: number | undefined;
}

/** A job that has ended. */
export const ENDED: JobProgress = { etaMs: 0, share: 1 };

const HIGHEST_SHARE = 0.99;

/** The progress of a job that runs for `ageMs`. `before` is the share that was shown last. */
export function progressOf(lengthMs: number | undefined, ageMs: number, before = 0): JobProgress {
  if (lengthMs === undefined) return { etaMs: undefined, share: before > 0 ? before : undefined };
  const share = Math.max(before, Math.min(HIGHEST_SHARE, lengthMs > 0 ? ageMs / lengthMs : HIGHEST_SHARE));
  // A job that takes longer than expected is always a hundredth from its end.
  const etaMs = Math.round(Math.max(lengthMs - ageMs, ageMs * (1 - HIGHEST_SHARE)));
  return { etaMs, share };
}
