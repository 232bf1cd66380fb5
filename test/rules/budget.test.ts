// What each step does to a budget, at a time that the test holds.
import { describe, expect, it } from 'vitest';
import { takeBudgetStep } from '../../src/rules/budget.js';
import {
  type BudgetPeriod,
  type BudgetState,
  type BudgetStep,
  EMPTY_BUDGET,
  type ReserveStep,
} from '../../src/rules/budget-state.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const T0 = Date.parse('2026-03-10T10:00:00Z');
/** A call that is not renewed counts as lost after this. */
const LEASE_MS = 30_000;

/** A budget of 100 tokens, and its steps. */
function budgetOf(per: BudgetPeriod = 'total', maxTokens = 100) {
  let state: BudgetState = EMPTY_BUDGET;
  const take = (step: BudgetStep, nowMs = T0) => {
    const taken = takeBudgetStep(state, { scope: { maxTokens, per }, step, nowMs });
    state = taken.state;
    return taken.reply;
  };
  return { take, look: (nowMs = T0) => take({ op: 'look' }, nowMs), state: () => state };
}

const reserve = (key: string, changes: Partial<ReserveStep> = {}): BudgetStep => ({
  op: 'reserve',
  key,
  holder: `${key}-1`,
  priceClass: 'video',
  teaches: true,
  knownTokens: 10,
  guessedTokens: null,
  refusesUnknown: false,
  ...changes,
});
const settle = (key: string, quotedTokens: number | null, changes: object = {}): BudgetStep => ({
  op: 'settle',
  key,
  jobId: `job_${key}`,
  priceClass: 'video',
  teaches: true,
  quotedTokens,
  isUncharged: false,
  ...changes,
});
const lost = (key: string): BudgetStep => ({ op: 'fail', key, holder: `${key}-1`, fate: 'lost' });
const UNKNOWN = { knownTokens: null, priceClass: 'edit' };

describe('a step answers with the whole standing of the budget', () => {
  it('when nothing was spent', () => {
    expect(budgetOf().look()).toEqual({
      outcome: 'done',
      tokens: null,
      spentTokens: 0,
      reservedTokens: 0,
      leftTokens: 100,
      endMs: null,
      unresolved: 0,
    });
  });

  it('when one create is in flight, one has lost its answer and one is paid', () => {
    const { take } = budgetOf();
    take(reserve('a'));
    take(settle('a', 12));
    take(reserve('b', { knownTokens: null }));
    take(lost('b'));
    expect(take(reserve('c', { knownTokens: null }))).toEqual({
      outcome: 'reserved',
      // The answer taught the price.
      tokens: 12,
      spentTokens: 12,
      reservedTokens: 24,
      leftTokens: 64,
      endMs: null,
      unresolved: 1,
    });
  });

  it('when a create of an unknown price holds all that is left', () => {
    const { take } = budgetOf();
    take(reserve('a'));
    take(settle('a', 12));
    expect(take(reserve('b', UNKNOWN))).toMatchObject({
      outcome: 'reserved',
      tokens: null,
      spentTokens: 12,
      reservedTokens: 88,
      leftTokens: 0,
    });
  });
});

describe('a create may go', () => {
  it.each<[string, number, Partial<ReserveStep>, string]>([
    ['with exactly the tokens that are left', 100, { knownTokens: 100 }, 'reserved'],
    ['not with one more', 100, { knownTokens: 101 }, 'refused'],
    ['by the estimate of the user', 100, { knownTokens: null, guessedTokens: 100 }, 'reserved'],
    ['not by an estimate above what is left', 100, { knownTokens: null, guessedTokens: 101 }, 'refused'],
    ['without any price, alone', 100, { knownTokens: null }, 'reserved'],
    ['not without a price where the user refuses that', 100, { knownTokens: null, refusesUnknown: true }, 'unknown'],
    ['not without a price where nothing is left', 0, { knownTokens: null }, 'refused'],
    ['for nothing where nothing is left', 0, { knownTokens: 0 }, 'reserved'],
  ])('%s', (_, maxTokens, changes, outcome) => {
    expect(budgetOf('total', maxTokens).take(reserve('a', changes)).outcome).toBe(outcome);
  });

  it('beside another while the budget would hold ten times their price, and else waits for its answer', () => {
    const { take } = budgetOf('total', 200);
    expect(take(reserve('a')).outcome).toBe('reserved');
    expect(take(reserve('b')).outcome).toBe('reserved');
    expect(take(reserve('c')).outcome).toBe('wait');
    expect(take(settle('a', 10)).outcome).toBe('done');
    expect(take(settle('b', 10)).outcome).toBe('done');
    expect(take(reserve('c')).outcome).toBe('reserved');
  });

  it('not beside one of an unknown price in flight, and not at all once that one is lost', () => {
    const { take } = budgetOf();
    take(reserve('a', UNKNOWN));
    expect(take(reserve('b')).outcome).toBe('wait');
    take(lost('a'));
    expect(take(reserve('b')).outcome).toBe('unknown');
  });

  it('by an estimate not beside another estimate in flight, and not at all once that one is lost', () => {
    const { take } = budgetOf('total', 10_000);
    const guess = { knownTokens: null, guessedTokens: 1 };
    take(reserve('a', guess));
    expect(take(reserve('b', guess)).outcome).toBe('wait');
    take(lost('a'));
    expect(take(reserve('b', guess)).outcome).toBe('unknown');
    // One whose price was learned is not stopped by it.
    expect(take(reserve('c', { priceClass: 'image' })).outcome).toBe('reserved');
  });

  it('without a price not after an answer without one, until that one has a charge', () => {
    const { take } = budgetOf();
    take(reserve('a', UNKNOWN));
    expect(take(settle('a', null, { priceClass: 'edit', teaches: false }))).toMatchObject({
      outcome: 'unpriced',
      tokens: null,
      spentTokens: 0,
    });
    expect(take(reserve('b', UNKNOWN)).outcome).toBe('unknown');
    expect(take({ op: 'charge', key: 'a', jobId: 'job_a', tokens: 7 }).spentTokens).toBe(7);
    expect(take(reserve('b', UNKNOWN)).outcome).toBe('reserved');
  });

  it('once more under its own key, with the tokens that are held for it', () => {
    const { take, state } = budgetOf();
    take(reserve('a', UNKNOWN));
    expect(take(reserve('a', { ...UNKNOWN, holder: 'a-2', knownTokens: 9 }))).toMatchObject({
      outcome: 'held',
      tokens: 9,
      reservedTokens: 9,
    });
    expect([...(state().pending.get('a')?.holders ?? [])]).toEqual([
      ['a-1', T0 + LEASE_MS],
      ['a-2', T0 + LEASE_MS],
    ]);
    expect(take(reserve('a', { ...UNKNOWN, holder: 'a-3', knownTokens: 50 })).tokens).toBe(9);
    take(settle('a', 8));
    expect(take(reserve('a'))).toMatchObject({ outcome: 'held', tokens: 8, spentTokens: 8, reservedTokens: 0 });
  });

  it('at the price of its class only where its class has one price', () => {
    const { take } = budgetOf();
    take(settle('a', 12));
    expect(take(reserve('b', { knownTokens: null, teaches: false })).tokens).toBeNull();
  });
});

describe('an answer', () => {
  it('counts its quote, else what was reserved, else what its class cost, else nothing', () => {
    const { take } = budgetOf();
    take(reserve('a'));
    expect(take(settle('a', 12))).toMatchObject({ outcome: 'done', tokens: 12 });
    take(reserve('b', { knownTokens: 9, priceClass: 'image' }));
    expect(take(settle('b', null, { priceClass: 'image' }))).toMatchObject({ outcome: 'done', tokens: 9 });
    expect(take(settle('c', null))).toMatchObject({ outcome: 'done', tokens: 12 });
    expect(take(settle('d', null, { priceClass: 'edit' }))).toMatchObject({ outcome: 'unpriced', tokens: null });
    expect(take(settle('e', 12, { isUncharged: true }))).toMatchObject({ tokens: 0, spentTokens: 33 });
  });

  it('of a job that was seen before adds what it quotes only where nothing was quoted', () => {
    const { take } = budgetOf();
    take(settle('a', null, { teaches: false }));
    expect(take(settle('a', 7, { teaches: false })).spentTokens).toBe(7);
    expect(take(settle('a', 9, { teaches: false })).spentTokens).toBe(7);
    expect(take(settle('a', null, { teaches: false })).spentTokens).toBe(7);
    // Another job under the key is another charge.
    expect(take(settle('a', 5, { teaches: false, jobId: 'job_b' })).spentTokens).toBe(12);
  });

  it('prices what of its class waits for a price, and lost creates at the higher one', () => {
    const { take, state } = budgetOf('total', 1_000);
    take(settle('a', null, { priceClass: 'video' }));
    take(settle('edit', null, { teaches: false }));
    take(settle('other', null, { priceClass: 'image' }));
    take(reserve('b', { knownTokens: 30 }));
    take(lost('b'));
    take(reserve('c', { priceClass: 'image' }));
    expect(take(settle('d', 20)).spentTokens).toBe(40);
    expect([...state().unpriced.keys()]).toEqual(['edit', 'other']);
    expect(state().settled.get('a')).toMatchObject({ jobId: 'job_a', tokens: 20 });
    expect([...state().pending].map(([key, { tokens, isSure }]) => [key, tokens, isSure])).toEqual([
      ['b', 30, true],
      ['c', 10, true],
    ]);
    expect(take(settle('e', 50)).reservedTokens).toBe(60);
  });

  it('leaves 250 prices, and forgets the class that was learned longest ago', () => {
    const { take, state } = budgetOf('total', 1e9);
    for (let at = 0; at < 250; at++) take(settle(`k${at}`, at, { priceClass: `class-${at}` }));
    expect(state().prices.size).toBe(250);
    take(settle('again', 1, { priceClass: 'class-0' }));
    take(settle('new', 2, { priceClass: 'class-250' }));
    expect(state().prices.size).toBe(250);
    expect([...state().prices.keys()].slice(0, 1)).toEqual(['class-2']);
    expect(state().prices.get('class-0')).toBe(1);
  });
});

describe('what the service says of a charge', () => {
  it('corrects the job that it is about, whatever was quoted', () => {
    const { take } = budgetOf();
    take(settle('a', 12));
    expect(take({ op: 'charge', key: 'a', jobId: 'job_a', tokens: 0 }).spentTokens).toBe(0);
    expect(take({ op: 'charge', key: 'a', jobId: 'job_other', tokens: 50 }).spentTokens).toBe(0);
    expect(take({ op: 'charge', key: 'unknown', jobId: 'job_a', tokens: 50 }).spentTokens).toBe(0);
  });

  it('settles a create whose process died before it could', () => {
    const { take, state } = budgetOf();
    take(reserve('a'));
    expect(take({ op: 'charge', key: 'a', jobId: 'job_a', tokens: 15 })).toMatchObject({
      spentTokens: 15,
      reservedTokens: 0,
    });
    expect(state().settled.get('a')).toEqual({
      jobId: 'job_a',
      priceClass: 'video',
      teaches: false,
      tokens: 15,
      startMs: 0,
    });
    // Such a charge does not teach: its create may have been another.
    expect(state().prices.size).toBe(0);
  });
});

describe('a create that failed', () => {
  it.each(['refused', 'unsent'] as const)('gives back its tokens when it was %s', (fate) => {
    const { take } = budgetOf();
    take(reserve('a'));
    expect(take({ op: 'fail', key: 'a', holder: 'a-1', fate })).toMatchObject({ reservedTokens: 0, unresolved: 0 });
  });

  it('keeps them while another call is in flight under its key', () => {
    const { take } = budgetOf();
    take(reserve('a'));
    take(reserve('a', { holder: 'a-2' }));
    expect(take({ op: 'fail', key: 'a', holder: 'a-1', fate: 'refused' }).reservedTokens).toBe(10);
    expect(take({ op: 'fail', key: 'a', holder: 'a-2', fate: 'refused' }).reservedTokens).toBe(0);
  });

  it('keeps them where an earlier answer under its key was lost and this call was not sent', () => {
    const { take } = budgetOf();
    take(reserve('a'));
    take(reserve('a', { holder: 'a-2' }));
    take(lost('a'));
    expect(take({ op: 'fail', key: 'a', holder: 'a-2', fate: 'unsent' })).toMatchObject({
      reservedTokens: 10,
      unresolved: 1,
    });
  });

  it('gives them back where an earlier answer was lost and the service says that there is no job', () => {
    const { take } = budgetOf();
    take(reserve('a'));
    take(reserve('a', { holder: 'a-2' }));
    take(lost('a'));
    expect(take({ op: 'fail', key: 'a', holder: 'a-2', fate: 'refused' }).reservedTokens).toBe(0);
  });

  it('and lost its answer keeps them for a day where the budget has no period', () => {
    const { take, look } = budgetOf();
    take(reserve('a'));
    take(lost('a'));
    expect(look(T0 + DAY_MS - 1).reservedTokens).toBe(10);
    expect(look(T0 + DAY_MS).reservedTokens).toBe(0);
  });

  it('is nothing to a budget that does not know it', () => {
    const { take } = budgetOf();
    expect(take(lost('a'))).toEqual(budgetOf().look());
    expect(take({ op: 'renew', calls: [['a', 'a-1']] })).toEqual(budgetOf().look());
    expect(take({ op: 'release', key: 'a' })).toEqual(budgetOf().look());
  });
});

describe('a call that is not renewed', () => {
  it('counts as lost after thirty seconds, by its last renewal', () => {
    const { take, look } = budgetOf();
    take(reserve('a'));
    expect(look(T0 + LEASE_MS - 1).unresolved).toBe(0);
    take({ op: 'renew', calls: [['a', 'a-1']] }, T0 + LEASE_MS - 1);
    expect(look(T0 + 2 * LEASE_MS - 2).unresolved).toBe(0);
    expect(look(T0 + 2 * LEASE_MS - 1)).toMatchObject({ unresolved: 1, reservedTokens: 10 });
  });

  it('is kept for a day from when its last call was heard of', () => {
    const { take, look } = budgetOf();
    take(reserve('a'));
    take(reserve('a', { holder: 'a-2' }), T0 + 10_000);
    look(T0 + HOUR_MS);
    const endMs = T0 + 10_000 + LEASE_MS + DAY_MS;
    expect(look(endMs - 1).reservedTokens).toBe(10);
    expect(look(endMs).reservedTokens).toBe(0);
  });

  it('has thirty seconds to be renewed in after a jump of the clock of many days', () => {
    const { take, look } = budgetOf();
    take(reserve('a'));
    const later = T0 + 10 * DAY_MS;
    expect(look(later)).toMatchObject({ unresolved: 1, reservedTokens: 10 });
    take({ op: 'renew', calls: [['a', 'a-1']] }, later + LEASE_MS - 1);
    expect(look(later + LEASE_MS)).toMatchObject({ unresolved: 0, reservedTokens: 10 });
  });

  it('loses its tokens where it is not renewed then', () => {
    const { take, look } = budgetOf();
    take(reserve('a'));
    look(T0 + 10 * DAY_MS);
    expect(look(T0 + 10 * DAY_MS + LEASE_MS).reservedTokens).toBe(0);
  });
});

describe('a release of a key', () => {
  it('gives back a lost create at once, and keeps one that is in flight until it ends', () => {
    const { take } = budgetOf();
    take(reserve('a'));
    expect(take({ op: 'release', key: 'a' }).reservedTokens).toBe(10);
    take(lost('a'));
    expect(take({ op: 'release', key: 'a' })).toMatchObject({ reservedTokens: 0, unresolved: 0 });
  });

  it('of a create in flight takes back that an earlier answer was lost', () => {
    const { take } = budgetOf();
    take(reserve('a'));
    take(reserve('a', { holder: 'a-2' }));
    take(lost('a'));
    take({ op: 'release', key: 'a' });
    expect(take({ op: 'fail', key: 'a', holder: 'a-2', fate: 'unsent' }).reservedTokens).toBe(0);
  });
});

describe('a period', () => {
  const march = (day: number) => Date.UTC(2026, 2, day);

  it('that is over has spent nothing, waits for no price, and takes no correction of what was spent in it', () => {
    const { take, look, state } = budgetOf('day');
    take(settle('a', 12));
    take(settle('b', null, { priceClass: 'edit' }));
    expect(look(march(11))).toMatchObject({ spentTokens: 0, leftTokens: 100, endMs: march(12) });
    expect(state().unpriced.size).toBe(0);
    expect(take({ op: 'charge', key: 'a', jobId: 'job_a', tokens: 50 }, march(11)).spentTokens).toBe(0);
    expect(take(settle('c', 12), march(11)).spentTokens).toBe(12);
  });

  it('does not begin again when a clock is set back', () => {
    const { take, look } = budgetOf('day');
    take(settle('a', 12));
    expect(look(march(9))).toMatchObject({ spentTokens: 12, endMs: march(11) });
  });

  it('of an hour begins with its first create, and with the next one after its end', () => {
    const { take, look } = budgetOf(HOUR_MS);
    expect(look().endMs).toBeNull();
    expect(take(reserve('a')).endMs).toBe(T0 + HOUR_MS);
    expect(take(settle('a', 12), T0 + 60_000)).toMatchObject({ spentTokens: 12, endMs: T0 + HOUR_MS });
    expect(look(T0 + HOUR_MS)).toMatchObject({ spentTokens: 0, endMs: null });
    expect(take(settle('b', 5), T0 + 2 * HOUR_MS)).toMatchObject({ spentTokens: 5, endMs: T0 + 3 * HOUR_MS });
  });

  it('without an end never begins', () => {
    const { take, state } = budgetOf();
    take(reserve('a'));
    take(settle('a', 12));
    expect(state().startMs).toBe(0);
  });
});
