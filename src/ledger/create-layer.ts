import { ConnectionError } from '../errors/client-errors.js';
import { GenError } from '../errors/index.js';
import type { BudgetTerms } from '../rules/budget.js';
import { outcomeUnderKey } from '../rules/failure-kind.js';
import {
  acceptCreate,
  closeRun,
  type FailedCreate,
  failCreate,
  fillIn,
  noteParams,
  noteRun,
  noteSent,
  noteUnsent,
} from '../rules/ledger.js';
import { type CreateEntry, entryId, keysOf } from '../rules/ledger-draft.js';
import { priceOf } from '../rules/price.js';
import { reasonOf } from '../runtime/callbacks.js';
import type { Budget } from '../schemas/budget.js';
import { isFields } from '../schemas/envelope.js';
import { type JobCall, tokensIn } from '../schemas/job.js';
import type { ClientAccount } from '../store/account.js';
import { isSetupError } from '../store/store.js';
import { type Call, type Core, type CreateRecord, detachedCall, detailsOf, type Layer } from '../transport/call.js';
import type { LedgerCreate } from '../transport/create-run.js';
import { chargedTokensOf } from '../transport/job-log.js';
import { digestOfCreate, reuseError } from '../transport/layers/used-keys.js';
import type { ShownJob } from '../transport/transport.js';
import { budgetRefusal, type ClientHome, countingOf, counts } from './counting-budget.js';
import { recordsOf } from './job-records.js';
import { type Ledger, ledgerOf } from './ledger.js';

/** A create that has an entry. */
interface OpenedCreate {
  readonly ledger: Ledger;
  readonly id: string;
  readonly by: string;
  readonly asked: CreateEntry;
}

/**
 * Records a create in the ledger before anything is uploaded or sent, and its outcome afterwards. Rejects a create that a
 * budget can't cover, and a key that was used with other params.
 */
export const ledgerLayer: Layer = async (call, next) => {
  const namespace = call.kind.type === 'json' ? call.kind.request.call : undefined;
  if (!namespace || call.kind.type !== 'json') return next(call);
  const where = whereOf(call);
  if (where.length === 0) return next(call);
  // A key function may return the key of another account for each call.
  const account = await call.core.account();
  const creates = await openAll(call, where, { account, namespace, digest: digestOfCreate(call, namespace) });
  call.sent.records = creates.map(({ ledger }) => recordsOf(ledger));
  const { run, shows } = call.kind.request;
  const record = createRecord(creates);
  const failed = (error: unknown) => {
    const fate = call.sent.mayHaveArrived ? outcomeUnderKey(error) : 'unsent';
    const failure = { fate, sentKey: record.sentKey, isResumed: run?.isResumed };
    return Promise.all(creates.map((it) => it.ledger.soon(failIn(it, failure))));
  };
  try {
    const answer = await next({ ...call, record });
    const { decoded } = answer;
    // Not the documented shape: a job may have been created.
    const shown = 'failure' in decoded ? undefined : shows?.(decoded.data);
    if (shown) await accept(call, { creates, sentKey: record.sentKey }, shown);
    else await failed('failure' in decoded ? decoded.failure : undefined);
    return answer;
  } catch (error) {
    await failed(error);
    throw error;
  } finally {
    if (!run) for (const { ledger, by } of creates) ledger.landed(by);
  }
};

/** Records that the request goes out now, so that it counts until its key is answered. The last layer above the attempt. */
export const recordSentLayer: Layer = async (call, next) => {
  await call.record?.sending(call);
  return next(call);
};

/** What the layers below the ledger's say of a create. `sentKey` is the key that the ledger knows to be sent. */
function createRecord(creates: readonly OpenedCreate[]): CreateRecord & { readonly sentKey: string | undefined } {
  let sentKey: string | undefined;
  return {
    get sentKey() {
      return sentKey;
    },
    async uploaded(body) {
      const params = isFields(body) ? body : {};
      const noting = creates
        .filter(({ asked }) => asked.keeps)
        .map(({ ledger, id, asked }) =>
          ledger.ask((draft) => noteParams(draft, id, params), { keys: keysOf(id, asked) }),
        );
      // If it fails, the record of the request itself reports it.
      await Promise.allSettled(noting);
    },
    async sending(call) {
      const { idempotencyKey: key, json } = call;
      if (key === undefined || key === sentKey) return;
      const params = json === undefined ? null : paramsOf(call);
      await Promise.all(creates.map((it) => noteSentIn(call, it, { params, sentKey: key })));
      sentKey = key;
    },
    async unsent() {
      sentKey = undefined;
      const kept = creates.filter(({ ledger }) => ledger.outlives);
      await Promise.all(
        kept.map(({ ledger, id, by, asked }) =>
          ledger.soon(ledger.ask((draft) => noteUnsent(draft, id, by), { keys: keysOf(id, asked) })),
        ),
      );
    },
  };
}

/** The entry of a create, for the code that runs the create. */
export function ledgerCreate({ ledger, id, by, asked }: OpenedCreate, isResumed = false): LedgerCreate {
  return {
    records: recordsOf(ledger),
    owner: by,
    async save(state) {
      if (asked.keeps) await ledger.soon(ledger.note((draft) => noteRun(draft, id, state), keysOf(id, asked)));
    },
    async end(isDelivered) {
      const end = { id, by, told: isDelivered, isResumed };
      const closed = ledger.note((draft) => closeRun(draft, end), keysOf(id, asked));
      await ledger.soon(closed.finally(() => ledger.landed(by)));
    },
  };
}

/** The ledger of the client's store, or undefined without a store. */
export function storeLedgerOf({ config }: Pick<Core, 'config'>): Ledger | undefined {
  return config.store && ledgerOf(config.store, config.clock.wall);
}

export function homeOf({ config }: Pick<Core, 'config'>): ClientHome {
  return { store: config.store, clock: config.clock.wall };
}

interface AskedBudgets {
  readonly ledger: Ledger;
  readonly budgets: readonly Budget[];
}

/** Where a create is noted: in the store of its budgets first, and in that of its client. */
function whereOf({ core, options }: Call<unknown>): AskedBudgets[] {
  const { store, budget, clock } = core.config;
  const budgets = [...new Set([budget, options.budget].filter((it) => it !== undefined))];
  const stores = [...new Set(budgets.map((it) => countingOf(it).countIn(homeOf(core)).store))];
  const [counting] = stores;
  if (stores.length > 1) {
    throw new GenError('The budgets of one call must be in one store. Pass the same `store` to each createBudget.');
  }
  return [...new Set([counting, store].filter((it) => it !== undefined))].map((it) => ({
    ledger: ledgerOf(it, clock.wall),
    budgets: it === counting ? budgets : [],
  }));
}

async function openAll(
  call: Call<unknown>,
  where: readonly AskedBudgets[],
  noted: Noted,
): Promise<readonly OpenedCreate[]> {
  const isResumed = call.kind.type === 'json' && call.kind.request.run?.isResumed;
  const creates: OpenedCreate[] = [];
  try {
    for (const asked of where) creates.push(await openIn(call, asked, noted));
    return creates;
  } catch (error) {
    await Promise.all(creates.map((it) => it.ledger.soon(failIn(it, { fate: 'unsent', isResumed }))));
    for (const { ledger, by } of creates) ledger.landed(by);
    throw error;
  }
}

interface Noted {
  readonly account: ClientAccount;
  readonly namespace: JobCall;
  readonly digest: string | undefined;
}

async function openIn(call: Call<unknown>, { ledger, budgets }: AskedBudgets, noted: Noted): Promise<OpenedCreate> {
  const run = call.kind.type === 'json' ? call.kind.request.run : undefined;
  const held = run?.opened.find((it) => it.records === recordsOf(ledger));
  const fields = entryOf(call, budgets, noted);
  const by = held?.owner ?? ledger.fly();
  const asked = {
    ...fields,
    holders: [by],
    // The record of a detached run has its outcome.
    keeps: ledger.outlives && ledger === storeLedgerOf(call.core) && detachedCall(call.options) === undefined,
  };
  const create: OpenedCreate = { ledger, by, id: entryId(asked.account, asked.key), asked };
  const refusesUnknown = budgets.map((it) => countingOf(it).refusesUnknown);
  try {
    const isAgain = held !== undefined || noted.digest !== undefined;
    const ask = { id: create.id, by, entry: asked, refusesUnknown, isAgain };
    let reply = await ledger.open(ask, call.signal);
    if (reply.outcome === 'unresolved') {
      await fillInAll(ledger, reply.budget);
      reply = await ledger.open(ask, call.signal);
    }
    if (reply.outcome === 'reused') throw reuseError(call, reply.jobId);
    if (reply.outcome !== 'noted') throw await budgetRefusal(ledger, reply);
    const opened = { ...create, id: reply.id };
    if (run && !held) run.opened.push(ledgerCreate(opened, run.isResumed));
    return opened;
  } catch (cause) {
    // It may be noted after all: an abort does not wait for the store.
    void failIn(create, { fate: 'unsent', isResumed: run?.isResumed }).catch(() => {});
    // Of a run that does not know of it yet, nobody else says that it is over.
    if (run && !held)
      void ledgerCreate(create, run.isResumed)
        .end(false)
        .catch(() => {});
    if (!held) ledger.landed(by);
    throw call.signal?.aborted ? cause : storeFailure(call, cause);
  }
}

async function fillInAll(ledger: Ledger, budget: BudgetTerms): Promise<void> {
  const { entries } = await ledger.recentEntries();
  const unpriced = entries.filter((it) => it.tokens === null && counts(it, budget));
  await Promise.all(unpriced.map((it) => ledger.ask((draft) => fillIn(draft, entryId(it.account, it.key)))));
}

/** The entry of a create, as far as it is known before anything is uploaded. */
function entryOf(call: Call<unknown>, budgets: readonly Budget[], { account, namespace, digest }: Noted): CreateEntry {
  const { core, kind, body, label, idempotencyKey: sentKey = '' } = call;
  const run = kind.type === 'json' ? kind.request.run : undefined;
  const { job, priceClass, isFixed: teaches } = priceOf(namespace, body);
  const learned = teaches ? core.jobs.priceOf(job, account) : undefined;
  const guesses = budgets.map((it) => countingOf(it).guess(job));
  const guessed = guesses.length > 0 && guesses.every((it) => it !== null) ? Math.max(...guesses.map(Number)) : null;
  return {
    key: run?.key ?? sentKey,
    account: account.id,
    call: namespace,
    params: call.json === undefined ? null : paramsOf(call),
    atMs: core.config.clock.wall.now(),
    label,
    phase: 'open',
    sentKey,
    holders: [],
    budgets: budgets.map((it) => countingOf(it).countIn(homeOf(core)).terms),
    priceClass,
    teaches,
    tokens: learned ?? guessed,
    isSure: learned !== undefined,
    digest,
    keeps: false,
    rules: run?.rules ?? null,
  };
}

function paramsOf({ json }: Call<unknown>): Record<string, unknown> {
  const params: unknown = JSON.parse(json ?? '{}');
  const { idempotency_key: _, ...rest } = isFields(params) ? params : {};
  return rest;
}

async function noteSentIn(
  call: Call<unknown>,
  { ledger, id, by, asked }: OpenedCreate,
  sent: { readonly params: CreateEntry['params']; readonly sentKey: string },
): Promise<void> {
  // A process that dies takes a ledger in its memory with it.
  if (!ledger.outlives) return;
  let isMine: boolean;
  try {
    isMine = await ledger.ask((draft) => noteSent(draft, { id, by, ...sent }), {
      keys: keysOf(id, asked),
      signal: call.signal,
    });
  } catch (cause) {
    throw call.signal?.aborted ? cause : storeFailure(call, cause);
  }
  if (isMine) return;
  const message = `${call.name} was not sent: the store had not heard from this process for 30 s, and another process now has this create or its share of the budget. Call again with the same key.`;
  throw new GenError(message, { recovery: 'retry' });
}

async function accept(
  call: Call<unknown>,
  { creates, sentKey }: { readonly creates: readonly OpenedCreate[]; readonly sentKey: string | undefined },
  { job, quotedTokens, balanceTokens }: ShownJob,
): Promise<void> {
  const { core, options, idempotencyKey } = call;
  for (const budget of new Set([core.config.budget, options.budget])) {
    if (budget) countingOf(budget).reportLow(tokensIn(balanceTokens));
  }
  const accepted = {
    jobId: job.id,
    quotedTokens: tokensIn(quotedTokens) ?? tokensIn(job.quotedTokenCost) ?? null,
    isUncharged: chargedTokensOf(job) === 0,
    sentKey: sentKey ?? idempotencyKey ?? '',
  };
  const notes = creates.map(({ ledger, id, by, asked }) => {
    const noted = ledger.note((draft) => acceptCreate(draft, { id, by, asked, ...accepted }), keysOf(id, asked));
    const told = noted.then(
      (isUnpriced) => isUnpriced && core.warn(unpriced(job.id)),
      (error) => core.warn(`job ${job.id} could not be noted: ${reasonOf(error)}`),
    );
    return ledger.soon(told);
  });
  await Promise.all(notes);
}

function unpriced(jobId: string): string {
  return `the answer to the create of job ${jobId} has no price, so a budget cannot count it until the job has ended and is read`;
}

function failIn(
  { ledger, id, by, asked }: OpenedCreate,
  failure: Pick<FailedCreate, 'fate' | 'sentKey' | 'isResumed'>,
): Promise<void> {
  return ledger.note((draft) => failCreate(draft, { id, by, ...failure }), keysOf(id, asked));
}

function storeFailure(call: Call<unknown>, cause: unknown): unknown {
  if (!ConnectionError.isInstance(cause) || isSetupError(cause)) return cause;
  const message = `The store could not note the create, so it was not sent: ${reasonOf(cause)}`;
  return new ConnectionError(message, { ...detailsOf(call), attempts: 0, cause });
}
