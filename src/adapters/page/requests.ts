// What a page sends: JSON by fetch, bytes by XMLHttpRequest, because fetch reports no upload progress.
import type { PageError } from './run.js';

const PAGE_HEADERS = { 'x-gen-page': '1' };
/** A run that fails after them stays in the tab's storage, for `resume()`. */
const MAX_ATTEMPTS = 6;

/** Waits. An abort ends it early. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener('abort', () => resolve(clearTimeout(timer)));
  });
}

/**
 * The error for a response. Without a code it comes from something in front of the proxy, or there is no proxy at this URL.
 * Without a status the connection failed.
 */
function rejection(url: string, status = 0, reply?: Partial<PageError> | null): PageError {
  if (reply?.code) return { ...reply, status } as PageError;
  if (!status) return { status, code: 'network', message: 'The connection failed. Try again.', retry: true };
  return {
    status,
    code: 'service_error',
    message: `${url} returned ${status}.`,
    retry: status > 499 || status === 429,
  };
}

interface PostOptions {
  /** Ends the attempts. */
  readonly signal?: AbortSignal;
  readonly attempts?: number;
  /** If true, the signal does not abort a request in flight. */
  readonly isCreate?: boolean;
}

/**
 * POSTs JSON to the proxy, and returns the JSON of its response, which has the field `has`. Tries again while that helps, and
 * then throws a {@link PageError}. A success without that field, such as one that was cut off or a login page, is a failed
 * connection.
 */
export async function post<Reply>(
  url: string,
  body: unknown,
  has: keyof Reply,
  { signal, attempts = MAX_ATTEMPTS, isCreate }: PostOptions = {},
): Promise<Reply> {
  for (let failures = 1; ; failures++) {
    signal?.throwIfAborted();
    const response = await fetch(url, {
      method: 'POST',
      headers: { ...PAGE_HEADERS, 'content-type': 'application/json' },
      credentials: 'include',
      body: JSON.stringify(body),
      signal: (!isCreate && signal) || null,
    }).catch(() => undefined);
    const reply = await response?.json().catch(() => null);
    if (response?.ok && reply?.[has]) return reply;
    const error = rejection(url, response?.ok ? 0 : response?.status, reply);
    if (!error.retry || failures === attempts) throw error;
    signal?.throwIfAborted();
    await pause(Math.min(500 * 2 ** failures, 30_000), signal);
  }
}

interface Target {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Uploads a file: straight to the storage, or through the proxy if the storage does not accept requests of pages. */
export async function upload(
  base: string,
  file: Blob,
  signal: AbortSignal,
  progress: (sentBytes: number) => void,
): Promise<string> {
  /** Resolves with whether the bytes were accepted. Rejects if the run is stopped. */
  const send = (method: string, { url, headers }: Target, isProxy: boolean) =>
    new Promise<boolean>((resolve, reject) => {
      signal.throwIfAborted();
      const request = new XMLHttpRequest();
      request.open(method, url);
      request.responseType = 'json';
      // For the session of a listed origin. A storage gets no credentials.
      request.withCredentials = isProxy;
      for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
      request.upload.onprogress = ({ loaded }) => progress(loaded);
      request.onloadend = () => {
        const { status, response } = request;
        const isAccepted = status > 199 && status < 300;
        if (isProxy && !isAccepted) reject(rejection(url, status, response));
        resolve(isAccepted);
      };
      signal.addEventListener('abort', () => {
        reject(signal.reason);
        request.abort();
      });
      request.send(file);
    });

  const described = { file_name: (file as Partial<File>).name, mime_type: file.type, file_size: file.size };
  const { put, direct } = await post<BegunUpload>(`${base}/upload`, described, 'put', { signal });
  if (!direct || !(await send('PUT', direct, false)))
    await send('POST', { url: `${base}/bytes`, headers: { ...PAGE_HEADERS, 'x-gen-ticket': put } }, true);
  return (await post<{ readonly upload: string }>(`${base}/uploaded`, { put }, 'upload', { signal })).upload;
}

/** The proxy's response to step 1: a ticket for the bytes, and their target if the storage accepts requests of pages. */
interface BegunUpload {
  readonly put: string;
  readonly direct?: Target;
}
