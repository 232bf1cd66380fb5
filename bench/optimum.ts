/** Polls per millisecond that waits use: seven eighths of 120 per minute. */
const POLLS_PER_MS = (7 / 8) * (120 / 60_000);

import { KINDS, type Kind, LATENCY_MS } from './waiting/simulation.js';

/** Minimum time between two polls of a job: the service's for videos, the SDK's for images. */
const REST_MS: Readonly<Record<string, number>> = { video: 10_000, image: 2_500 };

/**
 * A lower bound for the mean lateness of every poller that is not clairvoyant, in milliseconds.
 *
 * The poller knows how the lengths of each kind are spread (the SDK does not, it has to learn them) but not when a job will
 * end; it may read `POLLS_PER_MS` on average at each moment, and a job not more often than its natural interval. Without
 * the common budget each job could be read by itself in the best way, which dynamic programming finds. The budget enters
 * as a price per read that changes over time. Whatever the prices are, the least cost with them, less what the budget could
 * have been sold for, is never above the best that can be had under the budget (weak duality), so the highest value found
 * while the prices are improved is a true bound, and not just an estimate.
 */
export function optimum(count: number): number {
  const kinds = KINDS.filter((_, at) => count > 1 || at === 1);
  const share = (kind: Kind) => (count > 1 ? kind.share * count : 1);
  const longest = Math.max(...kinds.map((kind) => kind.toMs));
  const horizon = Math.max(longest + 20_000, (1.6 * count) / POLLS_PER_MS + 60_000);
  // Up to 20 jobs the budget is not short and its price stays 0; the finer steps count there.
  const [finest, steps] = count <= 20 ? [2500, 20] : [700, 3000];
  const stepMs = Math.max(250, horizon / finest);
  const points = Math.ceil(horizon / stepMs);
  const budget = POLLS_PER_MS * stepMs;
  // With far more jobs than budget a read is worth the time until the last one is read; a good guess to begin with.
  const guess = count / POLLS_PER_MS > longest ? 1 : 0;
  const price = Float64Array.from(
    { length: points + 1 },
    (_, at) => guess * Math.max(0, count / POLLS_PER_MS - at * stepMs),
  );
  const scale = 0.2 * Math.max(1000, count / POLLS_PER_MS / 2);
  let best = 0;
  for (let round = 0; round < steps; round++) {
    const demand = new Float64Array(points + 1);
    let total = 0;
    for (const kind of kinds)
      total += share(kind) * cheapest(kind, { price, stepMs, points, demand, weight: share(kind) });
    for (let at = 0; at <= points; at++) total -= (price[at] ?? 0) * budget;
    best = Math.max(best, total / count);
    let norm = 0;
    for (let at = 0; at <= points; at++) {
      const over = (demand[at] ?? 0) - budget;
      if (over > 0 || (price[at] ?? 0) > 0) norm += over ** 2;
    }
    const size = (scale * Math.sqrt(points)) / Math.sqrt(norm || 1) / (4 + round / 10);
    for (let at = 0; at <= points; at++)
      price[at] = Math.max(0, (price[at] ?? 0) + size * ((demand[at] ?? 0) - budget));
  }
  return best + (LATENCY_MS.from + LATENCY_MS.to) / 4;
}

interface Market {
  readonly price: Float64Array;
  readonly stepMs: number;
  readonly points: number;
  readonly demand: Float64Array;
  readonly weight: number;
}

/** Least expected lateness plus price of reads for one job; adds the reads of that plan to the demand. */
function cheapest(kind: Kind, { price, stepMs, points, demand, weight }: Market): number {
  const rest = Math.max(1, Math.floor((REST_MS[kind.mediaType] ?? 0) / stepMs));
  const open = new Float64Array(points + 1);
  const area = new Float64Array(points + 1);
  const span = kind.toMs - kind.fromMs;
  // open: still running then. area: the integral of the share that has ended, from which lateness follows.
  for (let at = 0; at <= points; at++) {
    const past = Math.min(Math.max(at * stepMs - kind.fromMs, 0), span);
    open[at] = 1 - past / span;
    area[at] = past ** 2 / (2 * span) + Math.max(0, at * stepMs - kind.toMs);
  }
  const value = new Float64Array(points + 1);
  const next = new Int32Array(points + 1);
  for (let from = points; from >= 0; from--) {
    const alive = open[from] ?? 0;
    if (alive <= 0) continue;
    let least = Number.POSITIVE_INFINITY;
    for (let to = from === 0 ? 1 : from + rest; to <= points; to++) {
      // Lateness of those that end between the two reads, and one read for each still alive at the first.
      const late = (area[to] ?? 0) - (area[from] ?? 0) - (to - from) * stepMs * (1 - alive);
      const cost = late + alive * (price[to] ?? 0) + (value[to] ?? 0);
      if (cost < least) {
        least = cost;
        next[from] = to;
      }
      if (late > least) break;
    }
    value[from] = least < Number.POSITIVE_INFINITY ? least : 0;
  }
  for (let at = 0, to = next[0] ?? 0; to > 0; at = to, to = next[to] ?? 0) {
    demand[to] = (demand[to] ?? 0) + weight * (open[at] ?? 0);
  }
  return value[0] ?? 0;
}
