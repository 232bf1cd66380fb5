import * as z from 'zod/mini';
import { GenError } from '../../errors/index.js';
import { DOCUMENTED_LIMITS, RATE_LIMIT_NAMES, type Rate, type RateLimitName } from '../../rules/limits.js';
import { callback, checkOptions, either, must, oneOf, required, secret, text } from '../../rules/options.js';
import { show } from '../../schemas/show.js';
import { IMAGE_TOKENS, VIDEO_TOKENS_PER_SECOND } from './assumptions.js';

/** Milliseconds, or a range that the seed draws from. */
export type JobDuration = number | readonly [least: number, most: number];

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

/** How to set up a sandbox. */
export interface SandboxOptions {
  /** `real`: time passes by itself. `manual`: time moves only by `advance()`. @default 'real' */
  readonly clock?: 'real' | 'manual' | undefined;
  /**
   * Sandbox milliseconds per real millisecond, on the real clock. Waits that are told to clients shrink with it. Left out,
   * time passes at its own pace, and while clients of `sandbox.client()` only wait it passes a thousand times as fast.
   * @default 1
   */
  readonly speed?: number | undefined;
  /** The moment at which the sandbox's time starts, in milliseconds since 1970. @default now */
  readonly startTime?: number | undefined;
  /** An integer. The same seed gives the same ids, durations and media bytes; keys and secrets differ. @default a random one */
  readonly seed?: number | undefined;
  /**
   * Milliseconds that a job takes, a range, or those by kind. 0 ends a job before its create is answered.
   * @default 3000
   */
  readonly jobDurationMs?:
    | JobDuration
    | {
        readonly image?: JobDuration | undefined;
        readonly video?: JobDuration | undefined;
        readonly edit?: JobDuration | undefined;
      }
    | undefined;
  /** Tokens with which every account opens. @default 1000 */
  readonly balanceTokens?: number | undefined;
  /** What jobs cost. @default prices of the sandbox's own, which promise nothing */
  readonly prices?: Prices | undefined;
  /** The documented limits per account, none, or your own by name (`videos.create`, `jobs.get`, …). @default 'documented' */
  readonly limits?: 'documented' | 'off' | { readonly [L in RateLimitName]?: Rate | undefined } | undefined;
  /** `disabled`: creates answer 503 dispatch_disabled. @default 'enabled' */
  readonly dispatch?: 'enabled' | 'disabled' | undefined;
  /** Milliseconds that a new character, or a new reference, is under review. @default 'instant' */
  readonly review?:
    | 'instant'
    | { readonly character?: number | undefined; readonly asset?: number | undefined }
    | undefined;
  /** Where uploads go: beside the API, or to another origin, as object storage has one. @default 'same-origin' */
  readonly storage?: 'same-origin' | 'other-origin' | undefined;
  /** Sends webhooks. @default globalThis.fetch */
  readonly webhookFetch?: ((input: string | URL | Request, init?: RequestInit) => Promise<Response>) | undefined;
  /** The URL for in-process clients; may have a path prefix. @default 'https://sandbox.invalid' */
  readonly baseUrl?: string | undefined;
  /** The first key, where it has to be known beforehand. @default a fresh one */
  readonly apiKey?: string | undefined;
  /** The first account's signing secret, where it has to be known beforehand. @default a fresh one */
  readonly webhookSecret?: string | undefined;
}

/** The most tokens that one figure may stand for: sums of them stay exact. */
export const MOST_TOKENS = 1e9;
/** Milliseconds that a job takes where nobody says. */
export const DEFAULT_DURATION_MS = 3000;
/** The longest time that an option may state: 100 years, in milliseconds. */
export const LONGEST_MS = 100 * 365.25 * 24 * 3_600_000;
const TIME_TEXT = 'a number of milliseconds from 0 to 100 years';

/** A number from `least` to `most`. */
export const within = (what: string, least: number, most: number) =>
  must<number>(what, (value) => isFrom(value, least, most));
/** A whole number from `least` to `most`. */
export const whole = (what: string, least: number, most = Number.MAX_SAFE_INTEGER) =>
  must<number>(what, (value) => isFrom(value, least, most) && Number.isInteger(value));
/** Milliseconds, 0 or more. */
export const duration = within(TIME_TEXT, 0, LONGEST_MS);
/** Tokens. */
export const tokens = must<number>('a number of tokens from 0 to 1,000,000,000', areTokens);

const jobDuration = z.custom<JobDuration>(
  isJobDuration,
  'milliseconds from 0 to 100 years, or a range of them such as [1000, 9000]',
);
const rate = z.strictObject({
  limit: required('a whole number, 1 or more', (value) => isFrom(value, 1, Number.MAX_SAFE_INTEGER)),
  windowMs: required('a number of milliseconds above 0', (value) => isFrom(value, Number.MIN_VALUE, LONGEST_MS)),
});
const isOneOf = (...allowed: readonly unknown[]) => z.custom((value) => allowed.includes(value));

const sandboxSchema = z.strictObject({
  clock: oneOf('real', 'manual'),
  // Faster than that, a day would last for more years than a date has digits.
  speed: within('a number above 0, up to 100,000', Number.MIN_VALUE, 100_000),
  startTime: within('milliseconds since 1970, before the year 9000', 0, Date.UTC(9000, 0, 1) - 1),
  seed: must('an integer', Number.isSafeInteger),
  jobDurationMs: either(
    'milliseconds from 0 to 100 years, a range such as [1000, 9000], or those by kind',
    jobDuration,
    z.strictObject({ image: z.optional(jobDuration), video: z.optional(jobDuration), edit: z.optional(jobDuration) }),
  ),
  balanceTokens: tokens,
  prices: must('a number of tokens, or a function', (value) => areTokens(value) || typeof value === 'function'),
  limits: either(
    '"documented", "off" or limits by name',
    isOneOf('documented', 'off'),
    z.strictObject(Object.fromEntries(RATE_LIMIT_NAMES.map((name) => [name, z.optional(rate)]))),
  ),
  dispatch: oneOf('enabled', 'disabled'),
  review: either(
    '"instant" or { character, asset } in milliseconds',
    isOneOf('instant'),
    z.strictObject({ character: duration, asset: duration }),
  ),
  storage: oneOf('same-origin', 'other-origin'),
  webhookFetch: callback,
  baseUrl: must('an absolute http(s) URL without query and hash', isBaseUrl),
  apiKey: secret(
    'a string of visible ASCII characters',
    (value) => typeof value === 'string' && /^[!-~]+$/.test(value),
  ),
  webhookSecret: text,
});

/** The options with every default filled in. */
export type Settings = ReturnType<typeof settingsOf>;

/**
 * Fills in the defaults. Throws a GenError that names a wrong or unknown option and the fix. Where webhooks are signed in the
 * sandbox's own time, their receiver lives in it.
 */
export function settingsOf(options: SandboxOptions, { signsInOwnTime = false } = {}) {
  checkOptions('createSandbox', sandboxSchema, options);
  const { clock, speed = 1, balanceTokens = 1000, dispatch = 'enabled', limits = 'documented', review } = options;
  const { jobDurationMs = DEFAULT_DURATION_MS, baseUrl = 'https://sandbox.invalid', startTime, seed, prices } = options;
  // Looked up at each call, so that a fetch which a test puts in its place is used.
  const { webhookFetch = ((input, init) => globalThis.fetch(input, init)) satisfies typeof fetch } = options;
  const named = limits === 'off' ? {} : limits;
  const allowed: { readonly [L in RateLimitName]?: Rate | undefined } =
    named === 'documented' ? DOCUMENTED_LIMITS : named;
  return {
    ...{ speed, balanceTokens, dispatch, webhookFetch, startTime, seed, prices, signsInOwnTime },
    isManual: clock === 'manual',
    /** Whether waits of the sandbox's own clients are shortened. */
    skipsWaits: clock !== 'manual' && options.speed === undefined,
    durations: isJobDuration(jobDurationMs)
      ? { image: jobDurationMs, video: jobDurationMs, edit: jobDurationMs }
      : jobDurationMs,
    limits: allowed,
    review: typeof review === 'object' ? review : {},
    hasOwnStorage: options.storage === 'other-origin',
    baseUrl: baseUrl.replace(/(?<!\/)\/+$/, ''),
  };
}

const advanceSchema = z.strictObject({ ms: required(TIME_TEXT, (value) => isFrom(value, 0, LONGEST_MS)) });
const dispatchSchema = z.strictObject({ dispatch: z.enum(['enabled', 'disabled'], '"enabled" or "disabled"') });

/** Throws a GenError for a time that no clock is moved by. */
export const checkAdvance = (ms: unknown) => checkOptions('advance', advanceSchema, { ms });
/** Throws a GenError for anything but `enabled` and `disabled`. */
export const checkDispatch = (dispatch: unknown) => checkOptions('dispatch', dispatchSchema, { dispatch });

/** Whether a value is a number from `least` to `most`. */
export function isFrom(value: unknown, least: number, most: number): value is number {
  return typeof value === 'number' && value >= least && value <= most;
}

function isJobDuration(value: unknown): value is JobDuration {
  const [least, most, ...more]: readonly unknown[] = Array.isArray(value) ? value : [value, LONGEST_MS];
  return more.length === 0 && isFrom(most, 0, LONGEST_MS) && isFrom(least, 0, most);
}

function isBaseUrl(value: unknown): boolean {
  if (typeof value !== 'string' || !URL.canParse(value)) return false;
  const { protocol, search, hash } = new URL(value);
  return /^https?:$/.test(protocol) && search + hash === '';
}

/** Whether a value can be a number of tokens. */
function areTokens(value: unknown): value is number {
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
