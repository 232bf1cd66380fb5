import { GenError } from '../../errors/index.js';
import { show } from '../../schemas/show.js';
import { IMAGE_TOKENS, VIDEO_TOKENS_PER_SECOND } from './choices.js';

/** What a price may depend on. */
export interface PricedJob {
  /** The resource whose call creates the job. */
  readonly call: 'images' | 'characters' | 'videos' | 'videoEdits';
  /** The model alias. */
  readonly model: string;
  /** For example `480p` or `standard`. */
  readonly resolution: string;
  /** Seconds of video; 0 for anything else. */
  readonly duration: number;
  /** Whether `generate_audio: true` was sent. */
  readonly audio: boolean;
}

/** What jobs cost in tokens: one figure for all, or a function. Where that gives undefined, the sandbox's own price applies. */
export type Prices = number | ((job: PricedJob) => number | undefined);

/** The most tokens that one figure may stand for: sums of them stay exact. */
export const MOST_TOKENS = 1e9;

/** Whether a value can be a number of tokens. */
export function areTokens(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= MOST_TOKENS;
}

/** The price of a job under `prices`. Throws a GenError for a function that gives something else than tokens. */
export function sandboxPrice(job: PricedJob, prices: Prices | undefined): number {
  const set = typeof prices === 'function' ? prices(job) : prices;
  if (set === undefined) return ownPrice(job);
  if (areTokens(set)) return set;
  throw new GenError(`prices must give a number of tokens, 0 or more, for ${job.model}, not ${show(set)}.`);
}

function ownPrice({ model, resolution, duration }: PricedJob): number {
  const perSecond = VIDEO_TOKENS_PER_SECOND[model]?.[resolution];
  return perSecond === undefined ? (IMAGE_TOKENS[model]?.[resolution] ?? 0) : perSecond * duration;
}
