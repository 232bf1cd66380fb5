// The network between an in-process client and the sandbox: what a real fetch does around a server's answer.
import { ConnectionDropped } from '../world/faults.js';

type Handle = (request: Request, signal?: AbortSignal) => Promise<Response>;

const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];
const MOST_REDIRECTS = 20;

/** Makes a `fetch` of a handler: aborts, redirects and dropped connections as a client sees them. */
export function createFetch(handle: Handle): typeof fetch {
  return async (input, init) => {
    const given = input instanceof Request ? input : undefined;
    const signal = init?.signal ?? given?.signal;
    // The signal stays outside: a Request would leave a listener on it.
    let request = given && init === undefined ? given : new Request(input, { ...init, signal: null });
    for (let hops = 0; ; hops++) {
      const response = await answerOf(handle, request, signal);
      const target = REDIRECTS.includes(response.status) ? response.headers.get('location') : null;
      if (target === null || request.redirect === 'manual') return locate(withBody(response, signal), request.url);
      if (request.redirect === 'error' || hops === MOST_REDIRECTS) throw new TypeError('fetch failed');
      request = redirected(request, new URL(target, request.url));
    }
  };
}

async function answerOf(handle: Handle, request: Request, signal: AbortSignal | undefined): Promise<Response> {
  signal?.throwIfAborted();
  let abort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal?.reason);
    signal?.addEventListener('abort', abort, { once: true });
  });
  try {
    return await Promise.race([handle(request, signal), aborted]);
  } catch (error) {
    throw error instanceof ConnectionDropped ? networkError('fetch failed') : error;
  } finally {
    signal?.removeEventListener('abort', abort);
  }
}

/** The body as it arrives: cut where the connection is cut, ended at once by an abort. */
function withBody(response: Response, signal: AbortSignal | undefined): Response {
  if (response.body === null) return response;
  const reader = response.body.getReader();
  let abort = () => {};
  const settle = () => signal?.removeEventListener('abort', abort);
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        abort = () => {
          controller.error(signal?.reason);
          reader.cancel().catch(() => {});
        };
        signal?.addEventListener('abort', abort, { once: true });
      },
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (signal?.aborted) return;
          if (!done) return controller.enqueue(value);
          settle();
          controller.close();
        } catch {
          settle();
          controller.error(networkError('terminated'));
        }
      },
      cancel(reason) {
        settle();
        return reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  const { status, statusText, headers } = response;
  return new Response(body, { status, statusText, headers });
}

/** The next request of a redirect; the key stays on its own origin. */
function redirected(request: Request, target: URL): Request {
  const headers = new Headers(request.headers);
  if (target.origin !== new URL(request.url).origin) headers.delete('authorization');
  const method = request.method === 'HEAD' ? 'HEAD' : 'GET';
  return new Request(target, { method, headers, redirect: request.redirect });
}

function locate(response: Response, url: string): Response {
  return Object.defineProperty(response, 'url', { value: url });
}

function networkError(message: string): TypeError {
  const cause = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
  return new TypeError(message, { cause });
}
