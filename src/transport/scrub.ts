const HIDDEN = '[redacted]';

/** The text without the key, as it is or as it would stand in JSON. */
export function scrubText(text: string, key: string | undefined): string {
  if (!key) return text;
  const written = JSON.stringify(key).slice(1, -1);
  return text.replaceAll(key, HIDDEN).replaceAll(written, HIDDEN);
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
