import type { LedgerEntry } from '../world/records.js';
import type { Account } from '../world/store.js';
import { Refusal } from './refusal.js';

/** Dollars a token costs (spec: What the service does). */
const USD_PER_TOKEN = 0.05;
/** The smallest top-up in dollars (spec: What the service does). */
const SMALLEST_TOP_UP_USD = 20;

/** Tokens that move for a job. */
export interface Movement {
  readonly at: number;
  readonly jobId: string;
  /** What the job was quoted. */
  readonly quoted: number;
}

/** Credits paid tokens. */
export function credit(account: Account, at: number, { type, tokens }: Pick<LedgerEntry, 'type' | 'tokens'>): void {
  account.paidTokens += tokens;
  account.freeTokens += tokens;
  note(account, { at, jobId: null }, { type, tokens });
}

/** The whole tokens that `usd` dollars buy; throws a RangeError below 20 dollars. */
export function tokensFor(usd: number): number {
  if (!(usd >= SMALLEST_TOP_UP_USD) || !Number.isFinite(usd)) {
    throw new RangeError(`topUp: ${usd} USD is refused; top-ups start at ${SMALLEST_TOP_UP_USD} USD.`);
  }
  return Math.floor(Math.round(usd * 100) / (USD_PER_TOKEN * 100));
}

/** Sets the quote aside for a job; throws `insufficient_balance`, with the billing page, where it is not free. */
export function reserve(account: Account, movement: Movement, baseUrl: string): void {
  const tokens = movement.quoted;
  if (account.freeTokens < tokens) {
    const message = `The job costs ${tokens} tokens; ${account.freeTokens} are left.`;
    const top_up_url = `${baseUrl}/development?section=billing`;
    throw new Refusal('insufficient_balance', message, { data: { top_up_url } });
  }
  account.freeTokens -= tokens;
  account.reservedTokens += tokens;
  note(account, movement, { type: 'reserve', tokens });
}

/** Ends a reservation: `charged` of it is spent, the rest is free again. */
export function settle(account: Account, movement: Movement, charged: number): void {
  const reserved = movement.quoted;
  account.reservedTokens -= reserved;
  account.spentTokens += charged;
  account.freeTokens += reserved - charged;
  if (charged > 0) note(account, movement, { type: 'charge', tokens: charged });
  if (reserved > charged) note(account, movement, { type: 'release', tokens: reserved - charged });
}

function note(
  account: Account,
  { at, jobId }: { at: number; jobId: string | null },
  entry: Pick<LedgerEntry, 'type' | 'tokens'>,
): void {
  account.entries.push({ at: new Date(at).toISOString(), ...entry, jobId });
}
