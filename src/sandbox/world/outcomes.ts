import type { JOB_ERRORS } from '../../errors/codes.js';

/** How a job is to end, and on the way there. */
export interface Outcome {
  /** @default `failed` where an error code is given, else `completed` */
  readonly status?: 'completed' | 'failed' | 'canceled' | 'blocked' | undefined;
  /** The job's `errorCode`. @default `generation_failed` for a failed job */
  readonly errorCode?: string | undefined;
  /** The job's `errorMessage`. @default a sentence on the code */
  readonly errorMessage?: string | undefined;
  /** The job's `errorData`. @default `{ retry_after }` for `reference_asset_pending` */
  readonly errorData?: Readonly<Record<string, unknown>> | undefined;
  /** Milliseconds until it ends; 0 ends it before the create is answered. @default `jobDurationMs` */
  readonly durationMs?: number | undefined;
  /** Its dispatch never starts. It stays where it is until stale repair, or the strict mode's dispatch check, fails it. */
  readonly stall?: boolean | undefined;
  /** Its video clip references fail, so the fallback (or in strict mode the failure) sets in. */
  readonly clipsFail?: boolean | undefined;
  /** Tokens charged on completion, at most the quote; the rest is released. @default the quote */
  readonly finalTokenCost?: number | undefined;
  /** How often its webhook is delivered: 0 loses it, 2 doubles it. @default 1 */
  readonly webhookCopies?: number | undefined;
  /** Only for the next job of this kind. @default the next job of any kind */
  readonly kind?: 'image' | 'video' | 'edit' | 'speech' | undefined;
}

/** How a job is going to end. */
export interface PlannedEnd {
  readonly status: 'completed' | 'failed' | 'canceled' | 'blocked';
  readonly errorCode: string | null;
  readonly errorMessage: string | null;
  readonly errorData: Readonly<Record<string, unknown>>;
  /** Tokens charged of those reserved, on completion. @default all */
  readonly finalTokenCost?: number | undefined;
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** What a prompt says about its job: `[fail:code]`, `[canceled]`, `[blocked]`, `[slow:60s]`, `[stall]`, `[clips-fail]`. */
export function outcomeIn(prompt: string): Outcome {
  const found: { -readonly [K in keyof Outcome]: Outcome[K] } = {};
  for (const [, word = '', value = ''] of prompt.matchAll(
    /\[(fail|canceled|blocked|slow|stall|clips-fail)(?::([\w.-]+))?\]/g,
  )) {
    if (word === 'canceled' || word === 'blocked') found.status = word;
    if (word === 'stall') found.stall = true;
    if (word === 'clips-fail') found.clipsFail = true;
    if (word === 'fail') Object.assign(found, { status: 'failed', errorCode: value || 'generation_failed' });
    const time = word === 'slow' ? /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(value) : null;
    if (time) found.durationMs = Number(time[1]) * (UNITS[time[2] ?? 's'] ?? 1000);
  }
  return found;
}

const MESSAGES: Readonly<Record<string, string>> = {
  reference_rejected: 'A reference was declined.',
  reference_asset_pending: 'A new reference is still in review.',
  reference_asset_failed: 'Preparation, registration or review of a reference or of the source failed.',
  generation_rejected: 'Prompt, reference or options were declined.',
  generation_timeout: 'The job did not finish in time.',
  generation_unavailable: 'The model is temporarily unavailable.',
  generation_failed: 'Generation failed.',
} satisfies Record<keyof typeof JOB_ERRORS, string>;

/** A failed end with the job error's code and, unless given, a message of the sandbox's. */
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
