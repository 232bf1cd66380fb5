// What must hold in a world: jobs are reported, charges are the quotes, no 429, nothing is left.
import type { SimulatedWorld } from './world.js';

/** A promise that did not hold. */
export interface Violation {
  /** Which promise. */
  readonly rule: 'jobs' | 'charges' | 'limits' | 'waits' | 'rest' | 'program';
  readonly text: string;
}

/** Who asks: a process that still runs, or nobody when all have ended. */
export interface Asking {
  readonly asker?: number | undefined;
  /** Processes whose program has ended. */
  readonly ended: ReadonlySet<number>;
}

/** What does not hold at this moment. Calls that are still under way, and processes that are down, are left out. */
export function violationsOf(world: SimulatedWorld, asking: Asking): Violation[] {
  return [...unreportedJobs(world, asking), ...wrongCharges(world), ...refusedByLimits(world)];
}

/** What is left in the processes once all programs have ended. */
export function leftovers(world: SimulatedWorld): Violation[] {
  return [...world.lives.values()].flatMap(({ number, pending, isAlive }): Violation[] => {
    const { timers, requests, subscriptions } = pending;
    if (!isAlive || timers + requests + subscriptions === 0) return [];
    const left = `${timers} timers, ${requests} requests and ${subscriptions} subscriptions`;
    const text = `process ${number} has ended and still has ${left}`;
    return [{ rule: 'rest', text }];
  });
}

function unreportedJobs(world: SimulatedWorld, { asker, ended }: Asking): Violation[] {
  return world.service.jobs.flatMap((job): Violation[] => {
    const made = world.made.get(job.id);
    if (made === undefined || world.reported.has(job.id)) return [];
    const isOver = ended.has(made.process) || (made.process === asker && made.life.isAlive);
    if (!isOver || world.isPending(made.key)) return [];
    const cost = job.completedAt
      ? `${job.finalTokenCost} tokens were charged`
      : `${job.quotedTokenCost} tokens are reserved`;
    const text = `process ${made.process} made ${job.id} with the key ${made.key}, and no call was told of it: ${cost}`;
    return [{ rule: 'jobs', text }];
  });
}

function wrongCharges(world: SimulatedWorld): Violation[] {
  const { jobs } = world.service;
  const found: Violation[] = [];
  let charged = 0;
  for (const { id, status, finalTokenCost, quotedTokenCost, completedAt } of jobs) {
    const { quoted } = world.reported.get(id) ?? {};
    charged += finalTokenCost ?? 0;
    const due = status === 'completed' ? quotedTokenCost : 0;
    if (completedAt && finalTokenCost !== due) {
      found.push({ rule: 'charges', text: `${id} is ${status} and was charged ${finalTokenCost}, not ${due}` });
    }
    if (quoted !== undefined && quoted !== quotedTokenCost) {
      found.push({ rule: 'charges', text: `${id} was quoted at ${quoted}, and ${quotedTokenCost} are reserved` });
    }
  }
  const { spentTokens } = world.service.ledger();
  if (Math.abs(spentTokens - charged) < 1e-6) return found;
  return [...found, { rule: 'charges', text: `the ledger says ${spentTokens} tokens, and the jobs ${charged}` }];
}

function refusedByLimits({ counts }: SimulatedWorld): Violation[] {
  const { rateLimited } = counts;
  return rateLimited === 0 ? [] : [{ rule: 'limits', text: `the service refused ${rateLimited} requests with a 429` }];
}
