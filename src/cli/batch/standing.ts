// Where a row stands, by the journal, and what its failure means for the rows after it.

import { BudgetExceededError } from '../../errors/client-errors.js';
import {
  AuthenticationError,
  ConnectionError,
  DownloadError,
  GenError,
  InsufficientBalanceError,
  PermissionDeniedError,
  ServerError,
  StorageError,
  UploadError,
} from '../../errors/index.js';
import { fateOf } from '../../rules/fate.js';
import type { JournaledCreate } from '../../rules/journal.js';
import { originsOf } from '../../rules/run-state.js';
import type { Job } from '../../schemas/job.js';
import { idempotencyKeyFrom, shortenKey } from '../../transport/idempotency.js';
import type { Row } from './rows.js';

/** A job that is made again by its own run: the failure is not the row's last word. */
export const RESUBMITTED = 'reference_asset_pending';

/** The key of a try of a row, from 0. */
export function attemptKey(row: Pick<Row, 'key'>, attempt: number): string {
  return attempt === 0 ? row.key : idempotencyKeyFrom(row.key, attempt);
}

/** Where a row stands when a run begins. */
export interface RowStanding {
  readonly attempt: number;
  /** The last create of the row; undefined for a row that was never sent. */
  readonly create: JournaledCreate | undefined;
}

/** The creates of a journal, in its order, by the keys of the runs that they may belong to. */
export type CreatesByRun = ReadonlyMap<string, readonly JournaledCreate[]>;

/**
 * Finds the creates of each run: one for each of its jobs, and for each key that was refused. What was created under a row's
 * own key belongs to no other row, whatever the key ends in.
 */
export function createsByRun(creates: readonly JournaledCreate[], rows: readonly Pick<Row, 'key'>[]): CreatesByRun {
  const own = new Set(rows.map(({ key }) => key));
  const runs = new Map<string, JournaledCreate[]>();
  for (const create of creates) {
    for (const key of originsOf(create.key)) {
      runs.set(key, [...(runs.get(key) ?? []), create]);
      if (own.has(key)) break;
    }
  }
  return runs;
}

/** The creates of the run that began with a key. */
export function createsOf(key: string, runs: CreatesByRun): readonly JournaledCreate[] {
  const shortKey = shortenKey(key);
  const creates = [...(runs.get(key) ?? []), ...(shortKey === key ? [] : (runs.get(shortKey) ?? []))];
  // A run sends its first key before any other.
  return creates[0]?.key === key ? creates : [];
}

/** Where the last try of a row stands: by its last create that was not refused, where there is one. */
export function standingOf(row: Row, runs: CreatesByRun): RowStanding {
  let attempt = 0;
  while (runs.has(attemptKey(row, attempt + 1))) attempt += 1;
  const creates = createsOf(attemptKey(row, attempt), runs);
  return { attempt, create: creates.findLast(({ state }) => state !== 'closed') ?? creates.at(-1) };
}

/** Whether a row has to be paid for, as far as the journal knows. */
export function isUnpaid({ create }: RowStanding, retryFailed: boolean): boolean {
  if (create === undefined || create.state === 'closed') return true;
  return create.state === 'failed' && (retryFailed || create.errorCode === RESUBMITTED);
}

/** What a create counts: its charge, or its quote while the job may still be charged. */
export function tokensOf({ state, quotedTokens = 0, chargedTokens }: JournaledCreate): number {
  return chargedTokens ?? (state === 'failed' ? 0 : quotedTokens);
}

/** The job of a create as the journal knows it. */
export function journaledJob({
  jobId = '',
  state,
  chargedTokens,
  quotedTokens,
  errorCode,
  model,
  params,
}: JournaledCreate): Job {
  const alias = model ?? params.model;
  return {
    id: jobId,
    status: state === 'failed' ? 'failed' : 'completed',
    ...(chargedTokens !== undefined && { finalTokenCost: chargedTokens }),
    ...(quotedTokens !== undefined && { quotedTokenCost: quotedTokens }),
    ...(errorCode !== undefined && { errorCode }),
    ...(typeof alias === 'string' && { modelId: alias }),
  };
}

/** Whether the budget did not let the create go: there is no room, or it waits for a price that is being learned. */
export function isNotAdmitted(error: unknown): boolean {
  return BudgetExceededError.isInstance(error) || (ConnectionError.isInstance(error) && error.attempts === 0);
}

/** Why a row is not started, and what finishes it. */
const LEFT_OUT = {
  batch_stopped: ['The batch was stopped.', 'the next run'],
  budget_exceeded: ['It would pass --max-tokens.', 'a higher limit'],
} as const;

/** The code of a row that is not started. */
export type LeftOut = keyof typeof LEFT_OUT;

/** The error of a row that is not started. */
export function leftOut(code: LeftOut, { mayHaveJob }: { readonly mayHaveJob: boolean }): Record<string, unknown> {
  const [why, remedy] = LEFT_OUT[code];
  const message = mayHaveJob ? `${why} It may have a job already: ${remedy} finishes it.` : why;
  return { name: 'GenError', message, code };
}

/** Whether every other row would fail in the same way: a wrong key, no balance, a service that is away. */
export function isSystemic(error: unknown): boolean {
  if (UploadError.isInstance(error)) return isSystemic(error.cause);
  return (
    [AuthenticationError, PermissionDeniedError, InsufficientBalanceError].some((type) => type.isInstance(error)) ||
    (ConnectionError.isInstance(error) && fateOf(error) === 'unsent') ||
    isJournalAway(error) ||
    (ServerError.isInstance(error) && error.code === 'dispatch_disabled')
  );
}

/** Whether no other file could be placed either: a full or closed disk, or a store that refuses. */
export function isTargetAway(error: unknown): boolean {
  const cannotWrite = DownloadError.isInstance(error) && error.code === 'cannot_write';
  return cannotWrite || StorageError.isInstance(error) || isJournalAway(error);
}

/** Whether the journal of the batch cannot be read or written. */
function isJournalAway(error: unknown): boolean {
  return GenError.isInstance(error) && /^The journal /.test(error.message);
}
