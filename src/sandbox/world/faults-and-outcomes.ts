import * as z from 'zod/mini';
import type { JOB_ERRORS } from '../../errors/codes.js';
import { GenError } from '../../errors/index.js';
import { checkOptions, flag, must, oneOf, optional, text } from '../../rules/options.js';
import { isFields } from '../../schemas/envelope.js';
import { duration, isFrom, LONGEST_MS, tokens, whole, within } from './options.js';
import type { RandomSource } from './random.js';

/** How a job ends, and what happens on the way. */
export interface Outcome {
  /** The final status. @default `failed` where an error code is given, else `completed` */
  readonly status?: 'completed' | 'failed' | 'canceled' | 'blocked' | undefined;
  /** The job's `errorCode`. @default `generation_failed` for a failed job */
  readonly errorCode?: string | undefined;
  /** The job's `errorMessage`. @default a sentence that explains the code */
  readonly errorMessage?: string | undefined;
  /** The job's `errorData`. @default `{ retry_after: 30 }` for `reference_asset_pending` */
  readonly errorData?: Readonly<Record<string, unknown>> | undefined;
  /** Milliseconds until the job ends; 0 ends it before the create is answered. @default `jobDurationMs` of the sandbox */
  readonly durationMs?: number | undefined;
  /**
   * The job's dispatch never starts. The job keeps its status until stale repair fails it, or the dispatch check of the
   * strict mode. @default false
   */
  readonly stall?: boolean | undefined;
  /** Tokens charged on completion, at most the quote; the rest is released. @default the quote */
  readonly finalTokenCost?: number | undefined;
  /** How often the job's webhook is delivered: 0 loses it, 2 sends it twice. @default 1 */
  readonly webhookCopies?: number | undefined;
}

const outcomeSchema = z.strictObject(
  {
    status: oneOf('completed', 'failed', 'canceled', 'blocked'),
    errorCode: text,
    errorMessage: optional(z.string('a string')),
    errorData: must('a JSON object', isFields),
    durationMs: duration,
    stall: flag,
    finalTokenCost: tokens,
    webhookCopies: whole('a whole number from 0 to 100', 0, 100),
  },
  'an object',
);

/** An outcome, checked and copied. Throws a GenError that names a wrong or unknown field; `owner` is who takes it. */
export function checkOutcome(owner: string, given: unknown): Outcome {
  checkOptions(owner, outcomeSchema, given);
  return structuredClone({ ...(given as Outcome) });
}

/** The end that is planned for a job. */
export interface PlannedEnd {
  readonly status: 'completed' | 'failed' | 'canceled' | 'blocked';
  readonly errorCode: string | null;
  readonly errorMessage: string | null;
  readonly errorData: Readonly<Record<string, unknown>>;
  /** Tokens charged of those reserved, on completion. @default all */
  readonly finalTokenCost?: number | undefined;
}

const TIME_UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/**
 * What a prompt says about its job: `[fail:code]`, `[canceled]`, `[blocked]`, `[slow:60s]`, `[stall]`.
 * A time beyond 100 years counts as 100 years.
 */
export function outcomeIn(prompt: string): Outcome {
  const found: { -readonly [K in keyof Outcome]: Outcome[K] } = {};
  for (const [, word, value = ''] of prompt.matchAll(/\[(fail|canceled|blocked|slow|stall)(?::([\w.-]+))?\]/g)) {
    if (word === 'canceled' || word === 'blocked') found.status = word;
    if (word === 'stall') found.stall = true;
    if (word === 'fail') Object.assign(found, { status: 'failed', errorCode: value || 'generation_failed' });
    const time = word === 'slow' ? /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(value) : null;
    if (time) found.durationMs = Math.min(Number(time[1]) * (TIME_UNITS[time[2] ?? 's'] ?? 1000), LONGEST_MS);
  }
  return found;
}

const MESSAGES: Readonly<Record<string, string>> = {
  reference_rejected: 'A reference was declined.',
  reference_asset_pending: 'A new reference is still in review.',
  reference_asset_failed: 'The preparation, registration or review of a reference or of the source failed.',
  generation_rejected: 'The prompt, a reference or an option was declined.',
  generation_timeout: 'The job did not finish in time.',
  generation_unavailable: 'The model is temporarily unavailable.',
  generation_failed: 'The generation failed.',
} satisfies Record<keyof typeof JOB_ERRORS, string>;

/** A failed end with a job error's code. The message and the data are the sandbox's own unless given. */
export function failure(errorCode: string, given: Pick<Outcome, 'errorMessage' | 'errorData'> = {}): PlannedEnd {
  const errorMessage = given.errorMessage ?? MESSAGES[errorCode] ?? `The job failed: ${errorCode}.`;
  const pending = errorCode === 'reference_asset_pending' ? { retry_after: 30 } : {};
  return { status: 'failed', errorCode, errorMessage, errorData: given.errorData ?? pending };
}

/** The end that an outcome asks for. */
export function endOf(outcome: Outcome): PlannedEnd {
  const status = outcome.status ?? (outcome.errorCode === undefined ? 'completed' : 'failed');
  if (status === 'failed') return failure(outcome.errorCode ?? 'generation_failed', outcome);
  const { errorMessage = null, errorCode = null, errorData = {}, finalTokenCost } = outcome;
  return { status, errorCode, errorMessage, errorData, finalTokenCost };
}

/** Which requests a fault applies to. What is left out matches every request. */
export interface FaultMatch {
  /** The HTTP method, in any case. */
  readonly method?: string | undefined;
  /**
   * The path without its query. A text matches the whole path: `{job_id}` and `:id` stand for one segment, `*` for any
   * characters. A RegExp matches a part of it.
   */
  readonly path?: string | RegExp | undefined;
  /** Only from the nth matching request on, counted from 1. @default 1 */
  readonly nth?: number | undefined;
}

/** A failure to come. Give at least one of `status`, `latencyMs`, `reset`, `commitThenDrop`, `truncate`, `stall`. */
export interface FaultRule {
  /** Which requests it applies to. @default every request */
  readonly match?: FaultMatch | undefined;
  /** Answers with this status, 400 to 599, instead of handling the request. */
  readonly status?: number | undefined;
  /** The error code of that answer. @default the documented code of the status, `internal_error` for 5xx */
  readonly code?: string | undefined;
  /** Seconds for the Retry-After header of that answer. */
  readonly retryAfterS?: number | undefined;
  /** With `status`: the request is handled first, so a job is created although the answer is an error. @default false */
  readonly commit?: boolean | undefined;
  /** Milliseconds before anything happens: of the sandbox's time on a manual clock, else of real time. */
  readonly latencyMs?: number | undefined;
  /** The connection drops before the request is handled. */
  readonly reset?: boolean | undefined;
  /** The request is handled, then the connection drops without an answer. */
  readonly commitThenDrop?: boolean | undefined;
  /** The body of the answer ends half-way with a broken connection. */
  readonly truncate?: boolean | undefined;
  /** The body of the answer stops half-way and never ends. */
  readonly stall?: boolean | undefined;
  /** How many requests it applies to. @default 1; unlimited where `probability` is given */
  readonly times?: number | undefined;
  /** The chance, 0 to 1, that it applies to a matching request; drawn from the seed. @default 1 */
  readonly probability?: number | undefined;
}

/** A rule with what has happened to it so far. */
export interface ArmedFault {
  /** For `faults.remove`. */
  readonly id: string;
  /** The rule as it was added. */
  readonly rule: FaultRule;
  /** Matching requests so far. */
  seen: number;
  /** Requests that it was applied to. */
  struck: number;
}

/** The fields of a rule that do something. */
const EFFECTS = ['status', 'latencyMs', 'reset', 'commitThenDrop', 'truncate', 'stall'] as const;

const faultSchema = z.strictObject(
  {
    match: z.optional(
      z.strictObject({
        method: text,
        path: must(
          'a path such as /v1/jobs/*, or a RegExp',
          (value) => value instanceof RegExp || (typeof value === 'string' && value !== ''),
        ),
        nth: whole('a whole number, 1 or more', 1),
      }),
    ),
    status: whole('a whole number from 400 to 599', 400, 599),
    code: text,
    retryAfterS: within('a number of seconds, 0 or more', 0, 1e9),
    commit: flag,
    latencyMs: duration,
    reset: flag,
    commitThenDrop: flag,
    truncate: flag,
    stall: flag,
    times: must(
      'a whole number, 1 or more',
      (value) => isFrom(value, 1, Number.POSITIVE_INFINITY) && (Number.isInteger(value) || !Number.isFinite(value)),
    ),
    probability: within('a number from 0 to 1', 0, 1),
  },
  'an object',
);

/** A fault rule, checked and copied. Throws a GenError that names a wrong or unknown field, and for a rule without an effect. */
export function checkFault(given: unknown): FaultRule {
  checkOptions('faults.add', faultSchema, given);
  const rule = { ...(given as FaultRule) };
  if (EFFECTS.some((effect) => rule[effect])) return { ...rule, ...(rule.match && { match: { ...rule.match } }) };
  throw new GenError(`faults.add got a rule without an effect. Give one of ${EFFECTS.join(', ')}.`);
}

/** The first rule that applies to this request, counted; undefined where none does. */
export function faultFor(
  faults: readonly ArmedFault[],
  random: RandomSource,
  request: { method: string; path: string },
): FaultRule | undefined {
  for (const armed of faults) {
    if (!matchesRequest(armed.rule, request)) continue;
    armed.seen += 1;
    const { times, probability } = armed.rule;
    if (armed.seen < (armed.rule.match?.nth ?? 1)) continue;
    if (armed.struck >= (times ?? (probability === undefined ? 1 : Number.POSITIVE_INFINITY))) continue;
    if (probability !== undefined && random() >= probability) continue;
    armed.struck += 1;
    return armed.rule;
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
  // `test` of one with the flag g would go on where it stopped.
  return request.path.search(path) !== -1;
}
