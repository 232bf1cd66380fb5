import * as z from 'zod/mini';
import { type RateLimitName, USD_PER_TOKEN } from '../../rules/limits.js';
import { checkOptions, flag, required, text } from '../../rules/options.js';
import { SCOPES, type Scope } from '../world/assumptions.js';
import { isBetween, MAX_TOKENS } from '../world/options.js';
import { secretText } from '../world/random.js';
import type { Account, LedgerEntry } from '../world/state.js';
import type { World } from '../world/world.js';
import { ServiceError } from './request.js';

export const MAIN_ACCOUNT = 'main';

/** Options for `createKey`. */
export interface KeyOptions {
  /** The scopes of the key, for example `videos:create`. @default all of them */
  readonly scopes?: readonly (Scope | (string & {}))[] | undefined;
  /** Account of the key. A new account starts with the sandbox's `balanceTokens`. @default 'main' */
  readonly account?: string | undefined;
  /** If true, requests with the key fail with 403 account_not_active. @default false */
  readonly suspended?: boolean | undefined;
}

const keySchema = z.strictObject({
  scopes: z.optional(z.array(z.enum(SCOPES, `one of ${SCOPES.join(', ')}`), 'a list of scopes')),
  account: text,
  suspended: flag,
});

export interface Caller {
  readonly account: Account;
  /** URL of the request, without the path of the endpoint. */
  readonly baseUrl: string;
  /** Sandbox milliseconds per millisecond of the caller's own clock. */
  readonly speed: number;
}

/** Converts sandbox milliseconds to seconds of the caller's clock, at least 1. */
export function secondsFor({ speed }: Pick<Caller, 'speed'>, ms: number): number {
  return Math.max(1, Math.ceil(ms / speed / 1000));
}

/** Returns the account, or creates it with the sandbox's initial balance. */
export function openAccount(world: World, id: string, webhookSecret = secretText('whsec')): Account {
  const existing = world.state.accounts.get(id);
  if (existing) return existing;
  const money = { paidTokens: 0, freeTokens: 0, reservedTokens: 0, spentTokens: 0, entries: [] };
  const account: Account = { id, webhookSecret, ...money };
  world.state.accounts.set(id, account);
  credit(account, world.timeline.now(), { type: 'opening', tokens: world.settings.balanceTokens });
  return account;
}

/** Creates a key. Throws a GenError for an invalid or unknown option. */
export function addKey(world: World, options: KeyOptions, key = secretText('sk_sandbox')): string {
  checkOptions('createKey', keySchema, options);
  const { account = MAIN_ACCOUNT, scopes: requestedScopes = SCOPES } = options;
  const scopes = SCOPES.filter((scope) => requestedScopes.includes(scope));
  const { id } = openAccount(world, account);
  world.state.keys.set(key, { account: id, scopes, isSuspended: options.suspended ?? false, isRevoked: false });
  return key;
}

/** Returns the account of a request. Throws `invalid_api_key`, `account_not_active`, or `scope_missing`. */
export function authenticate(
  world: World,
  authorization: string | null | undefined,
  scope: Scope | undefined,
): Account {
  const token = tokenIn(authorization);
  const key = token === undefined ? undefined : world.state.keys.get(token);
  const account = key && !key.isRevoked ? world.state.accounts.get(key.account) : undefined;
  if (key === undefined || account === undefined) {
    const problem = token === undefined ? 'missing. Send Authorization: Bearer <API_KEY>' : 'invalid or revoked';
    throw new ServiceError('invalid_api_key', `The API key is ${problem}.`);
  }
  if (key.isSuspended) {
    throw new ServiceError('account_not_active', 'The developer account is suspended. Contact support.');
  }
  if (scope !== undefined && !key.scopes.includes(scope)) {
    throw new ServiceError('scope_missing', `The API key doesn't have the scope ${scope}.`, { data: { scope } });
  }
  return account;
}

/** Returns the account of a key, for the log. Null for an unknown key. */
export function accountOfKey(world: World, authorization: string | null): string | null {
  return world.state.keys.get(tokenIn(authorization) ?? '')?.account ?? null;
}

/** Returns an account's usage of each rate limit in the current window. */
export function limitsOf(world: World, account: string) {
  return Object.entries(world.settings.limits).flatMap(([name, rule]) => {
    if (rule === undefined || !Number.isFinite(rule.limit)) return [];
    const used = recentRequests(world, `${account} ${name}`, rule.windowMs).length;
    return [{ name, used, limit: rule.limit, windowMs: rule.windowMs }];
  });
}

/** Returns the times of the requests in the current window. */
function recentRequests(world: World, name: string, windowMs: number): number[] {
  const times = world.state.windows.get(name) ?? [];
  const fromMs = world.timeline.now() - windowMs + 1;
  while (times[0] !== undefined && times[0] < fromMs) times.shift();
  return times;
}

/** Counts a request against a limit. Throws `rate_limited`, with the seconds until a slot is free. */
export function countRequest(world: World, caller: Caller, limit: RateLimitName): void {
  const rule = world.settings.limits[limit];
  if (rule === undefined) return;
  const now = world.timeline.now();
  const name = `${caller.account.id} ${limit}`;
  const times = recentRequests(world, name, rule.windowMs);
  if (times.length >= rule.limit) {
    const retryAfterS = secondsFor(caller, (times[0] ?? now) + rule.windowMs - now);
    const message = `The rate limit of ${rule.limit} requests in ${rule.windowMs / 1000} s is reached. Wait ${retryAfterS} s.`;
    throw new ServiceError('rate_limited', message, { retryAfterS, data: { retry_after: retryAfterS } });
  }
  times.push(now);
  world.state.windows.set(name, times);
}

function tokenIn(authorization: string | null | undefined): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
}

const MIN_TOP_UP_USD = 20;
const topUpSchema = z.strictObject({
  usd: required(`a number of dollars, ${MIN_TOP_UP_USD} or more`, (value) =>
    isBetween(value, MIN_TOP_UP_USD, MAX_TOKENS * USD_PER_TOKEN),
  ),
});

interface ReservedTokens {
  readonly at: number;
  readonly jobId: string;
  readonly quoted: number;
}

export function credit(account: Account, at: number, { type, tokens }: Pick<LedgerEntry, 'type' | 'tokens'>): void {
  account.paidTokens = roundTokens(account.paidTokens + tokens);
  account.freeTokens = roundTokens(account.freeTokens + tokens);
  addEntry(account, { at, jobId: null }, { type, tokens });
}

/** Converts dollars to tokens. Throws a GenError below 20 dollars. */
export function tokensFor(usd: number): number {
  checkOptions('topUp', topUpSchema, { usd });
  return Math.floor(Math.round(usd * 100) / (USD_PER_TOKEN * 100));
}

export const BILLING_PATH = '/development';

/** Reserves the quote of a job. Throws `insufficient_balance`, with a link to the billing page. */
export function reserve(account: Account, reservation: ReservedTokens, baseUrl: string): void {
  const tokens = reservation.quoted;
  if (account.freeTokens < tokens) {
    const message = `The job costs ${tokens} tokens, and the balance is ${account.freeTokens}. Top up at data.top_up_url.`;
    const top_up_url = `${baseUrl}${BILLING_PATH}?section=billing`;
    throw new ServiceError('insufficient_balance', message, { data: { top_up_url } });
  }
  account.freeTokens = roundTokens(account.freeTokens - tokens);
  account.reservedTokens = roundTokens(account.reservedTokens + tokens);
  addEntry(account, reservation, { type: 'reserve', tokens });
}

/** Ends a reservation: spends `charged` tokens and releases the rest. */
export function settle(account: Account, reservation: ReservedTokens, charged: number): void {
  const reservedTokens = reservation.quoted;
  const releasedTokens = roundTokens(reservedTokens - charged);
  account.reservedTokens = roundTokens(account.reservedTokens - reservedTokens);
  account.spentTokens = roundTokens(account.spentTokens + charged);
  if (charged > 0) addEntry(account, reservation, { type: 'charge', tokens: charged });
  account.freeTokens = roundTokens(account.freeTokens + releasedTokens);
  if (releasedTokens > 0) addEntry(account, reservation, { type: 'release', tokens: releasedTokens });
}

/** Rounds to a millionth, because sums of decimal prices aren't exact in binary. */
function roundTokens(tokens: number): number {
  return Math.round(tokens * 1e6) / 1e6;
}

function addEntry(
  account: Account,
  { at, jobId }: { at: number; jobId: string | null },
  entry: Pick<LedgerEntry, 'type' | 'tokens'>,
): void {
  account.entries.push({ at: new Date(at).toISOString(), ...entry, jobId, balanceTokens: account.freeTokens });
}
