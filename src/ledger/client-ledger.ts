// A client's ledger. Stores and budgets provide it, so that it isn't bundled with a client without them.
import { LEDGER, SHARING } from '../rules/options.js';
import { reasonOf } from '../runtime/callbacks.js';
import { openSharedLimits } from '../store/shared-limits.js';
import type { Store } from '../store/store.js';
import type { ClientLedger } from '../transport/call.js';
import type { LedgerCore, OpenLedger } from '../transport/ledger.js';
import { openNotifications } from '../waiting/shared-notifications.js';
import { budgetTermsOf } from './counting-budget.js';
import { ledgerLayer, recordSentLayer } from './create-layer.js';
import { acknowledgeJob, ownJob, recordsOf } from './job-records.js';
import { type Ledger, ledgerOf } from './ledger.js';
import { resumeCreates, unfinishedCreatesIn } from './resume.js';
import { budgetClientOf, storeLedgerOf } from './targets.js';

/** Attaches the ledger to a budget or a store. */
export function withLedger<T extends object>(budget: T): T & { readonly [LEDGER]: OpenLedger } {
  return Object.assign(budget, { [LEDGER]: openLedger });
}

/** Attaches the ledger, shared rate limits, and notifications to a store. */
export function clientStore<T extends Store>(store: T): T {
  return Object.assign(withLedger(store), { [SHARING]: { openLimits: openSharedLimits, openNotifications } });
}

function openLedger(core: LedgerCore): ClientLedger {
  const storeLedger = () => storeLedgerOf(core);
  let hasWarned = false;
  const onOtherAccounts = (creates: number) => {
    if (!hasWarned) core.warn(otherAccountsWarning(creates));
    hasWarned = true;
  };
  return {
    get isPersistent() {
      return storeLedger()?.isPersistent ?? false;
    },
    ledgerLayer,
    recordSentLayer,
    records: () => ledgersOf(core).map(recordsOf),
    async acknowledge(jobId, kind) {
      const ledger = storeLedger();
      const warn = (error: unknown) => core.warn(`job ${jobId} could not be recorded as delivered: ${reasonOf(error)}`);
      const write = ledger && acknowledgeJob(ledger, jobId, kind).catch(warn);
      // Don't wait until an outcome is recorded, because the program already has it.
      if (write && kind === 'file') await ledger.awaitBriefly(write);
    },
    own(jobId) {
      const ledger = storeLedger();
      return ledger?.isPersistent ? ownJob(ledger, jobId) : undefined;
    },
    async *resume(account, run, options) {
      const ledger = storeLedger();
      if (ledger) yield* resumeCreates(ledger, account, run, { ...options, onOtherAccounts });
    },
    async *unfinished(account) {
      const ledger = storeLedger();
      if (ledger) yield* unfinishedCreatesIn(ledger, account, onOtherAccounts);
    },
  };
}

function otherAccountsWarning(creates: number): string {
  const createCount = creates === 1 ? '1 unfinished create' : `${creates} unfinished creates`;
  return `the store has ${createCount} of other accounts. An account is a base URL and a key: set the account option, so that it stays the same when you rotate the key.`;
}

/** Returns the ledgers of the client's store and budget, without duplicates. */
function ledgersOf(core: LedgerCore): readonly Ledger[] {
  const { budget, clock } = core.config;
  const storeLedger = storeLedgerOf(core);
  const budgetLedger = budget && ledgerOf(budgetTermsOf(budget).ledgerTarget(budgetClientOf(core)).store, clock.wall);
  return [...new Set([storeLedger, budgetLedger].filter((it) => it !== undefined))];
}
