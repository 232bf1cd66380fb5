// A client's validated configuration, for its transport.
import { GenError } from '../errors/index.js';
import type { Random, SteadyClock } from '../runtime/clock.js';
import type { Budget } from '../schemas/budget.js';
import type { Limits } from '../store/rate-limits.js';
import type { Store } from '../store/store.js';
import type { Hooks, Logger, LogLevel } from './events.js';

/** Validated options. Secrets and environment variables are read by functions, when a call needs them. */
export interface Config {
  /** Returns the base URL without a trailing slash. Throws a {@link GenError} if none is set. */
  readonly baseUrl: () => string;
  /** Returns the base URL, or undefined if none is set. */
  readonly knownBaseUrl: () => string | undefined;
  /** Returns the API key, a promise of it from a key function, or undefined if none is set. */
  readonly apiKey: () => string | undefined | Promise<string>;
  /** If true, the API key is a function, which is called before each attempt. */
  readonly rotates: boolean;
  /** Name of the account. @default each base URL and API key is an account */
  readonly account: string | undefined;
  /** If true, the account is unknown until the key function returns, because each key is an account. */
  readonly needsLogin: boolean;
  readonly webhookSecrets: () => readonly string[];
  readonly timeoutMs: number;
  readonly maxRetries: number;
  readonly maxRetryAfterMs: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
  readonly preflight: boolean;
  readonly rateLimit: 'wait' | 'throw' | 'off';
  readonly store: Store | undefined;
  readonly limits: Limits | undefined;
  readonly budget: Budget | undefined;
  readonly hooks: Hooks;
  readonly log: () => { readonly logger: Logger | undefined; readonly level: LogLevel };
  /** The client's clock, which never runs backward. */
  readonly clock: SteadyClock;
  readonly random: Random;
}

/** Reads an environment variable. Runtimes without `process` have none, and Deno may deny access. */
export function readVariable(name: string): { readonly value?: string | undefined; readonly denied?: string } {
  try {
    return { value: globalThis.process?.env?.[name]?.trim() || undefined };
  } catch (error) {
    return { denied: error instanceof Error ? error.message : String(error) };
  }
}

/** Returns a hint for an error message if the variable could not be read, or an empty string. */
export function environmentHint(name: string): string {
  const { denied } = readVariable(name);
  return denied === undefined ? '' : ` ${name} could not be read: ${denied}`;
}

/** Returns a valid API key without surrounding whitespace, such as a line break. Errors never contain the key. */
export function checkApiKey(value: unknown, name = 'apiKey'): string {
  const key = typeof value === 'string' ? value.trim() : '';
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new GenError(
    key === ''
      ? `${name} must be a non-empty string.`
      : `${name} contains whitespace or non-ASCII characters. If it starts with "Bearer ", remove that prefix.`,
  );
}

/** Headers that the client sets, and the option to use instead. */
const CLIENT_HEADERS: Readonly<Record<string, string>> = {
  authorization: 'the apiKey option',
  'idempotency-key': '{ idempotencyKey } of the call',
};

/** Returns the headers with lowercase names. Throws a {@link GenError} for a header that the client sets. */
export function readHeaders(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  const lowercaseHeaders: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const lowercaseName = name.toLowerCase();
    if (Object.hasOwn(CLIENT_HEADERS, lowercaseName))
      throw new GenError(`headers must not set ${name}. Use ${CLIENT_HEADERS[lowercaseName]}.`);
    // Don't show an invalid name, because it may be a value that contains a key.
    if (!/^[!#$%&'*+.^_`|~\w-]+$/.test(name)) throw new GenError('headers contains a name that is invalid in HTTP.');
    if (typeof value !== 'string' || /[^\t\x20-\x7e\x80-\xff]/.test(value)) {
      throw new GenError(`headers: ${name} has a value that is invalid in HTTP.`);
    }
    lowercaseHeaders[lowercaseName] = value;
  }
  return lowercaseHeaders;
}
