// Tracks an account's jobs in this process, so that each phase of a job is reported once.

import { setAndEvict } from '../runtime/set-and-evict.js';
import { isFinal, type Job, type JobCall, tokensIn } from '../schemas/job.js';
import type { JobRecords } from './create-run.js';
import type { JobEvent, JobTrace, TraceChannel } from './events.js';
import type { JobSnapshot } from './transport.js';

/** Maximum number of tracked jobs in all accounts. The oldest are evicted first. */
const MAX_JOBS = 10_000;
/** Phases of a job as bits. */
const PHASES: Readonly<Record<JobEvent['phase'], number>> = { accepted: 1, final: 2, stored: 4 };

interface LoggedJob {
  /** Fields of the job's next event. */
  fields: Omit<JobEvent, 'phase' | 'jobId' | 'status' | 'waitedMs'>;
  status: string;
  hasEnded?: true;
  expiresMs?: number | undefined;
  acceptedMs?: number | undefined;
  /** If true, a poll or a create has returned the job. Otherwise, only webhooks have reported it. */
  isPolled: boolean;
  /** Reported phases, as a sum of {@link PHASES}. */
  reported: number;
  records: readonly JobRecords[];
  trace?: JobTrace | undefined;
  /** The channel of the trace. */
  channel?: TraceChannel | undefined;
  /** Identifies the end that a ledger has recorded. */
  recordedEnd?: string;
}

/** Data about the create of a job. */
export interface JobOrigin {
  readonly call: JobCall;
  readonly idempotencyKey: string | undefined;
  readonly label: string | undefined;
  readonly records: readonly JobRecords[];
  readonly trace: JobTrace | undefined;
}

/** A job's end, to record and report. */
export interface EndedJob {
  readonly records: readonly JobRecords[];
  readonly status: string;
  /** Undefined if unknown. */
  readonly chargedTokens: number | undefined;
  readonly isPolled: boolean;
  /** Expiry of the file's link. Undefined if unknown. */
  readonly expiresMs: number | undefined;
  /** If true, this process created the job. */
  readonly isOwn: boolean;
  /** Creates in flight, one of which may have created the job. */
  readonly creates: readonly Promise<unknown>[];
  /** Called when a ledger has recorded the end. */
  recorded(): void;
  /** Reports the end once. Only one process reports the charge. */
  report(withCharge: boolean): void;
}

export interface JobListeners {
  readonly now: () => number;
  readonly report: (event: JobEvent) => void;
  readonly channel: TraceChannel | undefined;
  /** Records of the client's stores, in which another process may have recorded the create. */
  readonly records: readonly JobRecords[];
}

export class JobMemory {
  /** Jobs, oldest first. */
  readonly jobs = new Map<string, LoggedJob>();
  #accounts = 0;

  newAccount(): string {
    this.#accounts += 1;
    return String(this.#accounts);
  }
}

/** Log of one account's jobs in this process. All clients of the account share it. */
export class JobLog {
  readonly #memory: JobMemory;
  readonly #account: string;
  /** The account's creates in flight. */
  readonly #creates = new Set<Promise<unknown>>();

  constructor(memory: JobMemory) {
    this.#memory = memory;
    this.#account = memory.newAccount();
  }

  has(jobId: string): boolean {
    return this.#memory.jobs.has(this.#key(jobId));
  }

  trackCreate(create: Promise<unknown>): void {
    const remove = () => this.#creates.delete(create);
    this.#creates.add(create);
    create.then(remove, remove);
  }

  /** Handles a job from a create or a poll. Returns its end if the job is final. */
  reportJob({ job, ...cost }: JobSnapshot, to: JobListeners, origin?: JobOrigin): EndedJob | undefined {
    // Most polls return a running job, which needs no report.
    if (!origin && !isFinal(job)) return undefined;
    const logged = this.#entryOf(job.id);
    const quotedTokens = tokensIn(cost.quotedTokens) ?? tokensIn(job.quotedTokenCost);
    const balanceTokens = tokensIn(cost.balanceTokens);
    const call = origin?.call ?? callOf(job);
    logged.fields = {
      ...logged.fields,
      ...omitUndefined({
        call: logged.fields.call ?? call,
        model: textIn(job.modelId),
        createdAt: textIn(job.createdAt),
      }),
      ...omitUndefined({ quotedTokens, balanceTokens, idempotencyKey: origin?.idempotencyKey, label: origin?.label }),
      ...omitUndefined({ errorCode: isFinal(job) ? textIn(job.errorCode) : undefined }),
      ...omitUndefined({
        endedAt: isFinal(job) ? textIn(job.completedAt) : undefined,
        chargedTokens: chargedTokensOf(job),
      }),
    };
    if (isFinal(job) || !logged.hasEnded) logged.status = job.status;
    logged.isPolled = true;
    if (origin) this.#reportAccepted(job, logged, { to, origin });
    // The end may have been reported before the create's response arrived.
    return isFinal(job) || logged.hasEnded ? this.#endOf(job, logged, to) : undefined;
  }

  /** Handles a webhook about a job's end. The webhook contains only the status. */
  announce({ id, status }: Job, to: JobListeners): EndedJob | undefined {
    const job = { id, status };
    if (!isFinal(job)) return undefined;
    const logged = this.#entryOf(id);
    logged.fields = { ...logged.fields, ...omitUndefined({ chargedTokens: chargedTokensOf(job) }) };
    logged.status = status;
    return this.#endOf(job, logged, to);
  }

  reportStored(jobId: string, to: JobListeners): void {
    const logged = this.#entryOf(jobId);
    // Only a completed job has a file.
    logged.status = 'completed';
    this.#report('stored', jobId, { logged, to });
  }

  #reportAccepted(
    job: Job,
    logged: LoggedJob,
    { to, origin }: { readonly to: JobListeners; readonly origin: JobOrigin },
  ): void {
    const { records, trace } = origin;
    logged.records = [...new Set([...logged.records, ...records])];
    logged.acceptedMs ??= to.now();
    if (trace) {
      // The same key may have created the job earlier.
      endTrace(logged);
      trace.jobId = job.id;
      logged.trace = trace;
      logged.channel = to.channel;
    }
    const { chargedTokens: _, endedAt: __, errorCode: ___, ...fields } = logged.fields;
    const initial = isFinal(job) ? logged : { ...logged, fields, status: job.status };
    this.#report('accepted', job.id, { logged: initial, to });
    logged.reported |= PHASES.accepted;
  }

  #endOf(job: Job, logged: LoggedJob, to: JobListeners): EndedJob | undefined {
    logged.hasEnded = true;
    logged.expiresMs = Date.parse(textIn(job.providerOutputExpiresAt) ?? '') || logged.expiresMs;
    const { status, fields, isPolled, acceptedMs, expiresMs } = logged;
    const { chargedTokens } = fields;
    // A webhook reports the end without the charge. A poll records it again with the charge.
    const end = `${status} ${chargedTokens} ${isPolled}`;
    const records = end === logged.recordedEnd ? [] : [...new Set([...logged.records, ...to.records])];
    const recorded = () => {
      logged.recordedEnd = end;
    };
    const report = (withCharge: boolean) => {
      const { chargedTokens: _, ...uncharged } = logged.fields;
      this.#report('final', job.id, { logged: withCharge ? logged : { ...logged, fields: uncharged }, to });
      logged.reported |= PHASES.final;
      endTrace(logged);
    };
    const [isOwn, creates] = [acceptedMs !== undefined, [...this.#creates]];
    return { records, status, chargedTokens, isPolled, expiresMs, isOwn, creates, recorded, report };
  }

  #report(phase: JobEvent['phase'], jobId: string, { logged, to }: { logged: LoggedJob; to: JobListeners }): void {
    const { reported, fields, status, acceptedMs, trace } = logged;
    const isNew = (reported & PHASES[phase]) === 0;
    if (!isNew && !trace) return;
    logged.reported |= PHASES[phase];
    const waitedMs = phase === 'accepted' || acceptedMs === undefined ? undefined : to.now() - acceptedMs;
    const event: JobEvent = { phase, jobId, ...fields, status, ...omitUndefined({ waitedMs }) };
    if (trace) trace.event = event;
    if (isNew) to.report(event);
  }

  #entryOf(jobId: string): LoggedJob {
    const { jobs } = this.#memory;
    const key = this.#key(jobId);
    const logged = jobs.get(key) ?? { fields: {}, status: 'completed', isPolled: false, reported: 0, records: [] };
    const evicted = setAndEvict(jobs, key, logged, MAX_JOBS);
    if (evicted) endTrace(evicted);
    return logged;
  }

  #key(jobId: string): string {
    return `${this.#account} ${jobId}`;
  }
}

function endTrace(logged: LoggedJob): void {
  if (logged.trace) {
    logged.channel?.asyncStart.publish(logged.trace);
    logged.channel?.asyncEnd.publish(logged.trace);
  }
  logged.trace = undefined;
}

/** Returns the tokens that were charged, or undefined if they are unknown. A failed job isn't charged. */
export function chargedTokensOf(job: Job): number | undefined {
  if (!isFinal(job)) return undefined;
  return tokensIn(job.finalTokenCost) ?? (job.status === 'failed' ? 0 : undefined);
}

/** Returns the namespace of a job that another process created, if its media type determines it. */
function callOf({ mediaType }: Job): JobCall | undefined {
  return mediaType === 'image' ? 'images' : mediaType === 'video' ? 'videos' : undefined;
}

function textIn(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function omitUndefined<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>;
}
