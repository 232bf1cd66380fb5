// Steps of a budget in any order, to hold each store to the same rules.
import type { BudgetPeriod, BudgetScope, BudgetStep } from '../../src/budget/budget-store.js';
import { seeded } from '../support/seeded.js';

/** A step and its time. */
export interface TimedStep {
  readonly step: BudgetStep;
  readonly nowMs: number;
}

/** A scope, and 300 steps that begin three hours before the end of a month. */
export function randomSteps(seed: number): { readonly scope: BudgetScope; readonly steps: readonly TimedStep[] } {
  const random = seeded(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  let nowMs = Date.parse('2026-02-27T21:00:00Z');
  const scope = {
    name: `scope-${seed}`,
    maxTokens: 100,
    per: pick<BudgetPeriod>(['day', 'month', 'total', 3_600_000]),
  };
  const steps = Array.from({ length: 300 }, () => {
    nowMs += pick([0, 1, 500, 31_000, 600_000, 7_200_000]);
    const key = `key-${Math.floor(random() * 12)}`;
    const step = pick<() => BudgetStep>([
      () => ({
        op: 'reserve',
        key,
        holder: pick(['a', 'b']),
        priceClass: pick(['cheap', 'dear', 'odd']),
        guessedTokens: pick([null, null, 7]),
        refusesUnknown: random() < 0.1,
        leaseMs: 30_000,
      }),
      () => ({
        op: 'settle',
        key,
        jobId: `job-${key}`,
        priceClass: pick(['cheap', 'dear', 'odd']),
        tokens: pick([null, 0, 4, 12.25]),
        quotedTokens: pick([null, 4, 12.25, 40]),
        isEarlier: random() < 0.1,
      }),
      () => ({ op: 'release', key, holder: pick([null, 'a', 'b']) }),
      () => ({ op: 'keep', key }),
      () => ({ op: 'refund', jobId: `job-${key}` }),
      () => ({ op: 'look' }),
    ])();
    return { step, nowMs };
  });
  return { scope, steps };
}
