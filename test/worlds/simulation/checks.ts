// Invariants of a world: every job is reported, charges match quotes, no 429 occurs, and nothing is left behind.
import type { SimulatedWorld } from './world.js';

/** Returns the violations after all programs have ended. Skips jobs whose create is still in flight. */
export function violationsOf(world: SimulatedWorld): string[] {
  return [...unreportedJobs(world), ...wrongCharges(world), ...rateLimitErrors(world)];
}

/** Returns the processes that have timers, requests, or subscriptions after their programs have ended. */
export function leftovers(world: SimulatedWorld): string[] {
  return [...world.lives.values()].flatMap(({ number, pending, isAlive }) => {
    const { timers, requests, subscriptions } = pending;
    if (!isAlive || timers + requests + subscriptions === 0) return [];
    const left = `${timers} timers, ${requests} requests, and ${subscriptions} subscriptions`;
    return [`process ${number} has ended but still has ${left}`];
  });
}

function unreportedJobs(world: SimulatedWorld): string[] {
  return world.service.jobs.flatMap((job) => {
    const created = world.createdJobs.get(job.id);
    if (created === undefined || world.reported.has(job.id) || world.isPending(created.key)) return [];
    const cost = job.completedAt
      ? `${job.finalTokenCost} tokens were charged`
      : `${job.quotedTokenCost} tokens are reserved`;
    return [`process ${created.process} created ${job.id} with key ${created.key}, but no call returned it: ${cost}`];
  });
}

function wrongCharges(world: SimulatedWorld): string[] {
  const { jobs } = world.service;
  const wrong: string[] = [];
  let charged = 0;
  for (const { id, status, finalTokenCost, quotedTokenCost, completedAt } of jobs) {
    const { quoted } = world.reported.get(id) ?? {};
    charged += finalTokenCost ?? 0;
    const due = status === 'completed' ? quotedTokenCost : 0;
    if (completedAt && finalTokenCost !== due) {
      wrong.push(`${id} is ${status} and was charged ${finalTokenCost}, not ${due}`);
    }
    if (quoted !== undefined && quoted !== quotedTokenCost) {
      wrong.push(`${id} was quoted at ${quoted}, and ${quotedTokenCost} are reserved`);
    }
  }
  const { spentTokens } = world.service.ledger();
  if (Math.abs(spentTokens - charged) < 1e-6) return wrong;
  return [...wrong, `the ledger has ${spentTokens} tokens, but the jobs sum to ${charged}`];
}

function rateLimitErrors({ counts }: SimulatedWorld): string[] {
  const { rateLimited } = counts;
  return rateLimited === 0 ? [] : [`the service rejected ${rateLimited} requests with a 429`];
}
