import { GenClient } from '../../client.js';
import { systemClock } from '../../clock.js';

/** An answer as it came over the wire. */
export interface Seen {
  /** The HTTP status; undefined where no answer came. */
  readonly status: number | undefined;
  readonly headers: Headers;
  /** The body as JSON; undefined for anything else. */
  readonly body: unknown;
  /** Milliseconds since the epoch, in the middle between request and answer. */
  readonly at: number;
  readonly durationMs: number;
  /** What the client made of it, where that is an error. */
  readonly error: unknown;
}

/** Makes calls and keeps what came back, whole. */
export type Observe = (call: (client: GenClient) => PromiseLike<unknown>) => Promise<Seen>;

/** How the doctor reaches the service. */
export interface ObserverOptions {
  readonly baseUrl: string;
  readonly apiKey?: string | undefined;
  readonly fetch?: typeof fetch | undefined;
}

const TIMEOUT_MS = 15_000;

/** A client that tells each answer as it came. One call at a time. */
export function createObserver({ baseUrl, apiKey, fetch: inner = fetch }: ObserverOptions): Observe {
  let last: Omit<Seen, 'error'> | undefined;
  const tap: typeof fetch = async (input, init) => {
    const begun = systemClock.now();
    const response = await inner(input, init);
    const ended = systemClock.now();
    const { status, headers } = response;
    const body = json(await response.clone().text());
    last = { status, headers, body, at: (begun + ended) / 2, durationMs: ended - begun };
    return response;
  };
  const key = apiKey === undefined ? {} : { apiKey };
  const client = new GenClient({ baseUrl, ...key, fetch: tap, maxRetries: 0, timeoutMs: TIMEOUT_MS, rateLimit: 'off' });
  return async (call) => {
    last = undefined;
    let error: unknown;
    try {
      await call(client);
    } catch (reason) {
      error = reason;
    }
    const none = { status: undefined, headers: new Headers(), body: undefined, at: systemClock.now(), durationMs: 0 };
    return { ...none, ...(last ?? {}), error };
  };
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
