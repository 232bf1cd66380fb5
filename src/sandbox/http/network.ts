import { abortable, onAbort } from '../../runtime/deadline.js';
import { isRequest } from '../../runtime/platform.js';
import type { Activity } from '../world/timeline.js';

// Connection faults. In a server's handler, `reset` and `commitThenDrop` throw a ConnectionDropped, and `truncate`
// fails the body with this error halfway through. `stall` never ends the body. `sandbox.fetch` converts the error to
// the TypeError of a real fetch.

export interface RequestArrival {
  /** Aborts when the caller disconnects. */
  readonly signal?: AbortSignal | undefined;
  /** True if the caller uses the sandbox's clock. @default false */
  readonly onSandboxClock?: boolean;
}

export type Handle = (request: Request, arrival?: RequestArrival) => Promise<Response>;

/** Thrown if the server should close the connection without a response. */
export class ConnectionDropped extends Error {
  /** Name of the error. */
  override readonly name = 'ConnectionDropped';
  constructor() {
    super('The sandbox dropped this connection because of a fault rule.');
  }
}

/** Returns the response with a body that fails or stalls after half of its bytes. */
export async function breakBody(response: Response, how: 'truncate' | 'stall'): Promise<Response> {
  if (response.body === null) return response;
  const bytes = new Uint8Array(await response.arrayBuffer());
  const headers = new Headers(response.headers);
  headers.set('content-length', String(bytes.length));
  const firstHalf = bytes.subarray(0, bytes.length >> 1);
  const body = new ReadableStream<Uint8Array>(
    {
      start: (controller) => controller.enqueue(firstHalf),
      pull: (controller) =>
        how === 'truncate' ? controller.error(new ConnectionDropped()) : new Promise<void>(() => {}),
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { status: response.status, headers });
}

/** Converts a handler to a `fetch` for in-process clients, with the aborts and network errors of a real one. */
export function createFetch(handle: Handle, activity: Activity, onSandboxClock: boolean): typeof fetch {
  return async (input, init) => {
    const inputRequest = isRequest(input) ? input : undefined;
    const signal = init?.signal ?? inputRequest?.signal;
    // Don't pass the signal to the Request, which would add a listener and never remove it.
    const request = inputRequest && init === undefined ? inputRequest : new Request(input, { ...init, signal: null });
    signal?.throwIfAborted();
    const response = await abortable(handle(request, { signal, onSandboxClock }), signal).catch((error: unknown) => {
      throw error instanceof ConnectionDropped ? networkError('fetch failed') : error;
    });
    return Object.defineProperty(withNetworkErrors(response, activity, signal), 'url', { value: request.url });
  };
}

/** Wraps the response, so that its body fails on an abort or a dropped connection. */
function withNetworkErrors(response: Response, activity: Activity, signal: AbortSignal | undefined): Response {
  if (response.body === null) return response;
  const reader = response.body.getReader();
  const work = activity.begin('body');
  let removeListener = () => {};
  const settle = () => {
    removeListener();
    work.end();
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        removeListener = onAbort(signal, () => {
          work.end();
          controller.error(signal?.reason);
          reader.cancel().catch(() => {});
        });
      },
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (signal?.aborted) return;
          work.touch();
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
