// What the entries of a journal say about its creates. A function of the entries alone.
import { isFields, isText } from '../schemas/envelope.js';
import type { JobCall } from '../schemas/job.js';

/** The first entry of a create, written before it is sent. It is enough to send the create again under its own key. */
export interface OpenedEntry {
  /** Only the later entries have a phase. */
  readonly phase?: undefined;
  /** The idempotency key of the create. */
  readonly key: string;
  /** The namespace that creates the job. */
  readonly call: JobCall;
  /** The body of the create, with upload ids in the place of files. */
  readonly params: Readonly<Record<string, unknown>>;
  /** ISO timestamp of the entry. */
  readonly at: string;
  /** The `label` of the call, if it has one. */
  readonly label?: string | undefined;
}

/** The service has accepted a create. */
export interface AcceptedEntry {
  /** What happened. */
  readonly phase: 'accepted';
  /** The idempotency key of the create. */
  readonly key: string;
  /** The service's job id. */
  readonly jobId: string;
  /** ISO timestamp of the entry. */
  readonly at: string;
  /** Tokens that the service quoted. */
  readonly quotedTokens?: number | undefined;
}

/** A create has led to no job: the service refused it, or it was not sent. */
export interface ClosedEntry {
  /** What happened. */
  readonly phase: 'closed';
  /** The idempotency key of the create. */
  readonly key: string;
  /** ISO timestamp of the entry. */
  readonly at: string;
  /**
   * `refused`: the service answered that there is no job under the key. `unsent`: this attempt made none, which says
   * nothing about an earlier one under the same key.
   */
  readonly reason: 'refused' | 'unsent';
  /** What the create failed with. */
  readonly code?: string | undefined;
}

/** What the entries about the job of a create have in common. */
interface AboutJob {
  /** The service's job id. */
  readonly jobId: string;
  /** ISO timestamp of the entry. */
  readonly at: string;
  /** The idempotency key of the create, where this process knows it. */
  readonly key?: string | undefined;
}

/** A job has ended. */
export interface FinalEntry extends AboutJob {
  /** What happened. */
  readonly phase: 'final';
  /** How the job ended. */
  readonly status: string;
  /** Why the job failed. */
  readonly errorCode?: string | undefined;
  /** Tokens that the service charged. */
  readonly chargedTokens?: number | undefined;
  /** The model that the job ran on. */
  readonly model?: string | undefined;
}

/** The file of a job is about to be stored: what a crash leaves in these places belongs to the job. */
export interface StoringEntry extends AboutJob {
  /** What happened. */
  readonly phase: 'storing';
  /** The paths or URLs that the file is written to. */
  readonly places: readonly string[];
}

/** The file of a job is stored. */
export interface StoredEntry extends AboutJob {
  /** What happened. */
  readonly phase: 'stored';
  /** The paths or URLs of the file, where the writer gives them. */
  readonly places?: readonly string[] | undefined;
}

/** One entry of a {@link Journal}. */
export type JournalEntry = OpenedEntry | AcceptedEntry | ClosedEntry | FinalEntry | StoringEntry | StoredEntry;

/** The entries about the job of a create. */
type JobEntry = FinalEntry | StoringEntry | StoredEntry;

/** What `entries()` of a journal may return. */
export type JournalEntries = Iterable<JournalEntry> | AsyncIterable<JournalEntry>;

/**
 * Where a client writes its creates before it sends them, so that a crash loses none. `fileJournal` (gen-client/node) and
 * `sharedJournal` make one; your own needs `append` and `entries`.
 */
export interface Journal {
  /** Names the journal in errors, for example by its path. */
  readonly name?: string | undefined;
  /** Adds an entry. Resolves when the entry will survive the process. A rejection before a create rejects the create. */
  append(entry: JournalEntry): Promise<void> | void;
  /** Returns what was appended, in its order. */
  entries(): JournalEntries | Promise<JournalEntries>;
}

/**
 * How far a create has come.
 *
 * - `open`: it may have been sent, and its answer is unknown.
 * - `accepted`: its job is running.
 * - `completed`: its file is ready and not stored.
 * - `stored`: its file is stored.
 * - `failed`: its job ended without a file.
 * - `closed`: it led to no job.
 */
export type CreateState = 'open' | 'accepted' | 'completed' | 'stored' | 'failed' | 'closed';

/** A create, as the entries of a journal show it. */
export interface JournaledCreate extends Omit<OpenedEntry, 'phase'> {
  /** How far it has come. */
  readonly state: CreateState;
  /** The service's job id, once it is known. */
  readonly jobId?: string | undefined;
  /** Tokens that the service quoted. */
  readonly quotedTokens?: number | undefined;
  /** Tokens that the service charged. */
  readonly chargedTokens?: number | undefined;
  /** Why the job failed. */
  readonly errorCode?: string | undefined;
  /** The model that the job ran on. */
  readonly model?: string | undefined;
  /** The paths or URLs that the file is in, or was being written to. */
  readonly places?: readonly string[] | undefined;
}

/** Whether nothing is left to do for the create. */
export function isDone({ state }: Pick<JournaledCreate, 'state'>): boolean {
  return state === 'stored' || state === 'failed' || state === 'closed';
}

interface KnownCreate {
  opened?: OpenedEntry;
  /** Attempts under this key whose outcome is unknown. */
  unknown: number;
  accepted?: AcceptedEntry;
}

/** The last entry of each kind about a job. */
type Ends = { [P in JobEntry['phase']]?: Extract<JobEntry, { readonly phase: P }> };

/**
 * The creates of a journal, in the order of their first entries. Entries may repeat, and an end may stand before the
 * acceptance that belongs to it: a webhook can be faster than the answer.
 */
export function foldJournal(entries: Iterable<unknown>): JournaledCreate[] {
  const creates = new Map<string, KnownCreate>();
  const ends = new Map<string, Ends>();
  for (const entry of entries) if (isEntry(entry)) noteEntry(entry, creates, ends);
  return [...creates.values()].flatMap((create) => shown(create, ends));
}

function noteEntry(entry: JournalEntry, creates: Map<string, KnownCreate>, ends: Map<string, Ends>): void {
  if (isAboutJob(entry)) {
    ends.set(entry.jobId, { ...ends.get(entry.jobId), [entry.phase]: entry });
    return;
  }
  const create = creates.get(entry.key) ?? { unknown: 0 };
  creates.set(entry.key, create);
  if (entry.phase === undefined) {
    create.opened ??= entry;
    create.unknown += 1;
  } else if (entry.phase === 'accepted') create.accepted = entry;
  else create.unknown = entry.reason === 'refused' ? 0 : Math.max(0, create.unknown - 1);
}

/** A create as it is shown; none where the first entry is missing, because it was the line that was cut. */
function shown({ opened, unknown, accepted }: KnownCreate, ends: ReadonlyMap<string, Ends>): JournaledCreate[] {
  if (!opened) return [];
  const { key, call, params, at, label } = opened;
  const create = { key, call, params, at, ...(label !== undefined && { label }) };
  if (!accepted) return [{ ...create, state: unknown > 0 ? 'open' : 'closed' }];
  const { jobId, quotedTokens } = accepted;
  const end = ends.get(jobId);
  const { chargedTokens, errorCode, model } = end?.final ?? {};
  const places = end?.stored?.places ?? end?.storing?.places;
  return [
    {
      ...create,
      state: stateAfter(end),
      jobId,
      ...(quotedTokens !== undefined && { quotedTokens }),
      ...(chargedTokens !== undefined && { chargedTokens }),
      ...(errorCode !== undefined && { errorCode }),
      ...(model !== undefined && { model }),
      ...(places !== undefined && { places }),
    },
  ];
}

function stateAfter(end: Ends | undefined): CreateState {
  if (end?.stored) return 'stored';
  if (!end?.final) return 'accepted';
  return end.final.status === 'completed' ? 'completed' : 'failed';
}

function isAboutJob(entry: JournalEntry): entry is JobEntry {
  return entry.phase === 'final' || entry.phase === 'storing' || entry.phase === 'stored';
}

/** Whether a value read from a journal is an entry. */
export function isEntry(value: unknown): value is JournalEntry {
  if (!isFields(value)) return false;
  const { phase, key, jobId, call, params, status, places } = value;
  if (phase === undefined) return isText(key) && isText(call) && isFields(params);
  if (phase === 'accepted') return isText(key) && isText(jobId);
  if (phase === 'closed') return isText(key);
  if (phase === 'storing') return isText(jobId) && Array.isArray(places);
  return isText(jobId) && (phase === 'stored' || (phase === 'final' && isText(status)));
}

/**
 * The entries that still matter: those of creates that are not done, and of the last `kept` that are. At most four are
 * left of each create.
 */
export function compactEntries(entries: readonly JournalEntry[], kept: number): JournalEntry[] {
  const creates = foldJournal(entries);
  const done = creates.filter(isDone);
  const dropped = new Set(done.slice(0, Math.max(0, done.length - kept)).map(({ key }) => key));
  const left = creates.filter(({ key }) => !dropped.has(key));
  const keyOf = new Map(left.flatMap(({ jobId, key }) => (jobId === undefined ? [] : [[jobId, key] as const])));
  const byKey = new Map(left.map((create) => [create.key, create]));
  const last = new Map<string, JournalEntry>();
  for (const entry of entries) {
    const key = isAboutJob(entry) ? keyOf.get(entry.jobId) : entry.key;
    const create = key === undefined ? undefined : byKey.get(key);
    if (create === undefined) continue;
    // An open create is written as often as it was sent: each attempt is closed by an entry of its own.
    const isAttempt = create.jobId === undefined && (entry.phase === undefined || entry.phase === 'closed');
    const id = `${create.key}\n${entry.phase ?? ''}${isAttempt ? `\n${last.size}` : ''}`;
    if (entry.phase !== undefined || !last.has(id)) last.set(id, entry);
  }
  return [...last.values()];
}
