import { ConnectionError } from '../errors/client-errors.js';
import { GenError } from '../errors/index.js';
import { type CreateEntry, entryId, type OpenCreate } from '../rules/create-entry.js';
import { outcomeUnderKey } from '../rules/failure-kind.js';
import {
  acceptCreate,
  type FailedCreate,
  failCreate,
  recordParams,
  recordRun,
  recordUnsent,
  type SendResult,
} from '../rules/ledger.js';
import { closeRun } from '../rules/ledger-owners.js';
import { keysOf } from '../rules/ledger-transaction.js';
import { priceOf } from '../rules/price.js';
import { reasonOf } from '../runtime/callbacks.js';
import type { Budget } from '../schemas/budget.js';
import { isFields } from '../schemas/envelope.js';
import { type JobCall, tokensIn } from '../schemas/job.js';
import type { ClientAccount } from '../store/account.js';
import { isSetupError } from '../store/store.js';
import type { Call, CreateRecord, Layer } from '../transport/call.js';
import { detachedCall, detailsOf, snapshotIn } from '../transport/call.js';
import type { LedgerCreate } from '../transport/create-run.js';
import { chargedTokensOf } from '../transport/job-log.js';
import { digestOfCreate, reuseError } from '../transport/layers/used-keys.js';
import type { JobSnapshot } from '../transport/transport.js';
import { budgetTermsOf, noRoomError } from './counting-budget.js';
import { recordsOf } from './job-records.js';
import type { Ledger } from './ledger.js';
import type { Rule } from './steps.js';
import { budgetClientOf, storeLedgerOf, type Target, targetsOf } from './targets.js';

/** A create whose entry in the ledger this call owns. */
export interface RecordedCreate {
  readonly ledger: Ledger;
  readonly id: string;
  readonly owner: string;
  readonly entry: CreateEntry;
}

/** Runs a rule on a create's entry. Retries the write while the store is unavailable. */
export function updateEntry<T>({ ledger, id, entry }: RecordedCreate, rule: Rule<T>): Promise<T> {
  return ledger.record(rule, keysOf(id, entry));
}

/**
 * Records a create in the ledger before anything is uploaded or sent, and its outcome afterward. Throws if a budget
 * can't cover the create, or if its idempotency key was used with different params.
 */
export const ledgerLayer: Layer = async (call, next) => {
  const { run, call: namespace } = call.request;
  if (!namespace) return next(call);
  const targets = targetsOf(call);
  if (targets.length === 0) return next(call);
  // A key function may return the key of a different account for each call.
  const account = await call.core.account(call.signal);
  const origin = { account, namespace, digest: digestOfCreate(call) };
  const creates = await reserveAll(call, targets, origin);
  call.sent.records = creates.map(({ ledger }) => recordsOf(ledger));
  const record = createRecord(creates, call.signal);
  const onFailure = (error: unknown) => {
    const outcome = call.sent.mayHaveArrived ? outcomeUnderKey(error) : 'unsent';
    return recordFailures(creates, { outcome, sentKey: record.sentKey, run }, call.signal);
  };
  try {
    const result = await next({ ...call, record });
    const { decoded } = result;
    // A response without the documented shape doesn't prove that no job exists.
    const snapshot = snapshotIn(call, result);
    if (snapshot) await recordAccepted(call, { creates, sentKey: record.sentKey }, snapshot);
    else await onFailure('failure' in decoded ? decoded.failure : undefined);
    return result;
  } catch (error) {
    await onFailure(error);
    throw error;
  } finally {
    if (!run) for (const { ledger, owner } of creates) ledger.endCall(owner);
  }
};

/**
 * Records the request just before it is sent, so that, after a crash, the create is known to have possibly reached
 * the service. The last layer above the attempt.
 */
export const recordSentLayer: Layer = async (call, next) => {
  await call.record?.sending(call);
  return next(call);
};

/**
 * Creates the functions with which the layers below report on a create. `sentKey` is the last idempotency key recorded
 * as sent.
 */
function createRecord(
  creates: readonly RecordedCreate[],
  signal: AbortSignal | undefined,
): CreateRecord & { readonly sentKey: string | undefined } {
  let sentKey: string | undefined;
  return {
    get sentKey() {
      return sentKey;
    },
    async uploaded(body) {
      const params = isFields(body) ? body : {};
      const writes = creates
        .filter(({ entry }) => entry.retainUntilStored)
        .map(({ ledger, id, entry }) =>
          ledger.transact((tx) => recordParams(tx, id, params), { keys: keysOf(id, entry), signal }),
        );
      // If the store is unavailable, `sending` fails with the same error.
      await Promise.allSettled(writes);
    },
    async sending(call) {
      const { idempotencyKey: key, json } = call;
      if (key === undefined || key === sentKey) return;
      const params = json === undefined ? null : paramsOf(call);
      // One at a time, because the next ledger must not record the create as sent if this one rejects it.
      for (const it of creates) await markSent(call, it, { params, sentKey: key });
      sentKey = key;
    },
    async unsent() {
      sentKey = undefined;
      const writes = creates.map((it) => {
        const write = updateEntry(it, (tx) => recordUnsent(tx, it.id, it.owner));
        return it.ledger.awaitBriefly(write, signal);
      });
      await Promise.all(writes);
    },
  };
}

/** Returns the functions with which a run updates its create's entry. */
export function ledgerCreate(create: RecordedCreate, isResumed = false): LedgerCreate {
  const { ledger, id, owner, entry } = create;
  return {
    records: recordsOf(ledger),
    owner,
    async save(state, signal) {
      if (!entry.retainUntilStored) return;
      const write = updateEntry(create, (tx) => recordRun(tx, id, state));
      await ledger.awaitBriefly(write, signal);
    },
    async end(isDelivered, caller) {
      const end = { id, owner, isDelivered, isResumed };
      const write = updateEntry(create, (tx) => closeRun(tx, end)).finally(() => ledger.endCall(owner));
      write.catch(() => {});
      ledger.retain(id);
      if (caller) await ledger.awaitBriefly(write, caller.signal);
    },
  };
}

interface CreateOrigin {
  readonly account: ClientAccount;
  readonly namespace: JobCall;
  readonly digest: string | undefined;
}

async function reserveAll(
  call: Call<unknown>,
  targets: readonly Target[],
  origin: CreateOrigin,
): Promise<readonly RecordedCreate[]> {
  const creates: RecordedCreate[] = [];
  try {
    for (const target of targets) creates.push(await reserveIn(call, target, origin));
    return creates;
  } catch (error) {
    await recordFailures(creates, { outcome: 'unsent', run: call.request.run }, call.signal);
    for (const { ledger, owner } of creates) ledger.endCall(owner);
    throw error;
  }
}

async function reserveIn(
  call: Call<unknown>,
  { ledger, budgets }: Target,
  origin: CreateOrigin,
): Promise<RecordedCreate> {
  const { run } = call.request;
  const earlierCreate = run?.creates.find((it) => it.records === recordsOf(ledger));
  const fields = entryOf(call, budgets, origin);
  const owner = earlierCreate?.owner ?? ledger.startCall();
  const entry: OpenCreate = {
    ...fields,
    owners: [owner],
    // A detached run stores its outcome elsewhere.
    retainUntilStored:
      ledger.isPersistent && ledger === storeLedgerOf(call.core) && detachedCall(call.options) === undefined,
  };
  const create: RecordedCreate = { ledger, owner, id: entryId(entry.account, entry.key), entry };
  const rejectsUnknown = budgets.map((it) => budgetTermsOf(it).rejectsUnknown);
  try {
    const mayBeUsed = earlierCreate !== undefined || origin.digest !== undefined;
    const request = { id: create.id, owner, entry, rejectsUnknown, mayBeUsed };
    const result = await ledger.reserve(request, { signal: call.signal, onWait: reportWait(call) });
    if (result.outcome === 'reused') throw reuseError(call, result.jobId);
    if (result.outcome !== 'recorded') throw await noRoomError(ledger, result);
    const recorded = { ...create, id: result.id };
    if (run && !earlierCreate) run.creates.push(ledgerCreate(recorded, run.isResumed));
    return recorded;
  } catch (cause) {
    // The create may have been recorded, if the call was aborted before the store responded.
    void recordFailure(create, { outcome: 'unsent', run }).catch(() => {});
    // The entry isn't part of the run yet, so the run won't close it.
    if (run && !earlierCreate) void ledgerCreate(create, run.isResumed).end(false);
    if (!earlierCreate) ledger.endCall(owner);
    throw call.signal?.aborted ? cause : storeFailure(call, cause);
  }
}

/** Returns a function that reports a wait for a budget. */
function reportWait({ core, trace, limit }: Call<unknown>): ((position: number) => void) | undefined {
  if (!trace) return undefined;
  const { callId } = trace;
  return (position) => core.observer()?.onWait({ callId, limit, waitMs: 0, queued: position + 1, reason: 'budget' });
}

/** Returns a create's entry as recorded before anything is uploaded. */
function entryOf(call: Call<unknown>, budgets: readonly Budget[], origin: CreateOrigin): OpenCreate {
  const { account, namespace, digest } = origin;
  const { core, body, label, idempotencyKey: sentKey = '' } = call;
  const { run } = call.request;
  const { job, priceClass, isFixed: hasFixedPrice } = priceOf(namespace, body);
  const learned = hasFixedPrice ? core.jobs.priceOf(job, account) : undefined;
  const estimates = budgets.map((it) => budgetTermsOf(it).estimate(job));
  const isEstimated = estimates.length > 0 && estimates.every((it) => it !== null);
  const nowMs = core.config.clock.wall.now();
  return {
    key: run?.key ?? sentKey,
    account: account.id,
    call: namespace,
    params: call.json === undefined ? null : paramsOf(call),
    atMs: nowMs,
    sinceMs: nowMs,
    label,
    phase: 'open',
    isReserved: true,
    sentKey,
    owners: [],
    budgets: budgets.map((it) => budgetTermsOf(it).ledgerTarget(budgetClientOf(core)).terms),
    priceClass,
    hasFixedPrice,
    tokens: learned ?? (isEstimated ? Math.max(...estimates.map(Number)) : null),
    isLearned: learned !== undefined,
    digest,
    retainUntilStored: false,
    rules: run?.rules ?? null,
  };
}

function paramsOf({ json }: Call<unknown>): Record<string, unknown> {
  const params: unknown = JSON.parse(json ?? '{}');
  const { idempotency_key: _, ...rest } = isFields(params) ? params : {};
  return rest;
}

async function markSent(
  call: Call<unknown>,
  { ledger, id, owner, entry }: RecordedCreate,
  sent: { readonly params: OpenCreate['params']; readonly sentKey: string },
): Promise<void> {
  // An in-memory entry is lost in a crash anyway, so only a budget needs it marked as sent.
  const { budgets } = entry;
  if (!ledger.isPersistent && budgets.length === 0) return;
  const request = { id, owner, ...sent, keys: keysOf(id, entry), budgets };
  let result: SendResult;
  try {
    result = await ledger.send(request, { signal: call.signal, onWait: reportWait(call) });
  } catch (cause) {
    throw call.signal?.aborted ? cause : storeFailure(call, cause);
  }
  if (result.outcome === 'sent') return;
  if (result.outcome !== 'taken') throw await noRoomError(ledger, result);
  const reason = "this process's 30-second lease expired, and another process now owns the create";
  throw new GenError(`${call.name} was not sent: ${reason}. Call again with the same idempotencyKey.`, {
    recovery: 'retry',
  });
}

async function recordAccepted(
  call: Call<unknown>,
  { creates, sentKey }: { readonly creates: readonly RecordedCreate[]; readonly sentKey: string | undefined },
  { job, quotedTokens, balanceTokens }: JobSnapshot,
): Promise<void> {
  const { core, options, idempotencyKey, signal } = call;
  for (const budget of new Set([core.config.budget, options.budget])) {
    if (budget) budgetTermsOf(budget).reportLow(tokensIn(balanceTokens));
  }
  const response = {
    jobId: job.id,
    quotedTokens: tokensIn(quotedTokens) ?? tokensIn(job.quotedTokenCost) ?? null,
    isUncharged: chargedTokensOf(job) === 0,
    sentKey: sentKey ?? idempotencyKey ?? '',
    run: call.request.run,
  };
  const writes = creates.map((create) => {
    const { ledger, id, owner, entry: fallback } = create;
    const recorded = updateEntry(create, (tx) => acceptCreate(tx, { id, owner, fallback, ...response }));
    ledger.retain(id);
    const reported = recorded.then(
      (isUnpriced) => isUnpriced && core.warn(unpricedWarning(job.id)),
      (error) => core.warn(`job ${job.id} could not be recorded: ${reasonOf(error)}`),
    );
    return ledger.awaitBriefly(reported, signal);
  });
  await Promise.all(writes);
}

function unpricedWarning(jobId: string): string {
  return `the create response of job ${jobId} has no price, so a budget can count it only after the job has ended`;
}

type Failure = Omit<FailedCreate, 'id' | 'owner'>;

function recordFailure(create: RecordedCreate, failure: Failure): Promise<void> {
  const { id, owner } = create;
  return updateEntry(create, (tx) => failCreate(tx, { id, owner, ...failure }));
}

async function recordFailures(
  creates: readonly RecordedCreate[],
  failure: Failure,
  signal: AbortSignal | undefined,
): Promise<void> {
  await Promise.all(creates.map((it) => it.ledger.awaitBriefly(recordFailure(it, failure), signal)));
}

function storeFailure(call: Call<unknown>, cause: unknown): unknown {
  if (!ConnectionError.isInstance(cause) || isSetupError(cause)) return cause;
  const message = `${call.name} was not sent: the store could not record it (${reasonOf(cause)}). Call again with the same idempotencyKey.`;
  return new ConnectionError(message, { ...detailsOf(call), attempts: 0, cause });
}
