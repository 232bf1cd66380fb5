/** A JSON object. */
export type Fields = Record<string, unknown>;

/** Whether `value` is a JSON object (and no list). */
export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * All fields of a result, those that the service does not document included. The types of results are closed, so that a
 * misspelled field does not compile; what else the service sends is there at run time.
 *
 * @example
 * const queue = extra(job).queue_position; // unknown
 */
export function extra(result: object): Readonly<Record<string, unknown>> {
  return { ...result };
}

/** What an answer is about: its `data` where it has an envelope, else the whole body. */
export function unwrap(body: unknown): unknown {
  return isFields(body) && body.data !== undefined && body.data !== null ? body.data : body;
}

/** The record called `noun` in an answer: `data.<noun>`, else `data` itself. */
export function recordIn(body: unknown, noun: string): unknown {
  const data = unwrap(body);
  return isFields(data) && isFields(data[noun]) ? data[noun] : data;
}

/**
 * The records of a list that the spec does not show: `data` itself, or its field `noun`, `items` or `results`; a list,
 * or an object whose keys are the records' names. A bare string is taken for the record's `id`.
 */
export function listIn(body: unknown, noun: string): Fields[] {
  const data = unwrap(body);
  const list = isFields(data) ? (data[noun] ?? data.items ?? data.results) : data;
  if (Array.isArray(list)) return list.map((item) => (isFields(item) ? item : { id: item }));
  return isFields(list) ? Object.entries(list).map(([id, item]) => ({ id, ...(isFields(item) ? item : {}) })) : [];
}

/** Whether the value is a text with something in it. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

/** Whether the value is an object of any kind, a list too. */
export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** Where the service or a proxy before it may name a request. */
const REQUEST_ID_HEADERS = ['x-request-id', 'x-service-request-id', 'request-id', 'x-correlation-id', 'cf-ray'];

/** The service's id for a request, under any of the usual names. */
export function requestIdOf(headers: Headers): string | undefined {
  for (const name of REQUEST_ID_HEADERS) {
    const id = headers.get(name);
    if (id) return id;
  }
  return undefined;
}

/** The value of a JSON text; undefined where the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
