// The rules of the ledger: what has become of each create. Whoever learns something says it here; nobody else decides.
// A step that is made twice has the effect of one. Pure.
import {
  type Admission,
  admissionOf,
  type BudgetStanding,
  type BudgetTerms,
  budgetAt,
  budgetName,
  type ExpectedPrice,
  type ShareName,
  standingOf,
  withShare,
  withSpent,
} from './budget.js';
import type { LedgerDraft } from './ledger-draft.js';
import { type CreateEntry, entryId, processOf } from './ledger-entry.js';
import { type JobRunState, originsOf } from './run-state.js';

/** A create that asks to be noted, on behalf of a call. */
export interface OpenAsk {
  readonly id: string;
  /** The call that asks. */
  readonly by: string;
  /** The entry as it would be noted, with the price as far as this process knows it. */
  readonly entry: CreateEntry;
  /** Whether a create of unknown price is refused, by budget. */
  readonly refusesUnknown: readonly boolean[];
  /** Whether the create may be known, because its key comes again. */
  readonly isAgain: boolean;
}

/** What became of an ask. */
export type OpenReply =
  /** Noted, or noted before under `id`: it may be sent. */
  | { readonly outcome: 'noted'; readonly id: string }
  /** Another call has used the key for something else. */
  | { readonly outcome: 'reused'; readonly jobId: string | undefined }
  | BudgetRefused;

/** A budget stands in the way; `unpriced` where it refuses unknown prices. */
export interface BudgetRefused {
  readonly outcome: Exclude<Admission, 'room'> | 'unpriced';
  readonly budget: BudgetTerms;
  readonly standing: BudgetStanding;
  readonly tokens: number | null;
}

/** Goes on with a create that is known, which needs no room, or refuses its key. Undefined for one that asks for room. */
export function openKnown(draft: LedgerDraft, { id: asked, by, entry }: OpenAsk): OpenReply | undefined {
  const id = knownId(draft, asked, entry);
  const done = draft.done(id);
  const known = draft.entry(id);
  const { digest, jobId } = known ?? done ?? {};
  const differs = digest !== undefined && entry.digest !== undefined && digest !== entry.digest;
  // A run sends its later creates under keys and models of its own.
  if (differs && entry.sentKey === entry.key) return { outcome: 'reused', jobId };
  if (!done && !(known && isUnderWay(draft, known, entry.sentKey))) return undefined;
  if (known) replace(draft, id, { ...known, holders: withHolder(draft, known, by) });
  return { outcome: 'noted', id };
}

/** Notes a create if every budget that counts it has room, in one step. One that is known goes on where it is. */
export function openCreate(draft: LedgerDraft, ask: OpenAsk): OpenReply {
  const reply = openKnown(draft, ask);
  if (reply) return reply;
  const { by, entry, refusesUnknown } = ask;
  const id = knownId(draft, ask.id, entry);
  const known = draft.entry(id);
  const learned = entry.teaches ? draft.price(entry) : undefined;
  const { tokens, isSure } = learned === undefined ? entry : { tokens: learned, isSure: true };
  const { isAside: _, ...before } = known ?? entry;
  const refused = refusalOf(draft, { ...before, tokens, isSure }, refusesUnknown);
  if (refused) return refused;
  const { params, sentKey } = entry;
  const holders = withHolder(draft, known, by);
  replace(draft, id, { ...before, tokens, isSure, phase: 'open', sentKey, params: params ?? before.params, holders });
  return { outcome: 'noted', id };
}

/** The first budget that has no room for a create; undefined where all have. */
function refusalOf(
  draft: LedgerDraft,
  { budgets, tokens, isSure }: CreateEntry,
  refusesUnknown: readonly boolean[] = [],
): BudgetRefused | undefined {
  for (const [at, budget] of budgets.entries()) {
    const standing = standingOf(draft.budget(budgetName(budget)), budget, draft.nowMs, draft.isAlive);
    const admission = admissionOf(standing, budget.maxTokens, { tokens, isSure });
    const outcome = tokens === null && refusesUnknown[at] ? 'unpriced' : admission;
    if (outcome !== 'room') return { outcome, budget, standing, tokens };
  }
  return undefined;
}

/** The calls that work on a create, and one more, which comes first. */
function withHolder(draft: LedgerDraft, known: CreateEntry | undefined, by: string): readonly string[] {
  return [by, ...(known?.holders ?? []).filter((it) => it !== by && draft.isAlive(it))];
}

/** The entry that a key belongs to: the SDK may have derived the key and sent it in the place of another one. */
function knownId(draft: LedgerDraft, id: string, { account, key, sentKey }: CreateEntry): string {
  const ids = originsOf(key).map((origin) => entryId(account, origin));
  return draft.entry(id) ? id : (ids.find((it) => draft.entry(it)?.sentKey === sentKey) ?? id);
}

/** Whether the create stands where it is: it counts already, or its job exists. */
function isUnderWay(draft: LedgerDraft, known: CreateEntry, sentKey: string): boolean {
  if (known.phase === 'open') return !known.isAside && known.sentKey === sentKey && known.holders.some(draft.isAlive);
  return known.phase === 'sent' || sentKey === known.sentKey || sentKey === known.key;
}

/** Whether the create that was sent last has a job. */
function isAnswered({ phase }: CreateEntry): boolean {
  return phase === 'accepted' || phase === 'ended';
}

/** What goes out now. */
export interface SentCreate extends Pick<CreateEntry, 'params' | 'sentKey'> {
  readonly id: string;
  readonly by: string;
}

/** The request goes out now. False where the create or its room is in other hands, so that it must not. */
export function noteSent(draft: LedgerDraft, { id, by, params, sentKey }: SentCreate): boolean {
  const entry = draft.entry(id);
  if (!entry) return draft.done(id) !== undefined;
  if (!entry.holders.includes(by)) return false;
  if (entry.phase === 'open' && !draft.isHeld(by)) {
    // Its process was taken for dead: meanwhile others may have had its share.
    replace(draft, id, { ...entry, isAside: true });
    if (refusalOf(draft, entry)) return false;
  }
  if (!isAnswered(entry)) replace(draft, id, { ...entry, phase: 'sent', sentKey, params: params ?? entry.params });
  return true;
}

/** The files of the create are uploaded. */
export function noteParams(draft: LedgerDraft, id: string, params: CreateEntry['params']): void {
  const entry = draft.entry(id);
  if (entry && entry.params === null) replace(draft, id, { ...entry, params });
}

/** What the answer to a create says. */
export interface AcceptedCreate {
  readonly id: string;
  readonly by: string;
  /** The key that was sent. */
  readonly sentKey: string;
  /** The entry as it was asked for, in case the ledger has lost it. */
  readonly asked: CreateEntry;
  readonly jobId: string;
  /** What the answer quotes; null for no quote. */
  readonly quotedTokens: number | null;
  /** Whether the job has ended already, and was not charged. */
  readonly isUncharged: boolean;
}

/** The service has accepted the create, whoever learns that. True where no budget can tell what it costs. */
export function acceptCreate(draft: LedgerDraft, accepted: AcceptedCreate): boolean {
  const { id, by, asked, sentKey, jobId, quotedTokens, isUncharged } = accepted;
  if (asked.teaches && quotedTokens !== null) draft.learnPrice(asked, quotedTokens);
  if (draft.done(id)?.jobId === jobId) return false;
  const entry = draft.entry(id) ?? asked;
  const holders = entry.rules === null ? [] : entry.holders;
  // A run that is repeated from its beginning comes by the jobs that it has made before.
  if (isAnswered(entry) && (entry.jobId === jobId || entry.sentKey !== sentKey)) {
    replace(draft, id, { ...entry, holders: entry.holders.filter((it) => it !== by || entry.rules !== null) });
    return false;
  }
  const { isLost: _, isAside: __, ...rest } = entry;
  const tokens = isUncharged ? 0 : (quotedTokens ?? entry.tokens ?? draft.price(entry) ?? null);
  const phase = 'accepted';
  const after: CreateEntry = { ...rest, tokens, isSure: true, phase, jobId, holders };
  replace(draft, id, { ...after, budgets: spend(draft, after.budgets, tokens ?? 0) });
  draft.putJob(jobId, id);
  // Nobody asks again for what the process alone remembers and no budget counts.
  if (!entry.keeps && entry.budgets.length === 0 && entry.rules === null) finish(draft, id);
  return tokens === null && entry.budgets.length > 0;
}

/** What a read or a webhook says of the end of a job. */
export interface EndedCreate {
  readonly id: string;
  readonly jobId: string;
  readonly status: string;
  /** What was charged; undefined where nobody says it. */
  readonly chargedTokens: number | undefined;
}

/** The job of a create is final. Its budgets are corrected to what was charged. */
export function endCreate(draft: LedgerDraft, { id, jobId, status, chargedTokens }: EndedCreate): void {
  const entry = draft.entry(id);
  // Of an earlier job of the run, all is said.
  if (!entry || entry.jobId !== jobId || !isAnswered(entry)) return;
  const tokens = chargedTokens ?? entry.tokens;
  const corrected = tokens !== null && tokens !== entry.tokens ? tokens - (entry.tokens ?? 0) : 0;
  if (entry.teaches && entry.tokens === null && tokens !== null && tokens > 0) draft.learnPrice(entry, tokens);
  replace(draft, id, { ...entry, phase: 'ended', status, tokens, budgets: correct(draft, entry.budgets, corrected) });
  // Where only the process remembers it, the budget waits for the charge and for nothing else.
  if (!entry.keeps && tokens !== null && entry.rules === null) finish(draft, id);
}

/** The program has the outcome of a job, or its file. A completed one stays until its file is stored. */
export function handOver(draft: LedgerDraft, id: string, what: 'outcome' | 'file'): void {
  const entry = draft.entry(id);
  if (!entry || entry.jobId === undefined) return;
  if (what === 'file' || (entry.phase === 'ended' && entry.status !== 'completed')) finish(draft, id);
}

/** Why a create came to no job, as far as is known: see `outcomeUnderKey`. */
export interface FailedCreate {
  readonly id: string;
  readonly by: string;
  readonly fate: 'refused' | 'unsent' | 'lost';
  /** The key that was sent last. */
  readonly sentKey?: string | undefined;
}

/** The call came to nothing. What may have been accepted stays; the rest of a run stays until the run is closed. */
export function failCreate(draft: LedgerDraft, { id, by, fate, sentKey }: FailedCreate): void {
  const entry = draft.entry(id);
  if (!entry?.holders.includes(by) || isAnswered(entry)) return;
  const others = entry.holders.filter((it) => it !== by);
  const isRun = entry.rules !== null;
  const holders = isRun ? entry.holders : others;
  if (fate === 'lost') {
    replace(draft, id, { ...entry, phase: 'sent', isLost: true, sentKey: sentKey ?? entry.sentKey, holders });
  } else if (fate === 'unsent' && entry.isLost) replace(draft, id, { ...entry, holders });
  else if (isRun) {
    const { isLost: _, ...rest } = entry;
    replace(draft, id, { ...rest, phase: 'open', isAside: true, holders });
  } else if (fate === 'unsent' && others.length > 0) replace(draft, id, { ...entry, holders: others });
  else replace(draft, id, undefined);
}

/** Where a run stands, before it pauses or creates again. */
export function noteRun(draft: LedgerDraft, id: string, run: JobRunState): void {
  const entry = draft.entry(id);
  if (entry) replace(draft, id, { ...entry, run });
}

/** The call of a run is over. Where it `told` its outcome, a create that came to nothing is over, too. */
export function closeRun(draft: LedgerDraft, id: string, by: string, told: boolean): void {
  const entry = draft.entry(id);
  if (!entry?.holders.includes(by)) return;
  const holders = entry.holders.filter((it) => it !== by);
  const { phase, status, keeps } = entry;
  const isTold = told && (phase === 'open' || (phase === 'ended' && status !== 'completed'));
  if (holders.length > 0) replace(draft, id, { ...entry, holders });
  else if (phase === 'open' && entry.jobId === undefined) replace(draft, id, undefined);
  else if (isTold || (!keeps && phase === 'ended' && entry.tokens !== null)) finish(draft, id);
  else replace(draft, id, phase === 'sent' ? { ...entry, isLost: true, holders } : { ...entry, holders });
}

/** The user knows that no job exists under the key. What is in flight stays. */
export function releaseCreate(draft: LedgerDraft, id: string): void {
  const entry = draft.entry(id);
  if (!entry) return;
  const { isLost: _, ...rest } = entry;
  if (entry.holders.some(draft.isAlive)) replace(draft, id, rest);
  else if (isAnswered(entry)) replace(draft, id, { ...entry, tokens: 0 });
  else replace(draft, id, undefined);
}

/** Gives a create whose process is gone to a call. Undefined where a living process has it. */
export function takeUp(
  draft: LedgerDraft,
  id: string,
  by: string,
  isInFlight: (holder: string) => boolean,
): CreateEntry | undefined {
  const entry = draft.entry(id);
  if (!entry || entry.holders.some((it) => draft.isAlive(it) && isInFlight(it))) return undefined;
  // What was not sent has lost its share, and asks again.
  const held = { ...entry, holders: [by], ...(entry.phase === 'open' && { isAside: true as const }) };
  replace(draft, id, held);
  return held;
}

/** Takes an entry away whose job the service does not know, or that cannot be sent again. */
export function dropCreate(draft: LedgerDraft, id: string): void {
  replace(draft, id, undefined);
}

/** Whether a create holds tokens of a budget without that anybody works on it, so that only its key tells its outcome. */
export function isUnresolved(entry: CreateEntry, isAlive: (holder: string) => boolean): boolean {
  const name = shareOf(entry);
  return name?.startsWith('sent') === true && !isAlive(name.slice('sent '.length));
}

/** The share of a budget that a create is part of; none once its cost is spent. */
function shareOf({ phase, holders: [holder], isLost, isAside, tokens }: CreateEntry): ShareName | undefined {
  const owner = holder === undefined ? '' : processOf(holder);
  if (phase === 'open') return isAside ? undefined : `open ${owner}`;
  if (phase === 'sent') return `sent ${isLost && holder === undefined ? '' : owner}`;
  return tokens === null ? 'sent ' : undefined;
}

/** What a create is taken to cost. One that was accepted without a price counts as spent, and may cost anything. */
function expectedOf({ phase, tokens, isSure }: CreateEntry): ExpectedPrice {
  return phase === 'open' || phase === 'sent' ? { tokens, isSure } : { tokens: 0, isSure: false };
}

/** Replaces an entry, and moves what it reserves. */
function replace(draft: LedgerDraft, id: string, entry: CreateEntry | undefined): void {
  const before = draft.entry(id);
  reserve(draft, before, -1);
  reserve(draft, entry, 1);
  if (before?.jobId !== undefined && entry === undefined) draft.putJob(before.jobId, undefined);
  draft.put(id, entry);
}

function reserve(draft: LedgerDraft, entry: CreateEntry | undefined, sign: 1 | -1): void {
  const share = entry && shareOf(entry);
  if (!entry || share === undefined) return;
  for (const budget of entry.budgets) {
    const state = budgetAt(draft.budget(budgetName(budget)), budget.per, draft.nowMs);
    draft.putBudget(budget, withShare(state, share, expectedOf(entry), { sign, nowMs: draft.nowMs }));
  }
}

/** The entry has done its work. Its key stays known for a while. */
function finish(draft: LedgerDraft, id: string): void {
  const entry = draft.entry(id);
  if (!entry) return;
  replace(draft, id, undefined);
  draft.put(id, undefined, { jobId: entry.jobId, digest: entry.digest });
}

/** Counts tokens in the present period of each budget. */
function spend(draft: LedgerDraft, budgets: CreateEntry['budgets'], tokens: number): CreateEntry['budgets'] {
  return budgets.map((budget) => {
    const state = budgetAt(draft.budget(budgetName(budget)), budget.per, draft.nowMs);
    const after = withSpent(state, budget.per, tokens, draft.nowMs);
    draft.putBudget(budget, after);
    return { ...budget, startMs: after.startMs };
  });
}

/** Corrects what was counted, where the period is still the same. */
function correct(draft: LedgerDraft, budgets: CreateEntry['budgets'], tokens: number): CreateEntry['budgets'] {
  if (tokens === 0) return budgets;
  for (const budget of budgets) {
    const state = budgetAt(draft.budget(budgetName(budget)), budget.per, draft.nowMs);
    if (state.startMs === budget.startMs) draft.putBudget(budget, withSpent(state, budget.per, tokens, draft.nowMs));
  }
  return budgets;
}
