import { modelCapabilities } from '../../catalog.js';
import { GenError } from '../../errors/index.js';
import { show } from '../../schemas/show.js';
import { DEFAULTS, IMAGE_TOKENS, VIDEO_TOKENS_PER_SECOND } from './choices.js';

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

/** A row of a price table. Fields that are left out match every job. */
export interface PriceRow {
  /** The resource whose call creates the job. */
  readonly call?: PricedJob['call'] | undefined;
  /** The model alias; both aliases of a pair match. */
  readonly model?: string | undefined;
  /** The resolution. */
  readonly resolution?: string | undefined;
  /** Seconds of video. */
  readonly duration?: number | undefined;
  /** Whether `generate_audio: true` was sent. */
  readonly audio?: boolean | undefined;
  /** Tokens for the job, 0 or more. */
  readonly tokens: number;
}

/**
 * What jobs cost in tokens: one figure for all, a table whose first matching row decides, or a function. Where no row
 * matches and where the function gives undefined, the sandbox's own price applies.
 */
export type Prices = number | readonly PriceRow[] | ((job: PricedJob) => number | undefined);

/** The most tokens that one figure may stand for: sums of them stay exact. */
export const MOST_TOKENS = 1e9;

/** Whether a value can be a number of tokens. */
export function areTokens(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= MOST_TOKENS;
}

/** The price of a job under `prices`. Throws a GenError for a function that gives something else than tokens. */
export function sandboxPrice(job: PricedJob, prices: Prices | undefined): number {
  const set = typeof prices === 'function' ? prices(job) : listedPrice(job, prices);
  if (set === undefined) return ownPrice(job);
  if (areTokens(set)) return set;
  throw new GenError(`prices must give a number of tokens, 0 or more, for ${job.model}, not ${show(set)}.`);
}

function listedPrice(job: PricedJob, prices: number | readonly PriceRow[] | undefined): number | undefined {
  if (typeof prices === 'number') return prices;
  return prices?.find((row) => matchesJob(row, job))?.tokens;
}

function matchesJob({ call, model, resolution, duration, audio }: PriceRow, job: PricedJob): boolean {
  return (
    (call ?? job.call) === job.call &&
    (model === undefined || model === job.model || model === modelCapabilities(job.model)?.sameAs) &&
    (resolution ?? job.resolution) === job.resolution &&
    (duration ?? job.duration) === job.duration &&
    (audio ?? job.audio) === job.audio
  );
}

function ownPrice({ model, resolution, duration }: PricedJob): number {
  const perSecond = VIDEO_TOKENS_PER_SECOND[model]?.[resolution];
  if (perSecond !== undefined) return perSecond * duration;
  return IMAGE_TOKENS[model]?.[resolution] ?? IMAGE_TOKENS[DEFAULTS.imageModel]?.[DEFAULTS.imageResolution] ?? 0;
}
