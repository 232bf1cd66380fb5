import { markPassing, seenFromCallerOf } from '../errors/gen-error.js';
import { AuthenticationError, ConnectionError, GenError } from '../errors/index.js';
import { reasonOf } from '../runtime/callbacks.js';
import { scrubber, scrubCause } from '../runtime/scrub.js';
import { accountFor, type ClientAccount } from '../store/account.js';
import type { RateLimits } from '../store/rate-limits.js';
import { type Config, checkApiKey, environmentHint } from './config.js';

export interface Login {
  readonly key: string;
  readonly account: ClientAccount;
}

/** Provides the API key of each attempt, and the key's account. */
export interface Credentials {
  /**
   * Returns an attempt's key and account, or a promise of them if a function returns the key. Throws an AuthenticationError
   * without a key.
   */
  login(call: KeyUse): Login | Promise<Login>;
  /** Returns the account, or undefined until a key function has returned a key. */
  account(): ClientAccount | undefined;
  /** Returns the rate limits, or undefined until a key function has returned a key. */
  limits(): RateLimits | undefined;
  limitsOf(account: ClientAccount): RateLimits;
}

interface KeyUse {
  readonly method: string;
  /** URL without its query, for messages. */
  readonly url: string;
}

const LOOPBACK = /^(.+\.)?localhost$|^127\.|^\[::1\]$/;

export function createCredentials(config: Config, warn: (message: string) => void): Credentials {
  let lastLogin: Login | undefined;
  let cachedLimits: { readonly account: ClientAccount; readonly limits: RateLimits } | undefined;
  const loginWith = (key: string): Login => {
    if (lastLogin?.key === key) return lastLogin;
    if (lastLogin === undefined) {
      const { protocol, hostname, origin } = new URL(config.baseUrl());
      if (protocol === 'http:' && !LOOPBACK.test(hostname)) {
        warn(`The API key is sent to ${origin} without encryption. Use an https:// baseUrl.`);
      }
    }
    lastLogin = { key, account: accountFor(config.baseUrl(), key, { name: config.account, clock: config.clock }) };
    return lastLogin;
  };
  const checkedLogin = (value: unknown, call: KeyUse) => {
    if (!config.rotates && value === undefined) throw seenFromCallerOf(missingKeyError(call), login);
    return loginWith(config.rotates ? checkedKey(value, call) : String(value));
  };
  const login = (call: KeyUse) => {
    if (lastLogin !== undefined && !config.rotates) return lastLogin;
    let key: ReturnType<Config['apiKey']>;
    try {
      key = config.apiKey();
    } catch (error) {
      throw keyFailure(error, call, lastLogin?.key);
    }
    if (typeof key !== 'object') return checkedLogin(key, call);
    return Promise.resolve(key).then(
      (value) => checkedLogin(value, call),
      (error) => {
        throw keyFailure(error, call, lastLogin?.key);
      },
    );
  };
  const accountOf = () => {
    if (!config.rotates && lastLogin === undefined) {
      const key = config.apiKey();
      if (typeof key === 'string') loginWith(key);
    }
    return lastLogin?.account;
  };
  const limitsOf = (account: ClientAccount): RateLimits => {
    const { store, limits } = config;
    if (cachedLimits?.account !== account) cachedLimits = { account, limits: account.limitsFor({ store, limits }) };
    return cachedLimits.limits;
  };
  return {
    login,
    account: accountOf,
    limits() {
      const current = accountOf();
      return current && limitsOf(current);
    },
    limitsOf,
  };
}

/**
 * Validates and returns the key that a key function returned. The function is called again before the next attempt, so an
 * invalid key doesn't end a wait.
 */
function checkedKey(value: unknown, call: KeyUse): string {
  try {
    if (value === undefined) throw missingKeyError(call);
    return checkApiKey(value);
  } catch (error) {
    if (GenError.isInstance(error)) markPassing(error);
    throw error;
  }
}

function missingKeyError({ method, url }: KeyUse): AuthenticationError {
  const message = `apiKey is missing. Pass { apiKey } to GenClient or set GEN_API_KEY.${environmentHint('GEN_API_KEY')}`;
  return new AuthenticationError(message, {
    method,
    url,
    status: 401,
    code: 'invalid_api_key',
    recovery: 'fix_credentials',
    attempts: 0,
  });
}

/** Returns the error for a failed key function. The failure may be temporary, for example if a vault is unavailable. */
function keyFailure(thrown: unknown, { method, url }: KeyUse, key: string | undefined): unknown {
  if (GenError.isInstance(thrown)) return thrown;
  const scrub = scrubber(key);
  const cause = scrubCause(thrown, scrub);
  return new ConnectionError(`apiKey failed: ${scrub(reasonOf(cause))}`, { method, url, attempts: 0, cause });
}
