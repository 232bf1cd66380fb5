// Records creates in the ledger as a process's calls do, but without a service.
import { noRoomError } from '../../src/ledger/counting-budget.js';
import { ledgerOf } from '../../src/ledger/ledger.js';
import type { BudgetTerms } from '../../src/rules/budget.js';
import { entryId, type OpenCreate } from '../../src/rules/create-entry.js';
import { outcomeUnderKey } from '../../src/rules/failure-kind.js';
import { acceptCreate, endCreate, failCreate } from '../../src/rules/ledger.js';
import { keysOf } from '../../src/rules/ledger-transaction.js';
import type { Clock } from '../../src/runtime/clock.js';
import type { Store } from '../../src/store/store.js';

/** Parameters of a create's reservation. */
export interface Order {
  readonly idempotencyKey: string;
  readonly priceClass?: string;
  readonly isFixedPrice?: boolean;
  readonly learnedTokens?: number | undefined;
  readonly estimatedTokens?: number | undefined;
  readonly signal?: AbortSignal;
}

/** The service's response to a create. */
export interface AcceptedJob {
  readonly jobId: string;
  readonly quotedTokens: number | undefined;
}

/** Creates a reserver, which reserves tokens in a store's budget as a process does. */
export function createReserver(store: Store, clock: Clock, terms: BudgetTerms) {
  const ledger = ledgerOf(store, clock);
  return {
    async reserve({ idempotencyKey: key, signal, ...order }: Order) {
      const { priceClass = 'video', isFixedPrice: hasFixedPrice = true, learnedTokens, estimatedTokens } = order;
      const [owner, id] = [ledger.startCall(), entryId('account', key)];
      const nowMs = clock.now();
      const entry: OpenCreate = {
        ...{ key, sentKey: key, account: 'account', call: 'videos', params: null, atMs: nowMs, sinceMs: nowMs },
        ...{ tokens: learnedTokens ?? estimatedTokens ?? null, isLearned: learnedTokens !== undefined },
        ...{ phase: 'open', isReserved: true, owners: [owner], budgets: [terms], priceClass, hasFixedPrice },
        ...{ retainUntilStored: false, rules: null },
      };
      const recordFailure = (outcome: 'refused' | 'unsent' | 'lost') =>
        ledger.record((tx) => failCreate(tx, { id, owner, outcome }));
      const request = { id, owner, entry, rejectsUnknown: [false], mayBeUsed: true };
      const result = await ledger.reserve(request, { signal }).catch((error) => {
        void recordFailure('unsent').catch(() => {});
        ledger.endCall(owner);
        throw error;
      });
      if (result.outcome === 'spent' || result.outcome === 'unresolved') {
        ledger.endCall(owner);
        throw await noRoomError(ledger, result);
      }
      return {
        /** Returns true if the request may be sent. */
        async send() {
          const budgets = [terms];
          const request = { id, owner, params: null, sentKey: key, keys: keysOf(id, entry), budgets };
          const { outcome } = await ledger.send(request, { signal });
          return outcome === 'sent';
        },
        async accept({ jobId, quotedTokens = undefined }: AcceptedJob) {
          const response = { jobId, quotedTokens: quotedTokens ?? null, isUncharged: false };
          await ledger.record((tx) => acceptCreate(tx, { id, owner, fallback: entry, sentKey: key, ...response }));
          ledger.endCall(owner);
        },
        async fail({ error, wasSent }: { readonly error: unknown; readonly wasSent: boolean }) {
          await recordFailure(wasSent ? outcomeUnderKey(error) : 'unsent');
          ledger.endCall(owner);
        },
      };
    },
    /** Records a charge from a poll. */
    async recordCharge(jobId: string, chargedTokens: number) {
      await ledger.record((tx) => {
        const id = tx.jobEntry(jobId);
        if (id !== undefined) endCreate(tx, { id, jobId, status: 'completed', chargedTokens });
      });
    },
  };
}
