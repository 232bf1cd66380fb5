import * as z from 'zod/mini';
import type { JOB_ERRORS } from '../../errors/codes.js';
import { checkOptions, flag, must, oneOf, optional, text } from '../../rules/options.js';
import { isFields } from '../../schemas/envelope.js';
import { duration, LONGEST_MS, tokens, whole } from './options.js';

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
  /** Applies to the next job of this kind only. @default the next job of any kind */
  readonly kind?: 'image' | 'video' | 'edit' | undefined;
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
    kind: oneOf('image', 'video', 'edit'),
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
