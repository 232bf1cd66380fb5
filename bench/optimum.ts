import { DOCUMENTED_LIMITS, POLL_SHARE } from '../src/rules/limits.js';
import { KINDS, type Kind, LATENCY_MS } from './waiting/simulation.js';

/** Polls per millisecond that waits use. */
const POLLS_PER_MS = (POLL_SHARE * DOCUMENTED_LIMITS['jobs.get'].limit) / 60_000;

/** Minimum time between two polls of a job: the service's for videos, the SDK's for images. */
const REST_MS: Readonly<Record<string, number>> = { video: 10_000, image: 2_500 };

/**
 * Returns a lower bound for the mean lateness of any non-clairvoyant poller, in milliseconds.
 *
 * The poller knows the distribution of each kind's durations (which the SDK has to learn), but not when a job ends. It may
 * send `POLLS_PER_MS` on average, and poll a job at most once per natural interval. Without the shared budget, dynamic
 * programming finds the best schedule of each job separately. The budget becomes a price per poll that changes over time.
 * For any prices, the minimum cost minus the value of the budget is at most the optimum under the budget (weak duality). So
 * the highest value found while improving the prices is a true lower bound, not an estimate.
 */
export function optimum(count: number): number {
  const kinds = KINDS.filter((_, at) => count > 1 || at === 1);
  const share = (kind: Kind) => (count > 1 ? kind.share * count : 1);
  const longest = Math.max(...kinds.map((kind) => kind.toMs));
  const horizon = Math.max(longest + 20_000, (1.6 * count) / POLLS_PER_MS + 60_000);
  // Up to 20 jobs, the budget is sufficient and its price stays 0, so finer steps matter more.
  const [finest, steps] = count <= 20 ? [2500, 20] : [700, 3000];
  const stepMs = Math.max(250, horizon / finest);
  const points = Math.ceil(horizon / stepMs);
  const budget = POLLS_PER_MS * stepMs;
  // With far more jobs than budget, start with the time until the last job is polled as the price.
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

/** Returns a job's minimum expected lateness plus the price of its polls. Adds its polls to the demand. */
function cheapest(kind: Kind, { price, stepMs, points, demand, weight }: Market): number {
  const rest = Math.max(1, Math.floor((REST_MS[kind.mediaType] ?? 0) / stepMs));
  const open = new Float64Array(points + 1);
  const area = new Float64Array(points + 1);
  const span = kind.toMs - kind.fromMs;
  // open: the fraction still running. area: the integral of the finished fraction, which determines the lateness.
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
      // The lateness of jobs that end between two polls, plus one poll for each job still running at the first.
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
