import { DISPATCH_STALL_MS, OUTPUT_TTL_MS, STALE_AFTER_MS } from './choices.js';
import { documentedLimits, type RateTable } from './documented-limits.js';

/** Milliseconds, or a range that the seed draws from. */
export type JobDuration = number | readonly [least: number, most: number];

/** What a sandbox is made with. */
export interface SandboxOptions {
  /** `manual`: time moves only by `advance()`. @default 'real' */
  readonly clock?: 'real' | 'manual' | undefined;
  /** Sandbox milliseconds in a real one, on the real clock; waits told to clients shrink with it. @default 1 */
  readonly speed?: number | undefined;
  /** The moment the sandbox's time starts at, in milliseconds since the epoch. @default now */
  readonly startTime?: number | undefined;
  /** The same seed gives the same ids, durations and media bytes. Keys and secrets are fresh each time. @default 1 */
  readonly seed?: number | undefined;
  /** Milliseconds a job takes, or that by kind; 0 ends it before the create is answered. @default 3000 */
  readonly jobDurationMs?:
    | JobDuration
    | { readonly image?: JobDuration; readonly video?: JobDuration; readonly edit?: JobDuration }
    | undefined;
  /** Tokens every account starts with. @default 1000 */
  readonly balanceTokens?: number | undefined;
  /** The documented limits per account, none, or a table of your own by lane (`videos.create`, `jobs.get`, …). @default 'documented' */
  readonly limits?: 'documented' | 'off' | RateTable | undefined;
  /** How a limit counts: the document does not say. @default 'sliding' */
  readonly limitWindow?: 'sliding' | 'fixed' | undefined;
  /** `disabled`: creates answer 503 dispatch_disabled. @default 'enabled' */
  readonly dispatch?: 'enabled' | 'disabled' | undefined;
  /** How many milliseconds a new character, or a new reference, stays under review. @default 'instant' */
  readonly review?: 'instant' | { readonly character?: number; readonly asset?: number } | undefined;
  /**
   * Where files live. Beside the API, or behind links and redirects to another origin, as object storage does.
   * @default 'same-origin'
   */
  readonly storage?: 'same-origin' | 'other-origin' | undefined;
  /** Milliseconds that an output link stays good. @default 86_400_000 */
  readonly outputTtlMs?: number | undefined;
  /** Milliseconds until stale repair fails a job whose dispatch stalled. @default 600_000 */
  readonly staleAfterMs?: number | undefined;
  /** Milliseconds until a strict job whose dispatch stalled is failed. @default 60_000 */
  readonly dispatchStallMs?: number | undefined;
  /** Delivers webhooks. @default globalThis.fetch */
  readonly webhookFetch?: typeof fetch | undefined;
  /** The URL that in-process clients use; may carry a path prefix. @default 'https://sandbox.invalid' */
  readonly baseUrl?: string | undefined;
  /** The first key, where it has to be known beforehand. @default a fresh one */
  readonly apiKey?: string | undefined;
  /** The first account's signing secret, where it has to be known beforehand. @default a fresh one */
  readonly webhookSecret?: string | undefined;
  /** How many requests, and how many deliveries, the logs keep. @default 10_000 */
  readonly logLimit?: number | undefined;
}

/** The options with every default filled in. */
export interface Settings {
  readonly isManual: boolean;
  readonly speed: number;
  readonly startTime: number | undefined;
  readonly seed: number;
  readonly durations: Readonly<Record<'image' | 'video' | 'edit' | 'speech', JobDuration>>;
  readonly balanceTokens: number;
  readonly limits: RateTable;
  readonly limitWindow: 'sliding' | 'fixed';
  readonly dispatch: 'enabled' | 'disabled';
  readonly characterReviewMs: number;
  readonly assetReviewMs: number;
  readonly isOtherOrigin: boolean;
  readonly outputTtlMs: number;
  readonly staleAfterMs: number;
  readonly dispatchStallMs: number;
  readonly webhookFetch: typeof fetch;
  readonly baseUrl: string;
  readonly logLimit: number;
}

/** Fills in the defaults; throws a TypeError or RangeError that names the option and the fix. */
export function settingsOf(options: SandboxOptions): Settings {
  const { review = 'instant', limits = 'documented', baseUrl = 'https://sandbox.invalid' } = options;
  if (!URL.canParse(baseUrl)) throw new TypeError(`baseUrl: "${baseUrl}" is no URL; give an absolute one.`);
  if (typeof limits === 'string') oneOf(options, 'limits', ['documented', 'off']);
  if (typeof review === 'string') oneOf(options, 'review', ['instant']);
  oneOf(options, 'clock', ['real', 'manual']);
  oneOf(options, 'dispatch', ['enabled', 'disabled']);
  oneOf(options, 'limitWindow', ['sliding', 'fixed']);
  oneOf(options, 'storage', ['same-origin', 'other-origin']);
  return {
    isManual: options.clock === 'manual',
    speed: positive(options, 'speed', 1),
    startTime: options.startTime,
    seed: options.seed ?? 1,
    durations: durationsOf(options.jobDurationMs ?? 3000),
    balanceTokens: positive(options, 'balanceTokens', 1000),
    limits: limits === 'documented' ? documentedLimits : limits === 'off' ? {} : limits,
    limitWindow: options.limitWindow ?? 'sliding',
    dispatch: options.dispatch ?? 'enabled',
    characterReviewMs: review === 'instant' ? 0 : (review.character ?? 0),
    assetReviewMs: review === 'instant' ? 0 : (review.asset ?? 0),
    isOtherOrigin: options.storage === 'other-origin',
    outputTtlMs: positive(options, 'outputTtlMs', OUTPUT_TTL_MS),
    staleAfterMs: positive(options, 'staleAfterMs', STALE_AFTER_MS),
    dispatchStallMs: positive(options, 'dispatchStallMs', DISPATCH_STALL_MS),
    // Looked up at each call, so that a fetch which a test puts in its place is seen.
    webhookFetch: options.webhookFetch ?? ((input, init) => globalThis.fetch(input, init)),
    baseUrl: baseUrl.replace(/\/+$/, ''),
    logLimit: positive(options, 'logLimit', 10_000),
  };
}

function durationsOf(given: NonNullable<SandboxOptions['jobDurationMs']>): Settings['durations'] {
  const isOne = typeof given === 'number' || isRange(given);
  const of = (kind: 'image' | 'video' | 'edit') => checkDuration(isOne ? given : (given[kind] ?? 3000));
  return { image: of('image'), video: of('video'), edit: of('edit'), speech: of('image') };
}

function isRange(given: object): given is readonly [number, number] {
  return Array.isArray(given);
}

function checkDuration(duration: JobDuration): JobDuration {
  const values = typeof duration === 'number' ? [duration] : duration;
  if (values.every((value) => value >= 0)) return duration;
  throw new RangeError(`jobDurationMs: ${values.join(' to ')} is refused; give milliseconds of 0 or more.`);
}

function positive(options: SandboxOptions, name: keyof SandboxOptions, fallback: number): number {
  const value = options[name] ?? fallback;
  // An account may well start with nothing; every other figure would make no sense.
  const mayBeZero = name === 'balanceTokens';
  if (typeof value === 'number' && (value > 0 || (mayBeZero && value === 0))) return value;
  throw new RangeError(
    `${name}: ${String(value)} is refused; give a number ${mayBeZero ? 'of 0 or more' : 'above 0'}.`,
  );
}

function oneOf(options: SandboxOptions, name: keyof SandboxOptions, allowed: readonly string[]): void {
  const value = options[name];
  if (value === undefined || allowed.includes(String(value))) return;
  throw new TypeError(`${name}: "${String(value)}" is none of ${allowed.join(', ')}.`);
}
