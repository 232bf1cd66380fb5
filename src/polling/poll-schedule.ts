import { APIError, ConnectionError, GenError, ResponseError, TimeoutError } from '../errors/index.js';
import type { Job } from '../schemas/job.js';

/** When jobs of one kind are read. */
export interface Rhythm {
  /** Milliseconds after its creation at which a job may be done at all. */
  readonly firstMs: number;
  /** Least milliseconds between two reads of a job; up to a fifth is added at random. */
  readonly intervalMs: number;
  /** What a job is thought to last until finished jobs have shown it. */
  readonly typicalMs: number;
}

/**
 * The service asks for 10 to 15 seconds between reads of a video job (spec: Limits) and is silent on images. 10 to 12 s
 * stay within its words and notice a completion a tenth sooner than an even spread over 10 to 15 would.
 */
const VIDEO: Rhythm = { firstMs: 10_000, intervalMs: 10_000, typicalMs: 300_000 };
const FAST_VIDEO: Rhythm = { ...VIDEO, typicalMs: 90_000 };
const IMAGE: Rhythm = { firstMs: 2_000, intervalMs: 2_500, typicalMs: 10_000 };

/** The rhythm of a job's kind; video's for a job of which nothing is known. */
export function rhythmOf(job: Job | undefined): Rhythm {
  if (/image|character/i.test(job?.mediaType ?? job?.modelId ?? '')) return IMAGE;
  return /fast|mini/.test(job?.modelId ?? '') ? FAST_VIDEO : VIDEO;
}

/**
 * What the reads have shown of how long jobs of one model live: a life table. For each span of age, how many ended in it
 * and how long jobs were watched in it. So a read that finds a job still running teaches too, from the first one on.
 */
export interface LifeTable {
  readonly ended: number[];
  readonly watchedMs: number[];
}

/** Spans of age grow by the square root of two from 2 s: fine enough to be of use, few enough to be cheap. */
const SPANS = 24;
const spanEnd = (span: number) => (span < SPANS - 1 ? 2000 * 2 ** (span / 2) : Number.POSITIVE_INFINITY);
/** How much of a table one more ended job lets go, so that it follows a service that grows faster or slower. */
const FADING = 0.99;

/** A table of which nothing is known yet. */
export function newLifeTable(): LifeTable {
  return { ended: Array(SPANS).fill(0), watchedMs: Array(SPANS).fill(0) };
}

/** Adds that a job lived from one age to another, and whether it ended there. */
export function learn(table: LifeTable, life: { fromMs: number; toMs: number; ended: boolean }): void {
  const { ended, watchedMs } = table;
  for (let span = 0, start = 0; span < SPANS && start <= life.toMs; start = spanEnd(span++)) {
    const end = spanEnd(span);
    watchedMs[span] = (watchedMs[span] ?? 0) + Math.max(0, Math.min(end, life.toMs) - Math.max(start, life.fromMs));
    if (life.ended && life.toMs < end) ended[span] = (ended[span] ?? 0) + 1;
  }
  if (!life.ended) return;
  for (let span = 0; span < SPANS; span++) {
    ended[span] = (ended[span] ?? 0) * FADING;
    watchedMs[span] = (watchedMs[span] ?? 0) * FADING;
  }
}

/** A stretch of time in which a job's chance to end is the same. */
export interface Stretch {
  readonly fromMs: number;
  readonly toMs: number;
  /** Per millisecond. */
  readonly chance: number;
}

/** What awaits a job from `ageMs` on, in times from then. */
export function* outlook(table: LifeTable, rhythm: Rhythm, ageMs: number): Generator<Stretch> {
  for (let span = 0, start = 0; span < SPANS; start = spanEnd(span++)) {
    const end = spanEnd(span);
    if (end <= ageMs) continue;
    // One imagined job stands beside the measured ones: rarely done before its time, and the older the more lasting.
    const imaginedMs = start < rhythm.firstMs ? 20 * rhythm.typicalMs : Math.max(rhythm.typicalMs, start);
    const chance = ((table.ended[span] ?? 0) + 1) / ((table.watchedMs[span] ?? 0) + imaginedMs);
    yield { fromMs: Math.max(0, start - ageMs), toMs: end - ageMs, chance };
  }
}

/** The mean chance to end, per millisecond, over `aheadMs`. */
export function meanChance(stretches: Iterable<Stretch>, aheadMs: number): number {
  let sum = 0;
  for (const { fromMs, toMs, chance } of stretches) sum += chance * Math.max(0, Math.min(toMs, aheadMs) - fromMs);
  return sum / aheadMs;
}

/**
 * Milliseconds until a read is worth `price`.
 *
 * Putting a read off by a moment costs that moment if the job has ended, whose odds are e^x - 1 with x the chances summed
 * up, and saves the read after it if the job ends in that moment. Both are even where (e^x - 1 - x) / chance is the price
 * of a read: for a constant chance exactly, and near enough otherwise. For small x this makes the interval go by one over
 * the root of the chance; a job that has surely ended is worth any price, and one that surely has not, none.
 */
export function whenWorth(stretches: Iterable<Stretch>, price: number): number {
  let summed = 0;
  for (const { fromMs, toMs, chance } of stretches) {
    const before = summed;
    const isWorth = (ms: number) => {
      const x = before + chance * (ms - fromMs);
      return (Math.expm1(x) - x) / chance >= price;
    };
    if (isWorth(toMs)) return firstTime(isWorth, fromMs, Math.min(toMs, fromMs + 2 * price + 40 / chance));
    summed += chance * (toMs - fromMs);
  }
  return Number.POSITIVE_INFINITY;
}

/** Where `isTrue` turns true between two times, to a hundredth of their distance. */
function firstTime(isTrue: (ms: number) => boolean, fromMs: number, toMs: number): number {
  let low = fromMs;
  let high = toMs;
  for (let step = 0; step < 10; step++) {
    const middle = (low + high) / 2;
    if (isTrue(middle)) high = middle;
    else low = middle;
  }
  return high;
}

/** Whether a failed read ends the wait: only what another read cannot change, which is a refusal other than 408 and 429. */
export function endsWait(error: unknown): boolean {
  if (APIError.isInstance(error)) return error.status < 500 && error.status !== 408 && error.status !== 429;
  // A plain GenError says that the client itself cannot make the call: no key, a bad id.
  return (
    GenError.isInstance(error) && ![ConnectionError, TimeoutError, ResponseError].some((kind) => kind.isInstance(error))
  );
}

/** Milliseconds to leave a job alone after `failures` failed reads in a row: doubling from its interval, a minute at most. */
export function backoffMs(intervalMs: number, failures: number, error: unknown): number {
  const asked = APIError.isInstance(error) ? (error.retryAfterMs ?? 0) : 0;
  return Math.max(asked, Math.min(intervalMs * 2 ** (failures - 1), Math.max(intervalMs, 60_000)));
}
