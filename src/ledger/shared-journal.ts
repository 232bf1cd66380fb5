import { GenError } from '../errors/index.js';
import {
  foldJournal,
  isDone,
  isEntry,
  type Journal,
  type JournalEntry,
  type JournaledCreate,
} from '../rules/journal.js';
import { DAY_MS } from '../rules/limits.js';
import { reasonOf } from '../runtime/callbacks.js';
import { clockOf, randomOf, systemClock } from '../runtime/clock.js';
import { isFields } from '../schemas/envelope.js';
import { show } from '../schemas/show.js';
import { boundedStore, type Store, updateGroup } from '../store/store.js';

/** A {@link Journal} of this package. */
export interface KeptJournal extends Journal {
  /** Names the journal in errors, for example by its path. */
  readonly name: string;
  /** Adds an entry. Resolves when the entry will survive the process. */
  append(entry: JournalEntry): Promise<void>;
  /** Returns what was appended, in its order. */
  entries(): Promise<readonly JournalEntry[]>;
  /** Notes that the file of a job is stored. `saveOutput` and `copyOutput` do it by themselves. */
  stored(jobId: string): Promise<void>;
}

/** Names a journal in a message. */
export function journalName({ name }: Journal): string {
  return typeof name === 'string' && name !== '' ? `The journal "${name}"` : 'The journal';
}

/** The creates of a journal. Throws a GenError that names the journal when it cannot be read. */
export async function readJournal(journal: Journal): Promise<JournaledCreate[]> {
  const entries: unknown[] = [];
  try {
    for await (const entry of await journal.entries()) entries.push(entry);
  } catch (cause) {
    throw journalError(`${journalName(journal)} could not be read: ${reasonOf(cause)}`, cause);
  }
  return foldJournal(entries);
}

/** An error of a journal. Its recovery is that of its cause, so that a store that is away for a moment is tried again. */
export function journalError(message: string, cause: unknown): GenError {
  return new GenError(message, { cause, ...(GenError.isInstance(cause) && { recovery: cause.recovery }) });
}

/** The entry for a stored file. */
export function storedEntry(jobId: unknown): JournalEntry {
  if (typeof jobId === 'string' && jobId !== '') return { phase: 'stored', jobId, at: timestamp() };
  throw new GenError(`journal.stored(jobId) takes the id of a job, not ${show(jobId)}.`);
}

/** The time of an entry. */
export function timestamp(nowMs: number = systemClock.now()): string {
  return new Date(nowMs).toISOString();
}

/** How to set up {@link sharedJournal}. */
export interface SharedJournalOptions {
  /** Names the journal in the store. Programs with different names do not see each other's creates. @default 'jobs' */
  readonly name?: string | undefined;
}

/** Creates are spread over so many groups of the store, because a group is swapped as a whole. */
const GROUPS = 16;
/** Output links do not live longer. Each entry of a create renews it. */
const LIVE_MS = 30 * DAY_MS;
/** How long a create is kept after nothing is left to do for it. */
const DONE_MS = DAY_MS;
/** In each group, the ids of its creates, with the time at which each may be forgotten. */
const INDEX = 'index';

/**
 * A {@link Journal} in a {@link Store}, for programs that run as many processes or without a disk. A create that
 * nothing is left to do for is forgotten after a day, any other after 30 days without an entry.
 *
 * @example
 * const store = redisStore(redis);
 * const client = new GenClient({ store, journal: sharedJournal(store) });
 */
export function sharedJournal(store: Store, { name = 'jobs' }: SharedJournalOptions = {}): KeptJournal {
  if (!isFields(store) || typeof store.read !== 'function' || typeof store.write !== 'function') {
    throw new GenError(`sharedJournal(store) takes a store such as redisStore(redis), not ${show(store)}.`);
  }
  if (typeof name !== 'string' || name === '') {
    throw new GenError(`sharedJournal: name must be a non-empty string, not ${show(name)}.`);
  }
  const clock = clockOf(store);
  const groupAt = (index: number) => `journal:${name}:${index}`;
  const append = async (entry: JournalEntry) => {
    // An end is kept with its create where the key is known, and by its job where not.
    const id = entry.key ?? ('jobId' in entry ? entry.jobId : '');
    const group = { store, group: groupAt(hash(id) % GROUPS), clock, random: randomOf(clock) };
    await updateGroup(group, [INDEX, `create:${id}`], ({ values, nowMs }) => {
      const entries = [...entriesIn(values[`create:${id}`]), entry];
      const [create] = foldJournal(entries);
      const ttlMs = create && isDone(create) ? DONE_MS : LIVE_MS;
      const index = { ...indexIn(values[INDEX], nowMs), [id]: nowMs + ttlMs };
      return {
        changes: {
          [INDEX]: { value: JSON.stringify(index), ttlMs: LIVE_MS },
          [`create:${id}`]: { value: JSON.stringify(entries), ttlMs },
        },
        result: undefined,
      };
    });
  };
  return {
    name,
    append,
    async entries() {
      const bounded = boundedStore(store, clock);
      const read = (_: unknown, index: number) => readGroup(bounded, groupAt(index));
      const groups = await Promise.all(Array.from({ length: GROUPS }, read));
      const firstAt = ([first]: JournalEntry[]) => Date.parse(first?.at ?? '') || 0;
      return groups
        .flat()
        .sort((one, other) => firstAt(one) - firstAt(other))
        .flat();
    },
    stored: async (jobId) => append(storedEntry(jobId)),
  };
}

/** The entries of each create of a group. */
async function readGroup(store: Store, group: string): Promise<JournalEntry[][]> {
  const { values, nowMs } = await store.read(group, [INDEX]);
  const keys = Object.keys(indexIn(values[INDEX], nowMs)).map((id) => `create:${id}`);
  if (keys.length === 0) return [];
  const { values: found } = await store.read(group, keys);
  return keys.map((key) => entriesIn(found[key]));
}

function indexIn(value: string | undefined, nowMs: number): Record<string, number> {
  const index: unknown = JSON.parse(value ?? '{}');
  const live = Object.entries(isFields(index) ? index : {}).filter(([, untilMs]) => Number(untilMs) > nowMs);
  return Object.fromEntries(live.map(([id, untilMs]) => [id, Number(untilMs)]));
}

function entriesIn(value: string | undefined): JournalEntry[] {
  const entries: unknown = JSON.parse(value ?? '[]');
  return Array.isArray(entries) ? entries.filter(isEntry) : [];
}

/** Spreads ids over the groups. */
function hash(text: string): number {
  let sum = 0;
  for (let at = 0; at < text.length; at++) sum = (Math.imul(sum, 31) + text.charCodeAt(at)) >>> 0;
  return sum;
}
