import { table } from './frame.js';
import { optimum } from './optimum.js';
import { measureUnlimited } from './unlimited.js';
import { type Load, type Metrics, measure } from './waiting/measure.js';
import { OPENAI, peer, REPLICATE, RUNWAY } from './waiting/peers.js';
import { roundRobin } from './waiting/round-robin.js';

/** A load and its number of seeds. */
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
  { name: 'burst of 200, four times as long', count: 200, runs: 4, load: { durationFactor: 4 } },
  {
    name: '20 a minute, 200 jobs, four times as long',
    count: 200,
    runs: 4,
    load: { perMinute: 20, durationFactor: 4 },
  },
];

/** Videos of one to four minutes, whose webhooks arrive immediately. */
const BY_WEBHOOK: Load = {
  kinds: [{ modelId: 'svc-video-pro', mediaType: 'video', share: 1, fromMs: 60_000, toMs: 240_000 }],
  deliveryMs: 0,
};
const WEBHOOKS: readonly (Row & { readonly load: Load })[] = [
  { name: 'all delivered', count: 500, runs: 12, load: { ...BY_WEBHOOK, webhooks: 1 } },
  { name: 'a tenth lost', count: 500, runs: 12, load: { ...BY_WEBHOOK, webhooks: 0.9 } },
  { name: 'all delivered, unverified', count: 500, runs: 12, load: { ...BY_WEBHOOK, webhooks: 1, verified: false } },
];

/** Returns the section of bench/README.md. Only unlimited waits are timed. The rest is a reproducible simulation. */
export async function run(): Promise<string> {
  const delayColumns = ['late: mean', 'p95', 'worst'];
  const bursts = BURSTS.filter(({ count }) => count <= 500);
  const policies = [OPENAI, RUNWAY, REPLICATE].flatMap((policy) =>
    [1, 20, 100, 500].map((count) => ({ policy, count })),
  );
  return [
    '## Waiting',
    'The jobs of a burst are accepted at the same time; in steady traffic, 20 a minute are. The service allows 120 polls in any minute, of which waits use 105. A fifth are images (3-9 s), two fifths fast videos (25-70 s), three tenths pro videos (60-240 s), and a tenth long ones (120-600 s). "Late" is the time from a job\'s end until its promise resolves.',
    'Round robin polls the same jobs in turn at the same rate. The optimum is a lower bound for **every** poller with that budget, even one that knows the distribution of the durations. Above about 200 jobs, the budget determines the delay: one poll for each of 5,000 jobs takes 48 minutes.',
    table(
      ['load', '429s', 'polls', ...delayColumns, 'round robin: mean', 'p95', 'worst', 'optimum, mean'],
      await rowsOf([...BURSTS, ...STEADY, ...LONGER], loadRow),
    ),
    'With webhooks, of which all or nine tenths are delivered:',
    table(['load', 'polls', 'late, mean', 'a tenth lost: late, mean'], await rowsOf(bursts, hooksRow)),
    '500 videos of one to four minutes, whose webhooks are delivered when their jobs end. An unverified event triggers a poll.',
    table(['webhooks', 'polls', ...delayColumns], await rowsOf(WEBHOOKS, eventsRow)),
    'Waits with `rateLimit: \'off\'` and a fetch in the same process that responds immediately, measured over 22 s. "Wanted" is one poll per wait in 11 s. Bytes are heap bytes.',
    table(
      ['waits', 'polls a second', 'wanted', 'CPU per poll', 'longest stall of the event loop', 'bytes per wait'],
      await rowsOf([1_000, 3_000, 10_000], unlimitedRow),
    ),
    'The same bursts with the policies of other clients, simulated from their published sources (interval, retries, Retry-After). They are ahead with one job, because they poll more often than the service recommends.',
    table(
      ['policy', 'jobs', 'results', 'errors', 'polls', '429s', 'late, mean (of the results)'],
      await rowsOf(policies, peerRow),
    ),
  ].join('\n\n');
}

type Cells = readonly (string | number)[];

/** Measures the rows of a table sequentially. */
async function rowsOf<T>(subjects: readonly T[], rowOf: (subject: T) => Promise<Cells>): Promise<Cells[]> {
  const rows: Cells[] = [];
  for (const subject of subjects) rows.push(await rowOf(subject));
  return rows;
}

async function loadRow({ name, count, runs, load = {} }: Row): Promise<Cells> {
  const ours = await average(runs, (seed) => measure(count, { ...load, seed }));
  const plain = await average(runs, (seed) => roundRobin(count, { ...load, seed }));
  const best = Object.keys(load).length === 0 ? seconds(optimum(count)) : '–';
  const delays = [ours, plain].flatMap((of) => [of.meanDelayMs, of.p95DelayMs, of.worstDelayMs].map(seconds));
  return [name, ours.rejected, Math.round(ours.polls), ...delays, best];
}

async function hooksRow({ name, count, runs }: Row): Promise<Cells> {
  const all = await average(runs, (seed) => measure(count, { seed, webhooks: 1 }));
  const lossy = await average(runs, (seed) => measure(count, { seed, webhooks: 0.9 }));
  return [name, Math.round(all.polls), seconds(all.meanDelayMs), seconds(lossy.meanDelayMs)];
}

async function eventsRow({ name, count, runs, load }: Row & { readonly load: Load }): Promise<Cells> {
  const mean = await average(runs, (seed) => measure(count, { ...load, seed }));
  const delays = [mean.meanDelayMs, mean.p95DelayMs, mean.worstDelayMs].map((ms) => `${(ms / 1000).toFixed(1)} s`);
  return [name, Math.round(mean.polls), ...delays];
}

async function unlimitedRow(count: number): Promise<Cells> {
  const { pollsPerS, cpuPerPollMs, stallMs, bytes } = await measureUnlimited(count);
  const times = [`${cpuPerPollMs.toFixed(2)} ms`, `${Math.round(stallMs)} ms`];
  return [count, Math.round(pollsPerS), Math.round(count / 11), ...times, Math.round(bytes)];
}

interface PeerLoad {
  readonly policy: Parameters<typeof peer>[1];
  readonly count: number;
}

async function peerRow({ policy, count }: PeerLoad): Promise<Cells> {
  const { failed, rejected, polls, meanDelayMs } = await peer(count, policy);
  return [policy.name, count, count - failed, failed, polls, rejected, failed === count ? '–' : seconds(meanDelayMs)];
}

/** Averages over the seeds. Sums rejections, and takes the maximum of the worst delays. */
async function average(runs: number, once: (seed: number) => Promise<Metrics>) {
  const mean = { rejected: 0, polls: 0, meanDelayMs: 0, p95DelayMs: 0, worstDelayMs: 0 };
  for (let run = 1; run <= runs; run++) {
    const metrics = await once(7919 * run);
    mean.rejected += metrics.rejected;
    mean.polls += metrics.polls / runs;
    mean.meanDelayMs += metrics.meanDelayMs / runs;
    mean.p95DelayMs += metrics.p95DelayMs / runs;
    mean.worstDelayMs = Math.max(mean.worstDelayMs, metrics.worstDelayMs);
  }
  return mean;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
}
