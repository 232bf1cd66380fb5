// Invariants of a world: every job is reported, charges match quotes, no 429 occurs, and nothing is left behind.
import type { SimulatedWorld } from './world.js';

export interface Violation {
  readonly rule: 'jobs' | 'charges' | 'limits' | 'waits' | 'rest' | 'program';
  readonly text: string;
}

export interface CheckScope {
  /** The running process whose jobs to check. Undefined once all have ended. */
  readonly running?: number | undefined;
  /** Processes whose program has ended. */
  readonly ended: ReadonlySet<number>;
}

/** Returns the current violations. Skips calls in flight and processes that are down. */
export function violationsOf(world: SimulatedWorld, scope: CheckScope): Violation[] {
  return [...unreportedJobs(world, scope), ...wrongCharges(world), ...rateLimitErrors(world)];
}

/** Returns what processes still hold after their programs have ended. */
export function leftovers(world: SimulatedWorld): Violation[] {
  return [...world.lives.values()].flatMap(({ number, pending, isAlive }): Violation[] => {
    const { timers, requests, subscriptions } = pending;
    if (!isAlive || timers + requests + subscriptions === 0) return [];
    const left = `${timers} timers, ${requests} requests, and ${subscriptions} subscriptions`;
    const text = `process ${number} has ended but still has ${left}`;
    return [{ rule: 'rest', text }];
  });
}

function unreportedJobs(world: SimulatedWorld, { running, ended }: CheckScope): Violation[] {
  return world.service.jobs.flatMap((job): Violation[] => {
    const created = world.made.get(job.id);
    if (created === undefined || world.reported.has(job.id)) return [];
    const isOver = ended.has(created.process) || (created.process === running && created.life.isAlive);
    if (!isOver || world.isPending(created.key)) return [];
    const cost = job.completedAt
      ? `${job.finalTokenCost} tokens were charged`
      : `${job.quotedTokenCost} tokens are reserved`;
    const text = `process ${created.process} created ${job.id} with key ${created.key}, but no call returned it: ${cost}`;
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
  return [...found, { rule: 'charges', text: `the ledger has ${spentTokens} tokens, but the jobs sum to ${charged}` }];
}

function rateLimitErrors({ counts }: SimulatedWorld): Violation[] {
  const { rateLimited } = counts;
  return rateLimited === 0 ? [] : [{ rule: 'limits', text: `the service rejected ${rateLimited} requests with a 429` }];
}
