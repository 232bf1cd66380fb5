// The options of a client, as users give them, and the schema that they are checked by.
import * as z from 'zod/mini';
import * as option from '../rules/options.js';
import type { Budget } from '../schemas/budget.js';
import { LIMITS, type Limits } from '../store/rate-limits.js';
import type { Store } from '../store/store.js';
import { HOOKS, type Hooks, LOG_LEVELS, type Logger, type LogLevel } from '../transport/events.js';

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
   * Whether a call that breaks a documented rule, or has a field that the call does not document, is refused before anything
   * is sent. `false` sends everything as it is. @default true
   */
  readonly preflight?: boolean | undefined;
  /**
   * `wait` queues calls that would exceed a documented limit. `throw` rejects them, and the service's own 429, with a
   * RateLimitError. `off` sends them at once and waits out a 429. @default 'wait'
   */
  readonly rateLimit?: 'wait' | 'throw' | 'off' | undefined;
  /**
   * Persistent storage for creates, budgets, rate limits, and handled events. `fileStore(path)` of `gen-client/node` uses one
   * machine's disk, `redisStore(redis)` of `gen-client/redis` is for many machines, and `createStore` wraps a database of your
   * own. With a store, `client.resume()` resumes what a crash interrupted. @default none
   */
  readonly store?: Store | undefined;
  /**
   * The name of the account in the store and in the process. Clients of one name count together, also with several keys, as
   * during a rotation. @default a base URL and a key are an account; each key of a key function is one
   */
  readonly account?: string | undefined;
  /**
   * Limits by name, in place of the documented ones: `{ 'videos.create': { limit: 40, windowMs: 60_000 } }`. Pass the same to
   * every process. `limit: Infinity` removes a limit. @default the documented limits
   */
  readonly limits?: Limits | undefined;
  /** Where to write what the client does. @default console when a level is set, else nothing is written */
  readonly logger?: Logger | undefined;
  /** How much to write. @default the environment variable GEN_LOG, else `info` when a logger is given, else `off` */
  readonly logLevel?: LogLevel | undefined;
  /**
   * A limit on what the client's creates may spend, made by `createBudget`. A create that would pass it rejects with a
   * BudgetExceededError before anything is sent.
   */
  readonly budget?: Budget | undefined;
  /** Functions that are called for every job, attempt, retry and wait. */
  readonly hooks?: Hooks | undefined;
  /** Allows a client in a browser page, which shows its key to everyone who opens the page. @default false */
  readonly dangerouslyAllowBrowser?: boolean | undefined;
}

const LEVEL = option.oneOf(...LOG_LEVELS);

const HOOK_OPTIONS = Object.fromEntries(HOOKS.map((name) => [name, option.callback]));

const CLIENT_OPTIONS = z.strictObject({
  // These three have messages of their own, which never show the value.
  apiKey: option.anything,
  baseUrl: option.anything,
  webhookSecret: option.anything,
  timeoutMs: option.milliseconds,
  maxRetries: option.count,
  maxRetryAfterMs: option.millisecondsOrZero,
  headers: option.headers,
  fetch: option.callback,
  preflight: option.flag,
  rateLimit: option.oneOf('wait', 'throw', 'off'),
  store: option.store,
  account: option.text,
  limits: LIMITS,
  logger: option.methods<Logger>('error', 'warn', 'info', 'debug'),
  logLevel: LEVEL,
  budget: option.budget,
  hooks: z.optional(z.strictObject(HOOK_OPTIONS, 'an object with hooks')),
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
