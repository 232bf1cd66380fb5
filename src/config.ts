// The only reader of the environment outside the command line.
import { GenError } from './errors/index.js';
import type { Hooks, Logger, LogLevel } from './hooks.js';
import type { RateLimiter } from './limits/rate-limiter.js';

/** How to set up a {@link GenClient}. */
export interface ClientOptions {
  /**
   * The bearer key, or a function that gives it. The function is asked per attempt, so that a rotated key is picked up.
   * Needed only by calls that need one. @default the environment's GEN_API_KEY
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

/** What an option may be, in words and as a check. */
type Rule = readonly [what: string, fits: (value: unknown) => boolean];

const oneOf = (...allowed: readonly unknown[]): Rule => [
  `one of ${allowed.join(', ')}`,
  (value) => allowed.includes(value),
];
const methods = (...names: readonly string[]): Rule => [
  `an object with the methods ${names.join(', ')}`,
  (value) => names.every((name) => typeof Object(value)[name] === 'function'),
];
const LEVEL = oneOf(...LOG_LEVELS);

const RULES: Readonly<Record<string, Rule>> = {
  timeoutMs: ['a number of milliseconds above 0', (value) => typeof value === 'number' && value > 0],
  maxRetryAfterMs: ['a number of milliseconds, 0 or more', (value) => typeof value === 'number' && value >= 0],
  maxRetries: [
    'a whole number, 0 or more',
    (value) => value === Number.POSITIVE_INFINITY || (Number.isInteger(value) && Number(value) >= 0),
  ],
  headers: ['an object', (value) => typeof value === 'object' && value !== null],
  hooks: ['an object', (value) => typeof value === 'object' && value !== null],
  fetch: ['a function', (value) => typeof value === 'function'],
  preflight: oneOf(true, false),
  rateLimit: oneOf('wait', 'throw', 'off'),
  limiter: methods('acquire', 'pause'),
  logger: methods('error', 'warn', 'info', 'debug'),
  logLevel: LEVEL,
  GEN_LOG: LEVEL,
};

/** The option, if it is what its name asks for or left out; throws a GenError that says what it must be. */
export function checkOption<T>(name: keyof typeof RULES, value: T): T {
  const [what, fits] = RULES[name] ?? LEVEL;
  if (value === undefined || fits(value)) return value;
  throw new GenError(`${name} must be ${what}, not ${String(value)}.`);
}

/** Checks the options and fills in what the environment and the defaults say. Throws a GenError that names the option. */
export function readConfig(options: ClientOptions): Config {
  refuseBrowser(options);
  const { apiKey, logger } = options;
  for (const name of Object.keys(RULES)) checkOption(name, options[name as keyof ClientOptions]);
  const logLevel =
    options.logLevel ?? checkOption('GEN_LOG', environment('GEN_LOG') as LogLevel) ?? (logger ? 'info' : 'off');
  return Object.freeze({
    baseUrl: readBaseUrl(options.baseUrl ?? environment('GEN_BASE_URL')),
    apiKey: readKey(apiKey ?? environment('GEN_API_KEY')),
    rotates: typeof apiKey === 'function',
    webhookSecrets: readSecrets(options.webhookSecret ?? environment('GEN_WEBHOOK_SECRET')),
    timeoutMs: options.timeoutMs ?? 60_000,
    maxRetries: options.maxRetries ?? 3,
    maxRetryAfterMs: options.maxRetryAfterMs ?? 120_000,
    headers: Object.freeze(readHeaders(options.headers)),
    fetch: options.fetch,
    preflight: options.preflight ?? true,
    rateLimit: options.rateLimit ?? 'wait',
    limiter: options.limiter,
    hooks: options.hooks ?? {},
    logger: logger ?? (logLevel === 'off' ? undefined : globalThis.console),
    logLevel,
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
    'A browser page shows its apiKey to all. Call from your server, or set dangerouslyAllowBrowser: true.',
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

function readBaseUrl(value: string | URL | undefined): string {
  const bad = (why: string) => new GenError(`baseUrl ${why}, for example https://host/prefix.`);
  if (value === undefined) throw bad('is missing: pass it or set GEN_BASE_URL');
  const text = String(value).trim();
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) throw bad('must be an absolute http(s) URL');
  if (url.username + url.password + url.search + url.hash) {
    throw bad('must have no credentials, query or hash');
  }
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
  throw new GenError(`apiKey ${key ? 'holds what no key holds' : 'is empty or no string'}.`);
}

function readSecrets(value: ClientOptions['webhookSecret']): Config['webhookSecrets'] {
  const secrets = value === undefined ? [] : [value].flat();
  if (secrets.some((secret) => typeof secret !== 'string' || secret.trim() === '')) {
    throw new GenError('webhookSecret must be one signing secret or several, none blank.');
  }
  return () => secrets;
}

/** Headers that the client itself answers for, and what to use instead. */
const OWN_HEADERS: Readonly<Record<string, string>> = {
  authorization: 'the apiKey option',
  'idempotency-key': '{ idempotencyKey } of the call',
};

/** Headers with lower-case names. Those that the client itself answers for are refused. */
export function readHeaders(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  const read: Record<string, string> = {};
  for (const [name, value] of Object.entries(checkOption('headers', headers))) {
    const key = name.toLowerCase();
    if (Object.hasOwn(OWN_HEADERS, key)) throw new GenError(`headers must not set ${name}: use ${OWN_HEADERS[key]}.`);
    if (!/^[!#$%&'*+.^_`|~\w-]+$/.test(name) || typeof value !== 'string' || /[^\t\x20-\x7e\x80-\xff]/.test(value)) {
      throw new GenError(`headers has a name or value that HTTP does not allow: "${name}".`);
    }
    read[key] = value;
  }
  return read;
}
