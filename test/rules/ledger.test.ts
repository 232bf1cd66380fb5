// A budget's decisions about creates, and an entry's transitions.
import { describe, expect, it } from 'vitest';
import {
  admissionOf,
  type BudgetState,
  EMPTY_BUDGET,
  snapshotOf,
  withReservation,
  withSpent,
} from '../../src/rules/budget.js';
import {
  type CreateEntry,
  type CreatePhase,
  type EntryEvent,
  NEXT_PHASE,
  transition,
} from '../../src/rules/create-entry.js';
import * as rule from '../../src/rules/ledger.js';
import * as owners from '../../src/rules/ledger-owners.js';
import { ENTRY, openLedger, openTransaction, RULES, TERMS } from './test-ledger.js';

describe('a create with a budget of 100 tokens', () => {
  type Price = { readonly tokens: number | null; readonly isLearned: boolean };
  type Change = (state: BudgetState) => BudgetState;
  const learned = (tokens: number): Price => ({ tokens, isLearned: true });
  const unknown: Price = { tokens: null, isLearned: false };
  const estimated = (tokens: number): Price => ({ tokens, isLearned: false });
  const reserved =
    (phase: 'open' | 'sent' | 'accepted', owner: string) =>
    (price: Price): Change =>
    (state) =>
      withReservation(state, { phase, owner, sinceMs: 1, per: 'total' }, price, 1);
  const [waiting, sent, lost, crashed] = [
    reserved('open', 'living'),
    reserved('sent', 'living'),
    reserved('sent', ''),
    reserved('open', 'crashed'),
  ];
  const spent =
    (tokens: number): Change =>
    (state) =>
      withSpent(state, 'total', tokens, 1);
  const running =
    (tokens: number): Change =>
    (state) =>
      reserved('accepted', '')(learned(tokens))(spent(tokens)(state));

  it.each<[string, Change[], Price, string, string]>([
    ['that fits', [], learned(100), 'room', 'room'],
    ['that costs more than the entire budget', [], learned(101), 'spent', 'spent'],
    ['of unknown price, alone', [], unknown, 'room', 'room'],
    ['of unknown price when all tokens are spent', [spent(100)], unknown, 'spent', 'spent'],
    ['when the rest is spent', [spent(95)], learned(10), 'spent', 'spent'],
    [
      'when running jobs are quoted at the rest (N4)',
      [spent(50), running(45)],
      learned(10),
      'unresolved',
      'unresolved',
    ],
    ['when running jobs cannot release enough (N4)', [spent(91), running(5)], learned(10), 'spent', 'spent'],
    ['while waiting creates reserve the rest', [waiting(learned(95))], learned(10), 'busy', 'room'],
    ['while creates in flight reserve the rest', [sent(learned(95))], learned(10), 'busy', 'busy'],
    ['while a create of unknown price waits', [waiting(unknown)], learned(10), 'busy', 'room'],
    ['while a create of unknown price is in flight', [sent(unknown)], learned(10), 'busy', 'busy'],
    ['of unknown price while a create is in flight', [sent(learned(11))], unknown, 'busy', 'busy'],
    ['while a create is in flight, if ten times the prices fit', [sent(learned(4))], learned(5), 'room', 'room'],
    ["while a create is in flight, if ten times the prices don't fit", [sent(learned(4))], learned(7), 'busy', 'busy'],
    ['while a create waits for its rate limit (C10)', [waiting(learned(20))], learned(80), 'room', 'room'],
    ['after a lost create that leaves enough', [lost(learned(10))], learned(90), 'room', 'room'],
    ['after a lost create that leaves too little', [lost(learned(10))], learned(91), 'unresolved', 'unresolved'],
    ['after a lost create of unknown price', [lost(unknown)], learned(1), 'unresolved', 'unresolved'],
    ['with an estimate after a lost estimate', [lost(estimated(5))], estimated(5), 'unresolved', 'unresolved'],
    ['after an unsent create whose process crashed', [crashed(unknown)], learned(100), 'room', 'room'],
    ['for exactly the rest after 36 charges of 0.1 (C13)', Array(36).fill(spent(0.1)), learned(96.4), 'room', 'room'],
  ])('%s gets the correct decision', (_, changes, price, reserve, send) => {
    const state = changes.reduce((budget, change) => change(budget), EMPTY_BUDGET);
    const snapshot = snapshotOf(state, TERMS, 1, (owner) => owner === 'living');
    const decisions = (['reserve', 'send'] as const).map((step) => admissionOf(snapshot, TERMS.maxTokens, price, step));
    expect(decisions).toEqual([reserve, send]);
  });
});

describe('the transition table', () => {
  const entries: Record<CreatePhase, CreateEntry> = {
    open: ENTRY,
    sent: { ...ENTRY, phase: 'sent', senders: ['one#1'] },
    lost: { ...ENTRY, phase: 'lost' },
    accepted: { ...ENTRY, phase: 'accepted', jobId: 'job_1' },
    ended: { ...ENTRY, phase: 'ended', jobId: 'job_1', status: 'failed', retainUntilMs: 9 },
  };
  const events: EntryEvent[] = [
    { type: 'reserved', nowMs: 1 },
    { type: 'sent', owner: 'one#1' },
    { type: 'unsent', isReserved: true },
    { type: 'rejected', isReserved: false },
    { type: 'responseLost' },
    { type: 'accepted', jobId: 'job_1', nowMs: 1 },
    { type: 'final', jobId: 'job_1', status: 'completed', retainUntilMs: 9 },
    { type: 'released' },
  ];

  it('determines the next phase for each event, and ignores unlisted events', () => {
    for (const entry of Object.values(entries)) {
      for (const event of events) {
        const phase = NEXT_PHASE[entry.phase][event.type];
        const result = transition(entry, event);
        if (phase === undefined) expect(result).toBe(entry);
        else expect(result.phase, `${event.type} in ${entry.phase}`).toBe(phase);
      }
    }
  });
});

describe('an entry', () => {
  it('first reserves its price, then counts its quote, and finally its charge', () => {
    const { reserve, accept, usage, end } = openLedger();
    reserve('one#1');
    expect(usage()).toEqual([0, 10]);
    accept('one#1');
    expect(usage()).toEqual([12, 0]);
    end();
    expect(usage()).toEqual([0, 0]);
  });

  it('stops counting when its process crashes, unless it was sent', () => {
    for (const [isSent, reserved] of [
      [false, 0],
      [true, 10],
    ] as const) {
      const { reserve, send, usage, living } = openLedger();
      reserve('one#1');
      if (isSent) send('one#1');
      living.delete('one');
      expect(usage()).toEqual([0, reserved]);
    }
  });

  it("isn't settled when an earlier job of its run ends", () => {
    const { reserve, send, usage, accept, end } = openLedger();
    reserve('one#1', { rules: RULES });
    accept('one#1');
    end();
    reserve('one#1', { rules: RULES, sentKey: 'k:r2' });
    expect(usage()).toEqual([0, 12]);
    end();
    expect(usage()).toEqual([0, 12]);
    send('one#1', 'k:r2');
    end();
    accept('one#1', { jobId: 'job_2', sentKey: 'k:r2' });
    expect(usage()).toEqual([12, 0]);
  });

  it('is retained until its failure is delivered or its file is stored', () => {
    for (const [status, first, second] of [
      ['failed', 'outcome', undefined],
      ['completed', 'outcome', 'file'],
    ] as const) {
      const { accept, end, acknowledge, entry, usedKey } = openLedger();
      accept('one#1');
      end({ status, chargedTokens: undefined });
      acknowledge(first);
      expect(entry() === undefined).toBe(second === undefined);
      if (second) acknowledge(second);
      expect([entry(), usedKey()]).toEqual([undefined, expect.objectContaining({ jobId: 'job_1' })]);
    }
  });

  it('ends at its quote if its file is stored before its charge is known (C9)', () => {
    const { accept, usage, end, acknowledge, entry, usedKey } = openLedger();
    accept('one#1');
    acknowledge('file');
    end({ status: 'completed', chargedTokens: 25 });
    expect([entry(), usedKey()?.jobId, usage()]).toEqual([undefined, 'job_1', [12, 0]]);
  });

  it('without a price waits for its charge, even after its file is stored', () => {
    for (const rules of [null, RULES]) {
      const { tx, id, reserve, accept, usage, end, acknowledge, entry, claim } = openLedger();
      reserve('one#1', { tokens: null, isLearned: false, rules });
      accept('one#1', { quotedTokens: null });
      acknowledge('file');
      expect([entry()?.phase, claim('two#1')]).toEqual(['accepted', undefined]);
      end({ status: 'completed', chargedTokens: 25 });
      owners.closeRun(tx, { id, owner: 'one#1', isDelivered: true });
      expect([usage(), entry()]).toEqual([[25, 0], undefined]);
    }
  });

  it('of a completed job ends when its link expires, or after seven days (C9)', () => {
    const days = 86_400_000;
    for (const [expiresMs, afterMs] of [
      [5_000, 5_000],
      [undefined, 7 * days + 1],
      [0, 1],
    ] as const) {
      const { tx, id, accept, end } = openLedger();
      accept('one#1');
      end({ status: 'completed', chargedTokens: 12, expiresMs });
      const stateAt = (nowMs: number) => {
        const later = openTransaction(nowMs, tx);
        return [later.entry(id)?.phase, later.usedKey(id)?.jobId];
      };
      if (afterMs > 1) expect(stateAt(afterMs - 1)).toEqual(['ended', undefined]);
      expect(stateAt(afterMs)).toEqual([undefined, 'job_1']);
    }
  });

  it("of a continuing run isn't closed by another wait that throws its job's failure", () => {
    const { reserve, accept, end, acknowledge, entry, living } = openLedger();
    reserve('one#1', { rules: RULES });
    accept('one#1');
    end();
    acknowledge('outcome');
    expect(entry()?.phase).toBe('ended');
    living.delete('one');
    acknowledge('outcome');
    expect(entry()).toBeUndefined();
  });

  it('is removed if its create was rejected or unsent, and is lost if its response was lost', () => {
    for (const [outcome, expected] of [
      ['refused', undefined],
      ['unsent', undefined],
      ['lost', 'lost'],
    ] as const) {
      const { reserve, send, fail, phase } = openLedger();
      reserve('one#1');
      send('one#1');
      fail('one#1', outcome);
      expect(phase()).toBe(expected);
    }
  });

  it('of two calls counts once, and is retained while either is active', () => {
    const { reserve, usage, fail, entry } = openLedger();
    reserve('one#1');
    expect(reserve('two#1').result).toMatchObject({ outcome: 'recorded' });
    expect(usage()).toEqual([0, 10]);
    fail('one#1', 'unsent');
    expect(entry()?.owners).toEqual(['two#1']);
  });

  it("of a run is unaffected by another call's outcome under its key", () => {
    for (const outcome of ['unsent', 'refused', 'lost', 'accepted'] as const) {
      const { tx, id, reserve, send, accept, fail, usage, entry } = openLedger();
      reserve('one#1', { rules: RULES });
      reserve('one#2');
      send('one#2');
      if (outcome === 'accepted') accept('one#2', { run: undefined });
      else fail('one#2', outcome, { run: undefined });
      expect(entry()?.owners, outcome).toEqual(['one#1']);
      if (outcome !== 'unsent') continue;
      owners.closeRun(tx, { id, owner: 'one#1', isDelivered: true });
      expect([usage(), entry()]).toEqual([[0, 0], undefined]);
    }
  });

  it("left by a crash reserves under its budget's current limit", () => {
    const { reserve, claim, living } = openLedger();
    const withLimit = (maxTokens: number) => ({ budgets: [{ ...TERMS, maxTokens }] });
    reserve('one#1', withLimit(10));
    living.delete('one');
    claim('two#1');
    expect(reserve('two#1', withLimit(9)).result).toMatchObject({ outcome: 'spent', budget: { maxTokens: 9 } });
    claim('two#1');
    reserve('two#2', { ...withLimit(10), key: 'other', sentKey: 'other', tokens: 5 }, 'account/other');
    expect(reserve('two#1', withLimit(10)).result).toMatchObject({ outcome: 'busy' });
    expect(reserve('two#1', withLimit(15)).result).toMatchObject({ outcome: 'recorded' });
  });

  it("that one call has sent isn't removed or reopened by another call's unsent request (C1)", () => {
    for (const isRun of [false, true]) {
      const { tx, id, reserve, send, usage, fail, phase, living } = openLedger();
      reserve('two#1', { rules: isRun ? RULES : null });
      send('two#1');
      reserve('one#1');
      rule.recordUnsent(tx, id, 'one#1');
      expect(phase()).toBe('sent');
      living.delete('two');
      fail('one#1', 'unsent');
      expect([phase(), usage()]).toEqual(['lost', [0, 10]]);
    }
  });

  it('reopens and reserves again if it turns out to be unsent', () => {
    const { tx, id, reserve, send, phase, usage } = openLedger();
    reserve('one#1');
    send('one#1');
    rule.recordUnsent(tx, id, 'one#1');
    expect([phase(), usage()]).toEqual(['open', [0, 10]]);
    expect([send('one#1'), phase()]).toEqual(['sent', 'sent']);
  });

  it("isn't sent if others spent its tokens while its process was paused (C2, H1)", () => {
    const { reserve, send, living, phase } = openLedger();
    reserve('one#1', { tokens: 60 });
    living.delete('one');
    expect(reserve('two#1', { key: 'other', tokens: 60, sentKey: 'other' }, 'account/other').result.outcome).toBe(
      'recorded',
    );
    expect(send('two#1', 'other', 'account/other')).toBe('sent');
    living.add('one');
    expect([send('one#1'), phase()]).toEqual(['busy', 'open']);
  });

  it('is reported as reused with different params, even after its end', () => {
    const { reserve, accept, acknowledge } = openLedger();
    reserve('one#1', { digest: 'a' });
    expect(reserve('one#2', { digest: 'b' }).result).toMatchObject({ outcome: 'reused' });
    accept('one#1');
    acknowledge('file');
    expect(reserve('one#3', { digest: 'b' }).result).toMatchObject({ outcome: 'reused', jobId: 'job_1' });
    expect(reserve('one#4', { digest: 'a' }).result).toMatchObject({ outcome: 'recorded' });
  });

  it("is reported as reused with its key's job, even while its run creates again", () => {
    const { reserve, accept, end } = openLedger();
    reserve('one#1', { rules: RULES, digest: 'a' });
    accept('one#1');
    end();
    reserve('one#1', { rules: RULES, sentKey: 'k:r2' });
    expect(reserve('one#2', { digest: 'b' }).result).toEqual({ outcome: 'reused', jobId: 'job_1' });
  });

  it("can't be claimed while a live process owns it, and reserves again if it is unsent", () => {
    const { reserve, usage, claim, living } = openLedger();
    reserve('one#1');
    expect(claim('two#1')).toBeUndefined();
    living.delete('one');
    expect(claim('two#1')).toMatchObject({ phase: 'open' });
    expect(usage()).toEqual([0, 0]);
    reserve('two#1');
    expect(usage()).toEqual([0, 10]);
  });

  it("isn't sent by a process after another process has claimed it", () => {
    const { reserve, claim, send, living } = openLedger();
    reserve('one#1');
    living.delete('one');
    claim('two#1');
    expect(send('one#1')).toBe('taken');
  });

  it('can be claimed again after the call that claimed it releases it (C4)', () => {
    const { tx, id, reserve, send, claim, living, phase } = openLedger();
    reserve('one#1');
    send('one#1');
    living.delete('one');
    claim('two#1');
    owners.closeRun(tx, { id, owner: 'two#1', isDelivered: false, isResumed: true });
    living.add('three');
    expect([phase(), claim('three#1')?.owners]).toEqual(['lost', ['three#1']]);
  });

  it('is claimed by only one resume(), which owns it until its job ends', () => {
    const { tx, id, reserve, send, accept, claim, living } = openLedger();
    reserve('one#1');
    send('one#1');
    living.delete('one');
    claim('two#1');
    accept('two#1', { run: { isResumed: true } });
    living.add('three');
    expect(claim('three#1')).toBeUndefined();
    owners.closeRun(tx, { id, owner: 'two#1', isDelivered: false, isResumed: true });
    expect(claim('three#1')).toMatchObject({ phase: 'accepted' });
  });

  it("of a restarted run doesn't count its earlier jobs again", () => {
    const { tx, id, reserve, send, accept, end, usage, fail, phase } = openLedger();
    reserve('one#1', { rules: RULES });
    accept('one#1');
    end();
    reserve('one#1', { rules: RULES, sentKey: 'k:r2' });
    send('one#1', 'k:r2');
    reserve('two#1', { rules: RULES });
    expect(send('two#1')).toBe('sent');
    accept('two#1', { jobId: 'job_1' });
    fail('two#1', 'lost');
    expect([phase(), usage()]).toEqual(['sent', [0, 12]]);
    accept('one#1', { jobId: 'job_2', sentKey: 'k:r2' });
    expect([usage(), tx.entry(id)]).toMatchObject([[12, 0], { phase: 'accepted', jobId: 'job_2' }]);
  });

  it('ends in the same state if every event arrives twice', () => {
    const { accept, usage, end } = openLedger();
    for (let times = 0; times < 2; times++) accept('one#1');
    for (let times = 0; times < 2; times++) end({ status: 'completed', chargedTokens: 5 });
    expect(usage()).toEqual([5, 0]);
  });

  it('can be released unless a call is active', () => {
    const { tx, id, reserve, fail, usage } = openLedger();
    reserve('one#1');
    owners.releaseCreate(tx, id);
    expect(usage()).toEqual([0, 10]);
    fail('one#1', 'lost');
    owners.releaseCreate(tx, id);
    expect(usage()).toEqual([0, 0]);
  });
});
