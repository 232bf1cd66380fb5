// The only reader of the environment outside the command line.
import { GenError } from './errors/index.js';
import type { Hooks, Logger, LogLevel } from './hooks.js';
import type { RateLimiter } from './limits/rate-limiter.js';

/** How to set up a {@link GenClient}. */
export interface ClientOptions {
  /**
   * The bearer key, or a function that gives it, asked per attempt so that a rotated key is picked up. Needed only by
   * calls that need one. @default the environment's GEN_API_KEY
   */
  readonly apiKey?: string | (() => string | Promise<string>) | undefined;
  /** Where the service is; may carry a path prefix. @default the environment's GEN_BASE_URL; there is no other */
  readonly baseUrl?: string | URL | undefined;
  /** Signing secret of the webhooks; several while rotating. @default the environment's GEN_WEBHOOK_SECRET */
  readonly webhookSecret?: string | readonly string[] | undefined;
  /** Milliseconds for one attempt: connect, headers and the whole JSON body; between two chunks of a stream. @default 60_000 */
  readonly timeoutMs?: number | undefined;
  /** How many failures of a call are retried. Waiting out a 429 is not a failure. @default 3 */
  readonly maxRetries?: number | undefined;
  /** Milliseconds of Retry-After that are obeyed; a longer one is thrown at once, with the figure. @default 120_000 */
  readonly maxRetryAfterMs?: number | undefined;
  /** Extra headers for every call to the service; never sent to another origin. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Called as `fetch(url, init)` in place of the runtime's own. @default globalThis.fetch */
  readonly fetch?: typeof fetch | undefined;
  /** Whether what the documented rules refuse is refused before the call. @default true */
  readonly preflight?: boolean | undefined;
  /**
   * `wait` queues calls that would pass a documented limit, `throw` rejects them (and the service's own 429) with a
   * RateLimitError, `off` sends them and waits out a 429. @default 'wait'
   */
  readonly rateLimit?: 'wait' | 'throw' | 'off' | undefined;
  /** Replaces the limiter that the clients of one account share in this process. */
  readonly limiter?: RateLimiter | undefined;
  /** Where to write what the client does. @default console when a level is asked for, else nothing */
  readonly logger?: Logger | undefined;
  /** How much to write. @default the environment's GEN_LOG, else `info` when a logger is given, else `off` */
  readonly logLevel?: LogLevel | undefined;
  /** Told of every attempt, retry and wait. */
  readonly hooks?: Hooks | undefined;
  /** Lets a page in a browser make a client, and so show its key to whoever opens the page. @default false */
  readonly dangerouslyAllowBrowser?: boolean | undefined;
}

/** The options, checked and complete. Secrets are behind functions, so that no inspection shows them. */
export interface Config {
  readonly baseUrl: string;
  readonly apiKey: () => string | undefined | Promise<string>;
  /** Whether the key is a function, to be asked per attempt. */
  readonly rotates: boolean;
  readonly webhookSecrets: () => readonly string[];
  readonly timeoutMs: number;
  readonly maxRetries: number;
  readonly maxRetryAfterMs: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: typeof fetch | undefined;
  readonly preflight: boolean;
  readonly rateLimit: 'wait' | 'throw' | 'off';
  readonly limiter: RateLimiter | undefined;
  readonly hooks: Hooks;
  readonly logger: Logger | undefined;
  readonly logLevel: LogLevel;
}

/** The levels, each including those before it. */
export const LOG_LEVELS: readonly LogLevel[] = ['off', 'error', 'warn', 'info', 'debug'];

/** Checks the options and fills in what the environment and the defaults say. Throws a GenError that names the option. */
export function readConfig(options: ClientOptions): Config {
  refuseBrowser(options);
  const logLevel = options.logLevel ?? levelFromEnvironment() ?? (options.logger ? 'info' : 'off');
  return Object.freeze({
    baseUrl: readBaseUrl(options.baseUrl ?? environment('GEN_BASE_URL')),
    apiKey: readKey(options.apiKey ?? environment('GEN_API_KEY')),
    rotates: typeof options.apiKey === 'function',
    webhookSecrets: readSecrets(options.webhookSecret ?? environment('GEN_WEBHOOK_SECRET')),
    timeoutMs: positive('timeoutMs', options.timeoutMs ?? 60_000),
    maxRetries: count('maxRetries', options.maxRetries ?? 3),
    maxRetryAfterMs: zeroOrMore('maxRetryAfterMs', options.maxRetryAfterMs ?? 120_000),
    headers: Object.freeze(readHeaders(options.headers)),
    fetch: typed('fetch', 'function', options.fetch),
    preflight: typed('preflight', 'boolean', options.preflight) ?? true,
    rateLimit: oneOf('rateLimit', ['wait', 'throw', 'off'], options.rateLimit ?? 'wait'),
    limiter: readLimiter(options.limiter),
    hooks: typed('hooks', 'object', options.hooks) ?? {},
    logger: readLogger(options.logger) ?? (logLevel === 'off' ? undefined : globalThis.console),
    logLevel: oneOf('logLevel', LOG_LEVELS, logLevel),
  });
}

/** Whether this is Node itself, whose fetch copies request bodies unless redirects are errors. */
export function isNode(): boolean {
  const versions: Readonly<Record<string, string | undefined>> | undefined = globalThis.process?.versions;
  const agent = globalThis.navigator?.userAgent ?? '';
  return Boolean(versions?.node) && !versions?.bun && !('Deno' in globalThis) && !/Cloudflare|Edge/.test(agent);
}

/** Whether this is a page in a browser, where whoever opens it can read the key. */
export function isBrowser(): boolean {
  return typeof window === 'object' && typeof document === 'object' && typeof navigator === 'object';
}

function refuseBrowser(options: ClientOptions): void {
  if (options.dangerouslyAllowBrowser || !isBrowser()) return;
  throw new GenError(
    'GenClient in a browser page shows your API key to whoever opens it. Call the service from your server, or set dangerouslyAllowBrowser: true.',
  );
}

/** A runtime without `process`, or one that asks for permission, has no environment. */
function environment(name: string): string | undefined {
  try {
    return globalThis.process?.env?.[name]?.trim() || undefined;
  } catch {
    return undefined;
  }
}

function levelFromEnvironment(): LogLevel | undefined {
  const level = environment('GEN_LOG');
  return level === undefined ? undefined : oneOf('GEN_LOG', LOG_LEVELS, level);
}

function readBaseUrl(value: string | URL | undefined): string {
  const bad = (why: string) => new GenError(`baseUrl ${why}. Give the service's URL, for example https://host/prefix.`);
  if (value === undefined) throw bad('is missing: pass { baseUrl } or set GEN_BASE_URL');
  const text = String(value).trim();
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) throw bad('is not an absolute http(s) URL');
  if (url.username || url.password) throw bad('must not carry a user name or password');
  if (url.search || url.hash) throw bad('must not carry a query or fragment');
  return url.origin + url.pathname.replace(/\/+$/, '');
}

function readKey(value: ClientOptions['apiKey']): Config['apiKey'] {
  if (typeof value === 'function') return value;
  const key = value === undefined ? undefined : checkKey(value);
  return () => key;
}

/** A key as it may stand in a header, without the line break that files and variables end in. The message never shows it. */
export function checkKey(value: unknown): string {
  const key = typeof value === 'string' ? value.trim() : '';
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new GenError(
    `apiKey ${key ? 'has a space or another character that no key has' : 'is empty or not a string'}. Pass the key as the console shows it.`,
  );
}

function readSecrets(value: ClientOptions['webhookSecret']): Config['webhookSecrets'] {
  const secrets = value === undefined ? [] : typeof value === 'string' ? [value] : [...value];
  if (secrets.some((secret) => typeof secret !== 'string' || secret.trim() === '')) {
    throw new GenError('webhookSecret is blank. Pass the signing secret that the console shows, or an array of them.');
  }
  return () => secrets;
}

/** Headers with lower-case names. Those that the client itself answers for are refused. */
export function readHeaders(headers: Readonly<Record<string, string>> | undefined): Record<string, string> {
  const read: Record<string, string> = {};
  for (const [name, value] of Object.entries(typed('headers', 'object', headers) ?? {})) {
    const key = name.toLowerCase();
    if (key === 'authorization') throw new GenError('headers must not set Authorization. Use the apiKey option.');
    if (key === 'idempotency-key') {
      throw new GenError('headers must not set Idempotency-Key. Pass { idempotencyKey } to the call.');
    }
    if (!/^[!#$%&'*+.^_`|~\w-]+$/.test(name) || typeof value !== 'string' || /[^\t\x20-\x7e\x80-\xff]/.test(value)) {
      throw new GenError(`headers has a name or value that HTTP does not allow: "${name}".`);
    }
    read[key] = value;
  }
  return read;
}

function readLimiter(limiter: RateLimiter | undefined): RateLimiter | undefined {
  if (limiter === undefined) return undefined;
  if (typeof limiter?.acquire === 'function' && typeof limiter.pause === 'function') return limiter;
  throw new GenError('limiter must have acquire(lane, signal) and pause(lane, ms). Leave it out for the default.');
}

function readLogger(logger: Logger | undefined): Logger | undefined {
  if (logger === undefined) return undefined;
  const levels = ['error', 'warn', 'info', 'debug'] as const;
  if (levels.every((level) => typeof logger?.[level] === 'function')) return logger;
  throw new GenError('logger must have the methods error, warn, info and debug, as console has.');
}

/** A number above zero; Infinity for no limit. */
export function positive(name: string, value: number): number {
  if (typeof value === 'number' && value > 0) return value;
  throw new GenError(`${name} must be a number of milliseconds above 0, not ${String(value)}.`);
}

function zeroOrMore(name: string, value: number): number {
  if (typeof value === 'number' && value >= 0) return value;
  throw new GenError(`${name} must be a number of milliseconds, 0 or more, not ${String(value)}.`);
}

/** A whole number from zero up; Infinity for no limit. */
export function count(name: string, value: number): number {
  if (value === Number.POSITIVE_INFINITY || (Number.isInteger(value) && value >= 0)) return value;
  throw new GenError(`${name} must be a whole number, 0 or more, not ${String(value)}.`);
}

function oneOf<T extends string>(name: string, allowed: readonly T[], value: string): T {
  const found = allowed.find((one) => one === value);
  if (found !== undefined) return found;
  throw new GenError(`${name} must be one of ${allowed.join(', ')}, not ${String(value)}.`);
}

function typed<T>(name: string, type: 'function' | 'boolean' | 'object', value: T | undefined): T | undefined {
  if (value === undefined || (typeof value === type && value !== null)) return value;
  throw new GenError(`${name} must be ${type === 'object' ? 'an object' : `a ${type}`}, not ${String(value)}.`);
}
