import * as z from 'zod/mini';
import type { JOB_ERRORS } from '../../errors/codes.js';
import { GenError } from '../../errors/index.js';
import { checkOptions, flag, must, oneOf, optional, text } from '../../rules/options.js';
import { isFields } from '../../schemas/envelope.js';
import { type ChecksOf, duration, integerBetween, isBetween, MAX_MS, numberBetween, tokens } from './options.js';
import type { RandomSource } from './random.js';

/** Outcome of a job, and the job's behavior until then. */
export interface Outcome {
  /** Final status. @default `failed` if `errorCode` is set, otherwise `completed` */
  readonly status?: 'completed' | 'failed' | 'canceled' | 'blocked' | undefined;
  /** Error code of the job. @default `generation_failed` for a failed job */
  readonly errorCode?: string | undefined;
  /** Error message of the job. @default a sentence that explains the code */
  readonly errorMessage?: string | undefined;
  /** Error data of the job. @default `{ retry_after: 30 }` for `reference_asset_pending` */
  readonly errorData?: Readonly<Record<string, unknown>> | undefined;
  /** Milliseconds until the job ends. 0 ends it before the create returns. @default the sandbox's `jobDurationMs` */
  readonly durationMs?: number | undefined;
  /**
   * If true, the job's dispatch never starts. Its status doesn't change until stale repair or the dispatch check of
   * strict mode fails it. @default false
   */
  readonly stall?: boolean | undefined;
  /** Tokens charged on completion, at most the quote. The rest is released. @default the quote */
  readonly finalTokenCost?: number | undefined;
  /** Number of times the job's webhook is sent: 0 loses it, 2 duplicates it. @default 1 */
  readonly webhookCopies?: number | undefined;
}

const outcomeSchema = z.strictObject({
  status: oneOf('completed', 'failed', 'canceled', 'blocked'),
  errorCode: text,
  errorMessage: optional(z.string('a string')),
  errorData: must('a JSON object', isFields),
  durationMs: duration,
  stall: flag,
  finalTokenCost: tokens,
  webhookCopies: integerBetween('a whole number from 0 to 100', 0, 100),
} satisfies ChecksOf<Outcome>);

/**
 * Validates and copies an outcome. Throws a GenError for an invalid or unknown field. `owner` is the call that the
 * message names.
 */
export function checkOutcome(owner: string, outcome: unknown): Outcome {
  checkOptions(owner, outcomeSchema, outcome);
  return structuredClone({ ...(outcome as Outcome) });
}

/** The planned end of a job. */
export interface PlannedEnd {
  readonly status: 'completed' | 'failed' | 'canceled' | 'blocked';
  readonly errorCode: string | null;
  readonly errorMessage: string | null;
  readonly errorData: Readonly<Record<string, unknown>>;
  /** Reserved tokens that are charged on completion. @default all */
  readonly finalTokenCost?: number | undefined;
}

const TIME_UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/**
 * Parses the outcome in a prompt: `[fail:code]`, `[canceled]`, `[blocked]`, `[slow:60s]`, or `[stall]`.
 * Times are capped at 100 years.
 */
export function outcomeIn(prompt: string): Outcome {
  const outcome: { -readonly [K in keyof Outcome]: Outcome[K] } = {};
  for (const [, word, value = ''] of prompt.matchAll(/\[(fail|canceled|blocked|slow|stall)(?::([\w.-]+))?\]/g)) {
    if (word === 'canceled' || word === 'blocked') outcome.status = word;
    if (word === 'stall') outcome.stall = true;
    if (word === 'fail') Object.assign(outcome, { status: 'failed', errorCode: value || 'generation_failed' });
    const time = word === 'slow' ? /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(value) : null;
    if (time) outcome.durationMs = Math.min(Number(time[1]) * (TIME_UNITS[time[2] ?? 's'] ?? 1000), MAX_MS);
  }
  return outcome;
}

const MESSAGES: Readonly<Record<string, string>> = {
  reference_rejected: 'A reference was declined.',
  reference_asset_pending: 'A new reference is still in review.',
  reference_asset_failed: 'The preparation, registration, or review of a reference or the source failed.',
  generation_rejected: 'The prompt, a reference, or an option was declined.',
  generation_timeout: 'The job did not finish in time.',
  generation_unavailable: 'The model is temporarily unavailable.',
  generation_failed: 'The generation failed.',
} satisfies Record<keyof typeof JOB_ERRORS, string>;

/** Builds the end of a failed job, with a default message and default data for the error code. */
export function failure(errorCode: string, details: Pick<Outcome, 'errorMessage' | 'errorData'> = {}): PlannedEnd {
  const errorMessage = details.errorMessage ?? MESSAGES[errorCode] ?? `The job failed: ${errorCode}.`;
  const defaultData = errorCode === 'reference_asset_pending' ? { retry_after: 30 } : {};
  return { status: 'failed', errorCode, errorMessage, errorData: details.errorData ?? defaultData };
}

export function endOf(outcome: Outcome): PlannedEnd {
  const status = outcome.status ?? (outcome.errorCode === undefined ? 'completed' : 'failed');
  if (status === 'failed') return failure(outcome.errorCode ?? 'generation_failed', outcome);
  const { errorMessage = null, errorCode = null, errorData = {}, finalTokenCost } = outcome;
  return { status, errorCode, errorMessage, errorData, finalTokenCost };
}

/** Requests that a fault applies to. An omitted field matches every request. */
export interface FaultMatch {
  /** HTTP method, case-insensitive. */
  readonly method?: string | undefined;
  /**
   * Path without the query. A string must match the entire path: `{job_id}` and `:id` match one segment, `*` any
   * characters. A RegExp can match any part of it.
   */
  readonly path?: string | RegExp | undefined;
  /** First matching request that the fault applies to, counted from 1. @default 1 */
  readonly nth?: number | undefined;
}

/**
 * Failure to inject. Requires at least one of `status`, `latencyMs`, `reset`, `commitThenDrop`, `truncate`, and
 * `stall`.
 */
export interface FaultRule {
  /** Requests that the fault applies to. @default every request */
  readonly match?: FaultMatch | undefined;
  /** Status of the response, 400 to 599. The request is not handled. */
  readonly status?: number | undefined;
  /** Error code of that response. @default the documented code of the status */
  readonly code?: string | undefined;
  /** Retry-After header of that response, in seconds. */
  readonly retryAfterS?: number | undefined;
  /**
   * If true, handles the request before responding with `status`, so a job is created despite the error. @default false
   */
  readonly commit?: boolean | undefined;
  /** Delay in milliseconds before anything else: sandbox time on a manual clock, otherwise real time. */
  readonly latencyMs?: number | undefined;
  /** If true, drops the connection before the request is handled. */
  readonly reset?: boolean | undefined;
  /** If true, handles the request, then drops the connection without a response. */
  readonly commitThenDrop?: boolean | undefined;
  /** If true, breaks the connection halfway through the response body. */
  readonly truncate?: boolean | undefined;
  /** If true, the response body stalls halfway and never ends. */
  readonly stall?: boolean | undefined;
  /** Number of requests that the fault applies to. @default 1, or unlimited if `probability` is set */
  readonly times?: number | undefined;
  /** Probability, 0 to 1, that it applies to a matching request. Depends on the seed. @default 1 */
  readonly probability?: number | undefined;
}

/** An active fault rule with its counters. */
export interface ArmedFault {
  /** ID for `faults.remove`. */
  readonly id: string;
  /** The rule as it was added. */
  readonly rule: FaultRule;
  /** Number of matching requests. */
  seen: number;
  /** Number of requests that the rule was applied to. */
  struck: number;
}

/** A rule needs at least one of these fields. */
const EFFECTS = ['status', 'latencyMs', 'reset', 'commitThenDrop', 'truncate', 'stall'] as const;

const faultSchema = z.strictObject({
  match: z.optional(
    z.strictObject({
      method: text,
      path: must(
        'a path such as /v1/jobs/*, or a RegExp',
        (value) => value instanceof RegExp || (typeof value === 'string' && value !== ''),
      ),
      nth: integerBetween('a whole number, 1 or more', 1),
    } satisfies ChecksOf<FaultMatch>),
  ),
  status: integerBetween('a whole number from 400 to 599', 400, 599),
  code: text,
  retryAfterS: numberBetween('a number of seconds, 0 or more', 0, 1e9),
  commit: flag,
  latencyMs: duration,
  reset: flag,
  commitThenDrop: flag,
  truncate: flag,
  stall: flag,
  times: must(
    'a whole number, 1 or more',
    (value) => isBetween(value, 1, Number.POSITIVE_INFINITY) && (Number.isInteger(value) || !Number.isFinite(value)),
  ),
  probability: numberBetween('a number from 0 to 1', 0, 1),
} satisfies ChecksOf<FaultRule>);

/** Validates and copies a fault rule. Throws a GenError for an invalid or unknown field, or a rule without an effect. */
export function checkFault(input: unknown): FaultRule {
  checkOptions('faults.add', faultSchema, input);
  const rule = { ...(input as FaultRule) };
  if (EFFECTS.some((effect) => rule[effect])) return { ...rule, ...(rule.match && { match: { ...rule.match } }) };
  throw new GenError(`faults.add: the rule has no effect. Pass one of ${EFFECTS.join(', ')}.`);
}

/** Returns the number of requests that the rule still applies to. */
export function remainingUses({ rule, struck }: Readonly<ArmedFault>): number {
  const { times = rule.probability === undefined ? 1 : Number.POSITIVE_INFINITY } = rule;
  return times - struck;
}

/** Returns the first rule that applies to this request, if any, and updates the counters. */
export function faultFor(
  faults: readonly ArmedFault[],
  random: RandomSource,
  request: { method: string; path: string },
): FaultRule | undefined {
  for (const fault of faults) {
    if (!matchesRequest(fault.rule, request)) continue;
    fault.seen += 1;
    const { match, probability } = fault.rule;
    if (fault.seen < (match?.nth ?? 1) || remainingUses(fault) <= 0) continue;
    if (probability !== undefined && random() >= probability) continue;
    fault.struck += 1;
    return fault.rule;
  }
  return undefined;
}

function matchesRequest({ match }: FaultRule, request: { method: string; path: string }): boolean {
  if (match?.method !== undefined && match.method.toUpperCase() !== request.method) return false;
  const { path } = match ?? {};
  if (path === undefined) return true;
  if (typeof path === 'string') {
    const segments = path.replace(/\{\w+\}|(?<=\/):\w+|[^\w/*]/g, (part) => (part.length > 1 ? '[^/]+' : `\\${part}`));
    return new RegExp(`^${segments.replaceAll('*', '.*')}$`).test(request.path);
  }
  // With the flag g, `test` would continue after its last match.
  return request.path.search(path) !== -1;
}
