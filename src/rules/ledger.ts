// The rules of the ledger: what has become of each create. Whoever learns something says it here; nobody else decides.
// A step that is made twice has the effect of one. Pure.
import {
  type Admission,
  admissionOf,
  type BudgetStanding,
  type BudgetTerms,
  budgetName,
  standingOf,
} from './budget.js';
import { type CreateEntry, entryId, type LedgerDraft } from './ledger-draft.js';
import { correct, finish, isAnswered, replace, spend } from './ledger-shares.js';
import { type JobRunState, originsOf } from './run-state.js';

export interface OpenAsk {
  readonly id: string;
  readonly by: string;
  /** The entry as it would be noted, with the price as far as this process knows it. */
  readonly entry: CreateEntry;
  /** Whether a create of unknown price is refused, by budget. */
  readonly refusesUnknown: readonly boolean[];
  /** Whether the create may be known, because its key comes again. */
  readonly isAgain: boolean;
}

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
  const isFirst = entry.sentKey === entry.key;
  const done = draft.done(id);
  const known = draft.entry(id);
  const { digest, jobId, tries } = known ?? done ?? {};
  const differs = digest !== undefined && entry.digest !== undefined && digest !== entry.digest;
  // A run sends its later creates under keys and models of its own.
  if (differs && isFirst) return { outcome: 'reused', jobId };
  const isMade = (done && isFirst) || tries?.[entry.sentKey] !== undefined;
  if (!isMade && !(known && isUnderWay(draft, known, entry.sentKey))) return undefined;
  if (known) replace(draft, id, { ...leftBehind(draft, known), holders: withHolder(draft, known, by) });
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
  const earlier = known?.jobId === undefined ? undefined : { [known.sentKey]: known.jobId };
  const tries = { ...draft.done(id)?.tries, ...known?.tries, ...earlier };
  const tried = Object.keys(tries).length > 0 && { tries };
  const opened = { phase: 'open', sentKey, params: params ?? before.params, holders, sinceMs: draft.nowMs } as const;
  replace(draft, id, { ...before, tokens, isSure, ...opened, ...tried });
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

/** A create that was sent by a process which is gone: a job may exist, whatever the next attempt comes to. */
function leftBehind(draft: LedgerDraft, entry: CreateEntry): CreateEntry {
  const isLeft = entry.phase === 'sent' && !entry.holders.some(draft.isAlive);
  return isLeft ? { ...entry, isLost: true } : entry;
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

/** A price that was learned since fills in what was noted without one. */
export function fillIn(draft: LedgerDraft, id: string): void {
  const entry = draft.entry(id);
  const tokens = entry?.teaches && entry.tokens === null ? draft.price(entry) : undefined;
  if (!entry || tokens === undefined) return;
  const budgets = isAnswered(entry) ? spend(draft, entry.budgets, tokens) : entry.budgets;
  replace(draft, id, { ...entry, tokens, isSure: true, budgets });
}

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

/** The service has surely made nothing of what was sent: in the pause before the next attempt, it is not sent. */
export function noteUnsent(draft: LedgerDraft, id: string, by: string): void {
  const entry = draft.entry(id);
  if (entry?.phase !== 'sent' || entry.isLost) return;
  const [holder, ...others] = entry.holders;
  if (holder === by && others.length === 0) replace(draft, id, { ...entry, phase: 'open' });
}

export function noteParams(draft: LedgerDraft, id: string, params: CreateEntry['params']): void {
  const entry = draft.entry(id);
  if (entry && entry.params === null) replace(draft, id, { ...entry, params });
}

export interface AcceptedCreate {
  readonly id: string;
  readonly by: string;
  readonly sentKey: string;
  /** The entry as it was asked for, in case the ledger has lost it. */
  readonly asked: CreateEntry;
  readonly jobId: string;
  /** What the answer quotes; null for no quote. */
  readonly quotedTokens: number | null;
  readonly isUncharged: boolean;
}

/** The service has accepted the create, whoever learns that. True where no budget can tell what it costs. */
export function acceptCreate(draft: LedgerDraft, accepted: AcceptedCreate): boolean {
  const { id, by, asked, sentKey, jobId, quotedTokens, isUncharged } = accepted;
  if (asked.teaches && quotedTokens !== null) draft.learnPrice(asked, quotedTokens);
  const { jobId: doneId, tries: doneTries = {} } = draft.done(id) ?? {};
  if ([doneId, ...Object.values(doneTries)].includes(jobId)) return false;
  const entry = draft.entry(id) ?? asked;
  const holders = entry.rules === null ? [] : entry.holders;
  // A run that is repeated from its beginning comes by the jobs that it has made before.
  const isKnown = entry.jobId === jobId || entry.sentKey !== sentKey || entry.tries?.[sentKey] === jobId;
  if (isAnswered(entry) && isKnown) {
    replace(draft, id, { ...entry, holders: entry.holders.filter((it) => it !== by || entry.rules !== null) });
    return false;
  }
  const { isLost: _, isAside: __, isCharged: ___, ...rest } = entry;
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
  /** Whether a read says it: no other word of the charge will come. */
  readonly isRead: boolean;
}

/** The job of a create is final. Its budgets are corrected to what was charged. */
export function endCreate(draft: LedgerDraft, { id, jobId, status, chargedTokens, isRead }: EndedCreate): void {
  const entry = draft.entry(id);
  // Of an earlier job of the run, all is said.
  if (!entry || entry.jobId !== jobId || !isAnswered(entry)) return;
  const tokens = chargedTokens ?? entry.tokens;
  const corrected = tokens !== null && tokens !== entry.tokens ? tokens - (entry.tokens ?? 0) : 0;
  if (entry.teaches && entry.tokens === null && tokens !== null && tokens > 0) draft.learnPrice(entry, tokens);
  const charged = isRead && { isCharged: true as const };
  const budgets = correct(draft, entry.budgets, corrected);
  replace(draft, id, { ...entry, phase: 'ended', status, tokens, budgets, ...charged });
  // Where only the process remembers it, or its file is stored, the budget waits for the charge and for nothing else.
  const isLast = entry.isStored ? isRead : !entry.keeps && tokens !== null && entry.rules === null;
  if (isLast) finish(draft, id);
}

/** A call waits for the job or stores its file, or does so no longer. */
export function holdJob(draft: LedgerDraft, id: string, by: string, isHeld: boolean): void {
  const entry = draft.entry(id);
  if (!entry || !isAnswered(entry)) return;
  const holders = isHeld ? withHolder(draft, entry, by) : entry.holders.filter((it) => it !== by);
  replace(draft, id, { ...entry, holders });
}

/** The program has the outcome of a job, or its file. A completed one stays until its file is stored. */
export function handOver(draft: LedgerDraft, id: string, what: 'outcome' | 'file'): void {
  const entry = draft.entry(id);
  if (!entry || entry.jobId === undefined) return;
  const { phase, status, budgets, isCharged, holders } = entry;
  const isOver = phase === 'ended' && status !== 'completed';
  // Another wait may have thrown the failure of a job that its run goes on from.
  if (what === 'outcome' && (!isOver || holders.some(draft.isAlive))) return;
  if (what === 'file' && budgets.length > 0 && !isCharged) replace(draft, id, { ...entry, isStored: true });
  else finish(draft, id);
}

/** Why a create came to no job, as far as is known: see `outcomeUnderKey`. */
export interface FailedCreate {
  readonly id: string;
  readonly by: string;
  readonly fate: 'refused' | 'unsent' | 'lost';
  readonly sentKey?: string | undefined;
  /** Whether a process before this one has left the create, so that nobody else can make it again. */
  readonly isResumed?: boolean | undefined;
}

/** The call came to nothing. What may have been accepted stays; the rest of a run stays until the run is closed. */
export function failCreate(draft: LedgerDraft, { id, by, fate, sentKey, isResumed = false }: FailedCreate): void {
  const entry = draft.entry(id);
  if (!entry?.holders.includes(by) || isAnswered(entry)) return;
  const others = entry.holders.filter((it) => it !== by);
  const isRun = entry.rules !== null || isResumed;
  const holders = isRun ? entry.holders : others;
  if (fate === 'lost') {
    replace(draft, id, { ...entry, phase: 'sent', isLost: true, sentKey: sentKey ?? entry.sentKey, holders });
  } else if (others.some(fate === 'refused' ? draft.isOwn : draft.isAlive) || (fate === 'unsent' && entry.isLost)) {
    // What became of the create, another call under its key says, or an earlier attempt leaves open. A refusal is believed,
    // because another process may have died, unless the other call is of this process.
    replace(draft, id, { ...entry, holders });
  } else if (isRun) {
    const { isLost: _, ...rest } = entry;
    replace(draft, id, { ...rest, phase: 'open', isAside: true, holders });
  } else replace(draft, id, undefined);
}

/** Where a run stands, before it pauses or creates again. */
export function noteRun(draft: LedgerDraft, id: string, run: JobRunState): void {
  const entry = draft.entry(id);
  if (entry) replace(draft, id, { ...entry, run });
}

export interface ClosedRun {
  readonly id: string;
  readonly by: string;
  /** Whether its program was told the outcome: then a create that came to nothing is over, too. */
  readonly told: boolean;
  readonly isResumed?: boolean | undefined;
}

export function closeRun(draft: LedgerDraft, { id, by, told, isResumed = false }: ClosedRun): void {
  const entry = draft.entry(id);
  if (!entry?.holders.includes(by)) return;
  const holders = entry.holders.filter((it) => it !== by);
  const { phase, status, keeps } = entry;
  const isTold = told && (phase === 'open' || (phase === 'ended' && status !== 'completed'));
  if (holders.length > 0) replace(draft, id, { ...entry, holders });
  else if (phase === 'open' && entry.jobId === undefined && !isResumed) replace(draft, id, undefined);
  else if (isTold || (!keeps && phase === 'ended' && entry.tokens !== null)) finish(draft, id);
  else replace(draft, id, phase === 'sent' ? { ...entry, isLost: true, holders } : { ...entry, holders });
}

/** The user knows that no job exists under the key. What is in flight stays. */
export function releaseCreate(draft: LedgerDraft, id: string): void {
  const entry = draft.entry(id);
  if (!entry) return;
  const { isLost: _, ...rest } = entry;
  if (entry.holders.some(draft.isAlive)) replace(draft, id, rest);
  else if (!isAnswered(entry)) replace(draft, id, undefined);
  else if (entry.tokens === null) replace(draft, id, { ...entry, tokens: 0 });
}

/** Gives a create whose process is gone to a call. Undefined if a living process, or the record of a detached run, has it. */
export function takeUp(
  draft: LedgerDraft,
  id: string,
  by: string,
  isInFlight: (holder: string) => boolean,
): CreateEntry | undefined {
  const entry = draft.entry(id);
  if (!entry?.keeps || entry.isStored) return undefined;
  if (entry.holders.some((it) => draft.isAlive(it) && isInFlight(it))) return undefined;
  // What was not sent has lost its share, and asks again.
  const aside = entry.phase === 'open' && { isAside: true as const };
  const held = { ...leftBehind(draft, entry), holders: [by], ...aside };
  replace(draft, id, held);
  return held;
}

/** The program was told that a create which was left behind made no job, or one that the service does not know. */
export function dropCreate(draft: LedgerDraft, id: string, isUnknown: boolean): void {
  const entry = draft.entry(id);
  if (!entry || entry.holders.some(draft.isAlive)) return;
  if (isUnknown || entry.phase === 'open') replace(draft, id, undefined);
}
