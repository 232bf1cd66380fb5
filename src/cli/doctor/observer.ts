import type { GenClient } from '../../client/client.js';
import type { ClientOptions } from '../../client/client-options.js';
import type { RequestOptions } from '../../rules/options.js';
import { joinBytes } from '../../runtime/bytes.js';
import { systemClock } from '../../runtime/clock.js';

/** A response as it came over the wire. */
export interface Seen {
  /** The HTTP status; undefined where no response came. */
  readonly status: number | undefined;
  readonly headers: Headers;
  /** The body as JSON; undefined for anything else, and for a body beyond {@link MOST_BYTES}. */
  readonly body: unknown;
  /** Milliseconds since the epoch, in the middle between request and response. */
  readonly at: number;
  readonly durationMs: number;
  /** What the client made of it, where that is an error. */
  readonly error: unknown;
}

/** Makes a call and keeps what came back. */
export type Observe = (call: (client: GenClient, options: RequestOptions) => PromiseLike<unknown>) => Promise<Seen>;

/** How the doctor reaches the service. */
export interface ObserverOptions {
  readonly createClient: (options: ClientOptions) => GenClient;
  readonly baseUrl: string;
  readonly apiKey?: string | undefined;
  /** Ends the call that is under way. */
  readonly signal: AbortSignal;
  /** @default the runtime's fetch */
  readonly fetch?: typeof fetch | undefined;
}

const CALL_TIMEOUT_MS = 15_000;
/** No response that the doctor looks at is longer. */
const MOST_BYTES = 1024 * 1024;

/** Makes each call once: a failure, or a 429, is what the doctor is to report. One call at a time. */
export function createDoctorObserver(options: ObserverOptions): Observe {
  const { createClient, baseUrl, apiKey, signal, fetch: inner = fetch } = options;
  let last: Omit<Seen, 'error'> | undefined;
  const tap: typeof fetch = async (input, init) => {
    const begun = systemClock.now();
    const response = await inner(input, init);
    const bytes = await firstBytes(response, MOST_BYTES);
    const ended = systemClock.now();
    const { status, statusText, headers } = response;
    const body = bytes && json(new TextDecoder().decode(bytes));
    last = { status, headers, body, at: (begun + ended) / 2, durationMs: ended - begun };
    return new Response(response.body === null ? null : (bytes ?? ''), { status, statusText, headers });
  };
  const once = { maxRetries: 0, maxRetryAfterMs: 0, timeoutMs: CALL_TIMEOUT_MS, rateLimit: 'off' } as const;
  const client = createClient({ baseUrl, ...(apiKey !== undefined && { apiKey }), fetch: tap, ...once });
  return async (call) => {
    signal.throwIfAborted();
    last = undefined;
    let error: unknown;
    try {
      await call(client, { signal });
    } catch (reason) {
      signal.throwIfAborted();
      error = reason;
    }
    const none = { status: undefined, headers: new Headers(), body: undefined, at: systemClock.now(), durationMs: 0 };
    return { ...(last ?? none), error };
  };
}

/** The body; undefined for one that is longer than `most`, of which no more is read. */
export async function firstBytes({ body }: Response, most: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  const reader = body?.getReader();
  for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
    size += piece.value.length;
    if (size > most) {
      await reader?.cancel();
      return undefined;
    }
    pieces.push(piece.value);
  }
  return joinBytes(pieces);
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
