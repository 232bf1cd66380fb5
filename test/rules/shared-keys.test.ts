// Plain creates, runs, and resume() that share one key, and what is left of an entry after its job.
import { describe, expect, it } from 'vitest';
import * as owners from '../../src/rules/ledger-owners.js';
import { LedgerTransaction } from '../../src/rules/ledger-transaction.js';
import { ENTRY, ledger, RULES } from './test-ledger.js';

describe('a plain create under the key of a resumed create', () => {
  for (const outcome of ['accepted', 'refused', 'unsent', 'lost'] as const) {
    it(`leaves the entry to resume(): ${outcome}`, () => {
      const { reserve, send, accept, fail, claim, living, entry } = ledger();
      reserve('one#1');
      send('one#1');
      living.delete('one');
      claim('two#1');
      living.add('three');
      reserve('three#1');
      accept('two#1', { run: { isResumed: true } });
      if (outcome === 'accepted') accept('three#1', { run: undefined });
      else fail('three#1', outcome, { run: undefined });
      expect([entry()?.owners, claim('three#2')]).toEqual([['two#1'], undefined]);
    });
  }

  it('leaves the entry to resume() if its own response arrives first', () => {
    const { reserve, send, accept, claim, living, entry } = ledger();
    reserve('one#1');
    send('one#1');
    living.delete('one');
    claim('two#1');
    living.add('three');
    reserve('three#1');
    accept('three#1', { run: undefined });
    expect([entry()?.owners, claim('three#2')]).toEqual([['two#1'], undefined]);
  });
});

describe('a plain create under the key of a closed createAndWait', () => {
  it('ends the entry if the service rejects it, so that resume() does not send it again', () => {
    const { tx, id, reserve, send, fail, entry, claim } = ledger();
    reserve('one#1', { rules: RULES });
    send('one#1');
    owners.closeRun(tx, { id, owner: 'one#1', isDelivered: false });
    reserve('two#1');
    send('two#1');
    fail('two#1', 'refused', { run: undefined });
    expect([entry(), claim('two#2')]).toEqual([undefined, undefined]);
  });

  it("keeps the entry after a rejection if it has the run's earlier jobs", () => {
    const { tx, id, reserve, send, accept, end, fail, phase } = ledger();
    reserve('one#1', { rules: RULES });
    accept('one#1');
    end();
    reserve('one#1', { rules: RULES, sentKey: 'k:r2' });
    send('one#1', 'k:r2');
    owners.closeRun(tx, { id, owner: 'one#1', isDelivered: false });
    reserve('two#1', { sentKey: 'k:r2' });
    fail('two#1', 'refused', { sentKey: 'k:r2', run: undefined });
    expect(phase()).toBe('open');
  });
});

describe('what is left of a finished job', () => {
  it("keeps the expiry of its file after a report without one, such as a webhook's", () => {
    const { accept, end, entry } = ledger();
    accept('one#1');
    end({ status: 'completed', chargedTokens: 12, expiresMs: 5_000 });
    end({ status: 'completed', chargedTokens: undefined });
    expect(entry()).toMatchObject({ phase: 'ended', retainUntilMs: 5_000 });
    end({ status: 'completed', chargedTokens: 12, expiresMs: 6_000 });
    expect(entry()).toMatchObject({ retainUntilMs: 6_000 });
  });

  it('is one key once its file has expired and another create of its index part is recorded', () => {
    // Both IDs have the same hash.
    const [id, other] = ['account/Aa', 'account/BB'];
    const process = { id: 'one', isPersistent: true, isLeaseHeld: undefined, owners: new Map() };
    const at = (nowMs: number, values: Record<string, string>) =>
      new LedgerTransaction({ has: () => true }, { nowMs, values }, process);
    const before = at(1, {});
    before.put(id, { ...ENTRY, phase: 'ended', jobId: 'job_1', status: 'completed', retainUntilMs: 5_000 });
    const values = Object.entries(before.changes()).map(([key, change]) => [key, change?.value ?? '']);
    const later = at(5_000, Object.fromEntries(values));
    later.put(other, ENTRY);
    const { [`create/${id}`]: left, 'job/job_1': job } = later.changes();
    expect([left, job]).toEqual([{ value: '{"usedKey":{"jobId":"job_1"}}', ttlMs: 7 * 86_400_000 }, null]);
  });

  it('is the whole entry until its file expires, also if a later report moves that', () => {
    const [id, other] = ['account/Aa', 'account/BB'];
    const process = { id: 'one', isPersistent: true, isLeaseHeld: undefined, owners: new Map() };
    const tx = new LedgerTransaction({ has: () => true }, { nowMs: 1, values: {} }, process);
    const ended = { ...ENTRY, phase: 'ended', jobId: 'job_1', status: 'completed' } as const;
    tx.put(id, { ...ended, retainUntilMs: 5_000 });
    tx.put(id, { ...ended, retainUntilMs: 6_000 });
    const values = Object.entries(tx.changes()).map(([key, change]) => [key, change?.value ?? '']);
    const later = new LedgerTransaction(
      { has: () => true },
      { nowMs: 5_500, values: Object.fromEntries(values) },
      process,
    );
    later.put(other, ENTRY);
    expect([later.ids().toSorted(), later.entry(id)?.phase]).toEqual([[id, other], 'ended']);
  });

  it('is nothing if its price was learned or released after its file was stored', () => {
    for (const how of ['learned', 'released'] as const) {
      const { tx, id, reserve, accept, end, acknowledge, entry, usedKey, usage } = ledger();
      const unpriced = { tokens: null, isLearned: false };
      const { entry: requested } = reserve('one#1', unpriced);
      accept('one#1', { requested, quotedTokens: null });
      end({ status: 'completed', chargedTokens: undefined });
      acknowledge('file');
      expect(entry()).toMatchObject({ phase: 'ended', retainUntilStored: false });
      if (how === 'released') owners.releaseCreate(tx, id);
      else {
        tx.learnPrice(requested, 7);
        reserve('two#1', { key: 'other', sentKey: 'other' }, 'account/other');
      }
      expect([entry(), usedKey()?.jobId]).toEqual([undefined, 'job_1']);
      expect(usage()[0]).toBe(how === 'released' ? 0 : 7);
    }
  });
});
