import { type Config, checkKey, whyNotRead } from '../config.js';
import { AuthenticationError } from '../errors/index.js';
import { seenFromCallerOf } from '../errors/stack.js';
import { type Account, accountFor } from '../limits/account-state.js';

/** The key of the next attempt, and the account that it belongs to. */
export interface Credentials {
  /** The key for an attempt, or a promise of it where a function gives it. Throws an AuthenticationError when there is none. */
  key(call: KeyUse): string | Promise<string>;
  /** The account, as far as it is known without asking a key function. */
  account(): Account | undefined;
  /** The last key that was used, to be kept out of messages. */
  last(): string | undefined;
}

/** The call that needs the key. */
interface KeyUse {
  readonly method: string;
  /** For messages, without its query. */
  readonly url: string;
}

const LOOPBACK = /^(.+\.)?localhost$|^127\.|^\[::1\]$/;

/** Keeps the last key, so that a rotated one stays in the account of the one before. `warn` goes to the logger. */
export function createCredentials(config: Config, warn: (message: string) => void): Credentials {
  let last: string | undefined;
  let account: Account | undefined;
  const use = (key: string) => {
    if (last === undefined) {
      const { protocol, hostname, origin } = new URL(config.baseUrl());
      if (protocol === 'http:' && !LOOPBACK.test(hostname)) {
        warn(`The API key is sent to ${origin} without encryption. Use an https:// baseUrl.`);
      }
    }
    if (key !== last) {
      const previous = account && last !== undefined ? { account, apiKey: last } : undefined;
      account = accountFor(config.baseUrl(), key, previous, { clock: config.clock });
    }
    last = key;
    return key;
  };
  const check = (value: unknown, call: KeyUse) => {
    if (value === undefined) throw seenFromCallerOf(noKey(call), key);
    return use(config.rotates ? checkKey(value) : String(value));
  };
  const key = (call: KeyUse) => {
    const given = config.apiKey();
    return typeof given === 'object' ? Promise.resolve(given).then((value) => check(value, call)) : check(given, call);
  };
  return {
    key,
    last: () => last,
    account() {
      if (!config.rotates && last === undefined) {
        const fixed = config.apiKey();
        if (typeof fixed === 'string') use(fixed);
      }
      return account;
    },
  };
}

function noKey({ method, url }: KeyUse): AuthenticationError {
  const message = `The API key is missing. Pass { apiKey } to GenClient or set GEN_API_KEY.${whyNotRead('GEN_API_KEY')}`;
  return new AuthenticationError(message, {
    method,
    url,
    status: 401,
    code: 'invalid_api_key',
    recovery: 'fix_credentials',
    attempts: 0,
  });
}
