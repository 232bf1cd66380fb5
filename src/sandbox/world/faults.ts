import * as z from 'zod/mini';
import { GenError } from '../../errors/index.js';
import { checkOptions, flag, must, text } from '../../rules/options.js';
import { duration, isFrom, whole, within } from './options.js';
import type { RandomSource } from './random.js';

/** Which requests a fault applies to. What is left out matches every request. */
export interface FaultMatch {
  /** The HTTP method, in any case. */
  readonly method?: string | undefined;
  /**
   * The path without its query. A text matches the whole path: `{job_id}` and `:id` stand for one segment, `*` for any
   * characters, so `/v1/jobs/{job_id}` and `/v1/jobs/*` work. A RegExp matches a part of the path.
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
  if (typeof path === 'string') return new RegExp(`^${expressionFor(path)}$`).test(request.path);
  // Without the flags that make `test` remember where it stopped.
  return new RegExp(path.source, path.flags.replace(/[gy]/g, '')).test(request.path);
}

/** `{job_id}` and `:id` are a segment, `*` is anything. */
function expressionFor(path: string): string {
  return path.replace(/\*+|\{\w+\}|(?<=\/):\w+|[^\w/]/g, (part) => {
    if (part.startsWith('*')) return '.*';
    return part.length > 1 ? '[^/]+' : `\\${part}`;
  });
}
