import type { GenClient } from '../../client/client.js';
import type { ClientOptions } from '../../client/client-options.js';
import { APIError } from '../../errors/index.js';
import type { RequestOptions } from '../../rules/options.js';
import { systemClock } from '../../runtime/clock.js';
import type { RequestPromise } from '../../transport/transport.js';

/** What a call came to. */
export interface Seen {
  /** The HTTP status; undefined where no response came. */
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** What the call resolved with. */
  readonly data: unknown;
  /** Milliseconds since the epoch, in the middle between request and response. */
  readonly at: number;
  readonly durationMs: number;
  /** Why it rejected; undefined where it did not. */
  readonly error: unknown;
}

/** Makes a call and keeps what came back. */
export type Observe = (call: (client: GenClient, options: RequestOptions) => RequestPromise<unknown>) => Promise<Seen>;

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

/** Makes each call once: a failure, or a 429, is what the doctor is to report. */
export function createDoctorObserver({ createClient, baseUrl, apiKey, signal, fetch }: ObserverOptions): Observe {
  const once = { maxRetries: 0, maxRetryAfterMs: 0, timeoutMs: CALL_TIMEOUT_MS, rateLimit: 'off' } as const;
  const client = createClient({ baseUrl, ...(apiKey !== undefined && { apiKey }), ...(fetch && { fetch }), ...once });
  return async (call) => {
    signal.throwIfAborted();
    const begun = systemClock.now();
    const seen = (answer: Pick<Seen, 'status' | 'headers' | 'data' | 'error'>): Seen => {
      const ended = systemClock.now();
      return { ...answer, at: (begun + ended) / 2, durationMs: ended - begun };
    };
    try {
      const { data, response } = await call(client, { signal }).withResponse();
      const headers = Object.fromEntries(response.headers);
      return seen({ status: response.status, headers, data, error: undefined });
    } catch (error) {
      signal.throwIfAborted();
      const { status, headers = {} } = APIError.isInstance(error) ? error : {};
      return seen({ status, headers: Object.fromEntries(new Headers(headers)), data: undefined, error });
    }
  };
}
