// Follows the jobs that pages look at, on the account's one schedule of reads.
import type { GenClient } from '../../client/client.js';
import type { Clock } from '../../runtime/clock.js';
import { onAbort } from '../../runtime/deadline.js';
import { keepLast } from '../../runtime/keep-last.js';
import { Refused, type Told, toldOf } from './page-requests.js';

// What a user holds open counts together: requests that wait, and the waits on the service that they have left behind.

export interface Hold {
  /** It is over. Calling it again has no effect. */
  release(): void;
}

const MOST_HELD = 64;
/** After so long one that was never released counts no more: on Workers, a request that is broken off ends without a word. */
const LONGEST_HOLD_MS = 600_000;

export class Holds {
  readonly #now: () => number;
  readonly #held = new Map<string, Map<Hold, number>>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Counts one more. Refused with 429 where that is too much. `instead` is what this one takes the place of. */
  take(user: string, instead?: Hold): Hold {
    const own = this.#held.get(user) ?? new Map<Hold, number>();
    const isFull = () => own.size - (instead && own.has(instead) ? 1 : 0) >= MOST_HELD;
    if (isFull()) {
      for (const [hold, beganMs] of own) if (this.#now() - beganMs >= LONGEST_HOLD_MS) own.delete(hold);
    }
    if (isFull()) {
      throw new Refused(429, 'rate_limited', 'Too many open requests. Try again later.', { 'retry-after': '5' });
    }
    instead?.release();
    const hold: Hold = {
      release: () => {
        own.delete(hold);
        if (own.size === 0 && this.#held.get(user) === own) this.#held.delete(user);
      },
    };
    own.set(hold, this.#now());
    this.#held.set(user, own);
    return hold;
  }
}

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

  ended(id: string): Told | undefined {
    return this.#ends.get(id);
  }

  note(id: string, told: Told): void {
    if (told.final) keepLast(this.#ends, id, told, MOST_ENDS);
  }

  /**
   * Resolves when there is something new, and at the latest after `holdMs`; undefined when nothing is known by then. Refused
   * where the user holds too much open.
   */
  async progress(id: string, viewer: Viewer): Promise<Told | undefined> {
    const ended = this.ended(id);
    if (ended) return ended;
    const { user, seen, holdMs, signal } = viewer;
    const { perRequest } = this.#clock;
    const hold = this.#holds.take(user, this.#followed.get(id)?.left);
    const entry = this.#follow(id);
    entry.stay?.();
    const { latest } = entry;
    const mostMs = latest === undefined ? Math.max(holdMs, FIRST_PAGE_READ_MS) : holdMs;
    // A wait of its own begins with a read, which is not news by itself.
    const isNews = () => entry.hasEnded || !perRequest || holdMs === 0 || entry.latest?.status !== seen;
    if (latest === undefined || (latest.status === seen && !latest.final))
      await nextChange(entry, isNews, { clock: this.#clock, mostMs, signal });
    this.#leave(id, entry, hold);
    if (entry.error !== undefined) throw entry.error;
    return entry.latest;
  }

  #follow(id: string): Followed {
    const known = this.#followed.get(id);
    if (known) return known;
    const entry = new Followed();
    // On Workers, whatever a request has begun ends with it, so each one waits by itself.
    if (!this.#clock.perRequest) this.#followed.set(id, entry);
    const end = (error?: unknown) => {
      entry.error = error;
      entry.hasEnded = true;
      // An end is remembered, and after an error the next request asks anew.
      this.#forget(id, entry);
      entry.tell();
    };
    const tell = (told: Told) => {
      entry.latest = told;
      this.note(id, told);
      entry.tell();
    };
    const options = { signal: entry.stop.signal, timeoutMs: false, throwOnFailure: false } as const;
    this.#client
      .waitForJob(id, { ...options, onUpdate: (job, ahead) => tell(toldOf({ ...ahead, job })) })
      .then((job) => tell(toldOf({ job, progress: 1, etaMs: 0 })))
      .then(() => end(), end);
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
    if (this.#clock.perRequest) this.#forget(id, entry);
    if (entry.viewers.size > 0 || entry.hasEnded || this.#clock.perRequest) {
      hold.release();
      return;
    }
    entry.left = hold;
    entry.stay = this.#clock.after(LINGER_MS, () => this.#forget(id, entry));
  }
}

/** Resolves when something new is known, the time is over, or the page has left. */
async function nextChange(
  { viewers }: Followed,
  isNews: () => boolean,
  {
    clock,
    mostMs,
    signal,
  }: { readonly clock: Clock; readonly mostMs: number; readonly signal: AbortSignal | undefined },
) {
  const undo: (() => unknown)[] = [];
  await new Promise<void>((done) => {
    const look = () => isNews() && done();
    viewers.add(look);
    undo.push(() => viewers.delete(look), clock.after(mostMs, done), onAbort(signal, done));
  });
  for (const forget of undo) forget();
}

// The jobs that the keys of pages have made, as far as this process knows: a key that comes again costs the service nothing.

const MOST_KEYS = 10_000;

/** What a page asks for under a key: the key that the service gets, and the ask, in short. */
interface Asked {
  readonly key: string;
  readonly digest: string | undefined;
}

interface Entry<Made> {
  readonly digest: string | undefined;
  readonly making?: Promise<Made>;
  readonly made?: Made;
}

/** Makes what a key asks for, once. Throws where the key has asked for something else. */
export class PageCreates<Made> {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry<Made>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What the key has made; undefined where that is not known. */
  known(asked: Asked): Made | undefined {
    return this.#entryOf(asked)?.made;
  }

  /** Runs `make`, and knows from then on what it has made. Calls of a key that are under way share one run. */
  async run(asked: Asked, make: () => Promise<Made>): Promise<Made> {
    const { key, digest } = asked;
    const known = this.#entryOf(asked)?.making;
    if (known) return known;
    const making = make();
    // On Workers a promise ends with the request that made it, and no other may wait for it.
    if (!this.#clock.perRequest) this.#entries.set(key, { digest, making });
    try {
      const made = await making;
      this.#entries.delete(key);
      keepLast(this.#entries, key, { digest, made }, MOST_KEYS);
      return made;
    } catch (error) {
      this.#entries.delete(key);
      throw error;
    }
  }

  #entryOf({ key, digest }: Asked): Entry<Made> | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.digest === digest) return entry;
    throw new Refused(400, 'idempotency_key_reused', 'This key has asked for something else before. Use a new one.');
  }
}
