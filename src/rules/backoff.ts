export interface Backoff {
  /** Milliseconds after the first failure. */
  readonly firstMs: number;
  /** Maximum pause, in milliseconds. */
  readonly maxMs: number;
}

export const FILE_BACKOFF: Backoff = { firstMs: 250, maxMs: 8_000 };

/** More doublings would exceed any maximum. */
const MAX_DOUBLINGS = 30;

/**
 * Returns the pause in milliseconds after `failures` (at least 1) consecutive failures. Doubles with each, up to the
 * maximum.
 */
export function backoff({ firstMs, maxMs }: Backoff, failures: number): number {
  const doublings = Math.min(Math.max(failures - 1, 0), MAX_DOUBLINGS);
  return Math.min(firstMs * 2 ** doublings, maxMs);
}

/** Returns a random pause between 50% and 100% of `ms`, so that clients that failed together don't retry together. */
export function spread(ms: number, random: number): number {
  return ms * (0.5 + random / 2);
}

/** Adds up to 10% (at most one second) to a requested pause, so that clients spread out and none retries early. */
export function noEarlier(ms: number, random: number): number {
  return ms + random * Math.min(ms / 10, 1_000);
}
