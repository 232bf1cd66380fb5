/** Returns the known name that `name` probably misspells, or undefined if none is close. */
export function nearest(name: string, knownNames: Iterable<string>): string | undefined {
  const letters = simplify(name);
  let best: string | undefined;
  // A third of the letters may differ: enough for typos, but not for another word.
  let bestDistance = Math.floor(Math.max(letters.length, 3) / 3) + 1;
  for (const candidate of knownNames) {
    const distance = candidate === name ? 0 : editDistance(letters, simplify(candidate));
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
  knownNames: readonly string[],
  {
    meant = nearest(name, knownNames),
    otherwise = knownNames.length === 0 ? '' : `Use one of ${knownNames.join(', ')}.`,
  } = {},
): string {
  return meant === undefined ? otherwise : `Did you mean "${meant}"?`;
}

/** Returns the same string for `maxRetryAfter`, `max_retry_after`, and `max-retry-after`. */
function simplify(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '');
}

/** Returns the edit distance: the number of inserted, deleted, replaced, and swapped letters. */
function editDistance(from: string, to: string): number {
  let secondLastRow: number[] = [];
  let lastRow = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const replaceCost = (lastRow[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      const swapCost =
        i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]
          ? (secondLastRow[j - 2] ?? 0) + 1
          : Number.POSITIVE_INFINITY;
      row[j] = Math.min(replaceCost, swapCost, (lastRow[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1);
    }
    secondLastRow = lastRow;
    lastRow = row;
  }
  return lastRow[to.length] ?? 0;
}

/** Builds the message for an unknown option of `owner`, for example `GenClient` or `videos.create`. */
export function noSuchOption(owner: string, name: string, known: readonly string[]): string {
  return `${owner} has no option "${name}". ${didYouMean(name, known)}`;
}
