import { ConnectionError } from '../../errors/client-errors.js';
import { GenError, PreflightError } from '../../errors/index.js';
import { budgetRefusal, type ClientHome, countingOf, counts } from '../../ledger/counting-budget.js';
import { type Ledger, ledgerOf } from '../../ledger/ledger.js';
import type { BudgetTerms } from '../../rules/budget.js';
import { outcomeUnderKey } from '../../rules/failure-kind.js';
import {
  acceptCreate,
  type FailedCreate,
  failCreate,
  fillIn,
  noteParams,
  noteSent,
  noteUnsent,
} from '../../rules/ledger.js';
import { type CreateEntry, entryId, keysOf } from '../../rules/ledger-draft.js';
import { priceOf } from '../../rules/price.js';
import { reasonOf } from '../../runtime/callbacks.js';
import { keepLast } from '../../runtime/keep-last.js';
import type { Budget } from '../../schemas/budget.js';
import { isFields } from '../../schemas/envelope.js';
import { type JobCall, tokensIn } from '../../schemas/job.js';
import type { ClientAccount } from '../../store/account.js';
import { isSetupError } from '../../store/store.js';
import { type Call, type Core, detailsOf, type Layer } from '../call.js';
import { ASKED, digestOf } from '../idempotency.js';
import { chargedTokensOf } from '../job-log.js';
import { endRun, type OpenedCreate } from '../opened-create.js';
import type { ShownJob } from '../transport.js';

/**
 * Notes a create in the ledger before anything is uploaded or sent, and what became of it afterwards. A create that a budget
 * has no room for, and a key that was used for other params, are refused here.
 */
export const opened: Layer = async (call, next) => {
  const namespace = call.kind.type === 'json' ? call.kind.request.call : undefined;
  if (!namespace || call.kind.type !== 'json') return next(call);
  const digest = digestOfCreate(call, namespace);
  const where = whereOf(call);
  // A key function may give the key of another account for each call.
  const account = digest !== undefined || where.length > 0 ? await call.core.account() : undefined;
  if (account) refuseReuse(call, account, digest);
  const creates = account ? await openAll(call, where, { account, namespace, digest }) : [];
  call.sent.ledgers = creates.map(({ ledger }) => ledger);
  const { run, shows } = call.kind.request;
  const failed = (error: unknown) => {
    const fate = call.sent.mayHaveArrived ? outcomeUnderKey(error) : 'unsent';
    const failure = { fate, sentKey: call.sent.notedKey, isResumed: run?.isResumed };
    return Promise.all(creates.map((it) => it.ledger.soon(failIn(it, failure))));
  };
  try {
    const answer = await next({ ...call, opened: creates });
    const { decoded } = answer;
    // Not the documented shape: a job may have been made.
    const shown = 'failure' in decoded ? undefined : shows?.(decoded.data);
    if (shown && account && digest !== undefined)
      rememberKey(account, call.idempotencyKey, { digest, jobId: shown.job.id });
    if (shown) await accept(call, creates, shown);
    else await failed('failure' in decoded ? decoded.failure : undefined);
    return answer;
  } catch (error) {
    await failed(error);
    throw error;
  } finally {
    if (!run) for (const { ledger, by } of creates) ledger.landed(by);
  }
};

/** Notes that the request goes out now, so that it counts until its key is answered. The last layer above the attempt. */
export const noted: Layer = async (call, next) => {
  const key = call.idempotencyKey;
  if (call.opened && key !== undefined && call.sent.notedKey !== key) {
    const params = call.json === undefined ? null : paramsOf(call);
    await Promise.all(call.opened.map((it) => noteSentIn(call, it, { params, sentKey: key })));
    call.sent.notedKey = key;
  }
  return next(call);
};

/** Notes that the last attempt has surely made nothing, before a pause in which the process may die. */
export async function noteUnsentIn(call: Call<unknown>): Promise<void> {
  delete call.sent.notedKey;
  const kept = call.opened?.filter(({ ledger }) => ledger.outlives) ?? [];
  await Promise.all(
    kept.map(({ ledger, id, by, asked }) =>
      ledger.soon(ledger.ask((draft) => noteUnsent(draft, id, by), { keys: keysOf(id, asked) })),
    ),
  );
}

/** Notes the upload ids of the files, so that a create which waits for its rate limit can be sent by another process. */
export async function noteUploads({ opened: creates = [] }: Call<unknown>, body: unknown): Promise<void> {
  const params = isFields(body) ? body : {};
  const noting = creates
    .filter(({ asked }) => asked.keeps)
    .map(({ ledger, id, asked }) => ledger.ask((draft) => noteParams(draft, id, params), { keys: keysOf(id, asked) }));
  // Where it fails, the note of the request itself says so.
  await Promise.allSettled(noting);
}

/** The ledger that outlives the calls of a client; undefined without a store. */
export function ledgerIn({ config }: Pick<Core, 'config'>): Ledger | undefined {
  return config.store && ledgerOf(config.store, config.clock.wall);
}

function homeOf({ config }: Pick<Core, 'config'>): ClientHome {
  return { store: config.store, clock: config.clock.wall };
}

export function ledgersOf(core: Pick<Core, 'config'>): readonly Ledger[] {
  const { budget, clock } = core.config;
  const own = ledgerIn(core);
  const counting = budget && ledgerOf(countingOf(budget).countIn(homeOf(core)).store, clock.wall);
  return [...new Set([own, counting].filter((it) => it !== undefined))];
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
  const held = run?.opened.find((it) => it.ledger === ledger);
  const fields = entryOf(call, budgets, noted);
  const by = held?.by ?? ledger.fly();
  const asked = {
    ...fields,
    holders: [by],
    keeps: ledger.outlives && ledger === ledgerIn(call.core),
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
    if (run && !held) run.opened.push(opened);
    return opened;
  } catch (cause) {
    // It may be noted after all: an abort does not wait for the store.
    void failIn(create, { fate: 'unsent', isResumed: run?.isResumed }).catch(() => {});
    // Of a run that does not know of it yet, nobody else says that it is over.
    if (run && !held) void endRun({ ...run, opened: [create] }, false).catch(() => {});
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
  creates: readonly OpenedCreate[],
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
    sentKey: call.sent.notedKey ?? idempotencyKey ?? '',
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

const KEPT_KEYS = 1_000;

interface MadeUnder {
  readonly digest: string;
  readonly jobId: string;
}

function createdKeys(account: ClientAccount): Map<string, MadeUnder> {
  return account.shared('create keys', () => new Map());
}

function rememberKey(account: ClientAccount, key = '', made: MadeUnder): void {
  keepLast(createdKeys(account), key, made, KEPT_KEYS);
}

/** A digest of the params, where the caller has chosen the key: a random one is never used again. */
function digestOfCreate({ kind, body, options }: Call<unknown>, namespace: JobCall): string | undefined {
  const run = kind.type === 'json' ? kind.request.run : undefined;
  const isChosen = run
    ? run.hasOwnKey
    : (options.idempotencyKey ?? (isFields(body) ? body.idempotency_key : undefined));
  // The key of a page stands for what the page has asked, and not for what a proxy makes of it.
  const asked = (options as { readonly [ASKED]?: object })[ASKED] ?? body;
  return isChosen && isFields(asked) ? digestOf(namespace, asked) : undefined;
}

/**
 * Refuses a key that this process has used for something else: the service answers a key that it knows with the first job,
 * whatever the params, so a key that is used again by mistake would go unnoticed.
 */
function refuseReuse(call: Call<unknown>, account: ClientAccount, digest: string | undefined): void {
  const first = createdKeys(account).get(call.idempotencyKey ?? '');
  if (first && digest !== undefined && first.digest !== digest) throw reuseError(call, first.jobId);
}

function reuseError({ idempotencyKey = '', name }: Call<unknown>, jobId: string | undefined): PreflightError {
  const made = jobId === undefined ? '' : ` It made job ${jobId}.`;
  const message = `${name}: the idempotency key "${idempotencyKey}" was used with other params.${made} Use another key for another job.`;
  return new PreflightError(message, { code: 'idempotency_key_reused', param: 'idempotencyKey' });
}
