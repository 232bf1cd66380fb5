// What a client was set up with, as its transport reads it.
import { GenError } from '../errors/index.js';
import type { Random, SteadyClock } from '../runtime/clock.js';
import type { Budget } from '../schemas/budget.js';
import type { Limits } from '../store/rate-limits.js';
import type { Store } from '../store/store.js';
import type { Hooks, Logger, LogLevel } from './events.js';

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
  /** The caller's name for the account. Without it, an account is a base URL and a key. */
  readonly account: string | undefined;
  /** Whether the account of a call is known only when its key function was asked: each key is an account. */
  readonly asksAccount: boolean;
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
  /** The one clock of the client, which never runs backwards. */
  readonly clock: SteadyClock;
  readonly random: Random;
}

/** A runtime without `process` has no environment, and one that asks for permission may deny it. */
export function readVariable(name: string): { readonly value?: string | undefined; readonly denied?: string } {
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
    // A text that is not a name may be a value with its key.
    if (!/^[!#$%&'*+.^_`|~\w-]+$/.test(name)) throw new GenError('headers has a name that HTTP does not allow.');
    if (typeof value !== 'string' || /[^\t\x20-\x7e\x80-\xff]/.test(value)) {
      throw new GenError(`headers: ${name} must have a value that HTTP allows.`);
    }
    read[key] = value;
  }
  return read;
}
