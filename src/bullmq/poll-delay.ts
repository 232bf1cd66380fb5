/** Reads of one job at its natural pace, in milliseconds (spec: poll video jobs every 10 to 15 seconds). */
const NATURAL_MS = { images: 3_000, characters: 3_000, videos: 10_000, videoEdits: 10_000 } as const;
const SPREAD = 0.5;
/** Of the 120 reads a minute that the account has, these many are for sleeping calls; the rest is the caller's. */
const READS_PER_MS = 100 / 60_000;

/** How long a call sleeps before its job is read again: longer when more calls sleep than the account may read. */
export function pollDelayMs(call: keyof typeof NATURAL_MS, asleep: number): number {
  const natural = NATURAL_MS[call] * (1 + Math.random() * SPREAD);
  return Math.round(Math.max(natural, (asleep / READS_PER_MS) * (1 + Math.random() * SPREAD * SPREAD)));
}
