import type { Attempt, Wiring } from './attempt.js';
import { isRedirectFailure, redirectRefusal, redirectTarget } from './redirect.js';

/** Something that fetch or a body threw: p-retry and the policy must not mistake it for a mistake in the code. */
export class NetworkFailure extends Error {}

/** Marks what a promise was rejected with as the network's. */
export function networkFailure(cause: unknown): NetworkFailure {
  return new NetworkFailure('', { cause });
}

/** Sends the attempt, and follows it where redirects may lead. */
export async function follow(wiring: Wiring, attempt: Attempt): Promise<Response> {
  const { call, guard, number: attempts } = attempt;
  const { method, idempotencyKey, streams: leaves, send } = call;
  const strict = call.body !== undefined && wiring.copiesBodies;
  let url = call.url;
  let init = initOf(wiring, attempt);
  if (typeof call.body === 'string') init.body = call.body;
  else if (call.body) await guard.race(call.body(init, (extraMs) => guard.extend(call.timeoutMs + extraMs)));
  for (let hops = 0; ; hops++) {
    const hop = { method, url, attempts, idempotencyKey, hops, leaves };
    const sent = strict ? sendStrictly(send, url, init) : send(url, init);
    const response = await guard.race(sent, drop, (error) =>
      isRedirectFailure(error)
        ? redirectRefusal(0, hop, 'a stream cannot be sent twice to see where to')
        : networkFailure(error),
    );
    if (response.type !== 'opaqueredirect' && (response.status < 300 || response.status > 399)) return response;
    const next = redirectTarget(response, hop);
    if (next === undefined) return response;
    drop(response);
    if (next instanceof Error) throw next;
    if (new URL(next).origin !== new URL(url).origin) init = { ...init, headers: { ...call.ownHeaders } };
    url = next;
  }
}

/** Gives back the connection of an answer that nobody reads. */
function drop(response: Response): void {
  if (!response.bodyUsed) response.body?.cancel().catch(() => {});
}

function initOf({ agent, takesNoStore }: Wiring, { call, guard, secret }: Attempt) {
  const { method, idempotencyKey, toService } = call;
  const headers: Record<string, string> = Object.assign({}, toService && agent, call.headers);
  if (secret !== undefined) headers.authorization = `Bearer ${secret}`;
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey;
  const init: RequestInit & { headers: typeof headers } = {
    method,
    headers,
    signal: guard.signal,
    redirect: 'manual',
  };
  if (call.noStore && takesNoStore) init.cache = 'no-store';
  return init;
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
