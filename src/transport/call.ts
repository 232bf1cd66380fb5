import { type Config, readHeaders } from '../config.js';
import { GenError } from '../errors/index.js';
import type { RequestTrace } from '../events.js';
import type { RequestEvent } from '../hooks.js';
import type { RequestOptions } from '../schemas/request-options.js';
import { show } from '../schemas/show.js';
import { idempotencyKeyOf } from './idempotency.js';
import { withoutQuery } from './redirect.js';

const METHODS: readonly string[] = ['GET', 'HEAD', 'POST', 'DELETE', 'PUT', 'PATCH'];

/** One logical call, however often it is sent. */
export interface Call {
  readonly method: string;
  /** Absolute, without its query: for errors. */
  readonly url: string;
  /** Below the base URL, without its query: for hooks and logs. */
  readonly path: string;
  readonly lane: string | undefined;
  /** Whether it goes to the service itself: only then are the key and the client's headers sent. */
  readonly toService: boolean;
  readonly isPublic: boolean;
  /** Whether it rejects where another call would wait for its rate limit. */
  readonly neverWaits: boolean;
  /** What the call's options add. Sent to the service only. */
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number;
  readonly maxRetries: number;
  readonly idempotencyKey: string | undefined;
  /** Whether the body can be sent again. */
  readonly repeatable: boolean;
  /** Whether the answer's body is left to the caller. */
  readonly streams: boolean;
}

/** What differs between JSON, stream and transfer. */
export interface CallParts {
  readonly method: string;
  /** Below the base URL. */
  readonly path: string;
  /** An absolute URL in its place. */
  readonly url?: string | undefined;
  readonly lane?: string | undefined;
  readonly isPublic?: boolean | undefined;
  readonly neverWaits?: boolean | undefined;
  /** The JSON body, which may hold the idempotency key. */
  readonly json?: unknown;
  readonly repeatable?: boolean;
  readonly streams?: boolean;
}

/** Joins a request's parts with the options of the call and of the client. Throws a GenError for a bad option. */
export function createCall(config: Config, parts: CallParts, options: RequestOptions = {}): Call {
  const { method, path, json } = parts;
  if (!METHODS.includes(method))
    throw new GenError(`method must be one of ${METHODS.join(', ')}, not ${show(method)}.`);
  const base = config.baseUrl();
  const toService = parts.url === undefined || new URL(parts.url).origin === new URL(base).origin;
  const url = withoutQuery(parts.url ?? base + checkPath(path));
  const creates = method === 'POST' || method === 'PATCH';
  return {
    method,
    url,
    path: url.startsWith(`${base}/`) ? url.slice(base.length) : url,
    lane: parts.lane,
    toService,
    isPublic: parts.isPublic ?? false,
    neverWaits: parts.neverWaits ?? config.rateLimit === 'throw',
    headers: toService ? readHeaders(options.headers) : {},
    signal: options.signal,
    timeoutMs: options.timeoutMs ?? config.timeoutMs,
    maxRetries: options.maxRetries ?? config.maxRetries,
    idempotencyKey: creates ? idempotencyKeyOf(options.idempotencyKey, json) : undefined,
    repeatable: parts.repeatable ?? true,
    streams: parts.streams ?? false,
  };
}

/** Whatever made the path, it stays below the base URL: a URL parser takes `..` for a step up, also when it is encoded. */
function checkPath(path: string): string {
  if (/^\/(?!\/)[^\\\s]+$/.test(path) && !/^[^?#]*\/(\.|%2e){1,2}([/?#]|$)/i.test(path)) return path;
  throw new GenError(`path must start with one "/" and stay below baseUrl, without "..": ${JSON.stringify(path)}.`);
}

/** An attempt of the call as hooks and logs see it. */
export function eventOf({ method, path, lane }: Call, attempt: number, trace?: RequestTrace): RequestEvent {
  return { callId: trace?.callId ?? '', method, path, lane, attempt, laneWaitMs: trace?.laneWaitMs ?? 0 };
}
