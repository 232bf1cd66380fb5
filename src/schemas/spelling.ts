/** Returns the known name that `name` probably misspells, or undefined if none is close. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  const wanted = simplified(name);
  let best: string | undefined;
  // A third of the letters may differ: enough for typos, but not for another word.
  let bestDistance = Math.floor(Math.max(wanted.length, 3) / 3) + 1;
  for (const candidate of known) {
    const distance = candidate === name ? 0 : editDistance(wanted, simplified(candidate));
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/**
 * Returns `Did you mean "x"?` if a known name is close, otherwise the advice `otherwise`. Pass `meant` for a name from
 * another service.
 */
export function didYouMean(
  name: string,
  known: readonly string[],
  { meant = nearest(name, known), otherwise = known.length === 0 ? '' : `Use one of ${known.join(', ')}.` } = {},
): string {
  return meant === undefined ? otherwise : `Did you mean "${meant}"?`;
}

/** Makes `maxRetryAfter`, `max_retry_after`, and `max-retry-after` equal. */
function simplified(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '');
}

/** Returns the edit distance: the number of inserted, deleted, replaced, and swapped letters. */
function editDistance(from: string, to: string): number {
  let before: number[] = [];
  let previous = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let i = 1; i <= from.length; i++) {
    const current = [i];
    for (let j = 1; j <= to.length; j++) {
      const replaced = (previous[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      const swapped =
        i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]
          ? (before[j - 2] ?? 0) + 1
          : Number.POSITIVE_INFINITY;
      current[j] = Math.min(replaced, swapped, (previous[j] ?? 0) + 1, (current[j - 1] ?? 0) + 1);
    }
    before = previous;
    previous = current;
  }
  return previous[to.length] ?? 0;
}

/** Builds the message for an unknown option of `owner`, for example `GenClient` or `videos.create`. */
export function noSuchOption(owner: string, name: string, known: readonly string[]): string {
  return `${owner} has no option "${name}". ${didYouMean(name, known)}`;
}
