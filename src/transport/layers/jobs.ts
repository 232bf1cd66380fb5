import { timestamp } from '../../ledger/shared-journal.js';
import type { JournalEntry } from '../../rules/journal.js';
import { priceClassOf, pricedCallOf } from '../../rules/price.js';
import { lengthClassOf } from '../../rules/read-order.js';
import { reasonOf } from '../../runtime/callbacks.js';
import { wallOf } from '../../runtime/clock.js';
import type { Budget, PricedCall } from '../../schemas/budget.js';
import { tokensIn } from '../../schemas/job.js';
import { lengthsOf } from '../../store/facts.js';
import type { Core, JobTeller, Layer } from '../call.js';
import { heard, traceFailed } from '../events.js';
import { type EndedJob, type JobEnd, type JobListeners, JobLog, JobMemory } from '../job-log.js';
import type { ShownJob } from '../transport.js';
import { noteIn } from './journal.js';

/** Passes on what the answer shows of a job: its price, and its state for the listeners and budgets. */
export const jobsSeen: Layer = async (call, next) => {
  const { core, kind, trace } = call;
  const answer = await next(call);
  const { decoded } = answer;
  if ('failure' in decoded) {
    if (trace?.job) traceFailed(heard(core.channels()?.job), trace.job, decoded.failure);
    return answer;
  }
  const shown = kind.type === 'json' ? kind.request.shows?.(decoded.data) : undefined;
  if (shown) await core.jobs.seen(call, shown);
  return answer;
};

/** Copies of the package share the log by this name. The number is the protocol's. */
const LOG = 'jobs/1';
const MEMORY = 'job-memory/1';

type TellerCore = Pick<Core, 'config' | 'credentials' | 'clock' | 'channels' | 'observer' | 'warn'>;

/** Makes the teller of one client. */
export function createJobTeller(core: TellerCore): JobTeller {
  const { config, credentials } = core;
  return {
    async seen({ kind, body, options, idempotencyKey, label, trace }, shown) {
      const call = kind.type === 'json' ? kind.request.call : undefined;
      if (call) learnJob(core, pricedCallOf(call, body), shown);
      if (!(call && options.budget) && !isWatched(core, shown.job.id)) return;
      const notes: Promise<void>[] = [];
      const budgets = call ? budgetsOf(config.budget, options.budget) : [];
      const origin = call && { call, idempotencyKey, label, budgets, trace: trace?.job };
      const ended = logOf(core)?.seen(shown, listeners(core, notes), origin);
      if (ended) await correctBudgets(core, ended, shown.job.id);
      if (notes.length > 0) await Promise.all(notes);
    },
    announced(job) {
      if (!isWatched(core, job.id)) return;
      const ended = logOf(core)?.announced(job, listeners(core));
      if (ended) void correctBudgets(core, ended, job.id);
    },
    async stored(jobId) {
      if (!isWatched(core, jobId)) return;
      const notes: Promise<void>[] = [];
      logOf(core)?.stored(jobId, listeners(core, notes));
      await Promise.all(notes);
    },
    isWatched: (jobId) => isWatched(core, jobId),
    priceOf(job) {
      // What other processes have learned is read with the first use of the limiter.
      credentials.limiter();
      return credentials.account()?.facts.prices.get(priceClassOf(job));
    },
    durationOf(job) {
      const account = credentials.account();
      return account && lengthsOf(account).expectedMs(lengthClassOf(job));
    },
  };
}

/** The log of the account's jobs, once the account is known. */
function logOf({ credentials }: TellerCore): JobLog | undefined {
  const account = credentials.account();
  return account?.shared(LOG, () => new JobLog(account.ofProcess(MEMORY, () => new JobMemory())));
}

/** Those who are notified of a job. What is written to journals is added to `notes`. */
function listeners(core: TellerCore, notes: Promise<void>[] = []): JobListeners {
  const { config, clock } = core;
  return {
    now: clock.now,
    channel: heard(core.channels()?.job),
    budget: config.budget,
    journal: config.journal,
    note: (journal, end) => void notes.push(noteIn(core, journal, entryOf(end, wallOf(clock).now()))),
    tell(event) {
      core.observer()?.job(event);
      const events = core.channels()?.events;
      if (events?.hasSubscribers) events.publish(event);
    },
  };
}

/** Learns what a create says of its kind: the price, and how long its job takes once that has ended. */
function learnJob({ credentials }: TellerCore, priced: PricedCall, { job, quotedTokens }: ShownJob): void {
  const account = credentials.account();
  if (!account) return;
  lengthsOf(account).created(job.id, priced);
  const tokens = tokensIn(quotedTokens) ?? tokensIn(job.quotedTokenCost);
  if (tokens !== undefined) account.facts.prices.learn(priceClassOf(priced), () => tokens);
}

/** Whether somebody wants to know of a job. Nothing is kept where nobody does. */
function isWatched(core: TellerCore, jobId: string): boolean {
  const { config, channels } = core;
  return (
    config.budget !== undefined ||
    config.hooks.onJob !== undefined ||
    config.journal !== undefined ||
    heard(channels()?.job) !== undefined ||
    channels()?.events.hasSubscribers === true ||
    logOf(core)?.knows(jobId) === true
  );
}

function entryOf({ phase, jobId, status, errorCode, facts }: JobEnd, nowMs: number): JournalEntry {
  const { idempotencyKey: key, chargedTokens, model } = facts;
  const entry = { jobId, at: timestamp(nowMs), ...(key !== undefined && { key }) };
  if (phase === 'stored') return { ...entry, phase };
  return {
    ...entry,
    phase,
    status,
    ...(errorCode !== undefined && { errorCode }),
    ...(chargedTokens !== undefined && { chargedTokens }),
    ...(model !== undefined && { model }),
  };
}

/** The budgets that a create counts against: the client's and its own. */
export function budgetsOf(own: Budget | undefined, ofCall: Budget | undefined): readonly Budget[] {
  const budgets = new Set<Budget>();
  if (own) budgets.add(own);
  if (ofCall) budgets.add(ofCall);
  return [...budgets];
}

/** Corrects the budgets by what a job was charged in the end. */
async function correctBudgets(
  { config, warn }: Pick<Core, 'config' | 'warn'>,
  { budgets, chargedTokens }: EndedJob,
  jobId: string,
): Promise<void> {
  const { clock } = config;
  try {
    await Promise.all(budgets.map((budget) => budget.refund(jobId, chargedTokens, clock.wall)));
  } catch (error) {
    warn(`the tokens of job ${jobId} could not be given back to its budget: ${reasonOf(error)}`);
  }
}
