// What the proxy answers: JSON without secrets, never cached, and errors as `{ code, message }`.
import { InsufficientBalanceError, JobFailedError, toHttp } from '../../errors/index.js';
import { isCompleted, isFinal, type Job } from '../../schemas/job.js';

/** A request that the proxy refuses because of what the page has sent: the status is below 500. */
export class Refused extends Error {
  readonly status: number;
  readonly code: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, code: string, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.headers = headers;
  }
}

/** A ticket that opens nothing: forged, expired, another user's, or of another kind. They all look the same. */
export const badTicket = () => new Refused(404, 'not_found', 'This does not exist, or it has expired.');

const HEADERS = {
  'content-type': 'application/json',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/** A JSON answer. */
export function jsonAnswer(value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(JSON.stringify(value), { status, headers: { ...HEADERS, ...headers } });
}

/**
 * What a page is answered for an error, and whether the error is its own. The service's refusals of the app's key and balance
 * become 502 without their code: a page must not learn what the app's account lacks.
 */
export function failureOf(error: unknown) {
  if (error instanceof Refused) {
    const { status, code, message, headers } = error;
    return { status, code, message, headers, isCallers: true };
  }
  if (InsufficientBalanceError.isInstance(error)) {
    const message = 'The generation service is not available. Try again later.';
    return { status: 502, code: 'service_error', message, headers: {}, isCallers: false };
  }
  // A refusal of the app's own key has that answer already.
  const { status, code, message, fault } = toHttp(error);
  return { status, code, message, headers: {}, isCallers: fault === 'caller' };
}

/** How far a job has come. */
interface Progress {
  readonly job: Job;
  readonly etaMs?: number | undefined;
  readonly share?: number | undefined;
}

/** What a page gets when it asks how far a job is. */
export interface WatchAnswer {
  /** The status of the job. */
  readonly status: string;
  /** Whether the status is final. */
  readonly final: boolean;
  /** Milliseconds to the end, as far as the SDK has learned how long such jobs take. */
  readonly etaMs?: number | undefined;
  /** How much of the job is done, from 0 to 1. */
  readonly share?: number | undefined;
  /** Tokens charged, or quoted until that is known. */
  readonly tokens?: number | undefined;
  /** The ticket of the finished file, for `file?t=`. */
  readonly file?: string | undefined;
  /** Why the job has no file. */
  readonly error?: { readonly code: string; readonly message: string } | undefined;
  /** Milliseconds after which to ask again, where requests are not held open. */
  readonly againMs?: number | undefined;
}

/** The same for every user of the job: without the ticket of the file. A final one without an error has a file. */
export type Told = Omit<WatchAnswer, 'file' | 'againMs'>;

/** What a page is told of a job's progress. */
export function toldOf({ job, etaMs, share }: Progress): Told {
  const { status } = job;
  // The service may report 0 tokens charged while a job runs.
  const tokens = (isFinal(job) ? job.finalTokenCost : undefined) ?? job.quotedTokenCost;
  if (isCompleted(job)) return { status, final: true, etaMs: 0, share: 1, tokens };
  if (!isFinal(job) || status === 'completed') return { status, final: false, etaMs, share, tokens };
  const { code, message } = failureOf(new JobFailedError(`The job ended as ${status}.`, { job }));
  return { status, final: true, tokens, error: { code, message } };
}
