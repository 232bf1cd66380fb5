import { durationClassOf } from '../../rules/polling.js';
import { priceClassOf, pricedCallOf } from '../../rules/price.js';
import { settledOrAborted } from '../../runtime/deadline.js';
import { setAndEvict } from '../../runtime/set-and-evict.js';
import type { PricedCall } from '../../schemas/budget.js';
import { isFinal, tokensIn } from '../../schemas/job.js';
import type { ClientAccount } from '../../store/account.js';
import { type Call, type Core, type JobReporter, type Layer, type LayerResult, snapshotIn } from '../call.js';
import { ifSubscribed, traceFailed } from '../events.js';
import { type EndedJob, type JobListeners, JobLog, JobMemory } from '../job-log.js';
import type { JobSnapshot } from '../transport.js';

/** Reports the job in a response: its price, and its state for listeners and the ledger. */
export const jobEventsLayer: Layer = (call, next) => {
  const result = reportJobIn(call, next);
  if (call.request.call) call.core.jobs.trackCreate(result);
  return result;
};

async function reportJobIn<T>(
  call: Call<T>,
  next: (call: Call<T>) => Promise<LayerResult<T>>,
): Promise<LayerResult<T>> {
  const { core, trace } = call;
  const result = await next(call);
  const { decoded } = result;
  if ('failure' in decoded) {
    if (trace?.job) traceFailed(ifSubscribed(core.channels()?.job), trace.job, decoded.failure);
    return result;
  }
  const snapshot = snapshotIn(call, result);
  if (snapshot) await core.jobs.reportJob(call, snapshot);
  return result;
}

/** Copies of the package share the log under this name. The number is the protocol version. */
const LOG = 'jobs/1';
const MEMORY = 'job-memory/1';
/** Maximum remembered warnings. */
const MAX_WARNED = 100;

type ReporterCore = Pick<Core, 'config' | 'credentials' | 'ledger' | 'clock' | 'channels' | 'observer' | 'warn'>;

export function createJobReporter(core: ReporterCore): JobReporter {
  const { credentials } = core;
  const warnedLines = new Map<string, true>();
  return {
    trackCreate: (create) => logOf(credentials.account())?.trackCreate(create),
    async reportJob({ request, body, idempotencyKey, label, trace, sent, signal }, snapshot) {
      // Log each warning once: every poll repeats it, and the result of a wait, a queue, or a batch doesn't contain it.
      for (const warning of snapshot.warnings ?? []) {
        const line = `job ${snapshot.job.id}: ${warning}`;
        if (!warnedLines.has(line)) core.warn(line);
        setAndEvict(warnedLines, line, true, MAX_WARNED);
      }
      const { call } = request;
      const { records = [], account = credentials.account() } = sent;
      if (call && account) learnJob(account, pricedCallOf(call, body), snapshot);
      if (isFinal(snapshot.job)) account?.learned.durations.ended(snapshot.job.id);
      if (records.length === 0 && !isWatched(core, snapshot.job.id, account)) return;
      const origin = call && { call, idempotencyKey, label, records, trace: trace?.job };
      const ended = logOf(account)?.reportJob(snapshot, listenersOf(core), origin);
      if (ended) await settledOrAborted(reportEnd(core, ended, snapshot.job.id), signal);
    },
    announce(job, isVerified) {
      if (isFinal(job)) credentials.account()?.learned.durations.ended(job.id);
      if (!isWatched(core, job.id)) return;
      const ended = logOf(credentials.account())?.announce(job, listenersOf(core));
      if (ended && isVerified) void reportEnd(core, ended, job.id);
      else ended?.report(false);
    },
    async reportStored(jobId) {
      if (!isWatched(core, jobId)) return;
      logOf(credentials.account())?.reportStored(jobId, listenersOf(core));
      await core.ledger()?.acknowledge(jobId, 'file');
    },
    acknowledge: async (jobId) => core.ledger()?.acknowledge(jobId, 'outcome'),
    own: (jobId) => core.ledger()?.own(jobId),
    isWatched: (jobId) => isWatched(core, jobId),
    priceOf(job, account = credentials.account()) {
      return account?.learned.prices.get(priceClassOf(job));
    },
    durationOf(job) {
      return credentials.account()?.learned.durations.expectedMs(durationClassOf(job));
    },
  };
}

function logOf(account: ClientAccount | undefined): JobLog | undefined {
  return account?.shared(LOG, () => new JobLog(account.processSingleton(MEMORY, () => new JobMemory())));
}

function listenersOf(core: ReporterCore): JobListeners {
  const { clock } = core;
  return {
    now: clock.now,
    channel: ifSubscribed(core.channels()?.job),
    records: core.ledger()?.records() ?? [],
    report(event) {
      core.observer()?.onJob(event);
      const events = core.channels()?.events;
      if (events?.hasSubscribers) events.publish(event);
    },
  };
}

/** Learns the price of jobs of this kind, and starts to measure the job's duration. */
function learnJob(account: ClientAccount, pricedCall: PricedCall, { job, quotedTokens }: JobSnapshot): void {
  account.learned.durations.created(job.id, pricedCall);
  const tokens = tokensIn(quotedTokens) ?? tokensIn(job.quotedTokenCost);
  if (tokens !== undefined) account.learned.prices.learn(priceClassOf(pricedCall), tokens);
}

/** Returns true if something needs the job's end. Otherwise, nothing is stored about the job. */
function isWatched(core: ReporterCore, jobId: string, account = core.credentials.account()): boolean {
  const { config, channels } = core;
  return (
    config.budget !== undefined ||
    config.hooks.onJob !== undefined ||
    config.store !== undefined ||
    ifSubscribed(channels()?.job) !== undefined ||
    channels()?.events.hasSubscribers === true ||
    logOf(account)?.has(jobId) === true
  );
}

/**
 * Reports a job's end, first to the ledgers, which settle its budgets, and then to the listeners. The charge is reported by the
 * process that ended the entry or, without an entry, by the process that created the job. While creates are in flight, the
 * end of an unknown job is delayed, because a webhook can arrive before the response to its create.
 */
async function reportEnd({ warn, clock }: ReporterCore, ended: EndedJob, jobId: string): Promise<void> {
  const { records, recorded, report, isOwn, creates, ...end } = ended;
  let isFirst = false;
  let missingEntries = 0;
  const onRecorded = (isNew: boolean | undefined) => {
    if (isNew === undefined) {
      missingEntries += 1;
      return;
    }
    recorded();
    isFirst ||= isNew;
  };
  await Promise.all(records.map((record) => record.recordEnd(jobId, end, { recorded: onRecorded, warn })));
  const isUnknown = !isOwn && missingEntries === records.length;
  // On Workers, a call must not wait for another request.
  if (isUnknown && creates.length > 0 && !clock.perRequest) void Promise.allSettled(creates).then(() => report(false));
  else report(isFirst || (isOwn && missingEntries === records.length));
}
