import { GenError } from '../../errors/index.js';
import { USD_PER_TOKEN } from '../../rules/limits.js';
import { show } from '../../schemas/show.js';
import { MOST_TOKENS } from '../world/prices.js';
import type { Account, LedgerEntry } from '../world/store.js';
import { Refusal } from './refusal.js';

/** The smallest top-up in dollars. */
const LEAST_TOP_UP_USD = 20;
const MOST_TOP_UP_USD = MOST_TOKENS * USD_PER_TOKEN;

/** Tokens that move for a job. */
export interface Movement {
  readonly at: number;
  readonly jobId: string;
  /** What the job was quoted. */
  readonly quoted: number;
}

/** Credits paid tokens. */
export function credit(account: Account, at: number, { type, tokens }: Pick<LedgerEntry, 'type' | 'tokens'>): void {
  account.paidTokens = exact(account.paidTokens + tokens);
  account.freeTokens = exact(account.freeTokens + tokens);
  noteMovement(account, { at, jobId: null }, { type, tokens });
}

/** The whole tokens that `usd` dollars buy. Throws a GenError below 20 dollars. */
export function tokensFor(usd: unknown): number {
  if (typeof usd === 'number' && usd >= LEAST_TOP_UP_USD && usd <= MOST_TOP_UP_USD) {
    return Math.floor(Math.round(usd * 100) / (USD_PER_TOKEN * 100));
  }
  throw new GenError(
    `usd must be a number from ${LEAST_TOP_UP_USD} to ${MOST_TOP_UP_USD}, not ${show(usd)}: top-ups start at ${LEAST_TOP_UP_USD} USD.`,
  );
}

/** Reserves the quote for a job. Throws `insufficient_balance`, with the billing page, where too little is free. */
export function reserve(account: Account, movement: Movement, baseUrl: string): void {
  const tokens = movement.quoted;
  if (account.freeTokens < tokens) {
    const message = `The job costs ${tokens} tokens, and the balance is ${account.freeTokens}. Top up at data.top_up_url.`;
    const top_up_url = `${baseUrl}/development?section=billing`;
    throw new Refusal('insufficient_balance', message, { data: { top_up_url } });
  }
  account.freeTokens = exact(account.freeTokens - tokens);
  account.reservedTokens = exact(account.reservedTokens + tokens);
  noteMovement(account, movement, { type: 'reserve', tokens });
}

/** Ends a reservation: `charged` of it is spent, the rest is free again. */
export function settle(account: Account, movement: Movement, charged: number): void {
  const reserved = movement.quoted;
  const released = exact(reserved - charged);
  account.reservedTokens = exact(account.reservedTokens - reserved);
  account.spentTokens = exact(account.spentTokens + charged);
  if (charged > 0) noteMovement(account, movement, { type: 'charge', tokens: charged });
  account.freeTokens = exact(account.freeTokens + released);
  if (released > 0) noteMovement(account, movement, { type: 'release', tokens: released });
}

/** To a millionth: prices may have decimals, and sums of those are not exact in binary. */
function exact(tokens: number): number {
  return Math.round(tokens * 1e6) / 1e6;
}

function noteMovement(
  account: Account,
  { at, jobId }: { at: number; jobId: string | null },
  entry: Pick<LedgerEntry, 'type' | 'tokens'>,
): void {
  account.entries.push({ at: new Date(at).toISOString(), ...entry, jobId, balanceTokens: account.freeTokens });
}
