// What a fault does to a request. `sandbox.handle(request)` is the view of a server:
// - reset, commitThenDrop: `handle` rejects with a ConnectionDropped. The server closes the socket without an answer.
// - truncate: the Response states its full Content-Length, and its body fails half-way with a ConnectionDropped.
// - stall: the body of the Response stops half-way and never ends.
// - latencyMs: `handle` resolves late.
// `sandbox.fetch` is the view of a client: it makes a ConnectionDropped the TypeError with which a real fetch rejects.
import type { FaultRule } from '../world/faults.js';
import type { RequestRecord } from '../world/store.js';

/** Thrown where the connection is to drop without an answer. A server closes the socket then. */
export class ConnectionDropped extends Error {
  /** Tells it from other errors. */
  override readonly name = 'ConnectionDropped';
  constructor() {
    super('The sandbox dropped this connection because of a fault rule.');
  }
}

/** The effect of a rule, for the log. */
export function effectOf(fault: FaultRule): RequestRecord['fault'] {
  if (fault.reset) return 'reset';
  if (fault.commitThenDrop) return 'commitThenDrop';
  if (fault.truncate) return 'truncate';
  if (fault.stall) return 'stall';
  return fault.status === undefined ? 'latency' : 'status';
}

/** The same answer with a body that fails, or never ends, after half of its bytes. An answer without a body stays as it is. */
export async function spoilBody(response: Response, how: 'truncate' | 'stall'): Promise<Response> {
  if (response.body === null) return response;
  const bytes = new Uint8Array(await response.arrayBuffer());
  const headers = new Headers(response.headers);
  headers.set('content-length', String(bytes.length));
  const half = bytes.subarray(0, bytes.length >> 1);
  let sent = false;
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (!sent) {
          sent = true;
          if (half.length > 0) return controller.enqueue(half);
        }
        if (how === 'truncate') return controller.error(new ConnectionDropped());
        return new Promise<void>(() => {});
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { status: response.status, headers });
}
