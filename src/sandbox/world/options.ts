import * as z from 'zod/mini';
import { GenError } from '../../errors/index.js';
import { DOCUMENTED_LIMITS, LANES, type Lane, type LaneLimit } from '../../rules/limits.js';
import { callback, checkOptions, count, either, flag, must, oneOf, secret, text } from '../../rules/options.js';
import { show } from '../../schemas/show.js';
import { LATEST, LONGEST_MS } from './choices.js';
import { areTokens, type Prices } from './prices.js';

/** Milliseconds, or a range that the seed draws from. */
export type JobDuration = number | readonly [least: number, most: number];

/** Where the sandbox stores files, and what its storage asks for. The service's document does not say. */
export interface StorageChoice {
  /** `same`: beside the API. `other`: another origin, behind signed links and redirects. @default 'same' */
  readonly origin?: 'same' | 'other' | undefined;
  /**
   * Whether the storage answers CORS preflights and lets the pages of any origin in, so that a browser can send a file to it.
   * @default true
   */
  readonly cors?: boolean | undefined;
  /**
   * Whether the PUT of an upload also needs the API key. On another origin this is a service that the client cannot use, because
   * a key never goes to another origin. @default false
   */
  readonly requiresKey?: boolean | undefined;
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
  /** Where files are stored, and how that storage treats the pages of a browser. @default beside the API */
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

/** Options that a sandbox uses as they are given. */
type PlainOption = 'speed' | 'balanceTokens' | 'dispatch' | 'webhookFetch' | 'baseUrl';

/** The options with every default filled in. */
export interface Settings extends Readonly<{ [O in PlainOption]: NonNullable<SandboxOptions[O]> }> {
  readonly isManual: boolean;
  /** Whether waits of the sandbox's own clients are shortened. */
  readonly skipsWaits: boolean;
  readonly startTime: number | undefined;
  /** Undefined for a fresh one each time. */
  readonly seed: number | undefined;
  readonly durations: Readonly<Record<'image' | 'video' | 'edit', JobDuration>>;
  readonly prices: Prices | undefined;
  readonly limits: RateTable;
  readonly characterReviewMs: number;
  readonly assetReviewMs: number;
  readonly storage: { readonly isOtherOrigin: boolean; readonly hasCors: boolean; readonly requiresKey: boolean };
  /** Whether webhooks are signed in the sandbox's time: their receiver lives in it. */
  readonly signsInOwnTime?: boolean;
}

/** Faster than that, a day would pass the last year of the clock. */
const FASTEST = 100_000;
const DEFAULT_DURATION_MS = 3000;
const MOST_TOKENS_TEXT = 'a number of tokens from 0 to 1,000,000,000';

/** Milliseconds, 0 or more. */
export const duration = must<number>('a number of milliseconds from 0 to 100 years', isDuration);
/** Milliseconds above 0. */
export const period = must<number>(
  'a number of milliseconds above 0, up to 100 years',
  (value) => isDuration(value) && value > 0,
);
/** Tokens. */
export const tokens = must<number>(MOST_TOKENS_TEXT, areTokens);
/** A whole number from `least` to `most`. */
export const whole = (what: string, least: number, most = Number.MAX_SAFE_INTEGER) =>
  must<number>(what, (value) => isWhole(value) && value >= least && value <= most);

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
  tokens: z.custom<number>(areTokens, MOST_TOKENS_TEXT),
});
const prices = either(
  'a number of tokens, a list of { model, resolution, duration, audio, call, tokens }, or a function',
  z.custom((value) => areTokens(value) || typeof value === 'function'),
  z.array(priceRow),
);
const rate = z.strictObject({
  limit: z.custom((value) => isWhole(value) && value >= 1, 'a whole number, 1 or more'),
  windowMs: z.custom((value) => isDuration(value) && value > 0, 'a number of milliseconds above 0, up to 100 years'),
});
const isOneOf = (...allowed: readonly unknown[]) => z.custom((value) => allowed.includes(value));
const lanes = z.strictObject(Object.fromEntries(LANES.map((lane) => [lane, z.optional(rate)])));

const sandboxSchema = z.strictObject({
  clock: oneOf('real', 'manual'),
  speed: must('a number above 0, up to 100,000', (value) => isNumber(value) && value > 0 && value <= FASTEST),
  startTime: must(
    'milliseconds since 1970, before the year 9000',
    (value) => isNumber(value) && value >= 0 && value < LATEST,
  ),
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
  storage: z.optional(z.strictObject({ origin: oneOf('same', 'other'), cors: flag, requiresKey: flag })),
  webhookFetch: callback,
  baseUrl: must('an absolute http(s) URL without query and hash', isBaseUrl),
  apiKey: secret(
    'a string of visible ASCII characters',
    (value) => typeof value === 'string' && /^[!-~]+$/.test(value),
  ),
  webhookSecret: text,
});

/** Fills in the defaults. Throws a GenError that names a wrong or unknown option and the fix. */
export function settingsOf(options: SandboxOptions): Settings {
  checkOptions('createSandbox', sandboxSchema, options);
  const { clock, speed, startTime, seed, prices } = options;
  const { jobDurationMs, review, storage = {}, limits = 'documented', baseUrl = 'https://sandbox.invalid' } = options;
  const { character = 0, asset = 0 } = typeof review === 'object' ? review : {};
  const { origin, cors = true, requiresKey = false } = storage;
  return {
    isManual: clock === 'manual',
    speed: speed ?? 1,
    skipsWaits: clock !== 'manual' && speed === undefined,
    startTime,
    seed,
    durations: durationsOf(jobDurationMs),
    balanceTokens: options.balanceTokens ?? 1000,
    prices,
    limits: limits === 'documented' ? DOCUMENTED_LIMITS : limits === 'off' ? {} : limits,
    dispatch: options.dispatch ?? 'enabled',
    characterReviewMs: character,
    assetReviewMs: asset,
    storage: { isOtherOrigin: origin === 'other', hasCors: cors, requiresKey },
    // Looked up at each call, so that a fetch which a test puts in its place is used.
    webhookFetch: options.webhookFetch ?? ((input, init) => globalThis.fetch(input, init)),
    baseUrl: baseUrl.replace(/(?<!\/)\/+$/, ''),
  };
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
  if (isNumber(ms) && ms >= 0 && ms <= most) return ms;
  if (!isNumber(ms) || ms < 0) throw new GenError(`ms must be a number of milliseconds, 0 or more, not ${show(ms)}.`);
  throw new GenError(`ms must be at most ${most}, not ${ms}: the sandbox's clock ends with the year 8999.`);
}

function durationsOf(given: SandboxOptions['jobDurationMs'] = DEFAULT_DURATION_MS): Settings['durations'] {
  const byKind = isJobDuration(given) ? { image: given, video: given, edit: given } : given;
  const { image = DEFAULT_DURATION_MS, video = DEFAULT_DURATION_MS, edit = DEFAULT_DURATION_MS } = byKind;
  return { image, video, edit };
}

function isJobDuration(value: unknown): value is JobDuration {
  if (!Array.isArray(value)) return isDuration(value);
  const [least, most]: readonly unknown[] = value;
  return value.length === 2 && isDuration(least) && isDuration(most) && least <= most;
}

function isDuration(value: unknown): value is number {
  return isNumber(value) && value >= 0 && value <= LONGEST_MS;
}

function isBaseUrl(value: unknown): boolean {
  if (typeof value !== 'string' || !URL.canParse(value)) return false;
  const { protocol, search, hash } = new URL(value);
  return /^https?:$/.test(protocol) && search + hash === '';
}

/** Whether the value is a whole number. */
function isWhole(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value);
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && !Number.isNaN(value);
}
