// Creates that wait for room in a budget: first come, first served.
import { budgetName } from '../rules/budget.js';
import { type OpenAsk, type OpenReply, openCreate } from '../rules/ledger.js';
import { keysOf, type LedgerDraft } from '../rules/ledger-draft.js';
import type { Clock } from '../runtime/clock.js';
import { CallQueue, type TurnOutcome } from '../store/call-queue.js';

/** How often a budget that other processes use is looked at while creates wait for it. */
const LOOK_MS = 500;
const MOST_ASKED = 64;

interface OpenQueuePorts {
  readonly ask: <T>(rule: (draft: LedgerDraft) => T, keys: readonly string[]) => Promise<T>;
  readonly clock: Clock;
  /** Whether other processes use the same budgets. */
  readonly isShared: boolean;
}

type Opened = { readonly reply: OpenReply } | { readonly error: unknown };

export interface OpenQueue {
  /** Resolves when the create is noted or refused. An abort takes it out of the queue. */
  add(ask: OpenAsk, signal: AbortSignal | undefined): Promise<OpenReply>;
  /** Something has changed that may have made room: those that wait are asked for again. */
  wake(): void;
}

export function createOpenQueue({ ask, clock, isShared }: OpenQueuePorts): OpenQueue {
  /** How many of those that wait may have room: what decides about them is read at once. */
  let likely = MOST_ASKED;
  const turn = async (asks: Iterable<OpenAsk>): Promise<TurnOutcome<OpenAsk, Opened>> => {
    const waiting = [...asks];
    const opened = new Map<OpenAsk, Opened>();
    let asked: readonly OpenAsk[] = waiting.slice(0, MOST_ASKED);
    const keys = new Set(waiting.slice(0, likely).flatMap(({ id, entry }) => keysOf(id, entry)));
    const open = (draft: LedgerDraft) => {
      const replies = openAll(draft, waiting);
      asked = [...replies.keys()];
      return replies;
    };
    try {
      const replies = waiting.length > 0 ? await ask(open, [...keys]) : [];
      for (const [it, reply] of replies) if (reply.outcome !== 'busy') opened.set(it, { reply });
    } catch (error) {
      // Only those who asked are refused. The others ask for themselves.
      for (const it of asked) opened.set(it, { error });
    }
    likely = opened.size > 0 ? MOST_ASKED : 1;
    const lookMs = isShared || clock.perRequest ? LOOK_MS : Number.POSITIVE_INFINITY;
    return { grants: opened, waitMsOf: () => 0, restMs: opened.size > 0 ? 0 : lookMs };
  };
  const newQueue = () =>
    new CallQueue<OpenAsk, Opened>({ clock, isShared: true, turn, onOrphanedGrant: () => {}, onEmpty: () => {} });
  const queue = newQueue();
  return {
    async add(asked, signal) {
      likely = MOST_ASKED;
      // On Workers a call must not wait for what another request does.
      const own = clock.perRequest ? newQueue() : queue;
      const opened = own.acquire(asked, { signal });
      // It may want another budget than those in front.
      own.serveSoon();
      const outcome = await opened;
      if ('error' in outcome) throw outcome.error;
      return outcome.reply;
    },
    wake() {
      if (queue.size > 0) queue.serve();
    },
  };
}

/**
 * Opens what has room, as far as it is asked for in one step. A create that waits for a budget lets none behind it have that
 * budget first.
 */
function openAll(draft: LedgerDraft, waiting: readonly OpenAsk[]): Map<OpenAsk, OpenReply> {
  const taken = new Set<string>();
  const replies = new Map<OpenAsk, OpenReply>();
  for (const it of waiting) {
    if (replies.size >= MOST_ASKED) break;
    if (it.entry.budgets.some((budget) => taken.has(budgetName(budget)))) continue;
    const reply = openCreate(draft, it);
    if (reply.outcome === 'busy') taken.add(budgetName(reply.budget));
    replies.set(it, reply);
  }
  return replies;
}
