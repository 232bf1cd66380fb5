// Follows the jobs that pages look at, on the account's one schedule of reads.
import type { GenClient } from '../../client/client.js';
import { WaitTimeoutError } from '../../errors/index.js';
import type { Clock } from '../../runtime/clock.js';
import { onAbort } from '../../runtime/deadline.js';
import { keepLast } from '../../runtime/keep-last.js';
import { type Told, toldOf } from './answers.js';
import type { Hold, Holds } from './holds.js';

/** A request that asks for progress. */
interface Viewer {
  readonly user: string;
  /** The status that the page has seen; progress with another one is returned at once. */
  readonly seen: string | undefined;
  readonly holdMs: number;
  readonly signal: AbortSignal | undefined;
}

/** A job is followed for so long after its last viewer has left: pages come back for the next part of a hold. */
const LINGER_MS = 60_000;
/** Where nothing is known of a job yet, even a page that polls waits so long for the first read. */
const FIRST_PAGE_READ_MS = 10_000;
/** Ends that are remembered. An end never changes. */
const MOST_ENDS = 10_000;

/** One wait that all viewers of a job share, between their requests too. */
class Followed {
  latest: Told | undefined;
  error: unknown;
  hasEnded = false;
  readonly viewers = new Set<() => void>();
  readonly stop = new AbortController();
  /** What its last viewer has left behind. */
  left: Hold | undefined;
  stay: (() => void) | undefined;

  /** Something new is known. */
  tell(): void {
    for (const viewer of [...this.viewers]) viewer();
  }
}

/** Holds requests until the jobs that they ask about move on. */
export class Watches {
  readonly #client: GenClient;
  readonly #clock: Clock;
  readonly #holds: Holds;
  readonly #followed = new Map<string, Followed>();
  readonly #ends = new Map<string, Told>();

  constructor(client: GenClient, clock: Clock, holds: Holds) {
    this.#client = client;
    this.#clock = clock;
    this.#holds = holds;
  }

  /** What is known of a job that has ended, without a read. */
  ended(id: string): Told | undefined {
    return this.#ends.get(id);
  }

  /** Remembers what is told of a job, if it has ended. */
  note(id: string, told: Told): void {
    if (told.final) keepLast(this.#ends, id, told, MOST_ENDS);
  }

  /**
   * Resolves when there is something new, and at the latest after `holdMs`; undefined when nothing is known by then. Refused
   * where the user holds too much open.
   */
  async progress(id: string, viewer: Viewer): Promise<Told | undefined> {
    return this.ended(id) ?? (this.#clock.perRequest ? this.#alone(id, viewer) : this.#shared(id, viewer));
  }

  async #shared(id: string, { user, seen, holdMs, signal }: Viewer): Promise<Told | undefined> {
    const hold = this.#holds.take(user, this.#followed.get(id)?.left);
    const entry = this.#follow(id);
    entry.stay?.();
    const { latest } = entry;
    if (latest === undefined || (latest.status === seen && !latest.final)) {
      const mostMs = latest === undefined ? Math.max(holdMs, FIRST_PAGE_READ_MS) : holdMs;
      await nextChange(entry, this.#clock, mostMs, signal);
    }
    this.#leave(id, entry, hold);
    if (entry.error !== undefined) throw entry.error;
    return entry.latest;
  }

  #follow(id: string): Followed {
    const known = this.#followed.get(id);
    if (known) return known;
    const entry = new Followed();
    this.#followed.set(id, entry);
    const end = (error?: unknown) => {
      entry.error = error;
      entry.hasEnded = true;
      // An end is remembered, and after an error the next request asks anew.
      this.#forget(id, entry);
      entry.tell();
    };
    wait(this.#client, id, { signal: entry.stop.signal, timeoutMs: false }, (told) => {
      entry.latest = told;
      this.note(id, told);
      entry.tell();
    }).then(() => end(), end);
    return entry;
  }

  #forget(id: string, entry: Followed): void {
    entry.stay?.();
    entry.left?.release();
    if (this.#followed.get(id) === entry) this.#followed.delete(id);
    entry.stop.abort();
  }

  /** A request leaves its job. The wait of the last one goes on for a while, and counts for its user. */
  #leave(id: string, entry: Followed, hold: Hold): void {
    if (entry.viewers.size > 0 || entry.hasEnded) {
      hold.release();
      return;
    }
    entry.left = hold;
    entry.stay = this.#clock.after(LINGER_MS, () => this.#forget(id, entry));
  }

  /** On Workers, whatever a request has begun ends with it, so each one waits by itself. */
  async #alone(id: string, viewer: Viewer): Promise<Told | undefined> {
    const hold = this.#holds.take(viewer.user);
    try {
      const told = await oneWait(this.#client, id, viewer);
      if (told) this.note(id, told);
      return told;
    } finally {
      hold.release();
    }
  }
}

async function oneWait(client: GenClient, id: string, { seen, holdMs, signal }: Viewer): Promise<Told | undefined> {
  const stop = new AbortController();
  const forget = onAbort(signal, () => stop.abort(signal?.reason));
  let latest: Told | undefined;
  const options = { signal: stop.signal, timeoutMs: Math.max(holdMs, FIRST_PAGE_READ_MS) };
  try {
    await wait(client, id, options, (told) => {
      latest = told;
      if (holdMs === 0 || told.status !== seen) stop.abort();
    });
  } catch (error) {
    const hasLeft = error === signal?.reason;
    if (latest === undefined && !hasLeft && !WaitTimeoutError.isInstance(error)) throw error;
  } finally {
    forget();
  }
  return latest;
}

async function wait(
  client: GenClient,
  id: string,
  options: { readonly signal: AbortSignal; readonly timeoutMs: number | false },
  tell: (told: Told) => void,
): Promise<void> {
  const final = await client.waitForJob(id, {
    ...options,
    throwOnFailure: false,
    onUpdate: (job, ahead) => tell(toldOf({ ...ahead, job })),
  });
  tell(toldOf({ job: final, share: 1, etaMs: 0 }));
}

/** Resolves when something new is known, the time is over, or the page has left. */
async function nextChange(entry: Followed, clock: Clock, mostMs: number, signal: AbortSignal | undefined) {
  const undo: (() => unknown)[] = [];
  await new Promise<void>((done) => {
    entry.viewers.add(done);
    undo.push(() => entry.viewers.delete(done), clock.after(mostMs, done), onAbort(signal, done));
  });
  for (const forget of undo) forget();
}
