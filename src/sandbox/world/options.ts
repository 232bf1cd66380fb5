import * as z from 'zod/mini';
import { GenError } from '../../errors/index.js';
import { DOCUMENTED_LIMITS, RATE_LIMIT_NAMES, type Rate, type RateLimitName } from '../../rules/limits.js';
import { callback, checkOptions, either, must, oneOf, required, secret, text } from '../../rules/options.js';
import { formatValue } from '../../schemas/format-value.js';
import { IMAGE_TOKENS, VIDEO_TOKENS_PER_SECOND } from './assumptions.js';
import { secretText } from './random.js';

/** Milliseconds, or a range from which the seed picks. */
export type JobDuration = number | readonly [min: number, max: number];

/** Job to calculate a price for. */
export interface PricedJob {
  /** Resource that creates the job. */
  readonly call: 'images' | 'characters' | 'videos' | 'videoEdits';
  /** The model alias. */
  readonly model: string;
  /** Resolution, for example `480p` or `standard`. */
  readonly resolution: string;
  /** Duration in seconds, 0 unless it is a video. */
  readonly duration: number;
  /** True if the request has `generate_audio: true`. */
  readonly audio: boolean;
}

/**
 * Price of a job in tokens: a number for all jobs, or a function. If it returns undefined, the sandbox's own price
 * applies.
 */
export type Prices = number | ((job: PricedJob) => number | undefined);

/** Options for `createSandbox`. */
export interface SandboxOptions {
  /** With `manual`, time passes only when you call `advance()`. @default 'real' */
  readonly clock?: 'real' | 'manual' | undefined;
  /**
   * Sandbox milliseconds per real millisecond, on the real clock. Retry-After values shrink accordingly. If omitted,
   * time passes a thousand times as fast while clients of `sandbox.client()` only wait. @default 1
   */
  readonly speed?: number | undefined;
  /** Initial time of the sandbox, in milliseconds since the epoch. @default now */
  readonly startTime?: number | undefined;
  /** Integer that determines IDs, durations, and media bytes, but not keys and secrets. @default random */
  readonly seed?: number | undefined;
  /**
   * Duration of a job in milliseconds, a range, or either for each kind. 0 ends a job before its create returns.
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
  /** Initial balance of every account, in tokens. @default 1000 */
  readonly balanceTokens?: number | undefined;
  /** Prices of jobs. @default the sandbox's own prices, which aren't the service's */
  readonly prices?: Prices | undefined;
  /** Rate limits of each account, or your own by name (`videos.create`, `jobs.get`, …). @default 'documented' */
  readonly limits?: 'documented' | 'off' | { readonly [Name in RateLimitName]?: Rate | undefined } | undefined;
  /** With `disabled`, creates fail with 503 dispatch_disabled. @default 'enabled' */
  readonly dispatch?: 'enabled' | 'disabled' | undefined;
  /** Duration of the review of new characters and references, in milliseconds. @default 'instant' */
  readonly review?:
    | 'instant'
    | { readonly character?: number | undefined; readonly asset?: number | undefined }
    | undefined;
  /** Origin of upload URLs: the API's, or a different one, like object storage. @default 'same-origin' */
  readonly storage?: 'same-origin' | 'other-origin' | undefined;
  /** `fetch` that sends webhooks. @default globalThis.fetch */
  readonly webhookFetch?: ((input: string | URL | Request, init?: RequestInit) => Promise<Response>) | undefined;
  /** Base URL for in-process clients, optionally with a path prefix. @default 'https://sandbox.invalid' */
  readonly baseUrl?: string | undefined;
  /** First API key, if you need to know it in advance. @default random */
  readonly apiKey?: string | undefined;
  /** Signing secret of the first account, if you need to know it in advance. @default random */
  readonly webhookSecret?: string | undefined;
}

/** Maximum of any token option. Sums stay exact. */
export const MAX_TOKENS = 1e9;
/** Default duration of a job. */
export const DEFAULT_DURATION_MS = 3000;
/** Maximum of any time option: 100 years. */
export const MAX_MS = 100 * 365.25 * 24 * 3_600_000;
const TIME_TEXT = 'a number of milliseconds from 0 to 100 years';

export const numberBetween = (expected: string, min: number, max: number) =>
  must(expected, (value) => isBetween(value, min, max));
export const integerBetween = (expected: string, min: number, max = Number.MAX_SAFE_INTEGER) =>
  must(expected, (value) => isBetween(value, min, max) && Number.isInteger(value));
export const duration = numberBetween(TIME_TEXT, 0, MAX_MS);
export const tokens = numberBetween('a number of tokens from 0 to 1,000,000,000', 0, MAX_TOKENS);

const jobDuration = z.custom<JobDuration>(
  isJobDuration,
  'milliseconds from 0 to 100 years, or a range such as [1000, 9000]',
);
const rate = z.strictObject({
  limit: required('a whole number, 1 or more', (value) => Number.isSafeInteger(value) && Number(value) >= 1),
  windowMs: required('a number of milliseconds above 0', (value) => isBetween(value, Number.MIN_VALUE, MAX_MS)),
});
const isOneOf = (...allowed: readonly unknown[]) => z.custom((value) => allowed.includes(value));

/** Requires a check for each option, so that an option without one doesn't compile. */
export type ChecksOf<Options> = { readonly [Name in keyof Options]-?: z.core.$ZodType };

const sandboxSchema = z.strictObject({
  clock: oneOf('real', 'manual'),
  // At a higher speed, dates would overflow within a day.
  speed: numberBetween('a number above 0, up to 100,000', Number.MIN_VALUE, 100_000),
  startTime: numberBetween('milliseconds since 1970, before the year 9000', 0, Date.UTC(9000, 0, 1) - 1),
  seed: must('an integer', Number.isSafeInteger),
  jobDurationMs: either(
    'milliseconds from 0 to 100 years, a range such as [1000, 9000], or an object with either for each kind',
    jobDuration,
    z.strictObject({ image: z.optional(jobDuration), video: z.optional(jobDuration), edit: z.optional(jobDuration) }),
  ),
  balanceTokens: tokens,
  prices: must(
    'a number of tokens, or a function',
    (value) => isBetween(value, 0, MAX_TOKENS) || typeof value === 'function',
  ),
  limits: either(
    '"documented", "off", or limits by name',
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
  baseUrl: must('an absolute http(s) URL without query or hash', isBaseUrl),
  apiKey: secret(
    'a string of visible ASCII characters',
    (value) => typeof value === 'string' && /^[!-~]+$/.test(value),
  ),
  webhookSecret: text,
} satisfies ChecksOf<SandboxOptions>);

/** The options with their defaults. */
export type Settings = ReturnType<typeof settingsOf>;

/**
 * Applies the defaults. Throws a GenError for an invalid or unknown option. `signsInOwnTime` is for simulations, whose
 * webhook receivers use the sandbox's clock.
 */
export function settingsOf(options: SandboxOptions, { signsInOwnTime = false } = {}) {
  checkOptions('createSandbox', sandboxSchema, options);
  const { clock, speed = 1, balanceTokens = 1000, dispatch = 'enabled', limits = 'documented', review } = options;
  const { jobDurationMs = DEFAULT_DURATION_MS, baseUrl = 'https://sandbox.invalid', startTime, seed, prices } = options;
  const { apiKey = secretText('sk_sandbox'), webhookSecret = secretText('whsec') } = options;
  // Look up the global fetch on each call, so that a test can replace it.
  const { webhookFetch = ((input, init) => globalThis.fetch(input, init)) satisfies typeof fetch } = options;
  const limitsByName: { readonly [Name in RateLimitName]?: Rate | undefined } =
    typeof limits === 'object' ? limits : { documented: DOCUMENTED_LIMITS, off: {} }[limits];
  return {
    ...{ apiKey, webhookSecret, speed, balanceTokens, dispatch, webhookFetch, startTime, seed, prices, signsInOwnTime },
    isManual: clock === 'manual',
    /** If true, waits of the sandbox's own clients are skipped. */
    skipsWaits: clock !== 'manual' && options.speed === undefined,
    durations: isJobDuration(jobDurationMs)
      ? { image: jobDurationMs, video: jobDurationMs, edit: jobDurationMs }
      : jobDurationMs,
    limits: limitsByName,
    review: typeof review === 'object' ? review : {},
    hasOwnStorage: options.storage === 'other-origin',
    baseUrl: baseUrl.replace(/(?<!\/)\/+$/, ''),
  };
}

const advanceSchema = z.strictObject({ ms: required(TIME_TEXT, (value) => isBetween(value, 0, MAX_MS)) });
const dispatchSchema = z.strictObject({ dispatch: z.enum(['enabled', 'disabled'], '"enabled" or "disabled"') });

export const checkAdvance = (ms: unknown) => checkOptions('advance', advanceSchema, { ms });
export const checkDispatch = (dispatch: unknown) => checkOptions('dispatch', dispatchSchema, { dispatch });

export function isBetween(value: unknown, min: number, max: number): value is number {
  return typeof value === 'number' && value >= min && value <= max;
}

function isJobDuration(value: unknown): value is JobDuration {
  const [min, max, ...rest]: readonly unknown[] = Array.isArray(value) ? value : [value, MAX_MS];
  return rest.length === 0 && isBetween(max, 0, MAX_MS) && isBetween(min, 0, max);
}

function isBaseUrl(value: unknown): boolean {
  if (typeof value !== 'string' || !URL.canParse(value)) return false;
  const { protocol, search, hash } = new URL(value);
  return /^https?:$/.test(protocol) && search + hash === '';
}

/** Returns the price of a job. Throws a GenError if the function returns an invalid number. */
export function sandboxPrice(job: PricedJob, prices: Prices | undefined): number {
  const price = typeof prices === 'function' ? prices(job) : prices;
  const { model, resolution, duration } = job;
  const perSecond = VIDEO_TOKENS_PER_SECOND[model]?.[resolution];
  if (price === undefined)
    return perSecond === undefined ? (IMAGE_TOKENS[model]?.[resolution] ?? 0) : perSecond * duration;
  if (isBetween(price, 0, MAX_TOKENS)) return price;
  throw new GenError(`prices must return a number of tokens, 0 or more, for ${model}, not ${formatValue(price)}.`);
}
