import { type Figures, type Load, measure } from '../test/waiting/measure.js';
import { OPENAI, peer, REPLICATE, RUNWAY } from '../test/waiting/peers.js';
import { roundRobin } from '../test/waiting/round-robin.js';
import { lifted } from './lifted.js';
import { optimum } from './optimum.js';

/** A load, and how many seeds it is averaged over. */
interface Row {
  readonly name: string;
  readonly count: number;
  readonly runs: number;
  readonly load?: Load;
}

const BURSTS: readonly Row[] = [
  { name: 'burst of 1', count: 1, runs: 60 },
  { name: 'burst of 20', count: 20, runs: 20 },
  { name: 'burst of 100', count: 100, runs: 6 },
  { name: 'burst of 200', count: 200, runs: 4 },
  { name: 'burst of 500', count: 500, runs: 2 },
  { name: 'burst of 5000', count: 5000, runs: 1 },
];
const STEADY: readonly Row[] = [
  { name: '20 a minute, 200 jobs', count: 200, runs: 4, load: { perMinute: 20 } },
  { name: '20 a minute, 500 jobs', count: 500, runs: 6, load: { perMinute: 20 } },
];
const LONGER: readonly Row[] = [
  { name: 'burst of 200, four times as long', count: 200, runs: 4, load: { longer: 4 } },
  { name: '20 a minute, 200 jobs, four times as long', count: 200, runs: 4, load: { perMinute: 20, longer: 4 } },
];

/** 500 videos of one to four minutes, whose webhooks arrive at once. */
const BY_WEBHOOK: Load = {
  kinds: [{ modelId: 'svc-video-pro', mediaType: 'video', share: 1, fromMs: 60_000, toMs: 240_000 }],
  deliveryMs: 0,
};
const WEBHOOKS: readonly (Row & { readonly load: Load })[] = [
  { name: 'all delivered', count: 500, runs: 12, load: { ...BY_WEBHOOK, webhooks: 1 } },
  { name: 'a tenth lost', count: 500, runs: 12, load: { ...BY_WEBHOOK, webhooks: 0.9 } },
  { name: 'all delivered, not verified', count: 500, runs: 12, load: { ...BY_WEBHOOK, webhooks: 1, verified: false } },
];

/** The section "waiting" of bench/README.md. Only the last table is timed: the others are a simulation on a held clock and come out the same each time. */
export async function run(): Promise<string> {
  const rows: string[] = [];
  for (const row of [...BURSTS, ...STEADY, ...LONGER]) rows.push(await rowOf(row));
  const hooks: string[] = [];
  for (const row of BURSTS.filter(({ count }) => count <= 500)) hooks.push(await hooksOf(row));
  const events: string[] = [];
  for (const row of WEBHOOKS) events.push(await eventsOf(row));
  const lifted: string[] = [];
  for (const count of [1_000, 3_000, 10_000]) lifted.push(await liftedOf(count));
  const others: string[] = [];
  for (const policy of [OPENAI, RUNWAY, REPLICATE])
    for (const count of [1, 20, 100, 500] as const) {
      const { failed, refused, polls, meanLateMs } = await peer(count, policy);
      const late = failed === count ? '–' : seconds(meanLateMs);
      others.push(`| ${policy.name} | ${count} | ${count - failed} | ${failed} | ${polls} | ${refused} | ${late} |`);
    }
  return `## Waiting

A burst is accepted at one moment and waited for together; in steady traffic 20 jobs are accepted a minute. The service takes 120 reads in any minute, of which the waits use 105. A fifth are images (3-9 s), two fifths fast videos (25-70 s), three tenths pro videos (60-240 s), a tenth long ones (120-600 s). "Late" is from a job's end to its promise.

Plain round robin reads the same jobs in turn at the same pace. The optimum is a lower bound for **every** poller with that budget, even one that knows how the lengths are spread. Beyond about 200 jobs the budget sets how late an end is noticed: reading 5,000 jobs once takes 48 minutes.

| load | 429s | polls | late: mean | p95 | worst | round robin: mean | p95 | worst | optimum, mean |
|---|---|---|---|---|---|---|---|---|---|
${rows.join('\n')}

With webhooks, all of them or nine tenths delivered:

| load | polls | late, mean | a tenth lost: late, mean |
|---|---|---|---|
${hooks.join('\n')}

500 videos of one to four minutes, each webhook delivered at the end of its job. An event that is not verified has the job read.

| webhooks | reads | late: mean | p95 | worst |
|---|---|---|---|---|
${events.join('\n')}

Waits with \`rateLimit: 'off'\` and a fetch in the same process that answers at once, measured over 22 s. "Wanted" is one read per wait in 11 s. Bytes are of the heap.

| waits | reads a second | wanted | CPU per read | longest stall of the event loop | bytes per wait |
|---|---|---|---|---|---|
${lifted.join('\n')}

The same bursts on the policies of others, simulated from their published sources (interval, retries, Retry-After). With one job they are ahead: they read more often than the service asks for.

| policy | jobs | results | errors | polls | 429s | late, mean (of the results) |
|---|---|---|---|---|---|---|
${others.join('\n')}`;
}

async function rowOf({ name, count, runs, load = {} }: Row): Promise<string> {
  const ours = await average(runs, (seed) => measure(count, { ...load, seed }));
  const plain = await average(runs, (seed) => roundRobin(count, { ...load, seed }));
  const best = Object.keys(load).length === 0 ? seconds(optimum(count)) : '–';
  const cells = [ours, plain].map((of) => [of.meanLateMs, of.p95LateMs, of.worstLateMs].map(seconds).join(' | '));
  return `| ${name} | ${ours.refused} | ${Math.round(ours.polls)} | ${cells.join(' | ')} | ${best} |`;
}

async function hooksOf({ name, count, runs }: Row): Promise<string> {
  const all = await average(runs, (seed) => measure(count, { seed, webhooks: 1 }));
  const lossy = await average(runs, (seed) => measure(count, { seed, webhooks: 0.9 }));
  return `| ${name} | ${Math.round(all.polls)} | ${seconds(all.meanLateMs)} | ${seconds(lossy.meanLateMs)} |`;
}

async function eventsOf({ name, count, runs, load }: Row & { readonly load: Load }): Promise<string> {
  const mean = await average(runs, (seed) => measure(count, { ...load, seed }));
  const late = [mean.meanLateMs, mean.p95LateMs, mean.worstLateMs].map((ms) => `${(ms / 1000).toFixed(1)} s`);
  return `| ${name} | ${Math.round(mean.polls)} | ${late.join(' | ')} |`;
}

async function liftedOf(count: number): Promise<string> {
  const { readsPerS, cpuPerReadMs, stallMs, bytes } = await lifted(count);
  const wanted = Math.round(count / 11);
  return `| ${count} | ${Math.round(readsPerS)} | ${wanted} | ${cpuPerReadMs.toFixed(2)} ms | ${Math.round(stallMs)} ms | ${Math.round(bytes)} |`;
}

/** Means over the seeds; of the refusals the sum, and of the worst the worst. */
async function average(runs: number, once: (seed: number) => Promise<Figures>) {
  const mean = { refused: 0, polls: 0, meanLateMs: 0, p95LateMs: 0, worstLateMs: 0 };
  for (let run = 1; run <= runs; run++) {
    const figures = await once(7919 * run);
    mean.refused += figures.refused;
    mean.polls += figures.polls / runs;
    mean.meanLateMs += figures.meanLateMs / runs;
    mean.p95LateMs += figures.p95LateMs / runs;
    mean.worstLateMs = Math.max(mean.worstLateMs, figures.worstLateMs);
  }
  return mean;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
}
