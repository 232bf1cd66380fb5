import { measure } from '../test/waiting/measure.js';
import { optimum } from '../test/waiting/optimum.js';
import { OPENAI, peer, REPLICATE, RUNWAY } from '../test/waiting/peers.js';

const COUNTS = [1, 20, 100, 500, 5000] as const;
const RUNS: Readonly<Record<number, number>> = { 1: 60, 20: 20, 100: 6, 500: 2, 5000: 1 };

/** The section "waiting" of bench/README.md. Nothing is timed: it is a simulation on a held clock and comes out the same each time. */
export async function run(): Promise<string> {
  const rows: string[] = [];
  for (const count of COUNTS) rows.push(await row(count));
  const others: string[] = [];
  for (const policy of [OPENAI, RUNWAY, REPLICATE])
    for (const count of [1, 20, 100, 500] as const) {
      const { failed, refused, polls, meanLateMs } = await peer(count, policy);
      const late = failed === count ? '–' : seconds(meanLateMs);
      others.push(`| ${policy.name} | ${count} | ${count - failed} | ${failed} | ${polls} | ${refused} | ${late} |`);
    }
  return `## Waiting

All jobs are accepted at one moment and waited for together; the service takes 120 reads in any minute and answers after 50 to 250 ms. A fifth are images (3-9 s), two fifths fast videos (25-70 s), three tenths pro videos (60-240 s), a tenth long ones (120-600 s); the SDK starts without knowing these lengths. "Late" is from a job's end to its promise. The waits use 105 of the 120 reads a minute.

The optimum is a lower bound for **every** poller with that budget and these intervals (10 s for videos, 2.5 s for images), even one that knows how the lengths of each kind are spread: a dynamic program per job, with a price on reads (Lagrangian bound). Beyond about 200 jobs the budget itself, and no longer the interval, sets how late an end is noticed: reading 5,000 jobs once takes 48 minutes.

| jobs | 429s | polls | late, mean | optimum | ratio | late, worst | with webhooks: polls | late, mean | a tenth lost: late, mean |
|---|---|---|---|---|---|---|---|---|---|
${rows.join('\n')}

The same load on the policies of others, simulated from their published sources (interval, retries, Retry-After). With one job they are ahead: they read a video every half second to seven and a half seconds, where the service asks for ten to fifteen.

| policy | jobs | results | errors | polls | 429s | late, mean (of the results) |
|---|---|---|---|---|---|---|
${others.join('\n')}`;
}

async function row(count: number): Promise<string> {
  const runs = RUNS[count] ?? 1;
  const mean = { refused: 0, polls: 0, late: 0, worst: 0, hookPolls: 0, hookLate: 0, lossyLate: 0 };
  for (let seed = 7919; seed <= 7919 * runs; seed += 7919) {
    const plain = await measure(count, { seed });
    const hooks = await measure(count, { seed, webhooks: 1 });
    const lossy = await measure(count, { seed, webhooks: 0.9 });
    mean.refused += plain.refused + hooks.refused + lossy.refused;
    mean.polls += plain.polls / runs;
    mean.late += plain.meanLateMs / runs;
    mean.worst = Math.max(mean.worst, plain.worstLateMs);
    mean.hookPolls += hooks.polls / runs;
    mean.hookLate += hooks.meanLateMs / runs;
    mean.lossyLate += lossy.meanLateMs / runs;
  }
  const best = optimum(count);
  const cells = [
    ...[count, mean.refused, Math.round(mean.polls), seconds(mean.late), seconds(best), (mean.late / best).toFixed(2)],
    ...[seconds(mean.worst), Math.round(mean.hookPolls), seconds(mean.hookLate), seconds(mean.lossyLate)],
  ];
  return `| ${cells.join(' | ')} |`;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
}
