// The only reader of the environment outside the command line.
import { type ClientOptions, checkClientOptions, checkLevel } from './client-options.js';
import { GenError } from '../errors/index.js';
import type { Hooks, Logger, LogLevel } from '../transport/hooks.js';
import type { RateLimiter } from '../store/rate-limiter.js';
import type { Journal } from '../rules/journal.js';
import type { LaneLimit } from '../rules/limits.js';
import { CLOCK, type Clock, type Random, randomOf, type SteadyClock, steady, systemClock } from '../runtime/clock.js';
import { isBrowser, nodeVersion } from '../runtime/platform.js';
import type { Budget } from '../schemas/budget.js';
import type { SharedStore } from '../store/store.js';

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
  readonly fetch: ClientOptions['fetch'];
  readonly preflight: boolean | 'strict';
  readonly catalog: 'live' | 'compiled';
  readonly rateLimit: 'wait' | 'throw' | 'off';
  readonly shared: SharedStore | undefined;
  readonly uploads: ClientOptions['uploads'];
  readonly limits: Readonly<Record<string, LaneLimit>> | undefined;
  readonly onUnavailable: 'local' | 'throw';
  readonly limiter: RateLimiter | undefined;
  readonly settleOn: 'event' | 'read';
  readonly budget: Budget | undefined;
  readonly journal: Journal | undefined;
  readonly hooks: Hooks;
  /** Where to write, and how much. */
  readonly log: () => { readonly logger: Logger | undefined; readonly level: LogLevel };
  /** The one clock of the client, which never runs backwards. */
  readonly clock: SteadyClock;
  readonly random: Random;
}

/** Whether the program is being developed, so that an answer may say more than a stranger needs. */
export function isDevelopment(): boolean {
  const { env } =
    (globalThis as { readonly process?: { readonly env?: Readonly<Record<string, string>> } }).process ?? {};
  return env !== undefined && env.NODE_ENV !== 'production';
}

/**
 * Checks the options. What is wrong throws a {@link GenError} that names the option. What is missing is looked for in
 * the environment when a call first needs it, so that a client can be made where the environment is not set.
 */
export function readConfig(options: ClientOptions & { readonly [CLOCK]?: Clock } = {}): Config {
  refuseRuntime(options);
  checkClientOptions(options);
  const { apiKey, baseUrl, webhookSecret, logger, logLevel } = options;
  const givenUrl = baseUrl === undefined ? undefined : checkBaseUrl(baseUrl);
  const givenKey = typeof apiKey === 'function' || apiKey === undefined ? undefined : checkApiKey(apiKey);
  const givenSecrets = webhookSecret === undefined ? undefined : checkSecrets(webhookSecret);
  const knownBaseUrl = rememberFirst(() => givenUrl ?? fromEnvironment('GEN_BASE_URL', checkBaseUrl));
  return Object.freeze({
    baseUrl: rememberFirst(() => knownBaseUrl() ?? missingBaseUrl()),
    knownBaseUrl,
    apiKey:
      typeof apiKey === 'function'
        ? apiKey
        : rememberFirst(() => givenKey ?? fromEnvironment('GEN_API_KEY', checkApiKey)),
    rotates: typeof apiKey === 'function',
    webhookSecrets: rememberFirst(
      () => givenSecrets ?? fromEnvironment('GEN_WEBHOOK_SECRET', (value) => [value]) ?? [],
    ),
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
    shared: options.shared,
    uploads: options.uploads,
    limits: options.limits,
    onUnavailable: options.onUnavailable ?? 'local',
    settleOn: options.settleOn ?? 'event',
    budget: options.budget,
    journal: options.journal,
    hooks: options.hooks ?? {},
    log: rememberFirst(() => {
      const level = logLevel ?? fromEnvironment('GEN_LOG', checkLevel) ?? (logger ? 'info' : 'off');
      return { level, logger: logger ?? (level === 'off' ? undefined : globalThis.console) };
    }),
    clock: steady(options[CLOCK] ?? systemClock),
    random: randomOf(options[CLOCK] ?? systemClock),
  });
}

/** Keeps the first value that is there. A variable that is not set yet is looked for again. */
function rememberFirst<T>(read: () => T): () => T {
  let value: T | undefined;
  return () => {
    const found = value ?? read();
    value = found;
    return found;
  };
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
  const path = url.pathname.replace(/(?<!\/)\/+$/, '');
  if (/\/v1$/.test(path)) throw bad('ends in /v1, which every path begins with: leave /v1 off');
  return url.origin + path;
}

/** The key, without the line break that files and variables end in. The message never shows it. */
export function checkApiKey(value: unknown, name = 'apiKey'): string {
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
