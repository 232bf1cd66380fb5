import type { Attempt, Wiring } from './attempt.js';
import { isRedirectFailure, redirectRefusal, redirectTarget } from './redirect.js';

/** A body on its way is given this much more time: even a slow line moves that many bytes in a millisecond. */
const SLOWEST_BYTES_PER_MS = 100;

/** Something that fetch or a body threw. Not an Error of the public family: it becomes a ConnectionError. */
export class NetworkFailure extends Error {
  override readonly name = 'NetworkFailure';
}

/** Marks what the promise throws as the network's: p-retry and the policy must not mistake it for a mistake in the code. */
export async function networked<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw new NetworkFailure('', { cause: unwrapped(cause) });
  }
}

/** Sends the attempt, and follows it where redirects may lead. */
export async function follow(wiring: Wiring, attempt: Attempt): Promise<Response> {
  const { call, guard, number: attempts } = attempt;
  const { method, idempotencyKey, streams: leaves } = call;
  const send = call.bytes ? wiring.fetchBytes : wiring.fetch;
  const strict = call.body !== undefined && wiring.copiesBodies;
  let url = call.url;
  let init = await initOf(wiring, attempt);
  for (let hops = 0; ; hops++) {
    const response = await guard
      .race(networked(strict ? sendStrictly(send, url, init) : send(url, init)), drop)
      .catch((error: unknown) => {
        if (!(error instanceof NetworkFailure && isRedirectFailure(error))) throw error;
        throw redirectRefusal(
          0,
          { method, url, attempts, idempotencyKey },
          'a stream cannot be sent twice to see where to',
        );
      });
    if (response.type !== 'opaqueredirect' && (response.status < 300 || response.status > 399)) return response;
    try {
      const next = redirectTarget(response, { method, url, attempts, idempotencyKey, hops, leaves });
      if (next === undefined) return response;
      if (new URL(next).origin !== new URL(url).origin) init = { ...init, headers: call.ownHeaders };
      url = next;
    } catch (error) {
      drop(response);
      throw error;
    }
    drop(response);
  }
}

/** Gives back the connection of an answer that nobody reads. */
function drop(response: Response): void {
  if (!response.bodyUsed) response.body?.cancel().catch(() => {});
}

async function initOf(wiring: Wiring, attempt: Attempt): Promise<RequestInit> {
  const { call, guard, secret } = attempt;
  const { method, idempotencyKey } = call;
  const headers: Record<string, string> = { ...(call.toService && wiring.agent), ...call.headers };
  if (secret !== undefined) headers.authorization = `Bearer ${secret}`;
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey;
  const init: RequestInit = { method, headers, signal: guard.signal, redirect: 'manual' };
  if (call.noStore && wiring.takesNoStore) init.cache = 'no-store';
  if (!call.body) return init;
  const enough = () => guard.extend(call.timeoutMs + size / SLOWEST_BYTES_PER_MS);
  let size = Number(headers['content-length'] ?? 0) || 0;
  const made = call.body(enough);
  const body = made instanceof Promise ? await guard.race(made) : made;
  if (typeof body !== 'string') {
    const known = sizeOf(body);
    // The runtime tells this length by itself; the Edge runtime would send the header twice.
    if (known !== undefined) delete headers['content-length'];
    size = known ?? size;
    enough();
  }
  return Object.assign(init, { body }, body instanceof ReadableStream && { duplex: 'half' });
}

function sizeOf(body: BodyInit): number | undefined {
  if (body instanceof Blob) return body.size;
  return body instanceof ArrayBuffer || ArrayBuffer.isView(body) ? body.byteLength : undefined;
}

/**
 * One HTTP request with a body. Node copies a body that could be redirected, in memory and at a cost, so there a body goes out under
 * `redirect: 'error'`; only when that says there was a redirect is it sent again to see where it leads.
 */
async function sendStrictly(send: Wiring['fetch'], url: string, init: RequestInit): Promise<Response> {
  try {
    return await send(url, { ...init, redirect: 'error' });
  } catch (error) {
    // A stream that was refused is used up: it cannot be sent again to see where the redirect leads.
    if (init.body instanceof ReadableStream || init.signal?.aborted || !isRedirectFailure(error)) throw error;
    return send(url, init);
  }
}

/** ky's own wrapper holds a Request and says nothing more than its cause. */
function unwrapped(error: unknown): unknown {
  return error instanceof Error && error.name === 'NetworkError' && error.cause !== undefined ? error.cause : error;
}
