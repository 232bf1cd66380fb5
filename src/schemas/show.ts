/** A value as a message shows it: short, on one line, and never an error of its own. */
export function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') return String(value);
  if (value === undefined || value === null) return String(value);
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** A value as a message shows it where it may be a secret, such as a key in the place of a whole options object. */
export function showKind(value: unknown): string {
  return typeof value === 'string' && value !== '' ? 'a string' : show(value);
}

/** The message for a value that an option cannot have. `what` says what it must be: `a function`. A text is shown only where it `shows`. */
export function mustBe(name: string, what: string, value: unknown, shows = false): string {
  return `${name} must be ${what}, not ${shows ? show(value) : showKind(value)}.`;
}

/** The message for what stands in the place of the options of `owner`; `example` is one of their names. */
export function mustBeOptions(owner: string, example: string | undefined, given: unknown): string {
  return mustBe(`${owner}: options`, example === undefined ? 'an object' : `an object such as { ${example} }`, given);
}

/** The name in `known` that `name` was probably meant to be; undefined where none is close. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  const wanted = simplified(name);
  let best: string | undefined;
  // A third of the letters may differ: enough for a slip or two, too little for another word.
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
 * `Did you mean "x"?`, otherwise what to do: by default, to use one of the known names. One wording for parameters, options,
 * events, and models. `meant` is the name that another service's stands for.
 */
export function didYouMean(
  name: string,
  known: readonly string[],
  { meant = nearest(name, known), otherwise = known.length === 0 ? '' : `Use one of ${known.join(', ')}.` } = {},
): string {
  return meant === undefined ? otherwise : `Did you mean "${meant}"?`;
}

/** `maxRetryAfter`, `max_retry_after` and `max-retry-after` are the same words. */
function simplified(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '');
}

/** The edits (insert, delete, replace, swap two neighbours) that lead from one word to the other. */
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

/** The message for an option that does not exist. `owner` is who takes the options: `GenClient`, `videos.create`. */
export function noSuchOption(owner: string, name: string, known: readonly string[]): string {
  return `${owner} has no option "${name}". ${didYouMean(name, known)}`;
}

/** Text as one word of a POSIX shell, without control characters other than tab and line feed. */
export function quote(text: string): string {
  const plain = text.replace(/[^\P{Cc}\t\n]/gu, '');
  return /^[\w@%+=:,./-]+$/.test(plain) ? plain : `'${plain.replaceAll("'", `'\\''`)}'`;
}
