import { type Config, checkKey } from '../config.js';
import { AuthenticationError } from '../errors/index.js';
import { type Account, accountFor } from '../limits/account-state.js';

/** The key of the next attempt, and the account that it belongs to. */
export interface KeyRing {
  /** The key for an attempt; a promise of it where it comes from a function. Throws an AuthenticationError when there is none. */
  ask(call: KeyUse): string | Promise<string>;
  /** The account, as far as it is known without asking a key function. */
  known(): Account | undefined;
  /** The last key that was given, to be kept out of messages. */
  last(): string | undefined;
}

/** The call that wants the key. */
interface KeyUse {
  readonly method: string;
  /** For messages, without its query. */
  readonly shownUrl: string;
}

/** Holds the last key, so that a rotated one stays in the account of the one before. */
export function createKeyRing(config: Config): KeyRing {
  let key: string | undefined;
  let account: Account | undefined;
  const take = (value: string) => {
    if (value !== key) account = accountFor(config.baseUrl, value, account);
    key = value;
    return value;
  };
  const use = (value: unknown, call: KeyUse) => {
    if (value === undefined) throw noKey(call);
    return take(config.rotates ? checkKey(value) : String(value));
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
    ask(call) {
      const given = config.apiKey();
      return typeof given === 'object' ? Promise.resolve(given).then((value) => use(value, call)) : use(given, call);
    },
  };
}

function noKey({ method, shownUrl: url }: KeyUse): AuthenticationError {
  return new AuthenticationError('No API key. Pass { apiKey } to GenClient or set GEN_API_KEY.', {
    method,
    url,
    status: 401,
    code: 'invalid_api_key',
    recovery: 'fix_credentials',
    attempts: 0,
  });
}
