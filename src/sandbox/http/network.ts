import { abortable, onAbort } from '../../runtime/deadline.js';
import { isRequest } from '../../runtime/platform.js';
import type { Activity } from '../world/timeline.js';

// What a fault does to a request. For a server, reset and commitThenDrop reject with a ConnectionDropped, truncate fails the body
// with one half-way, and stall never ends it. `sandbox.fetch` makes of it the TypeError with which a real fetch rejects.

/** How a request came. */
export interface RequestArrival {
  /** Aborts when the caller has gone. */
  readonly signal?: AbortSignal | undefined;
  /** Whether the caller takes its time from the sandbox's clock. @default false */
  readonly onSandboxClock?: boolean;
}

/** The handler of a server. */
export type Handle = (request: Request, arrival?: RequestArrival) => Promise<Response>;

/** Thrown if the server should close the connection without a response. */
export class ConnectionDropped extends Error {
  /** Name of the error. */
  override readonly name = 'ConnectionDropped';
  constructor() {
    super('The sandbox dropped this connection because of a fault rule.');
  }
}

/** The same answer with a body that fails, or never ends, after half of its bytes. An answer without a body stays as it is. */
export async function spoilBody(response: Response, how: 'truncate' | 'stall'): Promise<Response> {
  if (response.body === null) return response;
  const bytes = new Uint8Array(await response.arrayBuffer());
  const headers = new Headers(response.headers);
  headers.set('content-length', String(bytes.length));
  const half = bytes.subarray(0, bytes.length >> 1);
  const body = new ReadableStream<Uint8Array>(
    {
      start: (controller) => controller.enqueue(half),
      pull: (controller) =>
        how === 'truncate' ? controller.error(new ConnectionDropped()) : new Promise<void>(() => {}),
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { status: response.status, headers });
}

// The network between an in-process client and the sandbox: what a real fetch adds to the answer of a server.

/** Makes a `fetch` of a handler, with aborts and dropped connections as a client sees them. */
export function createFetch(handle: Handle, activity: Activity, onSandboxClock: boolean): typeof fetch {
  return async (input, init) => {
    const given = isRequest(input) ? input : undefined;
    const signal = init?.signal ?? given?.signal;
    // The signal stays outside, because a Request would leave a listener on it.
    const request = given && init === undefined ? given : new Request(input, { ...init, signal: null });
    signal?.throwIfAborted();
    const response = await abortable(handle(request, { signal, onSandboxClock }), signal).catch((error: unknown) => {
      throw error instanceof ConnectionDropped ? networkError('fetch failed') : error;
    });
    return Object.defineProperty(cutBody(response, activity, signal), 'url', { value: request.url });
  };
}

/** The body as it arrives: cut where the connection is cut, ended at once by an abort. */
function cutBody(response: Response, activity: Activity, signal: AbortSignal | undefined): Response {
  if (response.body === null) return response;
  const reader = response.body.getReader();
  const underway = activity.begin('body');
  let forget = () => {};
  const settle = () => {
    forget();
    underway.end();
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        forget = onAbort(signal, () => {
          underway.end();
          controller.error(signal?.reason);
          reader.cancel().catch(() => {});
        });
      },
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (signal?.aborted) return;
          underway.touch();
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

function networkError(message: string): TypeError {
  const cause = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
  return new TypeError(message, { cause });
}
