export interface Backoff {
  /** Milliseconds after the first failure. */
  readonly firstMs: number;
  /** The longest pause, in milliseconds. */
  readonly mostMs: number;
}

export const FILE_BACKOFF: Backoff = { firstMs: 250, mostMs: 8_000 };

/** More doublings than this exceed every bound. */
const MOST_DOUBLINGS = 30;

/** Milliseconds to pause after `failures` failures in a row (1 or more): doubles with each, up to the bound. */
export function backoff({ firstMs, mostMs }: Backoff, failures: number): number {
  const doublings = Math.min(Math.max(failures - 1, 0), MOST_DOUBLINGS);
  return Math.min(firstMs * 2 ** doublings, mostMs);
}

/** The pause cut to a random length between its half and its whole, so that clients that failed together spread out. */
export function spread(ms: number, random: number): number {
  return ms * (0.5 + random / 2);
}

/** A pause that was asked for, up to a tenth (a second at most) longer: nobody comes early, and not all at once. */
export function noEarlier(ms: number, random: number): number {
  return ms + random * Math.min(ms / 10, 1_000);
}
