// The only reader of the environment outside the command line.
import * as z from 'zod/mini';
import { type Clock, systemClock } from './clock.js';
import { GenError } from './errors/index.js';
import type { Hooks, Logger, LogLevel } from './hooks.js';
import type { RateLimiter } from './limits/rate-limiter.js';
import * as option from './options.js';
import type { Budget } from './schemas/budget.js';
import type { Wake } from './wake.js';

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
  /** Largest JSON answer that is read, in bytes after decompression. A larger one is a ResponseError. @default 16_777_216 (16 MiB) */
  readonly maxResponseBytes?: number | undefined;
  /** Extra headers for every call to the service. They are never sent to another origin. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Replaces the runtime's `fetch`. It is called with a Request. @default globalThis.fetch */
  readonly fetch?: typeof fetch | undefined;
  /** Whether a call that breaks a documented rule is refused before anything is sent. @default true */
  readonly preflight?: boolean | undefined;
  /**
   * `live` asks the service (GET /v1/models) before a call is refused for the limits of its model: at most once an hour and
   * process, and only the answer refuses then. An answer that cannot be read leaves the refusal to the table of this version.
   * @default 'compiled'
   */
  readonly catalog?: 'live' | 'compiled' | undefined;
  /**
   * `wait` queues calls that would exceed a documented limit. `throw` rejects them, and the service's own 429, with a
   * RateLimitError. `off` sends them at once and waits out a 429. @default 'wait'
   */
  readonly rateLimit?: 'wait' | 'throw' | 'off' | undefined;
  /** Replaces the limiter that the clients of one account share in this process. */
  readonly limiter?: RateLimiter | undefined;
  /**
   * Wakes the waits of this process when a job's webhook lands in another one, for example `redisWake(redis)` of
   * `gen-client/redis`. `notify` publishes to it. @default waits are woken in their own process only
   */
  readonly wake?: Wake | undefined;
  /** Where to write what the client does. @default console when a level is set, else nothing is written */
  readonly logger?: Logger | undefined;
  /** How much to write. @default the environment variable GEN_LOG, else `info` when a logger is given, else `off` */
  readonly logLevel?: LogLevel | undefined;
  /**
   * A limit on what the client's creates may spend, made by `createBudget`. A create that would pass it rejects with a
   * BudgetExceededError before anything is sent.
   */
  readonly budget?: Budget | undefined;
  /** Functions that are told of every job, attempt, retry and wait. */
  readonly hooks?: Hooks | undefined;
  /** Allows a client in a browser page, which shows its key to everyone who opens the page. @default false */
  readonly dangerouslyAllowBrowser?: boolean | undefined;
}

/** The options, checked and complete. What the environment may give is behind functions, and so is every secret. */
export interface Config {
  /** The base URL without a trailing slash. Throws a {@link GenError} where there is none. */
  readonly baseUrl: () => string;
  /** The base URL, as far as it is known. */
  readonly knownBaseUrl: () => string | undefined;
  /** The key, or undefined where there is none. */
  readonly apiKey: () => string | undefined | Promise<string>;
  /** Whether the key is a function, to be asked before each attempt. */
  readonly rotates: boolean;
  readonly webhookSecrets: () => readonly string[];
  readonly timeoutMs: number;
  readonly maxRetries: number;
  readonly maxRetryAfterMs: number;
  readonly maxResponseBytes: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: typeof fetch | undefined;
  readonly preflight: boolean;
  readonly catalog: 'live' | 'compiled';
  readonly rateLimit: 'wait' | 'throw' | 'off';
  readonly limiter: RateLimiter | undefined;
  readonly wake: Wake | undefined;
  readonly budget: Budget | undefined;
  readonly hooks: Hooks;
  /** Where to write, and how much. */
  readonly log: () => { readonly logger: Logger | undefined; readonly level: LogLevel };
  readonly clock: Clock;
}

/** The levels, each including those before it. */
export const LOG_LEVELS = ['off', 'error', 'warn', 'info', 'debug'] as const satisfies readonly LogLevel[];

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
  maxResponseBytes: option.bytes,
  headers: option.anObject,
  fetch: option.callback,
  preflight: option.flag,
  catalog: option.oneOf('live', 'compiled'),
  rateLimit: option.oneOf('wait', 'throw', 'off'),
  limiter: option.methods<RateLimiter>('acquire', 'pause'),
  wake: option.methods<Wake>('publish', 'listen'),
  logger: option.methods<Logger>('error', 'warn', 'info', 'debug'),
  logLevel: LEVEL,
  budget: option.methods<Budget>('reserve', 'refund'),
  hooks: HOOKS,
  dangerouslyAllowBrowser: option.flag,
});

/** Throws a {@link GenError} for an option of the client that does not exist, or that cannot be right. */
export function checkClientOptions(options: ClientOptions): void {
  option.checkOptions('GenClient', CLIENT_OPTIONS, options);
}

/** Only for the sandbox and for tests: the clock that a client waits by. */
const CLOCK = Symbol.for('gen-client.clock');

/**
 * Checks the options. What is wrong throws a {@link GenError} that names the option. What is missing is looked for in
 * the environment when a call first needs it, so that a client can be made where the environment is not set.
 */
export function readConfig(options: ClientOptions & { readonly [CLOCK]?: Clock } = {}): Config {
  refuseRuntime(options);
  checkClientOptions(options);
  const { apiKey, baseUrl, webhookSecret, logger, logLevel } = options;
  const givenUrl = baseUrl === undefined ? undefined : checkBaseUrl(baseUrl);
  const givenKey = typeof apiKey === 'function' || apiKey === undefined ? undefined : checkKey(apiKey);
  const givenSecrets = webhookSecret === undefined ? undefined : checkSecrets(webhookSecret);
  const knownBaseUrl = once(() => givenUrl ?? fromEnvironment('GEN_BASE_URL', checkBaseUrl));
  return Object.freeze({
    baseUrl: () => knownBaseUrl() ?? missingBaseUrl(),
    knownBaseUrl,
    apiKey: typeof apiKey === 'function' ? apiKey : once(() => givenKey ?? fromEnvironment('GEN_API_KEY', checkKey)),
    rotates: typeof apiKey === 'function',
    webhookSecrets: once(() => givenSecrets ?? fromEnvironment('GEN_WEBHOOK_SECRET', (value) => [value]) ?? []),
    timeoutMs: options.timeoutMs ?? 60_000,
    maxRetries: options.maxRetries ?? 3,
    maxRetryAfterMs: options.maxRetryAfterMs ?? 120_000,
    maxResponseBytes: options.maxResponseBytes ?? 16 * 1024 * 1024,
    headers: Object.freeze(readHeaders(options.headers)),
    fetch: options.fetch,
    preflight: options.preflight ?? true,
    catalog: options.catalog ?? 'compiled',
    rateLimit: options.rateLimit ?? 'wait',
    limiter: options.limiter,
    wake: options.wake,
    budget: options.budget,
    hooks: options.hooks ?? {},
    log: once(() => {
      const level = logLevel ?? fromEnvironment('GEN_LOG', checkLevel) ?? (logger ? 'info' : 'off');
      return { level, logger: logger ?? (level === 'off' ? undefined : globalThis.console) };
    }),
    clock: options[CLOCK] ?? systemClock,
  });
}

/** Keeps the first value that is there. A variable that is not set yet is looked for again. */
function once<T>(read: () => T): () => T {
  let value: T | undefined;
  return () => {
    const found = value ?? read();
    value = found;
    return found;
  };
}

/** Whether this is Node.js itself, whose fetch keeps a copy of a request body unless redirects are errors. */
export function isNode(): boolean {
  return nodeVersion() !== undefined;
}

/** The version of Node.js, and undefined on the runtimes that only name one for compatibility. */
function nodeVersion(): string | undefined {
  const versions: Readonly<Record<string, string | undefined>> | undefined = globalThis.process?.versions;
  const agent = globalThis.navigator?.userAgent ?? '';
  return versions?.bun || 'Deno' in globalThis || /Cloudflare|Edge/.test(agent) ? undefined : versions?.node;
}

/** Whether this is a page in a browser, where everyone who opens it can read the key. */
export function isBrowser(): boolean {
  return typeof window === 'object' && typeof document === 'object' && typeof navigator === 'object';
}

const OLDEST_NODE = 22;

function refuseRuntime(options: ClientOptions | undefined): void {
  const version = nodeVersion();
  if (version !== undefined && Number.parseInt(version, 10) < OLDEST_NODE) {
    throw new GenError(`gen-client needs Node.js ${OLDEST_NODE} or later, and this is ${version}.`);
  }
  if (options?.dangerouslyAllowBrowser || !isBrowser()) return;
  throw new GenError(
    'A client in a browser page shows its apiKey to everyone who opens the page. Call the service from your server, or set dangerouslyAllowBrowser: true.',
  );
}

/** A variable that is set and not blank, checked. The message of the check names the variable. */
function fromEnvironment<T>(name: string, check: (value: string, name: string) => T): T | undefined {
  const { value } = readVariable(name);
  return value === undefined ? undefined : check(value, name);
}

/** A runtime without `process` has no environment, and one that asks for permission may deny it. */
function readVariable(name: string): { readonly value?: string | undefined; readonly denied?: string } {
  try {
    return { value: globalThis.process?.env?.[name]?.trim() || undefined };
  } catch (error) {
    return { denied: error instanceof Error ? error.message : String(error) };
  }
}

/** What to add to a message when the environment could not be read. */
export function whyNotRead(name: string): string {
  const { denied } = readVariable(name);
  return denied === undefined ? '' : ` ${name} could not be read: ${denied}`;
}

function missingBaseUrl(): never {
  throw new GenError(
    `baseUrl is missing. Pass { baseUrl } to GenClient or set GEN_BASE_URL, for example https://host/prefix.${whyNotRead('GEN_BASE_URL')}`,
  );
}

function checkBaseUrl(value: string | URL, name = 'baseUrl'): string {
  const bad = (why: string) => new GenError(`${name} ${why}, for example https://host/prefix.`);
  const text = String(value).trim();
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) throw bad('must be an absolute http(s) URL');
  if (url.username + url.password + url.search + url.hash) throw bad('must have no credentials, query or hash');
  const path = url.pathname.replace(/\/+$/, '');
  if (/\/v1$/.test(path)) throw bad('ends in /v1, which every path begins with: leave /v1 off');
  return url.origin + path;
}

/** The key, without the line break that files and variables end in. The message never shows it. */
export function checkKey(value: unknown, name = 'apiKey'): string {
  const key = typeof value === 'string' ? value.trim() : '';
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new GenError(
    key === ''
      ? `${name} must be a non-empty string.`
      : `${name} contains whitespace or non-ASCII characters. If it starts with "Bearer ", remove that prefix.`,
  );
}

function checkSecrets(value: string | readonly string[]): readonly string[] {
  const secrets = [value].flat();
  if (secrets.length > 0 && secrets.every((secret) => typeof secret === 'string' && secret.trim() !== '')) {
    return secrets;
  }
  throw new GenError('webhookSecret must be a signing secret, or a list of them, and none may be blank.');
}

function checkLevel(value: string): LogLevel {
  option.checkOptions('The environment', z.strictObject({ GEN_LOG: LEVEL }), { GEN_LOG: value });
  return value as LogLevel;
}

/** Headers that the client sets itself, and what to use instead. */
const OWN_HEADERS: Readonly<Record<string, string>> = {
  authorization: 'the apiKey option',
  'idempotency-key': '{ idempotencyKey } of the call',
};

/** The headers with lower-case names. Throws a {@link GenError} for those that the client sets itself. */
export function readHeaders(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  const read: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const key = name.toLowerCase();
    if (Object.hasOwn(OWN_HEADERS, key)) throw new GenError(`headers must not set ${name}: use ${OWN_HEADERS[key]}.`);
    if (!/^[!#$%&'*+.^_`|~\w-]+$/.test(name) || typeof value !== 'string' || /[^\t\x20-\x7e\x80-\xff]/.test(value)) {
      throw new GenError(`headers contains a name or value that HTTP does not allow: "${name}".`);
    }
    read[key] = value;
  }
  return read;
}
