/** A JSON object. */
export type Fields = Record<string, unknown>;

/** Returns true for an object that is not an array. */
export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Returns all fields of a result, including undocumented ones, which the result's type doesn't contain.
 *
 * @example
 * const queue = extra(job).queue_position; // unknown
 */
export function extra(result: object): Readonly<Record<string, unknown>> {
  return { ...result };
}

/** Returns the `data` of a response body, or the body itself if it has no envelope. */
export function unwrap(body: unknown): unknown {
  return isFields(body) && body.data !== undefined && body.data !== null ? body.data : body;
}

/** Returns a record from a response body: `data.<noun>`, or `data` itself. */
export function recordIn(body: unknown, noun: string): unknown {
  const data = unwrap(body);
  return isFields(data) && isFields(data[noun]) ? data[noun] : data;
}

/**
 * Returns the records of a list whose form the spec doesn't show: `data`, or its field `noun`, `items`, or `results`.
 * Accepts a list, or an object with the records by ID. A string is a record's `id`.
 */
export function listIn(body: unknown, noun: string): Fields[] {
  const data = unwrap(body);
  const list = isFields(data) ? (data[noun] ?? data.items ?? data.results) : data;
  if (Array.isArray(list)) return list.map((item) => (isFields(item) ? item : { id: item }));
  return isFields(list) ? Object.entries(list).map(([id, item]) => ({ id, ...(isFields(item) ? item : {}) })) : [];
}

/** Returns true for a non-empty string. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

/** Returns true for any object, including an array. */
export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** Headers in which the service or a proxy may send a request ID. */
const REQUEST_ID_HEADERS = ['x-request-id', 'x-service-request-id', 'request-id', 'x-correlation-id', 'cf-ray'];

/** Returns the request ID of a response, if it has one. */
export function requestIdOf(headers: Headers): string | undefined {
  for (const name of REQUEST_ID_HEADERS) {
    const id = headers.get(name);
    if (id) return id;
  }
  return undefined;
}

/** Parses JSON. Returns undefined for invalid JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
