// What this process knows of the jobs of an account, so that each phase of a job is told once.
import type { JobTrace, TraceChannel } from '../events.js';
import type { JobEvent } from '../hooks.js';
import type { Budget } from '../schemas/budget.js';
import { isFinal, type Job, type JobCall } from '../schemas/job.js';
import type { ShownJob } from './transport.js';

/** Jobs and prices that are remembered. The oldest are forgotten first. */
const REMEMBERED = 10_000;

/** A job that this process has heard of. */
interface LoggedJob {
  /** What is known of it, for its next event. */
  facts: Omit<JobEvent, 'phase' | 'jobId' | 'status' | 'waitedMs'>;
  status: string;
  acceptedMs?: number | undefined;
  readonly told: Set<JobEvent['phase']>;
  budgets: readonly Budget[];
  /** The trace that ends with the job. */
  trace?: JobTrace | undefined;
  isRefunded?: boolean;
}

/** What a create adds to what its answer shows. */
export interface JobOrigin {
  readonly call: JobCall;
  readonly idempotencyKey: string | undefined;
  readonly budgets: readonly Budget[];
  readonly trace: JobTrace | undefined;
}

/** Who is told. */
export interface JobListeners {
  readonly now: () => number;
  readonly tell: (event: JobEvent) => void;
  readonly channel: TraceChannel | undefined;
  /** The budget of the client, which may have reserved for the job in another process. */
  readonly budget: Budget | undefined;
}

/** The jobs of one account in this process. All its clients share it. */
export class JobLog {
  readonly #jobs = new Map<string, LoggedJob>();
  readonly #prices = new Map<string, number>();

  /** The last quote for a price class. */
  priceOf(priceClass: string): number | undefined {
    return this.#prices.get(priceClass);
  }

  /** A price class was quoted. */
  learn(priceClass: string, tokens: number): void {
    keep(this.#prices, priceClass, tokens);
  }

  /** A create or a read has shown the job. Gives the budgets that get its tokens back. */
  seen({ job, ...cost }: ShownJob, to: JobListeners, origin?: JobOrigin): readonly Budget[] {
    // A read of a job that still runs tells nothing, and most reads are of that kind.
    if (!origin && !isFinal(job)) return [];
    const logged = this.#open(job.id);
    const quotedTokens = tokensIn(cost.quotedTokens) ?? tokensIn(job.quotedTokenCost);
    const balanceTokens = tokensIn(cost.balanceTokens);
    const call = origin?.call ?? callOf(job);
    logged.facts = {
      ...logged.facts,
      ...known({ call: logged.facts.call ?? call, model: textIn(job.modelId), createdAt: textIn(job.createdAt) }),
      ...known({ quotedTokens, balanceTokens, idempotencyKey: origin?.idempotencyKey }),
      ...known({ endedAt: isFinal(job) ? textIn(job.completedAt) : undefined, chargedTokens: chargedTokensOf(job) }),
    };
    logged.status = job.status;
    if (origin) this.#accepted(job.id, logged, { to, origin });
    return isFinal(job) ? this.#ended(job.id, logged, to) : [];
  }

  /** A webhook says that the job has ended. Of the job only its status is known. */
  announced({ id, status }: Job, to: JobListeners): readonly Budget[] {
    const job = { id, status };
    return isFinal(job) ? this.seen({ job }, to) : [];
  }

  /** The file of the job is in a store of the caller's. */
  stored(jobId: string, to: JobListeners): void {
    const logged = this.#open(jobId);
    // Only a completed job has a file.
    logged.status = 'completed';
    this.#tell('stored', jobId, { logged, to });
  }

  #accepted(jobId: string, logged: LoggedJob, at: { readonly to: JobListeners; readonly origin: JobOrigin }): void {
    const { budgets, trace } = at.origin;
    logged.budgets = [...new Set([...logged.budgets, ...budgets])];
    logged.acceptedMs ??= at.to.now();
    if (trace) {
      // The same key may have created the job before.
      endTrace(logged, at.to.channel);
      trace.jobId = jobId;
      logged.trace = trace;
    }
    this.#tell('accepted', jobId, { logged, to: at.to });
  }

  #ended(jobId: string, logged: LoggedJob, to: JobListeners): readonly Budget[] {
    this.#tell('final', jobId, { logged, to });
    endTrace(logged, to.channel);
    if (logged.facts.chargedTokens !== 0 || logged.isRefunded) return [];
    logged.isRefunded = true;
    return [...new Set([...logged.budgets, ...(to.budget ? [to.budget] : [])])];
  }

  #tell(phase: JobEvent['phase'], jobId: string, { logged, to }: { logged: LoggedJob; to: JobListeners }): void {
    const { told, facts, status, acceptedMs, trace } = logged;
    const isNew = !told.has(phase);
    if (!isNew && !trace) return;
    told.add(phase);
    const waitedMs = phase === 'accepted' || acceptedMs === undefined ? undefined : to.now() - acceptedMs;
    const event: JobEvent = { phase, jobId, ...facts, status, ...known({ waitedMs }) };
    if (trace) trace.event = event;
    if (isNew) to.tell(event);
  }

  #open(jobId: string): LoggedJob {
    const logged = this.#jobs.get(jobId) ?? { facts: {}, status: 'completed', told: new Set(), budgets: [] };
    keep(this.#jobs, jobId, logged);
    return logged;
  }
}

function endTrace(logged: LoggedJob, channel: TraceChannel | undefined): void {
  if (logged.trace) {
    channel?.asyncStart.publish(logged.trace);
    channel?.asyncEnd.publish(logged.trace);
  }
  logged.trace = undefined;
}

/** What the service has charged; undefined where it does not say. A failed job is not charged (spec: Billing 4). */
export function chargedTokensOf(job: Job): number | undefined {
  if (!isFinal(job)) return undefined;
  return tokensIn(job.finalTokenCost) ?? (job.status === 'failed' ? 0 : undefined);
}

/** The namespace of a job that another process has created, as far as its kind tells. */
function callOf({ mediaType }: Job): JobCall | undefined {
  return mediaType === 'image' ? 'images' : mediaType === 'video' ? 'videos' : undefined;
}

/** A number of tokens in an answer. */
export function tokensIn(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 && Number.isFinite(value) ? value : undefined;
}

function textIn(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function known<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>;
}

function keep<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > REMEMBERED && oldest !== undefined) map.delete(oldest);
}
