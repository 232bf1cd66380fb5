// Checks what a test may ask of the sandbox while it runs: outcomes, faults and keys. In process, over HTTP and on the page.
import * as z from 'zod/mini';
import { GenError } from '../../errors/index.js';
import { checkOptions, flag, must, oneOf, optional, text } from '../../options.js';
import { didYouMean } from '../../schemas/nearest.js';
import { show } from '../../schemas/show.js';
import { SCOPES, type Scope } from './choices.js';
import { EFFECTS, type FaultRule } from './faults.js';
import { duration, period, tokens, whole } from './options.js';
import type { Outcome } from './outcomes.js';

/** The largest Retry-After that a fault may have, in seconds. */
const MOST_RETRY_AFTER_S = 1e9;
const LONGEST_PATTERN = 1000;

/** What a new key may do, and whose it is. */
export interface KeyOptions {
  /** The scopes of the key, for example `videos:create`. @default all of them */
  readonly scopes?: readonly (Scope | (string & {}))[] | undefined;
  /** The account of the key. A new one opens with the sandbox's `balanceTokens`. @default 'main' */
  readonly account?: string | undefined;
  /** Every call with the key answers 403 account_not_active. @default false */
  readonly suspended?: boolean | undefined;
}

const outcomeSchema = z.strictObject(
  {
    status: oneOf('completed', 'failed', 'canceled', 'blocked'),
    errorCode: text,
    errorMessage: optional(z.string('a string')),
    errorData: must('a JSON object', isJsonObject),
    durationMs: duration,
    stall: flag,
    clipsFail: flag,
    finalTokenCost: tokens,
    webhookCopies: whole('a whole number from 0 to 100', 0, 100),
    kind: oneOf('image', 'video', 'edit', 'speech'),
  },
  'an object',
);
const matchSchema = z.strictObject({
  method: text,
  path: must(
    `a path such as /v1/jobs/*, of at most ${LONGEST_PATTERN} characters, or a RegExp`,
    (value) =>
      value instanceof RegExp || (typeof value === 'string' && value !== '' && value.length <= LONGEST_PATTERN),
  ),
  nth: whole('a whole number, 1 or more', 1),
});
const faultSchema = z.strictObject(
  {
    match: z.optional(matchSchema),
    status: whole('a whole number from 400 to 599', 400, 599),
    code: text,
    retryAfterS: must('a number of seconds, 0 or more', (value) => isFrom(value, 0, MOST_RETRY_AFTER_S)),
    commit: flag,
    latencyMs: period,
    reset: flag,
    commitThenDrop: flag,
    truncate: flag,
    stall: flag,
    times: must(
      'a whole number, 1 or more',
      (value) =>
        value === Number.POSITIVE_INFINITY || (isFrom(value, 1, Number.MAX_SAFE_INTEGER) && Number.isInteger(value)),
    ),
    probability: must('a number from 0 to 1', (value) => isFrom(value, 0, 1)),
  },
  'an object',
);
const keySchema = z.strictObject(
  { scopes: must('a list of scopes', (value) => Array.isArray(value)), account: text, suspended: flag },
  'an object',
);

/** An outcome, checked and copied. Throws a GenError that names a wrong or unknown field; `owner` is who takes it. */
export function checkOutcome(owner: string, given: unknown): Outcome {
  checkOptions(owner, outcomeSchema, given);
  return structuredClone({ ...(given as Outcome) });
}

/** A fault rule, checked and copied. Throws a GenError that names a wrong or unknown field, and for a rule without an effect. */
export function checkFault(given: unknown): FaultRule {
  checkOptions('faults.add', faultSchema, given);
  const rule = { ...(given as FaultRule) };
  if (EFFECTS.some((effect) => rule[effect])) return { ...rule, ...(rule.match && { match: { ...rule.match } }) };
  throw new GenError(`faults.add got a rule without an effect. Give one of ${EFFECTS.join(', ')}.`);
}

/** The options of a new key, checked. Throws a GenError that names a wrong or unknown option, or an unknown scope. */
export function checkKeyOptions(given: unknown): KeyOptions {
  checkOptions('createKey', keySchema, given);
  const options = { ...(given as KeyOptions) };
  for (const scope of options.scopes ?? []) {
    if (SCOPES.some((known) => known === scope)) continue;
    throw new GenError(`scopes has no scope ${show(scope)}. ${didYouMean(String(scope), SCOPES)}`);
  }
  return options;
}

/** What becomes JSON and can be remembered in a snapshot. */
function isJsonObject(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  try {
    JSON.stringify(value);
    structuredClone(value);
    return true;
  } catch {
    return false;
  }
}

function isFrom(value: unknown, least: number, most: number): boolean {
  return typeof value === 'number' && value >= least && value <= most;
}
