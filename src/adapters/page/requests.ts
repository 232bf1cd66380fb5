// A page's requests. Files use XMLHttpRequest, because fetch reports no upload progress.
import type { PageError } from './run.js';

const PAGE_HEADERS = { 'x-gen-page': '1' };
/** After this many attempts, the run fails. It remains in the tab's storage for `resume()`. */
const MAX_ATTEMPTS = 6;

/** Resolves after `ms`, or early if the signal aborts. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener('abort', () => resolve(clearTimeout(timer)));
  });
}

function sendFile(
  [method, url]: readonly [method: string, url: string],
  headers: Readonly<Record<string, string>>,
  file: Blob,
  signal: AbortSignal,
  onProgress: (event: ProgressEvent) => void,
): Promise<XMLHttpRequest> {
  return new Promise((resolve) => {
    signal.throwIfAborted();
    const request = new XMLHttpRequest();
    request.open(method, url);
    request.responseType = 'json';
    // The proxy needs the session cookie, even from a listed origin. Storage must not receive it.
    request.withCredentials = method === 'POST';
    for (const name in headers) request.setRequestHeader(name, headers[name] as string);
    request.upload.onprogress = onProgress;
    request.onloadend = () => resolve(request);
    signal.addEventListener('abort', () => request.abort());
    request.send(file);
  });
}

const isAccepted = ({ status }: XMLHttpRequest) => /^2/.test(`${status}`);

/** Converts an error response from the proxy, or from a server in front of it. A status below 400 counts as a failed connection. */
function errorOf(url: string, status = 0, reply?: Partial<PageError> | null): PageError {
  const isResponse = status > 399;
  return {
    code: isResponse ? 'service_error' : 'network',
    message: isResponse ? `${url} returned ${status}.` : 'The connection failed. Try again.',
    retry: !/^4(?!29)/.test(`${status}`),
    ...(reply?.code ? reply : null),
    status,
  };
}

/**
 * POSTs JSON to the proxy and returns the JSON response. Retries errors that can pass, and throws a {@link PageError} after the
 * last of `attempts` (0: no limit). A success without `requiredField`, such as a truncated response or a login page, counts as
 * a failed connection. The signal stops the retries and, except for a create, aborts the request in flight.
 */
export async function post<Body>(
  url: string,
  body: object,
  requiredField: keyof Body,
  signal?: AbortSignal,
  attempts = MAX_ATTEMPTS,
): Promise<Body> {
  for (let failures = 0; ; ) {
    signal?.throwIfAborted();
    // A retry isn't held, because a reverse proxy may have closed the held request.
    const json = JSON.stringify(failures ? { ...body, hold: false } : body);
    const response = await fetch(url, {
      method: 'POST',
      headers: { ...PAGE_HEADERS, 'content-type': 'application/json' },
      credentials: 'include',
      body: json,
      signal: ('key' in body ? null : signal) ?? null,
    }).catch(() => null);
    const reply = await response?.json().catch(() => null);
    if (reply?.[requiredField]) return reply;
    const error = errorOf(url, response?.status, reply);
    if (!error.retry || ++failures === attempts) throw error;
    signal?.throwIfAborted();
    await pause(Math.min(500 * 2 ** failures, 30_000), signal);
  }
}

/** Uploads a file directly to the storage or, if the storage rejects cross-origin requests, through the proxy. */
export async function upload(
  base: string,
  file: Blob,
  signal: AbortSignal,
  onProgress: (event: ProgressEvent) => void,
): Promise<string> {
  const { name, type, size } = file as Partial<File>;
  const { put, direct } = await post<BegunUpload>(`${base}/upload`, { name, type, size }, 'put', signal);
  if (!direct || !isAccepted(await sendFile(['PUT', direct.url], direct.headers, file, signal, onProgress))) {
    const url = `${base}/bytes`;
    const headers = { ...PAGE_HEADERS, 'x-gen-ticket': put };
    const request = await sendFile(['POST', url], headers, file, signal, onProgress);
    if (!isAccepted(request)) throw errorOf(url, request.status, request.response);
  }
  return (await post<{ readonly upload: string }>(`${base}/uploaded`, { put }, 'upload', signal)).upload;
}

/** Response to step 1: a ticket for sending the bytes and, unless it needs a credential, the storage's URL. */
interface BegunUpload {
  readonly put: string;
  readonly direct?: { readonly url: string; readonly headers: Readonly<Record<string, string>> };
}
