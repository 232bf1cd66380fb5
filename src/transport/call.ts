import { type Config, checkOption, readHeaders } from '../config.js';
import { GenError } from '../errors/index.js';
import type { RequestEvent } from '../hooks.js';
import type { RequestOptions } from '../schemas/request-options.js';
import { idempotencyKeyOf } from './idempotency.js';
import { withoutQuery } from './redirect.js';

const METHODS: readonly string[] = ['GET', 'HEAD', 'POST', 'DELETE', 'PUT', 'PATCH'];

/** One logical call, however often it is sent. */
export interface Call {
  readonly method: string;
  /** Absolute, with its query. */
  readonly url: string;
  /** Absolute, without its query: for errors. */
  readonly shownUrl: string;
  /** Below the base URL, without its query: for hooks and logs. */
  readonly path: string;
  readonly lane: string | undefined;
  /** Whether the key and the client's own headers go along: never to another origin. */
  readonly toService: boolean;
  readonly isPublic: boolean;
  readonly noStore: boolean;
  readonly headers: Readonly<Record<string, string>>;
  /** The headers that the answer itself depends on, such as a range: the only ones another origin sees. */
  readonly ownHeaders: Readonly<Record<string, string>>;
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number;
  readonly maxRetries: number;
  readonly idempotencyKey: string | undefined;
  /** The JSON body, or what adds the body of an attempt to it; the latter is the bytes' own affair. */
  readonly body: string | AddBody | undefined;
  /** Whether the body can be sent again. */
  readonly repeatable: boolean;
  /** Whether the answer's body is left to the caller. */
  readonly streams: boolean;
  /** One HTTP request. */
  readonly send: Send;
}

/** One HTTP request, as fetch takes it. */
export type Send = (url: string, init: RequestInit) => Promise<Response>;

/** Adds the body to an attempt. `extend` starts the attempt's deadline again, with so many milliseconds more. */
export type AddBody = (
  init: RequestInit & { headers: Record<string, string> },
  extend: (extraMs: number) => void,
) => Promise<void>;

/** What differs between JSON, stream and transfer. */
export type CallParts = Pick<Call, 'method' | 'path' | 'send'> & {
  readonly [Part in Optional]?: Call[Part] | undefined;
} & {
  /** The JSON body, in which a key may stand. */
  readonly json?: unknown;
};

type Optional = 'url' | 'lane' | 'toService' | 'isPublic' | 'noStore' | 'headers' | 'body' | 'repeatable' | 'streams';

/** Joins the request's parts with the options of the call and of the client; throws a GenError for a bad option. */
export function createCall(config: Config, parts: CallParts, options: RequestOptions = {}): Call {
  const { method, path, json, toService = true, headers: ownHeaders = {} } = parts;
  const url = parts.url ?? config.baseUrl + checkPath(path);
  if (!METHODS.includes(method)) throw new GenError(`method must be one of ${METHODS.join(', ')}, not ${method}.`);
  const keyed = method === 'POST' || method === 'PATCH';
  return {
    method,
    url,
    path: withoutQuery(path),
    shownUrl: withoutQuery(url),
    lane: parts.lane,
    toService,
    isPublic: parts.isPublic ?? false,
    noStore: parts.noStore ?? false,
    headers: toService
      ? Object.assign({}, config.headers, options.headers && readHeaders(options.headers), ownHeaders)
      : ownHeaders,
    ownHeaders,
    signal: options.signal,
    timeoutMs: checkOption('timeoutMs', options.timeoutMs ?? config.timeoutMs),
    maxRetries: checkOption('maxRetries', options.maxRetries ?? config.maxRetries),
    idempotencyKey: keyed ? idempotencyKeyOf(options.idempotencyKey, json) : undefined,
    body: parts.body,
    repeatable: parts.repeatable ?? true,
    streams: parts.streams ?? false,
    send: parts.send,
  };
}

/** Whatever made the path, it stays below the base URL: a URL parser takes `..` for a step up, also when it is encoded. */
function checkPath(path: string): string {
  if (/^\/(?!\/)[^\\\s]+$/.test(path) && !/^[^?#]*\/(\.|%2e){1,2}([/?#]|$)/i.test(path)) return path;
  throw new GenError(`path must start with one "/" and stay below baseUrl, without "..": ${JSON.stringify(path)}.`);
}

/** An attempt of the call as hooks and logs see it. */
export function eventOf(call: Call, attempt: number): RequestEvent {
  return { method: call.method, path: call.path, lane: call.lane, attempt };
}
