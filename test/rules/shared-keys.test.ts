// Plain creates, runs, and resume() with the same key, and the entries of finished jobs.
import { describe, expect, it } from 'vitest';
import * as owners from '../../src/rules/ledger-owners.js';
import { ENTRY, openLedger, openTransaction, RULES } from './test-ledger.js';

describe('a plain create under the key of a resumed create', () => {
  it.each(['accepted', 'refused', 'unsent', 'lost'] as const)('leaves the entry to resume() if it is %s', (outcome) => {
    const { reserve, send, accept, fail, claim, living, entry } = openLedger();
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

  it('leaves the entry to resume() if its response arrives before that of resume()', () => {
    const { reserve, send, accept, claim, living, entry } = openLedger();
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
  it("ends the entry if the service rejects it, so that resume() doesn't send it again", () => {
    const { tx, id, reserve, send, fail, entry, claim } = openLedger();
    reserve('one#1', { rules: RULES });
    send('one#1');
    owners.closeRun(tx, { id, owner: 'one#1', isDelivered: false });
    reserve('two#1');
    send('two#1');
    fail('two#1', 'refused', { run: undefined });
    expect([entry(), claim('two#2')]).toEqual([undefined, undefined]);
  });

  it("retains the entry after a rejection if it contains the run's earlier jobs", () => {
    const { tx, id, reserve, send, accept, end, fail, phase } = openLedger();
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

describe('a finished job', () => {
  // Both IDs have the same hash.
  const [id, other] = ['account/Aa', 'account/BB'];
  const completed = { ...ENTRY, phase: 'ended', jobId: 'job_1', status: 'completed' } as const;

  it("retains its file's expiry after a report without one, such as a webhook's", () => {
    const { accept, end, entry } = openLedger();
    accept('one#1');
    end({ status: 'completed', chargedTokens: 12, expiresMs: 5_000 });
    end({ status: 'completed', chargedTokens: undefined });
    expect(entry()).toMatchObject({ phase: 'ended', retainUntilMs: 5_000 });
    end({ status: 'completed', chargedTokens: 12, expiresMs: 6_000 });
    expect(entry()).toMatchObject({ retainUntilMs: 6_000 });
  });

  it('leaves only its key once its file has expired and a create in the same index part is recorded', () => {
    const firstTx = openTransaction(1);
    firstTx.put(id, { ...completed, retainUntilMs: 5_000 });
    const laterTx = openTransaction(5_000, firstTx);
    laterTx.put(other, ENTRY);
    const { [`create/${id}`]: create, 'job/job_1': job } = laterTx.changes();
    expect([create, job]).toEqual([{ value: '{"usedKey":{"jobId":"job_1"}}', ttlMs: 7 * 86_400_000 }, null]);
  });

  it('retains its entry until its file expires, even if a later report postpones that', () => {
    const firstTx = openTransaction(1);
    for (const retainUntilMs of [5_000, 6_000]) firstTx.put(id, { ...completed, retainUntilMs });
    const laterTx = openTransaction(5_500, firstTx);
    laterTx.put(other, ENTRY);
    expect([laterTx.ids().toSorted(), laterTx.entry(id)?.phase]).toEqual([[id, other], 'ended']);
  });

  it.each(['learned', 'released'] as const)(
    'leaves only its key once an unknown price is %s, after its file was stored',
    (event) => {
      const { tx, id, reserve, accept, end, acknowledge, entry, usedKey, usage } = openLedger();
      const { entry: unpriced } = reserve('one#1', { tokens: null, isLearned: false });
      accept('one#1', { quotedTokens: null });
      end({ status: 'completed', chargedTokens: undefined });
      acknowledge('file');
      expect(entry()).toMatchObject({ phase: 'ended', retainUntilStored: false });
      if (event === 'released') owners.releaseCreate(tx, id);
      else {
        tx.learnPrice(unpriced, 7);
        reserve('two#1', { key: 'other', sentKey: 'other' }, 'account/other');
      }
      expect([entry(), usedKey()?.jobId]).toEqual([undefined, 'job_1']);
      expect(usage()[0]).toBe(event === 'released' ? 0 : 7);
    },
  );
});
