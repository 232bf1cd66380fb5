import { type Config, checkKey } from '../config.js';
import { AuthenticationError } from '../errors/index.js';
import { type Account, accountFor } from '../limits/account-state.js';

/** The key of the next attempt, and the account that it belongs to. */
export interface KeyRing {
  /** The key for an attempt. Throws an AuthenticationError when there is none. */
  ask(call: { readonly method: string; readonly url: string }): Promise<string>;
  /** The account, as far as it is known without asking a key function. */
  known(): Account | undefined;
  /** The last key that was given, to be kept out of messages. */
  last(): string | undefined;
}

/** Holds the last key, so that a rotated one stays in the account of the one before. */
export function createKeyRing(config: Config): KeyRing {
  let key: string | undefined;
  let account: Account | undefined;
  const take = (value: string) => {
    if (value === key) return;
    account = accountFor(config.baseUrl, value, account);
    key = value;
  };
  return {
    last: () => key,
    known() {
      if (!config.rotates && key === undefined) {
        const fixed = config.apiKey();
        if (typeof fixed === 'string') take(fixed);
      }
      return account;
    },
    async ask(call) {
      const value = await config.apiKey();
      if (value === undefined) throw noKey(call);
      const next = config.rotates ? checkKey(value) : value;
      take(next);
      return next;
    },
  };
}

function noKey(call: { readonly method: string; readonly url: string }): AuthenticationError {
  return new AuthenticationError('No API key. Pass { apiKey } to GenClient or set GEN_API_KEY.', {
    ...call,
    status: 401,
    code: 'invalid_api_key',
    recovery: 'fix_credentials',
    attempts: 0,
  });
}
