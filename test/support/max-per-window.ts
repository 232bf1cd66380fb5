/** Returns the largest number of timestamps within any window of this length. */
export function maxPerWindow(times: readonly number[], windowMs: number): number {
  const sorted = times.toSorted((a, b) => a - b);
  let maximum = 0;
  for (let first = 0, last = 0; last < sorted.length; last++) {
    while ((sorted[last] ?? 0) - (sorted[first] ?? 0) >= windowMs) first++;
    maximum = Math.max(maximum, last - first + 1);
  }
  return maximum;
}
