const HIDDEN = '[redacted]';
/** Shorter keys are words that stand in texts for other reasons. Real keys are longer. */
const SHORTEST_KEY = 8;

/** The text without the key, as it is or as it would stand in JSON. */
export function scrubText(text: string, key: string | undefined): string {
  if (key === undefined || key.length < SHORTEST_KEY) return text;
  return text.replaceAll(key, HIDDEN).replaceAll(JSON.stringify(key).slice(1, -1), HIDDEN);
}

/** A JSON value without the key, in whichever of its texts and names it stands. */
export function scrubValue(value: unknown, key: string | undefined): unknown {
  if (typeof value === 'string') return scrubText(value, key);
  if (Array.isArray(value)) return value.map((item) => scrubValue(item, key));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [scrubText(name, key), scrubValue(inner, key)]),
  );
}

/** The headers without the key: a service may echo it. */
export function scrubHeaders(headers: Headers, key: string | undefined): Headers {
  const clean = new Headers();
  for (const [name, value] of headers) clean.append(name, scrubText(value, key));
  return clean;
}

/** The cause itself, or where the key stands in it, a plain error that says the same without it. */
export function scrubCause(cause: unknown, key: string | undefined, depth = 0): unknown {
  if (!key || !(cause instanceof Error)) return typeof cause === 'string' ? scrubText(cause, key) : cause;
  const inner = depth < 4 ? scrubCause(cause.cause, key, depth + 1) : undefined;
  const tells = `${cause.message}\n${cause.stack}\n${Object.values(cause).map(String).join('\n')}`;
  if (inner === cause.cause && scrubText(tells, key) === tells) return cause;
  const clean = new Error(scrubText(cause.message, key), inner === undefined ? undefined : { cause: inner });
  clean.name = cause.name;
  clean.stack = scrubText(cause.stack ?? '', key);
  return clean;
}
