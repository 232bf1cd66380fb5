// The options of a client, as users give them, and the schema that they are checked by.
import * as z from 'zod/mini';
import type { Journal } from '../rules/journal.js';
import type { LaneLimit } from '../rules/limits.js';
import * as option from '../rules/options.js';
import type { Budget } from '../schemas/budget.js';
import { LIMITS } from '../store/in-process-limiter.js';
import type { RateLimiter } from '../store/rate-limiter.js';
import type { Store } from '../store/store.js';
import { type Hooks, LOG_LEVELS, type Logger, type LogLevel } from '../transport/hooks.js';

/** How to set up a {@link GenClient}. */
export interface ClientOptions {
  /**
   * The bearer key, or a function that gives it. The function is asked before each attempt, so that a rotated key is
   * picked up. Only calls that need a key ask for it. @default the environment variable GEN_API_KEY
   */
  readonly apiKey?: string | (() => string | Promise<string>) | undefined;
  /**
   * Address of the service, for example `https://host/prefix`; the paths begin with `/v1`. There is no default host.
   * @default the environment variable GEN_BASE_URL
   */
  readonly baseUrl?: string | URL | undefined;
  /** Signing secret of the webhooks; several during a rotation. @default the environment variable GEN_WEBHOOK_SECRET */
  readonly webhookSecret?: string | readonly string[] | undefined;
  /**
   * Milliseconds for one attempt: connecting, headers and the whole JSON body. For a stream, milliseconds between two
   * chunks. @default 60_000
   */
  readonly timeoutMs?: number | undefined;
  /** How many failures of a call are retried. Waiting out a 429 is not a failure. @default 3 */
  readonly maxRetries?: number | undefined;
  /** Longest Retry-After, in milliseconds, that a call waits for. A longer one is thrown at once, with the figure. @default 120_000 */
  readonly maxRetryAfterMs?: number | undefined;
  /** Extra headers for every call to the service. They are never sent to another origin. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * Replaces the runtime's `fetch`, and is called as `fetch(url, init)`: the fetch of undici, of node-fetch or of a proxy
   * fits. @default globalThis.fetch
   */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
  /**
   * Whether a call that breaks a documented rule is refused before anything is sent. `'strict'` also refuses every field that
   * the call does not document; otherwise such a field is sent, and `created.warnings` lists it. @default true
   */
  readonly preflight?: boolean | 'strict' | undefined;
  /**
   * `wait` queues calls that would exceed a documented limit. `throw` rejects them, and the service's own 429, with a
   * RateLimitError. `off` sends them at once and waits out a 429. @default 'wait'
   */
  readonly rateLimit?: 'wait' | 'throw' | 'off' | undefined;
  /**
   * Shares the limits of the account, its learned prices and job lengths, handled webhook events and notifications with
   * other processes, for example `redisStore(redis)` of `gen-client/redis`. @default this process's own memory
   */
  readonly store?: Store | undefined;
  /**
   * Limits by lane, in place of the documented ones: `{ 'videos.create': { limit: 40, windowMs: 60_000 } }`. Pass the same to
   * every process. `limit: Infinity` removes a limit. @default the documented limits
   */
  readonly limits?: Readonly<Record<string, LaneLimit>> | undefined;
  /**
   * What happens to calls with a limit while `store` is unavailable. `local` keeps the limits in this process, so that
   * several processes together may exceed them, and warns once on the logger. `throw` rejects the calls with a
   * ConnectionError. @default 'local'
   */
  readonly onUnavailable?: 'local' | 'throw' | undefined;
  /** Your own limiter, in place of the account's limits. `store` and `limits` then do not limit calls. */
  readonly limiter?: RateLimiter | undefined;
  /** Where to write what the client does. @default console when a level is set, else nothing is written */
  readonly logger?: Logger | undefined;
  /** How much to write. @default the environment variable GEN_LOG, else `info` when a logger is given, else `off` */
  readonly logLevel?: LogLevel | undefined;
  /**
   * A limit on what the client's creates may spend, made by `createBudget`. A create that would pass it rejects with a
   * BudgetExceededError before anything is sent.
   */
  readonly budget?: Budget | undefined;
  /**
   * Where creates are written before they are sent, so that a crash loses none: `fileJournal(path)` of `gen-client/node`, or
   * `sharedJournal(store)`. `client.resume()` takes them up. @default a create is known to this process only
   */
  readonly journal?: Journal | undefined;
  /** Functions that are called for every job, attempt, retry and wait. */
  readonly hooks?: Hooks | undefined;
  /** Allows a client in a browser page, which shows its key to everyone who opens the page. @default false */
  readonly dangerouslyAllowBrowser?: boolean | undefined;
}

const LEVEL = option.oneOf(...LOG_LEVELS);

const HOOKS = z.optional(
  z.strictObject(
    {
      onJob: option.callback,
      onRequest: option.callback,
      onResponse: option.callback,
      onRetry: option.callback,
      onWait: option.callback,
    },
    'an object with hooks',
  ),
);

const CLIENT_OPTIONS = z.strictObject({
  // These three have messages of their own, which never show the value.
  apiKey: option.anything,
  baseUrl: option.anything,
  webhookSecret: option.anything,
  timeoutMs: option.milliseconds,
  maxRetries: option.count,
  maxRetryAfterMs: option.millisecondsOrZero,
  headers: option.anObject,
  fetch: option.callback,
  preflight: option.preflight,
  rateLimit: option.oneOf('wait', 'throw', 'off'),
  limiter: option.methods<RateLimiter>('acquire', 'pause'),
  store: option.madeBy<Store>('redisStore(redis)', 'read', 'write'),
  limits: LIMITS,
  onUnavailable: option.oneOf('local', 'throw'),
  logger: option.methods<Logger>('error', 'warn', 'info', 'debug'),
  logLevel: LEVEL,
  budget: option.madeBy<Budget>('createBudget({ maxTokens })', 'reserve', 'refund'),
  journal: option.madeBy<Journal>('fileJournal(path)', 'append', 'entries'),
  hooks: HOOKS,
  dangerouslyAllowBrowser: option.flag,
});

/** Throws a {@link GenError} for an option of the client that does not exist, or that cannot be right. */
export function checkClientOptions(options: ClientOptions): void {
  option.checkOptions('GenClient', CLIENT_OPTIONS, options);
}

/** The level that a variable of the environment names. */
export function checkLevel(value: string): LogLevel {
  option.checkOptions('The environment', z.strictObject({ GEN_LOG: LEVEL }), { GEN_LOG: value });
  return value as LogLevel;
}
