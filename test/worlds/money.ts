// Checks of a world's money after everything has ended: nothing is open, and the budgets match the charges.
import type { UnfinishedCreate } from '../../src/transport/create-run.js';
import type { ProcessLife } from './simulation/process.js';
import type { SimulatedWorld } from './simulation/world.js';
import { clientBudget, type Disk, keyOf, orderBudget, resumeAll, sleep } from './tasks.js';

/** Longer than a store is away, a killed process holds its creates, and a job takes. */
const PATIENCE_MS = 900_000;

/** Takes up whatever is open, until nothing is. */
export async function settleCreates(sim: SimulatedWorld, life: ProcessLife, disk: Disk): Promise<void> {
  const { client } = life;
  const untilMs = sim.now() + PATIENCE_MS;
  for (;;) {
    const open: UnfinishedCreate[] = [];
    try {
      await resumeAll(life, disk);
      for await (const create of client.unfinishedCreates()) open.push(create);
      if (open.length === 0) return;
    } catch (error) {
      if (sim.now() > untilMs) throw error;
    }
    if (sim.now() > untilMs) throw new Error(`creates stay open: ${JSON.stringify(open)}`);
    await sleep(life, 5_000);
  }
}

/** The budgets that say something else than the service has charged. */
export async function wrongTotals(sim: SimulatedWorld, life: ProcessLife, { tasks }: Disk): Promise<string[]> {
  const own = new Set(tasks.filter(({ kind }) => kind !== 'order').map(keyOf));
  const jobs = sim.service.jobs.map((job) => {
    const key = sim.made.get(job.id)?.key ?? '';
    return { tokens: job.finalTokenCost ?? 0, isOrder: !own.has(key.replace(/:.*/, '')) };
  });
  const chargedOf = (made: typeof jobs) => made.reduce((sum, { tokens }) => sum + tokens, 0);
  const budgets = [
    ['client', clientBudget(life.store), chargedOf(jobs)],
    ['orders', orderBudget(life.store), chargedOf(jobs.filter(({ isOrder }) => isOrder))],
  ] as const;
  const wrong: string[] = [];
  for (const [name, budget, charged] of budgets) {
    const { spentTokens, reservedTokens, unresolved } = await budget.usage();
    if (spentTokens === charged && reservedTokens === 0 && unresolved.length === 0) continue;
    const held = `${reservedTokens} are reserved for ${unresolved.length} creates`;
    wrong.push(`the budget "${name}" says ${spentTokens} tokens, and ${charged} were charged; ${held}`);
  }
  return wrong;
}
