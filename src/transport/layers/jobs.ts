import { endCreate, handOver, holdJob } from '../../rules/ledger.js';
import { priceClassOf, pricedCallOf } from '../../rules/price.js';
import { lengthClassOf } from '../../rules/read-order.js';
import { reasonOf } from '../../runtime/callbacks.js';
import type { PricedCall } from '../../schemas/budget.js';
import { tokensIn } from '../../schemas/job.js';
import type { ClientAccount } from '../../store/account.js';
import type { Core, JobTeller, Layer } from '../call.js';
import { heard, traceFailed } from '../events.js';
import { type EndedJob, type JobListeners, JobLog, JobMemory } from '../job-log.js';
import type { ShownJob } from '../transport.js';
import { ledgerIn, ledgersOf } from './ledger.js';

/** Passes on what the answer shows of a job: its price, and its state for the listeners and the ledger. */
export const jobsSeen: Layer = async (call, next) => {
  const { core, kind, trace } = call;
  const answer = await next(call);
  const { decoded } = answer;
  if ('failure' in decoded) {
    if (trace?.job) traceFailed(heard(core.channels()?.job), trace.job, decoded.failure);
    return answer;
  }
  const shown = kind.type === 'json' ? kind.request.shows?.(decoded.data) : undefined;
  if (shown) {
    // Whoever created it: what a wait, a queue or a batch returns has no place for them.
    for (const warning of shown.warnings ?? []) core.warn(`job ${shown.job.id}: ${warning}`);
    await core.jobs.seen(call, shown);
  }
  return answer;
};

/** Copies of the package share the log by this name. The number is the protocol's. */
const LOG = 'jobs/1';
const MEMORY = 'job-memory/1';

type TellerCore = Pick<Core, 'config' | 'credentials' | 'clock' | 'channels' | 'observer' | 'warn'>;

export function createJobTeller(core: TellerCore): JobTeller {
  const { credentials } = core;
  return {
    async seen(seenIn, shown) {
      const { kind, body, idempotencyKey, label, trace, sent } = seenIn;
      const call = kind.type === 'json' ? kind.request.call : undefined;
      const { ledgers = [], account = credentials.account() } = sent;
      if (call && account) learnJob(account, pricedCallOf(call, body), shown);
      if (ledgers.length === 0 && !isWatched(core, shown.job.id, account)) return;
      const origin = call && { call, idempotencyKey, label, ledgers, trace: trace?.job };
      const ended = logOf(account)?.seen(shown, listeners(core), origin);
      if (ended) await tellEnd(core, ended, shown.job.id);
    },
    announced(job, isVerified) {
      if (!isWatched(core, job.id)) return;
      const ended = logOf(credentials.account())?.announced(job, listeners(core));
      if (ended && isVerified) void tellEnd(core, ended, job.id);
    },
    async stored(jobId) {
      if (!isWatched(core, jobId)) return;
      logOf(credentials.account())?.stored(jobId, listeners(core));
      await handOverIn(core, jobId, 'file');
    },
    handedOver: (jobId) => handOverIn(core, jobId, 'outcome'),
    hold(jobId) {
      const ledger = ledgerIn(core);
      if (!ledger?.outlives) return () => {};
      const by = ledger.fly();
      const note = (isHeld: boolean) =>
        ledger.note((draft) => {
          const id = draft.jobEntry(jobId);
          if (id !== undefined) holdJob(draft, id, by, isHeld);
        });
      // Where it cannot be noted, the job may be resumed beside the call.
      void note(true).catch(() => {});
      return () =>
        void note(false).then(
          () => ledger.landed(by),
          () => ledger.landed(by),
        );
    },
    isWatched: (jobId) => isWatched(core, jobId),
    priceOf(job, account = credentials.account()) {
      // What other processes have learned is read with the first use of the rate limits.
      credentials.limits();
      return account?.facts.prices.get(priceClassOf(job));
    },
    durationOf(job) {
      return credentials.account()?.facts.lengths.expectedMs(lengthClassOf(job));
    },
  };
}

function logOf(account: ClientAccount | undefined): JobLog | undefined {
  return account?.shared(LOG, () => new JobLog(account.ofProcess(MEMORY, () => new JobMemory())));
}

function listeners(core: TellerCore): JobListeners {
  const { clock } = core;
  return {
    now: clock.now,
    channel: heard(core.channels()?.job),
    ledgers: ledgersOf(core),
    tell(event) {
      core.observer()?.onJob(event);
      const events = core.channels()?.events;
      if (events?.hasSubscribers) events.publish(event);
    },
  };
}

/** Learns what a create says of its kind: the price, and how long its job takes once that has ended. */
function learnJob(account: ClientAccount, priced: PricedCall, { job, quotedTokens }: ShownJob): void {
  account.facts.lengths.created(job.id, priced);
  const tokens = tokensIn(quotedTokens) ?? tokensIn(job.quotedTokenCost);
  if (tokens !== undefined) account.facts.prices.learn(priceClassOf(priced), () => tokens);
}

/** Whether somebody wants to know of a job. Nothing is kept where nobody does. */
function isWatched(core: TellerCore, jobId: string, account = core.credentials.account()): boolean {
  const { config, channels } = core;
  return (
    config.budget !== undefined ||
    config.hooks.onJob !== undefined ||
    config.store !== undefined ||
    heard(channels()?.job) !== undefined ||
    channels()?.events.hasSubscribers === true ||
    logOf(account)?.knows(jobId) === true
  );
}

/** Tells the ledgers how a job has ended: its budgets are corrected by what was charged. */
async function tellEnd(core: TellerCore, { ledgers, noted, ...end }: EndedJob, jobId: string): Promise<void> {
  const told = ledgers.map((ledger) => {
    const note = ledger.note((draft) => {
      const id = draft.jobEntry(jobId);
      if (id !== undefined) endCreate(draft, { id, jobId, ...end });
      return id !== undefined;
    });
    const known = note.then(
      (isKnown) => isKnown && noted(),
      (error) => core.warn(`the end of job ${jobId} could not be noted: ${reasonOf(error)}`),
    );
    return ledger.soon(known);
  });
  await Promise.all(told);
}

async function handOverIn(core: TellerCore, jobId: string, what: 'outcome' | 'file'): Promise<void> {
  const ledger = ledgerIn(core);
  if (!ledger) return;
  const handed = ledger.note((draft) => {
    const id = draft.jobEntry(jobId);
    if (id !== undefined) handOver(draft, id, what);
  });
  const failed = (error: unknown) => core.warn(`job ${jobId} could not be noted as handed over: ${reasonOf(error)}`);
  await ledger.soon(handed.catch(failed));
}
