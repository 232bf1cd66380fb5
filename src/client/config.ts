// Reads client options and the environment variables that they default to.

import { GenError } from '../errors/index.js';
import { DEFAULT_TIMEOUT_MS } from '../rules/limits.js';
import { CLOCK, type Clock, randomOf, steady, systemClock } from '../runtime/clock.js';
import { isBrowser, nodeVersion } from '../runtime/platform.js';
import { type Config, checkApiKey, environmentHint, readHeaders, readVariable } from '../transport/config.js';
import { type ClientOptions, checkClientOptions, checkLevel } from './client-options.js';

/** Returns true during development, when a response may contain more details. */
export function isDevelopment(): boolean {
  const { env } =
    (globalThis as { readonly process?: { readonly env?: Readonly<Record<string, string>> } }).process ?? {};
  return env !== undefined && env.NODE_ENV !== 'production';
}

/**
 * Returns the configuration. Throws a {@link GenError} for an invalid option. Reads environment variables only when a
 * call needs them, so that a client can be created before they are set.
 */
export function readConfig(options: ClientOptions & { readonly [CLOCK]?: Clock } = {}): Config {
  checkRuntime(options);
  checkClientOptions(options);
  const { apiKey, baseUrl, webhookSecret, logger, logLevel } = options;
  const checkedUrl = baseUrl === undefined ? undefined : checkBaseUrl(baseUrl);
  const checkedKey = typeof apiKey === 'function' || apiKey === undefined ? undefined : checkApiKey(apiKey);
  const checkedSecrets = webhookSecret === undefined ? undefined : checkSecrets(webhookSecret);
  const knownBaseUrl = cacheFirst(() => checkedUrl ?? fromEnvironment('GEN_BASE_URL', checkBaseUrl));
  return Object.freeze({
    baseUrl: cacheFirst(() => knownBaseUrl() ?? missingBaseUrl()),
    knownBaseUrl,
    apiKey:
      typeof apiKey === 'function'
        ? apiKey
        : cacheFirst(() => checkedKey ?? fromEnvironment('GEN_API_KEY', checkApiKey)),
    rotates: typeof apiKey === 'function',
    account: options.account,
    needsLogin: typeof apiKey === 'function' && options.account === undefined,
    webhookSecrets: cacheFirst(() => checkedSecrets ?? fromEnvironment('GEN_WEBHOOK_SECRET', (value) => [value]) ?? []),
    timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    maxRetries: options.maxRetries ?? 3,
    maxRetryAfterMs: options.maxRetryAfterMs ?? 120_000,
    headers: Object.freeze(readHeaders(options.headers)),
    fetch: options.fetch,
    preflight: options.preflight ?? true,
    rateLimit: options.rateLimit ?? 'wait',
    store: options.store,
    limits: options.limits,
    budget: options.budget,
    hooks: options.hooks ?? {},
    log: cacheFirst(() => {
      const level = logLevel ?? fromEnvironment('GEN_LOG', checkLevel) ?? (logger ? 'info' : 'off');
      return { level, logger: logger ?? (level === 'off' ? undefined : globalThis.console) };
    }),
    clock: steady(options[CLOCK] ?? systemClock),
    random: randomOf(options[CLOCK] ?? systemClock),
  });
}

/** Returns a function that caches the first value that isn't undefined, because a variable may be set later. */
function cacheFirst<T>(read: () => T): () => T {
  let value: T | undefined;
  return () => {
    value ??= read();
    return value;
  };
}

const OLDEST_NODE = [22, 13] as const;

function checkRuntime(options: ClientOptions | undefined): void {
  const version = nodeVersion();
  const [major = 0, minor = 0] = (version ?? '').split('.').map(Number);
  const [oldest, oldestMinor] = OLDEST_NODE;
  if (version !== undefined && (major < oldest || (major === oldest && minor < oldestMinor))) {
    throw new GenError(`gen-client needs Node.js ${OLDEST_NODE.join('.')} or later, and this is ${version}.`);
  }
  if (options?.dangerouslyAllowBrowser || !isBrowser()) return;
  throw new GenError(
    'A client in a browser page exposes its apiKey to everyone who opens the page. Call the service from your server, or set dangerouslyAllowBrowser: true.',
  );
}

/** Returns the validated value of a variable, or undefined if it's unset or blank. */
function fromEnvironment<T>(name: string, check: (value: string, name: string) => T): T | undefined {
  const { value } = readVariable(name);
  return value === undefined ? undefined : check(value, name);
}

function missingBaseUrl(): never {
  throw new GenError(
    `baseUrl is missing. Pass { baseUrl } to GenClient or set GEN_BASE_URL, for example https://host/prefix.${environmentHint('GEN_BASE_URL')}`,
  );
}

function checkBaseUrl(value: string | URL, name = 'baseUrl'): string {
  const urlError = (problem: string) => new GenError(`${name} ${problem}, for example https://host/prefix.`);
  const rawUrl = String(value).trim();
  const url = URL.canParse(rawUrl) ? new URL(rawUrl) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) throw urlError('must be an absolute http(s) URL');
  if (url.username + url.password + url.search + url.hash)
    throw urlError('must not contain credentials, a query, or a hash');
  const path = url.pathname.replace(/(?<!\/)\/+$/, '');
  if (/\/v1$/.test(path)) throw urlError('must not end in /v1, which every path already includes');
  return url.origin + path;
}

function checkSecrets(value: string | readonly string[]): readonly string[] {
  const secrets = [value].flat();
  if (secrets.length > 0 && secrets.every((secret) => typeof secret === 'string' && secret.trim() !== '')) {
    return secrets;
  }
  throw new GenError('webhookSecret must be a signing secret, or a list of them, and none may be blank.');
}
