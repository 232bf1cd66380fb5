import * as z from 'zod/mini';
import { GenError } from '../../errors/index.js';
import { DOCUMENTED_LIMITS, LANES, type Lane, type LaneLimit } from '../../rules/limits.js';
import {
  callback,
  checkOptions,
  count,
  either,
  flag,
  must,
  oneOf,
  required,
  secret,
  text,
} from '../../rules/options.js';
import { show } from '../../schemas/show.js';
import { LATEST, LONGEST_MS } from './choices.js';
import { areTokens, type Prices } from './prices.js';

/** Milliseconds, or a range that the seed draws from. */
export type JobDuration = number | readonly [least: number, most: number];

/** Where uploads go. The service's document does not say. */
export interface StorageChoice {
  /** `same`: beside the API. `other`: another origin, as object storage has one. @default 'same' */
  readonly origin?: 'same' | 'other' | undefined;
  /**
   * Whether the storage answers CORS preflights and lets the pages of any origin in, so that a browser can send a file to it.
   * @default true
   */
  readonly cors?: boolean | undefined;
}

/** Limits by lane. A lane that is left out has no limit. */
export type RateTable = { readonly [L in Lane]?: LaneLimit | undefined };

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
  /** What jobs cost; `setPrices` changes it later. @default prices of the sandbox's own, which promise nothing */
  readonly prices?: Prices | undefined;
  /** The documented limits per account, none, or your own by lane (`videos.create`, `jobs.get`, …). @default 'documented' */
  readonly limits?: 'documented' | 'off' | RateTable | undefined;
  /** `disabled`: creates answer 503 dispatch_disabled. @default 'enabled' */
  readonly dispatch?: 'enabled' | 'disabled' | undefined;
  /** Milliseconds that a new character, or a new reference, is under review. @default 'instant' */
  readonly review?:
    | 'instant'
    | { readonly character?: number | undefined; readonly asset?: number | undefined }
    | undefined;
  /** Where uploads go, and whether the pages of a browser may send them. @default beside the API, and they may */
  readonly storage?: StorageChoice | undefined;
  /** Sends webhooks. @default globalThis.fetch */
  readonly webhookFetch?: ((input: string | URL | Request, init?: RequestInit) => Promise<Response>) | undefined;
  /** The URL for in-process clients; may have a path prefix. @default 'https://sandbox.invalid' */
  readonly baseUrl?: string | undefined;
  /** The first key, where it has to be known beforehand. @default a fresh one */
  readonly apiKey?: string | undefined;
  /** The first account's signing secret, where it has to be known beforehand. @default a fresh one */
  readonly webhookSecret?: string | undefined;
}

/** Faster than that, a day would pass the last year of the clock. */
const FASTEST = 100_000;
const DEFAULT_DURATION_MS = 3000;
const TOKENS_TEXT = 'a number of tokens from 0 to 1,000,000,000';
const PERIOD_TEXT = 'a number of milliseconds above 0, up to 100 years';

/** Whether a value is a number from `least` to `most`. */
export function isFrom(value: unknown, least: number, most: number): value is number {
  return typeof value === 'number' && value >= least && value <= most;
}

/** A number from `least` to `most`. */
export const within = (what: string, least: number, most: number) =>
  must<number>(what, (value) => isFrom(value, least, most));
/** A whole number from `least` to `most`. */
export const whole = (what: string, least: number, most = Number.MAX_SAFE_INTEGER) =>
  must<number>(what, (value) => isFrom(value, least, most) && Number.isInteger(value));
/** Milliseconds, 0 or more. */
export const duration = within('a number of milliseconds from 0 to 100 years', 0, LONGEST_MS);
/** Milliseconds above 0. */
export const period = within(PERIOD_TEXT, Number.MIN_VALUE, LONGEST_MS);
/** Tokens. */
export const tokens = must<number>(TOKENS_TEXT, areTokens);

const jobDuration = z.custom<JobDuration>(
  isJobDuration,
  'milliseconds from 0 to 100 years, or a range of them such as [1000, 9000]',
);
const priceRow = z.strictObject({
  call: oneOf('images', 'characters', 'videos', 'videoEdits'),
  model: text,
  resolution: text,
  duration: count,
  audio: flag,
  tokens: required(TOKENS_TEXT, areTokens),
});
const prices = either(
  'a number of tokens, a list of { model, resolution, duration, audio, call, tokens }, or a function',
  z.custom((value) => areTokens(value) || typeof value === 'function'),
  z.array(priceRow),
);
const rate = z.strictObject({
  limit: required('a whole number, 1 or more', (value) => isFrom(value, 1, Number.MAX_SAFE_INTEGER)),
  windowMs: required(PERIOD_TEXT, (value) => isFrom(value, Number.MIN_VALUE, LONGEST_MS)),
});
const isOneOf = (...allowed: readonly unknown[]) => z.custom((value) => allowed.includes(value));
const lanes = z.strictObject(Object.fromEntries(LANES.map((lane) => [lane, z.optional(rate)])));

const sandboxSchema = z.strictObject({
  clock: oneOf('real', 'manual'),
  speed: within('a number above 0, up to 100,000', Number.MIN_VALUE, FASTEST),
  startTime: within('milliseconds since 1970, before the year 9000', 0, LATEST - 1),
  seed: must('an integer', Number.isSafeInteger),
  jobDurationMs: either(
    'milliseconds from 0 to 100 years, a range such as [1000, 9000], or those by kind',
    jobDuration,
    z.strictObject({ image: z.optional(jobDuration), video: z.optional(jobDuration), edit: z.optional(jobDuration) }),
  ),
  balanceTokens: tokens,
  prices,
  limits: either('"documented", "off" or limits by lane', isOneOf('documented', 'off'), lanes),
  dispatch: oneOf('enabled', 'disabled'),
  review: either(
    '"instant" or { character, asset } in milliseconds',
    isOneOf('instant'),
    z.strictObject({ character: duration, asset: duration }),
  ),
  storage: z.optional(z.strictObject({ origin: oneOf('same', 'other'), cors: flag })),
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
  const { clock, speed = 1, balanceTokens = 1000, dispatch = 'enabled', limits = 'documented', storage } = options;
  // Looked up at each call, so that a fetch which a test puts in its place is used.
  const { webhookFetch = ((input, init) => globalThis.fetch(input, init)) satisfies typeof fetch } = options;
  const { character = 0, asset = 0 } = typeof options.review === 'object' ? options.review : {};
  const { baseUrl = 'https://sandbox.invalid', startTime, seed, prices } = options;
  return {
    ...{ speed, balanceTokens, dispatch, webhookFetch, startTime, seed, prices, signsInOwnTime },
    isManual: clock === 'manual',
    /** Whether waits of the sandbox's own clients are shortened. */
    skipsWaits: clock !== 'manual' && options.speed === undefined,
    durations: durationsOf(options.jobDurationMs),
    limits: rateTable(limits),
    characterReviewMs: character,
    assetReviewMs: asset,
    storage: { isOtherOrigin: storage?.origin === 'other', hasCors: storage?.cors ?? true },
    baseUrl: baseUrl.replace(/(?<!\/)\/+$/, ''),
  };
}

function rateTable(limits: 'documented' | 'off' | RateTable): RateTable {
  if (limits === 'documented') return DOCUMENTED_LIMITS;
  return limits === 'off' ? {} : limits;
}

/** Prices, checked. Throws a GenError that names a wrong or unknown field. */
export function checkPrices(owner: string, given: unknown): Prices | undefined {
  checkOptions(owner, z.strictObject({ prices }), { prices: given });
  return given as Prices | undefined;
}

/** The value of `dispatch`. Throws a GenError for anything but `enabled` and `disabled`. */
export function checkDispatch(dispatch: unknown): Settings['dispatch'] {
  if (dispatch === 'enabled' || dispatch === 'disabled') return dispatch;
  throw new GenError(`dispatch must be "enabled" or "disabled", not ${show(dispatch)}.`);
}

/** The milliseconds that `advance` may move the clock by. Throws a GenError for any other value. */
export function checkAdvance(ms: unknown, now: number): number {
  const most = LATEST - now;
  if (isFrom(ms, 0, most)) return ms;
  if (!isFrom(ms, 0, Number.POSITIVE_INFINITY)) {
    throw new GenError(`ms must be a number of milliseconds, 0 or more, not ${show(ms)}.`);
  }
  throw new GenError(`ms must be at most ${most}, not ${ms}: the sandbox's clock ends with the year 8999.`);
}

function durationsOf(given: SandboxOptions['jobDurationMs'] = DEFAULT_DURATION_MS) {
  const byKind = isJobDuration(given) ? { image: given, video: given, edit: given } : given;
  const { image = DEFAULT_DURATION_MS, video = DEFAULT_DURATION_MS, edit = DEFAULT_DURATION_MS } = byKind;
  return { image, video, edit };
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
