// What a page sends: JSON by fetch, bytes by XMLHttpRequest, because fetch reports no upload progress.

/** The proxy's refusal, or a network that failed. */
export class PageError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const PAGE_HEADERS = { 'x-gen-page': '1' };

/** POSTs JSON to the proxy, and returns the JSON of its answer. Throws a {@link PageError}. */
export async function postJson<T>(url: string, body: unknown, signal: AbortSignal): Promise<T> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...PAGE_HEADERS, 'content-type': 'application/json' },
    credentials: 'include',
    body: JSON.stringify(body),
    signal,
  }).catch(() => {
    throw new PageError(0, 'network', 'The connection failed. Try again.');
  });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok)
    throw new PageError(response.status, answer.code ?? 'service_error', answer.message ?? 'Try again later.');
  return answer;
}

/** Sends bytes. Resolves with false where the storage does not take them from a page. */
function sendBytes(
  to: { readonly method: string; readonly url: string; readonly headers: Readonly<Record<string, string>> },
  file: Blob,
  { signal, progress }: { readonly signal: AbortSignal; readonly progress: (sentBytes: number) => void },
): Promise<boolean> {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open(to.method, to.url);
    for (const [name, value] of Object.entries(to.headers)) request.setRequestHeader(name, value);
    request.upload.onprogress = ({ loaded }) => progress(loaded);
    request.onload = () => resolve(request.status >= 200 && request.status < 300);
    request.onerror = request.onabort = () => resolve(false);
    signal.addEventListener('abort', () => request.abort());
    request.send(file);
  });
}

/** Uploads a file: straight to the storage, and through the proxy where the storage does not admit pages. */
export async function upload(
  url: string,
  file: Blob,
  { signal, progress }: { readonly signal: AbortSignal; readonly progress: (sentBytes: number) => void },
): Promise<string> {
  const { name: file_name = '' } = file as Partial<File>;
  const asked = { file_name, mime_type: file.type, file_size: file.size };
  const { put, direct } = await postJson<BegunUpload>(`${url}/upload`, asked, signal);
  const relay = { method: 'POST', url: `${url}/bytes`, headers: { ...PAGE_HEADERS, 'x-gen-ticket': put } };
  const isSent = direct !== undefined && (await sendBytes({ method: 'PUT', ...direct }, file, { signal, progress }));
  if (!isSent && !(await sendBytes(relay, file, { signal, progress }))) {
    throw new PageError(0, 'upload_failed', 'The file could not be uploaded. Try again.');
  }
  const ended = await postJson<{ readonly upload: string }>(`${url}/uploaded`, { put }, signal);
  return ended.upload;
}

/** The proxy's answer to step 1: a ticket for the bytes, and where they go directly if the storage admits pages. */
interface BegunUpload {
  readonly put: string;
  readonly direct?: { readonly url: string; readonly headers: Readonly<Record<string, string>> };
}
