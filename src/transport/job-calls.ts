// What a call about a job sets in motion beside its answer: budgets, prices, and whoever is told of the job.
import { reasonOf } from '../callbacks.js';
import { type Channels, heard, type JobTrace, traceFailed } from '../events.js';
import type { Budget, BudgetReservation, PricedCall } from '../schemas/budget.js';
import type { Job } from '../schemas/job.js';
import { priceClassOf, pricedCallOf } from '../schemas/price-class.js';
import type { Attempt, Context } from './exchange.js';
import { chargedTokensOf, type JobListeners, JobLog, tokensIn } from './job-log.js';
import type { Answer } from './request-promise.js';
import type { JsonRequest, ShownJob, Warn } from './transport.js';

/** Tells of the jobs of one client. */
export interface JobTeller {
  /** Does a call whose answer shows a job. `send` tells each attempt that is sent. */
  answer<T>(shown: ShowingCall<T>, send: SendAttempts<T>): Promise<Answer<T>>;
  /** A verified webhook says that a job has ended. */
  announced(job: Job): void;
  /** The file of a job is in a store of the caller's. */
  stored(jobId: string): void;
  /** The last quote for a job of this kind. */
  priceOf(job: PricedCall): number | undefined;
}

/** Does a call, and tells each attempt that is sent. */
type SendAttempts<T> = (sent: (attempt: Attempt) => void) => Promise<Answer<T>>;

/** A call whose answer shows a job. */
export interface ShowingCall<T> {
  readonly request: JsonRequest<T>;
  /** The idempotency key of a create. */
  readonly key: string | undefined;
  readonly signal: AbortSignal | undefined;
  /** The budget of the call. The client's counts as well. */
  readonly budget: Budget | undefined;
  readonly trace: JobTrace | undefined;
}

/** Copies of the package share the log by this name. The number is the protocol's. */
const LOG = 'jobs/1';

/** Tells the hooks, the channels and the budgets of one client what its calls learn of jobs. */
export function createJobTeller(context: Context, channels: () => Channels | undefined): JobTeller {
  const { config, credentials, time } = context;
  const log = () => credentials.account()?.shared(LOG, () => new JobLog());
  const listeners = (): JobListeners => ({
    now: time.now,
    channel: heard(channels()?.job),
    budget: config.budget,
    tell(event) {
      context.observer()?.job(event);
      const events = channels()?.events;
      if (events?.hasSubscribers) events.publish(event);
    },
  });
  const warn = (message: string) => context.observer()?.warn(message);
  return {
    async answer<T>(shown: ShowingCall<T>, send: SendAttempts<T>) {
      const { request, key: idempotencyKey, trace } = shown;
      const spending = request.call ? await reserve(shown, config.budget) : undefined;
      let last: Attempt | undefined;
      const failed = async (error: unknown) => {
        const failure = { error, wasSent: last !== undefined, wasRetried: (last?.failures ?? 0) > 0 };
        for (const reservation of spending?.reservations ?? []) await reservation.failed(failure);
      };
      let answer: Answer<T>;
      try {
        answer = await send((attempt) => {
          last = attempt;
        });
      } catch (error) {
        await failed(error);
        throw error;
      }
      let data: T;
      try {
        data = answer.data();
      } catch (error) {
        // Not the documented shape: a job may have been made. The answer can still be had plain.
        await failed(error);
        if (trace) traceFailed(heard(channels()?.job), trace, error);
        return answer;
      }
      const facts = request.shows?.(data);
      if (facts) {
        const budgets = spending?.budgets ?? [];
        const origin = request.call && { call: request.call, idempotencyKey, budgets, trace };
        const uncharged = log()?.seen(facts, listeners(), origin) ?? [];
        if (spending) await settle(facts, spending, log());
        await refund(uncharged, facts.job.id, warn);
      }
      return { ...answer, data: () => data };
    },
    announced: (job) => void refund(log()?.announced(job, listeners()) ?? [], job.id, warn),
    stored: (jobId) => log()?.stored(jobId, listeners()),
    priceOf: (job) => log()?.priceOf(priceClassOf(job)),
  };
}

/** What a create has reserved. */
interface Spending {
  readonly priceClass: string;
  readonly budgets: readonly Budget[];
  readonly reservations: readonly BudgetReservation[];
}

/** Reserves in the budget of the client and in the one of the call. Where one of them refuses, the other gets back its part. */
async function reserve<T>(
  { request, key, signal, budget }: ShowingCall<T>,
  own: Budget | undefined,
): Promise<Spending> {
  const job = pricedCallOf(request.call ?? 'videos', request.body);
  const order = { priceClass: priceClassOf(job), idempotencyKey: key ?? '', job, signal };
  const budgets = [...new Set([own, budget])].filter((it) => it !== undefined);
  const reservations: BudgetReservation[] = [];
  try {
    for (const it of budgets) reservations.push(await it.reserve(order));
  } catch (error) {
    for (const it of reservations) await it.failed({ error, wasSent: false, wasRetried: false });
    throw error;
  }
  return { priceClass: order.priceClass, budgets, reservations };
}

/** Gives back what a job has cost that ended uncharged. */
async function refund(budgets: readonly Budget[], jobId: string, warn: Warn): Promise<void> {
  try {
    await Promise.all(budgets.map((budget) => budget.refund(jobId)));
  } catch (error) {
    warn(`the tokens of job ${jobId} could not be given back to its budget: ${reasonOf(error)}`);
  }
}

async function settle(
  { job, quotedTokens, balanceTokens }: ShownJob,
  { priceClass, reservations }: Spending,
  log: JobLog | undefined,
): Promise<void> {
  const tokens = tokensIn(quotedTokens) ?? tokensIn(job.quotedTokenCost);
  if (tokens !== undefined) log?.learn(priceClass, tokens);
  const spent = {
    jobId: job.id,
    quotedTokens: tokens,
    balanceTokens: tokensIn(balanceTokens),
    createdAt: job.createdAt,
  };
  for (const it of reservations) await it.answered({ ...spent, isUncharged: chargedTokensOf(job) === 0 });
}
