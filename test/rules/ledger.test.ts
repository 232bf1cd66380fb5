// What a budget answers a create, and what becomes of an entry whoever learns something of it.
import { describe, expect, it } from 'vitest';
import {
  admissionOf,
  type BudgetState,
  budgetName,
  EMPTY_BUDGET,
  standingOf,
  withShare,
  withSpent,
} from '../../src/rules/budget.js';
import * as rule from '../../src/rules/ledger.js';
import { type CreateEntry, LedgerDraft, processOf } from '../../src/rules/ledger-draft.js';

const TERMS = { scope: 'a', per: 'total', maxTokens: 100 } as const;

describe('a budget of 100 tokens answers a create', () => {
  const learned = (tokens: number) => ({ tokens, isSure: true });
  const unknown = { tokens: null, isSure: false };
  const guessed = (tokens: number) => ({ tokens, isSure: false });
  const at = (phase: 'open' | 'sent', owner: string) => ({ phase, owner, sinceMs: 1, per: 'total' }) as const;
  const alive = (price: typeof unknown | ReturnType<typeof learned>) => (state: BudgetState) =>
    withShare(state, at('open', 'living'), price, 1);
  const lost = (price: typeof unknown | ReturnType<typeof learned>) => (state: BudgetState) =>
    withShare(state, at('sent', ''), price, 1);
  const dead = (price: typeof unknown | ReturnType<typeof learned>) => (state: BudgetState) =>
    withShare(state, at('open', 'gone'), price, 1);
  const spent = (tokens: number) => (state: BudgetState) => withSpent(state, 'total', tokens, 1);

  it.each<[string, ((state: BudgetState) => BudgetState)[], { tokens: number | null; isSure: boolean }, string]>([
    ['that fits', [], learned(100), 'room'],
    ['that is dearer than the whole budget', [], learned(101), 'spent'],
    ['of an unknown price, alone', [], unknown, 'room'],
    ['of an unknown price where all is spent', [spent(100)], unknown, 'spent'],
    ['where the rest is spent', [spent(95)], learned(10), 'spent'],
    ['while others hold what is missing', [alive(learned(95))], learned(10), 'busy'],
    ['beside one of an unknown price', [alive(unknown)], learned(10), 'busy'],
    ['of an unknown price beside another one', [alive(learned(11))], unknown, 'busy'],
    ['beside others while ten times the price would fit', [alive(learned(4))], learned(5), 'room'],
    ['beside others where a price that rises would not fit', [alive(learned(4))], learned(7), 'busy'],
    ['beside a lost one that leaves room', [lost(learned(10))], learned(90), 'room'],
    ['beside a lost one that leaves none', [lost(learned(10))], learned(91), 'unresolved'],
    ['beside a lost one of an unknown price', [lost(unknown)], learned(1), 'unresolved'],
    ['with an estimate beside a lost one with an estimate', [lost(guessed(5))], guessed(5), 'unresolved'],
    ['beside one that was never sent and whose process is gone', [dead(unknown)], learned(100), 'room'],
  ])('%s: %s', (_, before, price, admission) => {
    const state = before.reduce((made, change) => change(made), EMPTY_BUDGET);
    const standing = standingOf(state, TERMS, 1, (holder) => holder === 'living');
    expect(admissionOf(standing, TERMS.maxTokens, price)).toBe(admission);
  });
});

const RULES = {
  timeoutMs: null,
  resubmitPending: true,
  recover: {},
  persistent: false,
  stores: false,
  pollMs: null,
  retryMs: null,
};

/** A ledger in which a test says who lives. */
class Draft extends LedgerDraft {
  readonly living = new Set(['one', 'two']);

  constructor() {
    super(
      { has: () => true },
      { nowMs: 1, values: {} },
      { id: 'one', isLeaseHeld: undefined, lapsed: new Set(), holders: new Map() },
    );
  }

  override isAlive = (holder: string) => this.living.has(holder.includes('#') ? processOf(holder) : holder);
}

function ledger() {
  const draft = new Draft();
  const { living } = draft;
  const id = 'account/k';
  const open = (by: string, more: Partial<CreateEntry> = {}) => {
    const entry: CreateEntry = {
      ...{ key: 'k', account: 'account', call: 'videos', params: {}, atMs: 1, phase: 'open', sentKey: 'k' },
      ...{ holders: [by], budgets: [TERMS], priceClass: 'video', teaches: true, tokens: 10, isSure: true },
      ...{ keeps: true, rules: null, ...more },
    };
    return { entry, reply: rule.openCreate(draft, { id, by, entry, refusesUnknown: [false], isAgain: true }) };
  };
  const accept = (by: string, more: object = {}) => {
    const { entry: asked } = open(by);
    rule.acceptCreate(draft, {
      id,
      by,
      asked,
      sentKey: 'k',
      jobId: 'job_1',
      quotedTokens: 12,
      isUncharged: false,
      ...more,
    });
  };
  const usage = () => {
    const { spentTokens, reservedTokens } = standingOf(draft.budget(budgetName(TERMS)), TERMS, 1, draft.isAlive);
    return [spentTokens, reservedTokens];
  };
  return { draft, id, living, open, accept, usage, entry: () => draft.entry(id), done: () => draft.done(id) };
}

describe('an entry', () => {
  it('reserves its price, and counts what it is quoted, and then what it is charged', () => {
    const { open, accept, usage, draft, id } = ledger();
    open('one#1');
    expect(usage()).toEqual([0, 10]);
    accept('one#1');
    expect(usage()).toEqual([12, 0]);
    rule.endCreate(draft, { id, jobId: 'job_1', status: 'failed', chargedTokens: 0, isRead: true });
    expect(usage()).toEqual([0, 0]);
  });

  it('that was never sent counts for nothing once its process is gone, and one that was sent counts on', () => {
    for (const [isSent, reserved] of [
      [false, 0],
      [true, 10],
    ] as const) {
      const { open, usage, draft, id, living } = ledger();
      open('one#1');
      if (isSent) rule.noteSent(draft, { id, by: 'one#1', params: {}, sentKey: 'k' });
      living.delete('one');
      expect(usage()).toEqual([0, reserved]);
    }
  });

  it('is not corrected by the end of an earlier job of its run, which is told once more', () => {
    const { open, usage, accept, draft, id } = ledger();
    const end = () => rule.endCreate(draft, { id, jobId: 'job_1', status: 'failed', chargedTokens: 0, isRead: true });
    open('one#1', { rules: RULES });
    accept('one#1');
    end();
    open('one#1', { rules: RULES, sentKey: 'k:r2' });
    expect(usage()).toEqual([0, 12]);
    end();
    expect(usage()).toEqual([0, 12]);
    rule.noteSent(draft, { id, by: 'one#1', params: {}, sentKey: 'k:r2' });
    end();
    accept('one#1', { jobId: 'job_2', sentKey: 'k:r2' });
    expect(usage()).toEqual([12, 0]);
  });

  it('is kept until its outcome is handed over: a failure by its word, a file by its storage', () => {
    for (const [status, first, second] of [
      ['failed', 'outcome', undefined],
      ['completed', 'outcome', 'file'],
    ] as const) {
      const { accept, draft, id, entry, done } = ledger();
      accept('one#1');
      rule.endCreate(draft, { id, jobId: 'job_1', status, chargedTokens: undefined, isRead: true });
      rule.handOver(draft, id, first);
      expect(entry() === undefined).toBe(second === undefined);
      if (second) rule.handOver(draft, id, second);
      expect([entry(), done()]).toEqual([undefined, expect.objectContaining({ jobId: 'job_1' })]);
    }
  });

  it('of a run that goes on is not ended by another wait, which throws the failure of its job', () => {
    const { open, accept, draft, id, entry, living } = ledger();
    open('one#1', { rules: RULES });
    accept('one#1');
    rule.endCreate(draft, { id, jobId: 'job_1', status: 'failed', chargedTokens: 0, isRead: true });
    rule.handOver(draft, id, 'outcome');
    expect(entry()?.phase).toBe('ended');
    living.delete('one');
    rule.handOver(draft, id, 'outcome');
    expect(entry()).toBeUndefined();
  });

  it('whose file is stored waits for its charge, which no job shows but one that is read', () => {
    const { accept, usage, draft, id, entry } = ledger();
    accept('one#1');
    const end = { id, jobId: 'job_1', status: 'completed' };
    rule.endCreate(draft, { ...end, chargedTokens: undefined, isRead: false });
    rule.handOver(draft, id, 'file');
    expect([entry()?.isStored, rule.takeUp(draft, id, 'two#1', () => true)]).toEqual([true, undefined]);
    rule.endCreate(draft, { ...end, chargedTokens: 25, isRead: true });
    expect([entry(), usage()]).toEqual([undefined, [25, 0]]);
  });

  it('is gone where its create was refused, and stays where its answer was lost', () => {
    for (const [fate, phase] of [
      ['refused', undefined],
      ['unsent', undefined],
      ['lost', 'sent'],
    ] as const) {
      const { open, draft, id, entry } = ledger();
      open('one#1');
      rule.failCreate(draft, { id, by: 'one#1', fate });
      expect(entry()?.phase).toBe(phase);
    }
  });

  it('of one key in two calls is counted once, and stays while one of them is under way', () => {
    const { open, usage, draft, id, entry } = ledger();
    open('one#1');
    expect(open('two#1').reply).toMatchObject({ outcome: 'noted' });
    expect(usage()).toEqual([0, 10]);
    rule.failCreate(draft, { id, by: 'one#1', fate: 'unsent' });
    expect(entry()?.holders).toEqual(['two#1']);
  });

  it('is refused under its key with other params, also once it is done', () => {
    const { open, accept, draft, id } = ledger();
    open('one#1', { digest: 'a' });
    expect(open('one#2', { digest: 'b' }).reply).toMatchObject({ outcome: 'reused' });
    accept('one#1');
    rule.handOver(draft, id, 'file');
    expect(open('one#3', { digest: 'b' }).reply).toMatchObject({ outcome: 'reused', jobId: 'job_1' });
    expect(open('one#4', { digest: 'a' }).reply).toMatchObject({ outcome: 'noted' });
  });

  it('is taken up by nobody while a living process has it, and asks for room again where it was not sent', () => {
    const { open, usage, draft, id, living } = ledger();
    open('one#1');
    const isInFlight = () => true;
    expect(rule.takeUp(draft, id, 'two#1', isInFlight)).toBeUndefined();
    living.delete('one');
    expect(rule.takeUp(draft, id, 'two#1', isInFlight)).toMatchObject({ phase: 'open' });
    expect(usage()).toEqual([0, 0]);
    open('two#1');
    expect(usage()).toEqual([0, 10]);
  });

  it('must not be sent by a process whose create another one has taken up', () => {
    const { open, draft, id, living } = ledger();
    open('one#1');
    living.delete('one');
    rule.takeUp(draft, id, 'two#1', () => true);
    expect(rule.noteSent(draft, { id, by: 'one#1', params: {}, sentKey: 'k' })).toBe(false);
  });

  it('of a run that is repeated from its beginning does not count its earlier jobs again', () => {
    const { open, accept, usage, draft, id } = ledger();
    open('one#1', { rules: RULES });
    accept('one#1');
    rule.endCreate(draft, { id, jobId: 'job_1', status: 'failed', chargedTokens: 0, isRead: true });
    open('one#1', { rules: RULES, sentKey: 'k:r2' });
    accept('one#1', { jobId: 'job_2', sentKey: 'k:r2' });
    expect(usage()).toEqual([12, 0]);
    accept('two#1', { jobId: 'job_1' });
    expect(usage()).toEqual([12, 0]);
  });

  it('says the same twice with the effect of once', () => {
    const { accept, usage, draft, id } = ledger();
    for (let times = 0; times < 2; times++) accept('one#1');
    for (let times = 0; times < 2; times++) {
      rule.endCreate(draft, { id, jobId: 'job_1', status: 'completed', chargedTokens: 5, isRead: true });
    }
    expect(usage()).toEqual([5, 0]);
  });

  it('that is released gives back what it holds, unless a call works on it', () => {
    const { open, usage, draft, id } = ledger();
    open('one#1');
    rule.releaseCreate(draft, id);
    expect(usage()).toEqual([0, 10]);
    rule.failCreate(draft, { id, by: 'one#1', fate: 'lost' });
    rule.releaseCreate(draft, id);
    expect(usage()).toEqual([0, 0]);
  });
});
