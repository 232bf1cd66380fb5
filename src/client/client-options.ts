// Client options and their schema.
import * as option from '../rules/options.js';
import type { Budget } from '../schemas/budget.js';
import { LIMITS, type Limits } from '../store/rate-limits.js';
import type { Store } from '../store/store.js';
import { HOOKS, type Hooks, LOG_LEVELS, type Logger, type LogLevel } from '../transport/events.js';

/** Options for a {@link GenClient}. */
export interface ClientOptions {
  /**
   * API key, or a function that returns it. Called before each attempt, so you can rotate keys.
   * @default the environment variable GEN_API_KEY
   */
  readonly apiKey?: string | (() => string | Promise<string>) | undefined;
  /**
   * URL of the service, for example `https://host/prefix`, without `/v1`. There is no default host.
   * @default the environment variable GEN_BASE_URL
   */
  readonly baseUrl?: string | URL | undefined;
  /** Signing secret of webhooks, or several during a rotation. @default the environment variable GEN_WEBHOOK_SECRET */
  readonly webhookSecret?: string | readonly string[] | undefined;
  /**
   * Timeout of one attempt in milliseconds, including the entire JSON body. For a stream, the timeout between two chunks.
   * @default 60_000
   */
  readonly timeoutMs?: number | undefined;
  /** Maximum retries of a call. Waiting out a 429 doesn't count. @default 3 */
  readonly maxRetries?: number | undefined;
  /** Longest `Retry-After` to wait for, in milliseconds. A longer one throws immediately with `retryAfterMs`. @default 120_000 */
  readonly maxRetryAfterMs?: number | undefined;
  /** Extra headers for every call to the service. Never sent to another origin. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * Custom `fetch`, for example from undici or node-fetch. Called with a URL and options.
   * @default globalThis.fetch
   */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
  /**
   * If true, throws before anything is sent if a call breaks a documented rule or has an undocumented field.
   * @default true
   */
  readonly preflight?: boolean | undefined;
  /**
   * `wait` queues calls that would exceed a documented limit. `throw` rejects them, and a 429, with a RateLimitError. `off`
   * sends them immediately, and waits out a 429. @default 'wait'
   */
  readonly rateLimit?: 'wait' | 'throw' | 'off' | undefined;
  /**
   * Persistent storage for creates, budgets, rate limits, and handled events. `fileStore(path)` of `gen-client/node` uses one
   * machine's disk, `redisStore(redis)` of `gen-client/redis` works across machines, and `createStore` wraps your own database.
   * With a store, `client.resume()` resumes creates after a crash. @default none
   */
  readonly store?: Store | undefined;
  /**
   * Account name. Clients with the same name share rate limits, even with different keys.
   * @default one account per base URL and key, including each key of a key function
   */
  readonly account?: string | undefined;
  /**
   * Rate limits by name: `{ 'videos.create': { limit: 40, windowMs: 60_000 } }`. Pass the same limits in every process.
   * `limit: Infinity` removes a limit. @default the documented limits
   */
  readonly limits?: Limits | undefined;
  /** Logger. @default console if a level is set, otherwise none */
  readonly logger?: Logger | undefined;
  /** Log level. @default the environment variable GEN_LOG, or `info` with a logger, or `off` */
  readonly logLevel?: LogLevel | undefined;
  /**
   * Limit on what the client's creates can spend, from `createBudget`. A create that would exceed it rejects with a
   * BudgetExceededError before anything is sent.
   */
  readonly budget?: Budget | undefined;
  /** Functions to call for each job, attempt, retry, and wait. */
  readonly hooks?: Hooks | undefined;
  /** If true, allows a client in a browser page, where everyone can see its API key. @default false */
  readonly dangerouslyAllowBrowser?: boolean | undefined;
}

const LEVEL = option.oneOf(...LOG_LEVELS);

const HOOK_OPTIONS = Object.fromEntries(HOOKS.map((name) => [name, option.callback]));

const CLIENT_OPTIONS = option.optionsOf({
  // Validated elsewhere, with messages that never contain the value.
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
  logger: option.methods('error', 'warn', 'info', 'debug'),
  logLevel: LEVEL,
  budget: option.budget,
  hooks: option.optional(option.optionsOf(HOOK_OPTIONS, 'an object such as { onJob }')),
  dangerouslyAllowBrowser: option.flag,
});

/** Throws a {@link GenError} for an unknown or invalid option. */
export function checkClientOptions(options: ClientOptions): void {
  option.checkOptions('GenClient', CLIENT_OPTIONS, options);
}

/** Returns the log level from the environment. Throws a {@link GenError} for an invalid one. */
export function checkLevel(value: string): LogLevel {
  option.checkOptions('The environment', option.optionsOf({ GEN_LOG: LEVEL }), { GEN_LOG: value });
  return value as LogLevel;
}
