// What a page is told of a job.
import { JobFailedError } from '../../errors/index.js';
import { isCompleted, isFinal, type Job } from '../../schemas/job.js';
import { failureOf } from './answers.js';

/** How far a job has come. */
export interface Progress {
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
