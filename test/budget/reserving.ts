// Creates as the calls of a process tell the ledger of them, without a service.
import { budgetRefusal } from '../../src/ledger/counting-budget.js';
import { ledgerOf } from '../../src/ledger/ledger.js';
import type { BudgetTerms } from '../../src/rules/budget.js';
import { outcomeUnderKey } from '../../src/rules/failure-kind.js';
import { acceptCreate, endCreate, failCreate, noteSent } from '../../src/rules/ledger.js';
import type { CreateEntry } from '../../src/rules/ledger-draft.js';
import type { Clock } from '../../src/runtime/clock.js';
import type { Store } from '../../src/store/store.js';

/** What a create asks for. */
export interface Order {
  readonly idempotencyKey: string;
  readonly priceClass?: string;
  readonly isFixedPrice?: boolean;
  readonly learnedTokens?: number | undefined;
  readonly guessedTokens?: number | undefined;
  readonly signal?: AbortSignal;
}

/** The answer of the service. */
export interface Spent {
  readonly jobId: string;
  readonly quotedTokens: number | undefined;
}

/** A process that reserves in one budget of a store. */
export function reserverOn(store: Store, clock: Clock, terms: BudgetTerms) {
  const ledger = ledgerOf(store, clock);
  return {
    async reserve({ idempotencyKey: key, signal, ...order }: Order) {
      const { priceClass = 'video', isFixedPrice: teaches = true, learnedTokens, guessedTokens } = order;
      const [by, id] = [ledger.fly(), `account/${key}`];
      const price = { tokens: learnedTokens ?? guessedTokens ?? null, isSure: learnedTokens !== undefined };
      const what = { key, sentKey: key, account: 'account', call: 'videos', params: null, atMs: clock.now() } as const;
      const entry: CreateEntry = {
        ...{ ...what, ...price, phase: 'open', holders: [by], budgets: [terms], priceClass, teaches },
        ...{ keeps: false, rules: null },
      };
      const fail = (fate: 'refused' | 'unsent' | 'lost') => ledger.note((draft) => failCreate(draft, { id, by, fate }));
      const reply = await ledger
        .open({ id, by, entry, refusesUnknown: [false], isAgain: true }, signal)
        .catch((error) => {
          void fail('unsent').catch(() => {});
          ledger.landed(by);
          throw error;
        });
      if (reply.outcome === 'spent' || reply.outcome === 'unresolved') {
        ledger.landed(by);
        throw await budgetRefusal(ledger, reply);
      }
      return {
        sent: () => ledger.ask((draft) => noteSent(draft, { id, by, params: null, sentKey: key })),
        async answered({ jobId, quotedTokens = undefined }: Spent) {
          const answer = { jobId, quotedTokens: quotedTokens ?? null, isUncharged: false };
          await ledger.note((draft) => acceptCreate(draft, { id, by, asked: entry, sentKey: key, ...answer }));
          ledger.landed(by);
        },
        async failed({ error, wasSent }: { readonly error: unknown; readonly wasSent: boolean }) {
          await fail(wasSent ? outcomeUnderKey(error) : 'unsent');
          ledger.landed(by);
        },
      };
    },
    /** A read has told what a job was charged. */
    async charged(jobId: string, chargedTokens: number) {
      await ledger.note((draft) => {
        const id = draft.jobEntry(jobId);
        const status = chargedTokens === 0 ? 'failed' : 'completed';
        if (id !== undefined) endCreate(draft, { id, jobId, status, chargedTokens, isRead: true });
      });
    },
  };
}
