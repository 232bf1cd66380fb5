// Removes API keys and signatures from errors, hooks, and logs.

/** Maximum depth of an error's causes. */
const MAX_CAUSE_DEPTH = 6;
const HIDDEN = '[redacted]';
/** Minimum length of an API key to redact, because shorter ones can be ordinary words. */
const MIN_KEY_LENGTH = 8;

/** Redacts the API key, plain or JSON-encoded. */
export function scrubText(text: string, key: string | undefined): string {
  if (key === undefined || key.length < MIN_KEY_LENGTH) return text;
  return text.replaceAll(key, HIDDEN).replaceAll(JSON.stringify(key).slice(1, -1), HIDDEN);
}

/** Removes the queries of URLs, which can contain signatures, because some runtimes include URLs in error messages. */
export function withoutQueries(text: string): string {
  return text.replace(/\bhttps?:\/\/[^\s"'<>()]+/gi, (url) => url.replace(/[?#].*/, ''));
}

/** Removes secrets from text. */
type Scrub = (text: string) => string;

/**
 * Creates a function that removes the API key and the queries of URLs from text. `addedQuery` is part of the target's
 * query.
 */
export function scrubber(key: string | undefined, target?: string, addedQuery = ''): Scrub {
  const queries = [/\?[^#]*/.exec(target ?? '')?.[0] ?? '', addedQuery].filter((query) => query !== '');
  return (text) => {
    const scrubbed = withoutQueries(scrubText(text, key));
    return queries.reduce((rest, query) => rest.replaceAll(query, ''), scrubbed);
  };
}

/** Removes secrets from a JSON value's strings and names. */
export function scrubValue(value: unknown, scrub: Scrub): unknown {
  if (typeof value === 'string') return scrub(value);
  if (Array.isArray(value)) return value.map((item) => scrubValue(item, scrub));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [scrub(name), scrubValue(inner, scrub)]));
}

/** Removes the API key from headers, because a service can echo it. */
export function scrubHeaders(headers: Headers, key: string | undefined): Headers {
  const cleanHeaders = new Headers();
  for (const [name, value] of headers) cleanHeaders.append(name, scrubText(value, key));
  return cleanHeaders;
}

/** Returns the cause or, if it contains a secret at any depth, a copy without the secret and without nested values. */
export function scrubCause(cause: unknown, scrub: Scrub, depth = 0): unknown {
  if (!containsSecret(cause, scrub)) return cause;
  if (typeof cause !== 'object' || cause === null) return scrubValue(cause, scrub);
  const entries = Object.keys(cause).map((name) => [name, propertyOf(cause, name)] as const);
  const flatEntries = entries.filter(([, value]) => typeof value !== 'object' && typeof value !== 'function');
  const fields = scrubValue(Object.fromEntries(flatEntries), scrub);
  if (!(cause instanceof Error)) return fields;
  const scrubInner = (inner: unknown) => (depth < MAX_CAUSE_DEPTH ? scrubCause(inner, scrub, depth + 1) : undefined);
  const inner = scrubInner(cause.cause);
  const message = scrub(`${cause.message}`);
  const options = inner === undefined ? undefined : { cause: inner };
  const cleanError =
    cause instanceof AggregateError
      ? new AggregateError(cause.errors.map(scrubInner), message, options)
      : new Error(message, options);
  Object.assign(cleanError, fields);
  cleanError.name = scrub(`${cause.name}`);
  cleanError.stack = scrub(cause.stack ?? '');
  return cleanError;
}

/** Maximum number of values to search. A larger cause is treated as if it contained a secret. */
const MAX_SEARCHED_VALUES = 10_000;
/** Matches objects whose content isn't in their own properties. */
const COLLECTION = /^\[object (Headers|Map|Set)\]$/;

function containsSecret(root: unknown, scrub: Scrub): boolean {
  // A set's iterator also visits values that are added during the loop.
  const values = new Set([root]);
  for (const value of values) {
    if (values.size > MAX_SEARCHED_VALUES) return true;
    if (typeof value === 'string' && scrub(value) !== value) return true;
    for (const part of partsOf(value)) values.add(part);
  }
  return false;
}

/** Returns a value's property names and values, a collection's items, and a request's headers and URL. */
function partsOf(value: unknown): readonly unknown[] {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return [];
  if (COLLECTION.test(Object.prototype.toString.call(value))) return [...(value as Iterable<unknown>)];
  return [...Reflect.ownKeys(value), 'headers', 'url', 'href'].flatMap((name) => [name, propertyOf(value, name)]);
}

/** Reads a property of any object. A getter can throw. */
function propertyOf(value: object, name: string | symbol): unknown {
  try {
    return Reflect.get(value, name);
  } catch {
    return undefined;
  }
}
