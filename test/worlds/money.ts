// Checks a world's money at the end: no create is unfinished, and budgets match charges.
import { BudgetExceededError } from '../../src/index.js';
import type { UnfinishedCreate } from '../../src/transport/create-run.js';
import type { ProcessLife } from './simulation/process.js';
import type { SimulatedWorld } from './simulation/world.js';
import { clientBudget, type Disk, keyOf, orderBudget, resumeAll, sleep } from './tasks.js';

/** Longer than any outage, lease, or job. */
const SETTLE_TIMEOUT_MS = 900_000;

/**
 * Resumes creates until none is unfinished, or those left were never sent because the budget for the period is spent. Throws if
 * others remain.
 */
export async function settleCreates(sim: SimulatedWorld, life: ProcessLife, disk: Disk): Promise<void> {
  const deadlineMs = sim.now() + SETTLE_TIMEOUT_MS;
  for (;;) {
    let failure: unknown;
    const unfinished: UnfinishedCreate[] = [];
    try {
      await resumeAll(life, disk);
    } catch (error) {
      failure = error;
    }
    try {
      for await (const create of life.client.unfinishedCreates()) unfinished.push(create);
      if (unfinished.length === 0 && failure === undefined) return;
    } catch (error) {
      failure = error;
    }
    if (sim.now() > deadlineMs) {
      if (isSpent(failure) && unfinished.every(({ phase }) => phase === 'open')) return;
      throw failure ?? new Error(`creates remain unfinished: ${JSON.stringify(unfinished)}`);
    }
    await sleep(life, 5_000);
  }
}

function isSpent(failure: unknown): boolean {
  if (failure instanceof AggregateError) return failure.errors.every(isSpent);
  return failure instanceof BudgetExceededError && failure.reason === 'spent';
}

/** Returns the budgets that differ from the service's charges. */
export async function wrongTotals(sim: SimulatedWorld, life: ProcessLife, { tasks }: Disk): Promise<string[]> {
  const nonOrderKeys = new Set(tasks.filter(({ kind }) => kind !== 'order').map(keyOf));
  const jobs = sim.service.jobs.map((job) => {
    const key = sim.createdJobs.get(job.id)?.key ?? '';
    return { tokens: job.finalTokenCost ?? 0, isOrder: !nonOrderKeys.has(key.replace(/:.*/, '')) };
  });
  const chargedOf = (charged: typeof jobs) => charged.reduce((sum, { tokens }) => sum + tokens, 0);
  const budgets = [
    ['client', clientBudget(life.store), chargedOf(jobs)],
    ['orders', orderBudget(life.store), chargedOf(jobs.filter(({ isOrder }) => isOrder))],
  ] as const;
  const wrong: string[] = [];
  for (const [name, budget, charged] of budgets) {
    const { spentTokens, reservedTokens, unresolved } = await budget.usage();
    if (spentTokens === charged && reservedTokens === 0 && unresolved.length === 0) continue;
    const reserved = `${reservedTokens} are reserved for ${unresolved.length} creates`;
    wrong.push(`the budget "${name}" records ${spentTokens} tokens spent, but ${charged} were charged; ${reserved}`);
  }
  return wrong;
}
