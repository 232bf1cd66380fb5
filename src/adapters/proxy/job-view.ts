// A job's state, as a page sees it.
import { isCompleted, isFinal, type Job } from '../../schemas/job.js';
import { jobErrorOf } from '../../waiting/wait.js';
import { failureOf, type Rejection } from './responses.js';

/** A job's state. The same for every user. */
export interface JobView {
  /** `done`: the job has a file. `failed`: it has an error. */
  readonly phase: 'waiting' | 'done' | 'failed';
  /** The status of the job. */
  readonly status: string;
  /** Estimated milliseconds until the job ends. */
  readonly etaMs?: number | undefined;
  /** Estimated progress, from 0 to 1. */
  readonly progress?: number | undefined;
  /** Tokens charged, or quoted until the job is completed. */
  readonly tokens?: number | undefined;
  /** Reason that the job has no file. */
  readonly error?: { readonly code: string; readonly message: string } | undefined;
}

/** The reply for one job: its state and, once it is done, its file's URL relative to the proxy, or an error. */
export type JobReply = (JobView & { readonly url?: string | undefined }) | Rejection;

/** The reply to a watch. */
export interface WatchReply {
  /** In the order of the request. Null if a job's state is still unknown. */
  readonly jobs: readonly (JobReply | null)[];
  /** Milliseconds until the page's next request. */
  readonly againMs: number;
}

interface Progress {
  readonly job: Job;
  readonly etaMs?: number | undefined;
  readonly progress?: number | undefined;
}

export function jobView({ job, etaMs, progress }: Progress): JobView {
  const { status } = job;
  // The service may report 0 tokens charged while a job runs.
  const tokens = (isFinal(job) ? job.finalTokenCost : undefined) ?? job.quotedTokenCost;
  if (isCompleted(job)) return { phase: 'done', status, etaMs: 0, progress: 1, tokens };
  if (!isFinal(job) || status === 'completed') return { phase: 'waiting', status, etaMs, progress, tokens };
  const { code, message } = failureOf(jobErrorOf(job));
  return { phase: 'failed', status, tokens, error: { code, message } };
}
