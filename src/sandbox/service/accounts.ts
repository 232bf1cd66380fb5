import { SCOPES, type Scope } from '../world/choices.js';
import { secretText } from '../world/random.js';
import type { Account } from '../world/store.js';
import type { World } from '../world/world.js';
import { credit } from './ledger.js';
import { Refusal } from './refusal.js';

/** The account of the first key. */
export const MAIN_ACCOUNT = 'main';

/** What a new key may do, and whose it is. */
export interface KeyOptions {
  /** @default all of them */
  readonly scopes?: readonly (Scope | (string & {}))[] | undefined;
  /** An account of its own, made on first use with the sandbox's opening balance. @default 'main' */
  readonly account?: string | undefined;
  /** Every call with it answers 403 account_not_active. @default false */
  readonly suspended?: boolean | undefined;
}

/** The account of that name, opened with the sandbox's opening balance where there is none. */
export function openAccount(world: World, id: string, webhookSecret = secretText('whsec')): Account {
  const known = world.state.accounts.get(id);
  if (known) return known;
  const money = { paidTokens: 0, freeTokens: 0, reservedTokens: 0, spentTokens: 0, entries: [] };
  const account: Account = { id, isSuspended: false, webhookSecret, ...money };
  world.state.accounts.set(id, account);
  credit(account, world.timeline.now(), { type: 'opening', tokens: world.settings.balanceTokens });
  return account;
}

/** Makes a key; throws a TypeError for a scope that no endpoint asks for. */
export function addKey(world: World, options: KeyOptions, key = secretText('sk_sandbox')): string {
  const scopes = (options.scopes ?? SCOPES).map((name) => {
    const scope = SCOPES.find((known) => known === name);
    if (scope === undefined) throw new TypeError(`createKey: scope "${name}" is none of ${SCOPES.join(', ')}.`);
    return scope;
  });
  const { id } = openAccount(world, options.account ?? MAIN_ACCOUNT);
  world.state.keys.set(key, { account: id, scopes, isSuspended: options.suspended ?? false, isRevoked: false });
  return key;
}

/** Who calls: throws `invalid_api_key`, `account_not_active` or `scope_missing` (spec: Authentication). */
export function authenticate(
  world: World,
  authorization: string | null | undefined,
  scope: Scope | undefined,
): Account {
  const token = /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
  const key = token === undefined ? undefined : world.state.keys.get(token);
  const account = key && !key.isRevoked ? world.state.accounts.get(key.account) : undefined;
  if (key === undefined || account === undefined) {
    const problem = token === undefined ? 'missing; send Authorization: Bearer <API_KEY>' : 'wrong or revoked';
    throw new Refusal('invalid_api_key', `The API key is ${problem}.`);
  }
  if (key.isSuspended || account.isSuspended) {
    throw new Refusal('account_not_active', 'The developer account is suspended; contact support.');
  }
  if (scope !== undefined && !key.scopes.includes(scope)) {
    throw new Refusal('scope_missing', `The key lacks the scope ${scope}.`, { data: { scope } });
  }
  return account;
}

/** The account a key belongs to, for the log; null for a key that is none. */
export function accountOfKey(world: World, authorization: string | null): string | null {
  const token = authorization?.replace(/^Bearer +/i, '').trim() ?? '';
  return world.state.keys.get(token)?.account ?? null;
}
