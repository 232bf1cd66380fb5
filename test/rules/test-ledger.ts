// A ledger in memory whose rules a test calls directly.
import { snapshotOf } from '../../src/rules/budget.js';
import { type OpenCreate, processOf } from '../../src/rules/create-entry.js';
import * as rule from '../../src/rules/ledger.js';
import * as owners from '../../src/rules/ledger-owners.js';
import { LedgerTransaction } from '../../src/rules/ledger-transaction.js';

export const TERMS = { scope: 'a', per: 'total', maxTokens: 100 } as const;

export const RULES = {
  timeoutMs: null,
  resubmitPending: true,
  recover: {},
  stores: false,
  pollMs: null,
  retryMs: null,
};

const newProcess = () => ({ id: 'one', isPersistent: true, isLeaseHeld: undefined, owners: new Map() });

/** Opens a transaction at this time, on the values that another transaction has stored. */
export function openTransaction(nowMs: number, previous?: LedgerTransaction): LedgerTransaction {
  const stored = Object.entries(previous?.changes() ?? {}).map(([key, change]) => [key, change?.value ?? '']);
  return new LedgerTransaction({ has: () => true }, { nowMs, values: Object.fromEntries(stored) }, newProcess());
}

/** A ledger in which each test determines the live processes. */
class Ledger extends LedgerTransaction {
  readonly living = new Set(['one', 'two']);

  constructor() {
    super({ has: () => true }, { nowMs: 1, values: {} }, newProcess());
  }

  override isAlive = (owner: string) => this.living.has(processOf(owner));
}

export const ENTRY: OpenCreate = {
  key: 'k',
  account: 'account',
  call: 'videos',
  params: {},
  atMs: 1,
  sinceMs: 1,
  phase: 'open',
  isReserved: true,
  sentKey: 'k',
  owners: [],
  budgets: [TERMS],
  priceClass: 'video',
  hasFixedPrice: true,
  tokens: 10,
  isLearned: true,
  retainUntilStored: true,
  rules: null,
};

/** Opens a ledger. Returns functions that apply its rules to a create. */
export function openLedger() {
  const tx = new Ledger();
  const { living } = tx;
  const id = 'account/k';
  const reserve = (owner: string, more: Partial<OpenCreate> = {}, target = id) => {
    const entry = { ...ENTRY, owners: [owner], ...more };
    return {
      entry,
      result: rule.reserveCreate(tx, { id: target, owner, entry, rejectsUnknown: [false], mayBeUsed: true }),
    };
  };
  const send = (owner: string, sentKey = 'k', target = id) =>
    rule.recordSent(tx, { id: target, owner, params: {}, sentKey }).outcome;
  /** Calls belong to their entry's run, if it has one. */
  const run = () => (tx.entry(id)?.rules ? {} : undefined);
  const accept = (owner: string, more: object = {}) => {
    const { entry: fallback } = reserve(owner);
    const response = { id, owner, fallback, sentKey: 'k', jobId: 'job_1', quotedTokens: 12, isUncharged: false };
    rule.acceptCreate(tx, { ...response, run: run(), ...more });
  };
  const end = (more: Partial<rule.FinalState> = {}) =>
    rule.endCreate(tx, { id, jobId: 'job_1', status: 'failed', chargedTokens: 0, ...more });
  const fail = (owner: string, outcome: 'refused' | 'unsent' | 'lost', more: object = {}) =>
    rule.failCreate(tx, { id, owner, outcome, sentKey: 'k', run: run(), ...more });
  const usage = () => {
    const { spentTokens, reservedTokens } = snapshotOf(tx.budget(TERMS), TERMS, 1, tx.isAlive);
    return [spentTokens, reservedTokens];
  };
  const claim = (owner: string) => owners.claimCreate(tx, id, owner, () => true);
  const acknowledge = (what: 'outcome' | 'file') => owners.acknowledge(tx, id, what);
  const entry = () => tx.entry(id);
  const phase = () => entry()?.phase;
  const usedKey = () => tx.usedKey(id);
  return { tx, id, living, reserve, send, accept, end, fail, usage, claim, acknowledge, entry, phase, usedKey };
}
