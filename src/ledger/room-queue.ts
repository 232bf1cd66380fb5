// First-in, first-out queue of creates that wait for a budget.
import { type BudgetTerms, budgetName } from '../rules/budget.js';
import type { LedgerTransaction } from '../rules/ledger-transaction.js';
import type { Clock } from '../runtime/clock.js';
import { CallQueue, type QueuedCall, type TurnOutcome } from '../store/call-queue.js';

/** Interval for checking a shared budget while creates wait for it. */
const POLL_MS = 500;
const MAX_PER_TURN = 64;

export interface RoomRequest {
  /** Keys of the stored values that the decision depends on. */
  readonly keys: readonly string[];
  readonly budgets: readonly BudgetTerms[];
}

export type RoomResult = { readonly outcome: string; readonly budget?: BudgetTerms };

interface RoomQueuePorts<Request, Result> {
  readonly transact: <T>(rule: (tx: LedgerTransaction) => T, keys: readonly string[]) => Promise<T>;
  /** The ledger's rule. Returns the outcome `busy` while the request must wait. */
  readonly decide: (tx: LedgerTransaction, request: Request) => Result;
  readonly clock: Clock;
  /** If true, other processes use the same budgets. */
  readonly isShared: boolean;
}

type Settled<Result> = { readonly result: Result } | { readonly error: unknown };

export interface RoomQueue<Request, Result> {
  /** Resolves with the first outcome other than `busy`. An abort removes the request from the queue. */
  add(request: Request, call: QueuedCall): Promise<Result>;
  /** Checks the queue again after the budgets have changed. */
  wake(): void;
}

export function createRoomQueue<Request extends RoomRequest, Result extends RoomResult>({
  transact,
  decide,
  clock,
  isShared,
}: RoomQueuePorts<Request, Result>): RoomQueue<Request, Result> {
  /** Number of requests that the next turn will probably decide. Their keys are read together. */
  let likelyCount = MAX_PER_TURN;
  const turn = async (requests: Iterable<Request>): Promise<TurnOutcome<Request, Settled<Result>>> => {
    const waiting = [...requests];
    const settled = new Map<Request, Settled<Result>>();
    let decidedRequests: readonly Request[] = waiting.slice(0, MAX_PER_TURN);
    const keys = new Set(waiting.slice(0, likelyCount).flatMap((it) => it.keys));
    const decideAll = (tx: LedgerTransaction) => {
      const results = resultsOf(waiting, (request) => decide(tx, request));
      decidedRequests = [...results.keys()];
      return results;
    };
    try {
      const results = waiting.length > 0 ? await transact(decideAll, [...keys]) : [];
      for (const [it, result] of results) if (result.outcome !== 'busy') settled.set(it, { result });
    } catch (error) {
      // Only the requests of this turn fail. The others are decided in the next turn.
      for (const it of decidedRequests) settled.set(it, { error });
    }
    likelyCount = settled.size > 0 ? MAX_PER_TURN : 1;
    const pauseMs = isShared || clock.perRequest ? POLL_MS : Number.POSITIVE_INFINITY;
    return { grants: settled, waitMsOf: () => 0, nextTurnMs: settled.size > 0 ? 0 : pauseMs };
  };
  const newQueue = () =>
    new CallQueue<Request, Settled<Result>>({
      clock,
      isShared: true,
      turn,
      onOrphanedGrant: () => {},
      onEmpty: () => {},
    });
  const queue = newQueue();
  return {
    async add(request, call) {
      likelyCount = MAX_PER_TURN;
      // On Workers, a call can't wait for another request's promise.
      const callQueue = clock.perRequest ? newQueue() : queue;
      const added = callQueue.acquire(request, call);
      // The request may use a different budget than those ahead of it.
      callQueue.planTurn();
      const outcome = await added;
      if ('error' in outcome) throw outcome.error;
      return outcome.result;
    },
    wake() {
      if (queue.size > 0) queue.serve();
    },
  };
}

/**
 * Decides up to {@link MAX_PER_TURN} requests, and returns the results. A request never overtakes one that waits for the
 * same budget.
 */
function resultsOf<Request extends RoomRequest, Result extends RoomResult>(
  waiting: readonly Request[],
  decide: (request: Request) => Result,
): Map<Request, Result> {
  const blockedBudgets = new Set<string>();
  const results = new Map<Request, Result>();
  for (const it of waiting) {
    if (results.size >= MAX_PER_TURN) break;
    if (it.budgets.some((budget) => blockedBudgets.has(budgetName(budget)))) continue;
    const result = decide(it);
    if (result.outcome === 'busy' && result.budget) blockedBudgets.add(budgetName(result.budget));
    results.set(it, result);
  }
  return results;
}
