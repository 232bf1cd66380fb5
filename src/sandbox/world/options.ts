import * as z from 'zod/mini';
import { GenError } from '../../errors/index.js';
import { DOCUMENTED_LIMITS, LANES, type Lane, type LaneLimit } from '../../rules/limits.js';
import { callback, checkOptions, count, either, flag, must, oneOf, text } from '../../rules/options.js';
import { mustBe, show } from '../../schemas/show.js';
import { DISPATCH_STALL_MS, LATEST, LONGEST_MS, OUTPUT_TTL_MS, STALE_AFTER_MS } from './choices.js';
import { areTokens, type Prices } from './prices.js';
import { type ResponseShapes, SHAPES, type Shapes, shapesOf } from './shapes.js';

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

/** Requests that an account may make in a time. */
export type Rate = LaneLimit;

/** Limits by lane. A lane that is left out has no limit. */
export type RateTable = { readonly [L in Lane]?: Rate | undefined };

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
   * Milliseconds that a job takes, a range, or those by kind. 0 ends a job before its create is answered. Speech jobs take as
   * long as images. @default 3000
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
  /** How a limit counts. The document does not say. @default 'sliding' */
  readonly limitWindow?: 'sliding' | 'fixed' | undefined;
  /** `disabled`: creates answer 503 dispatch_disabled. @default 'enabled' */
  readonly dispatch?: 'enabled' | 'disabled' | undefined;
  /** Milliseconds that a new character, or a new reference, is under review. @default 'instant' */
  readonly review?:
    | 'instant'
    | { readonly character?: number | undefined; readonly asset?: number | undefined }
    | undefined;
  /**
   * Where files are stored: beside the API, or on another origin behind signed links and redirects, as object storage is; and
   * how that storage treats the pages of a browser.
   * @default 'same-origin'
   */
  readonly storage?: 'same-origin' | 'other-origin' | StorageChoice | undefined;
  /** How the sandbox answers where the document leaves the form open. @default the first variant of each shape */
  readonly shapes?: ResponseShapes | undefined;
  /** Milliseconds that an output link stays valid. @default 86_400_000 */
  readonly outputTtlMs?: number | undefined;
  /** Milliseconds until stale repair fails a job whose dispatch stalled. @default 600_000 */
  readonly staleAfterMs?: number | undefined;
  /** Milliseconds until a strict job whose dispatch stalled is failed. @default 60_000 */
  readonly dispatchStallMs?: number | undefined;
  /** Sends webhooks. @default globalThis.fetch */
  readonly webhookFetch?: ((input: string | URL | Request, init?: RequestInit) => Promise<Response>) | undefined;
  /** The URL for in-process clients; may have a path prefix. @default 'https://sandbox.invalid' */
  readonly baseUrl?: string | undefined;
  /** The first key, where it has to be known beforehand. @default a fresh one */
  readonly apiKey?: string | undefined;
  /** The first account's signing secret, where it has to be known beforehand. @default a fresh one */
  readonly webhookSecret?: string | undefined;
  /** How many requests, and how many deliveries, the logs keep. @default 10_000 */
  readonly logLimit?: number | undefined;
}

/** Options that a sandbox uses as they are given. */
type PlainOption =
  | ('speed' | 'balanceTokens' | 'limitWindow' | 'dispatch' | 'outputTtlMs' | 'staleAfterMs' | 'dispatchStallMs')
  | ('webhookFetch' | 'baseUrl' | 'logLimit');

/** The options with every default filled in. */
export interface Settings extends Readonly<{ [O in PlainOption]: NonNullable<SandboxOptions[O]> }> {
  readonly isManual: boolean;
  /** Whether waits of the sandbox's own clients are shortened. */
  readonly skipsWaits: boolean;
  readonly startTime: number | undefined;
  /** Undefined for a fresh one each time. */
  readonly seed: number | undefined;
  readonly durations: Readonly<Record<'image' | 'video' | 'edit' | 'speech', JobDuration>>;
  readonly prices: Prices | undefined;
  readonly limits: RateTable;
  readonly characterReviewMs: number;
  readonly assetReviewMs: number;
  readonly storage: { readonly isOtherOrigin: boolean; readonly hasCors: boolean; readonly requiresKey: boolean };
  readonly shapes: Shapes;
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
  call: oneOf('images', 'characters', 'videos', 'videoEdits', 'speech'),
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
const shapes = z.strictObject(
  Object.fromEntries(Object.entries(SHAPES).map(([name, variants]) => [name, oneOf(...variants)])),
);

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
  limitWindow: oneOf('sliding', 'fixed'),
  dispatch: oneOf('enabled', 'disabled'),
  review: either(
    '"instant" or { character, asset } in milliseconds',
    isOneOf('instant'),
    z.strictObject({ character: duration, asset: duration }),
  ),
  storage: either(
    '"same-origin", "other-origin" or { origin, cors, requiresKey }',
    isOneOf('same-origin', 'other-origin'),
    z.strictObject({ origin: oneOf('same', 'other'), cors: flag, requiresKey: flag }),
  ),
  shapes: z.optional(shapes),
  outputTtlMs: period,
  staleAfterMs: period,
  dispatchStallMs: period,
  webhookFetch: callback,
  baseUrl: must('an absolute http(s) URL without query and hash', isBaseUrl),
  apiKey: must('a string of visible ASCII characters', (value) => typeof value === 'string' && /^[!-~]+$/.test(value)),
  webhookSecret: text,
  logLimit: whole('a whole number from 1 to 1,000,000', 1, 1_000_000),
});

/** Fills in the defaults. Throws a GenError that names a wrong or unknown option and the fix. */
export function settingsOf(options: SandboxOptions): Settings {
  checkOptions('createSandbox', sandboxSchema, options);
  const { clock, speed, startTime, seed, prices, shapes } = options;
  const { jobDurationMs, review, storage, limits = 'documented', baseUrl = 'https://sandbox.invalid' } = options;
  const { character = 0, asset = 0 } = typeof review === 'object' ? review : {};
  const { origin, cors = true, requiresKey = false }: StorageChoice = typeof storage === 'object' ? storage : {};
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
    limitWindow: options.limitWindow ?? 'sliding',
    dispatch: options.dispatch ?? 'enabled',
    characterReviewMs: character,
    assetReviewMs: asset,
    storage: { isOtherOrigin: storage === 'other-origin' || origin === 'other', hasCors: cors, requiresKey },
    shapes: shapesOf(shapes),
    outputTtlMs: options.outputTtlMs ?? OUTPUT_TTL_MS,
    staleAfterMs: options.staleAfterMs ?? STALE_AFTER_MS,
    dispatchStallMs: options.dispatchStallMs ?? DISPATCH_STALL_MS,
    // Looked up at each call, so that a fetch which a test puts in its place is used.
    webhookFetch: options.webhookFetch ?? ((input, init) => globalThis.fetch(input, init)),
    baseUrl: baseUrl.replace(/(?<!\/)\/+$/, ''),
    logLimit: options.logLimit ?? 10_000,
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
  throw new GenError(mustBe('dispatch', '"enabled" or "disabled"', dispatch));
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
  return { image, video, edit, speech: image };
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
