/** The forms of an answer that the service's document leaves open, each as a change of what the sandbox answers. */
type Fields = Record<string, unknown>;
type Change = (body: Fields, request: { readonly method: string; readonly path: string }) => unknown;

interface Shape {
  /** What becomes of the body. Undefined for an answer without one. */
  readonly body?: Change;
  /** The header that carries the request's id. */
  readonly idHeader?: string;
}

const LISTS = ['models', 'voices', 'characters'];

const onError = (change: (code: string, message: string) => Fields): Shape => ({
  body: (body) => {
    const { error, data } = body as { error?: { code: string; message: string }; data?: Fields };
    if (error === undefined) return body;
    const changed = change(error.code, error.message);
    return data === undefined ? changed : { ...changed, data: { ...(changed.data as Fields), ...data } };
  },
});
const onList = (change: (records: Fields[], name: string) => unknown): Shape => ({
  body: (body) => {
    const [name, records] = Object.entries(dataOf(body)).find(([key]) => LISTS.includes(key)) ?? [];
    return name !== undefined && Array.isArray(records) ? change(records, name) : body;
  },
});
const onUpload = (change: (data: Fields) => unknown): Shape => ({
  body: (body, { path }) =>
    /^\/v1\/uploads(\/complete)?$/.test(path) && !('error' in body) ? change(dataOf(body)) : body,
});
const onHeaders = (change: (headers: Fields) => unknown): Shape =>
  onUpload((data) => ({
    success: true,
    data: 'headers' in data ? { ...data, headers: change(data.headers as Fields) } : data,
  }));
const onJob = (change: (created: Fields) => unknown): Shape => ({
  body: (body, { method, path }) => {
    const { job, ...rest } = dataOf(body);
    // The answer of POST /v1/videos is documented.
    return method === 'POST' && path !== '/v1/videos' && job ? change({ ...(job as Fields), ...rest }) : body;
  },
});
const onWarnings = (change: (data: Fields, warnings: unknown[]) => Fields): Shape => ({
  body: (body) => {
    const { warnings, job, ...rest } = dataOf(body);
    if (!Array.isArray(warnings)) return body;
    const { warnings: _, ...plain } = job as Fields;
    return { success: true, ...change({ job: plain, ...rest }, warnings) };
  },
});
const dataOf = ({ data = {} }: Fields) => data as Fields;

/** All shapes, by what they change. */
export const SHAPES: Readonly<Record<string, Shape>> = {
  'error as a text': onError((error, message) => ({ success: false, error, message })),
  'error beside data': onError((code, message) => ({ code, message })),
  'error in data': onError((code, message) => ({ success: false, data: { code, message } })),
  'a list of errors': onError((code, message) => ({ success: false, errors: [{ code, message }] })),
  'error as detail': onError((code, message) => ({ detail: { code, message } })),
  'lists as items': onList((items) => ({ success: true, data: { items } })),
  'lists as results': onList((results) => ({ success: true, data: { results } })),
  'lists as data': onList((data) => ({ success: true, data })),
  'lists by id': onList((records, name) => ({
    success: true,
    data: { [name]: Object.fromEntries(records.map((record, at) => [`record_${at}`, record])) },
  })),
  'lists alone': onList((records) => records),
  'a job as data': onJob((data) => ({ success: true, data })),
  'a job alone': onJob((created) => created),
  'an upload in data.upload': onUpload((upload) => ({ success: true, data: { upload } })),
  'an upload alone': onUpload((upload) => upload),
  'upload headers in lower case': onHeaders((headers) =>
    Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
  ),
  'upload headers as pairs': onHeaders((headers) => Object.entries(headers)),
  'upload headers as records': onHeaders((headers) =>
    Object.entries(headers).map(([name, value]) => ({ name, value })),
  ),
  'a character alone': {
    body: (body) => ('character' in dataOf(body) ? { ...body, data: dataOf(body).character } : body),
  },
  'warnings in data': onWarnings((data, warnings) => ({ data: { ...data, warnings } })),
  'warnings in the job': onWarnings((data, warnings) => ({
    data: { ...data, job: { ...(data.job as Fields), warnings } },
  })),
  'warnings beside data': onWarnings((data, warnings) => ({ data, warnings })),
  'one warning': onWarnings((data, [warning]) => ({ data: { ...data, warning } })),
  'warnings as records': onWarnings((data, codes) => ({
    data: { ...data, warnings: codes.map((code) => ({ code, message: 'A warning.' })) },
  })),
  'nothing to tell': {
    body: (body, { method, path }) =>
      !('error' in body) && (method === 'DELETE' || path === '/v1/uploads/complete') ? undefined : body,
  },
  'the id in x-service-request-id': { idHeader: 'x-service-request-id' },
  'the id in request-id': { idHeader: 'request-id' },
};

/** A `fetch` whose JSON answers have another shape. */
export function reshaped(fetch: typeof globalThis.fetch, { body: change, idHeader }: Shape): typeof globalThis.fetch {
  return async (input, init) => {
    const request = new Request(input, { ...init, signal: null });
    const response = await fetch(input, init);
    if (!response.headers.get('content-type')?.includes('json')) return response;
    const headers = new Headers(response.headers);
    if (idHeader !== undefined) {
      headers.set(idHeader, headers.get('x-request-id') ?? '');
      headers.delete('x-request-id');
    }
    const { method, url } = request;
    const given = (await response.json()) as Fields;
    const body = change === undefined ? given : change(given, { method, path: new URL(url).pathname });
    if (body === undefined) return new Response(null, { status: 204, headers });
    return Response.json(body, { status: response.status, headers });
  };
}
