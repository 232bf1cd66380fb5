// Follows the jobs of pages, in the account's one schedule of polls. One request of a page carries all its jobs.
import type { GenClient } from '../../client/client.js';
import { type Clock, systemClock } from '../../runtime/clock.js';
import { onAbort } from '../../runtime/deadline.js';
import { setAndEvict } from '../../runtime/set-and-evict.js';
import { type JobView, jobView } from './job-view.js';
import type { OpenRequest, OpenRequests } from './open-requests.js';

/** What is known of a job; undefined if nothing is known yet. */
export type Known = { readonly view: JobView } | { readonly error: unknown } | undefined;

/** A job that a page watches. */
export interface WatchedJob {
  readonly id: string;
  /** The status that the page has seen. */
  readonly seen: string | undefined;
  /** How it ended, if its ticket says so. */
  readonly known: Known;
}

interface WatchedEntry {
  readonly seen: string | undefined;
  readonly entry: Followed;
}

interface Viewer {
  readonly user: string;
  readonly holdMs: number;
  readonly signal: AbortSignal | undefined;
}

/** A job is followed for this time after its last viewer has left: pages come back for the next part of a wait. */
const LINGER_MS = 60_000;
/** If nothing is known of a job yet, even a page that polls waits up to this time for the first poll. */
const FIRST_POLL_MS = 10_000;
/** After news, more is collected for this time: a gallery of new jobs needs few responses. */
const COLLECT_NEWS_MS = 100;
/** The same for progress without news. */
const COLLECT_PROGRESS_MS = 1_000;
/** Ends that are remembered. An end never changes. */
const MAX_ENDS = 10_000;

/** A wait that all viewers of a job share, between their requests too. */
class Followed {
  known: Known;
  readonly viewers = new Set<() => void>();
  readonly stop = new AbortController();
  /** What its last viewer has left open. */
  left: OpenRequest | undefined;
  stay: (() => void) | undefined;

  update(known: Known): void {
    this.known = known;
    for (const viewer of [...this.viewers]) viewer();
  }
}

/** Holds requests until one of their jobs moves. */
export class Watches {
  readonly #client: GenClient;
  readonly #clock: Clock;
  readonly #open: OpenRequests;
  readonly #followed = new Map<string, Followed>();
  readonly #ends = new Map<string, JobView>();
  readonly #onEnd: (id: string) => void;

  constructor(client: GenClient, clock: Clock, open: OpenRequests, onEnd: (id: string) => void) {
    this.#client = client;
    this.#clock = clock;
    this.#open = open;
    this.#onEnd = onEnd;
  }

  ended(id: string): JobView | undefined {
    return this.#ends.get(id);
  }

  note(id: string, view: JobView): void {
    if (view.phase === 'waiting' || this.#ends.has(id)) return;
    setAndEvict(this.#ends, id, view, MAX_ENDS);
    this.#onEnd(id);
  }

  /** Resolves once there is news of a job, at the latest after `holdMs`. Throws a 429 if the user has too much open. */
  async progress(jobs: readonly WatchedJob[], viewer: Viewer): Promise<Known[]> {
    const ended = jobs.map(({ id, known }) => known ?? this.#knownEnd(id));
    if (ended.some(Boolean)) return jobs.map(({ id }, at) => ended[at] ?? this.#followed.get(id)?.known);
    const lefts = jobs.flatMap(({ id }) => this.#followed.get(id)?.left ?? []);
    const request = this.#open.take(viewer.user, lefts);
    const entries = jobs.map(({ id, seen }) => ({ id, seen, entry: this.#follow(id) }));
    await this.#news(entries, viewer);
    for (const { id, entry } of entries) this.#leave(id, entry, viewer.user);
    request.release();
    return entries.map(({ entry }) => entry.known);
  }

  #knownEnd(id: string): Known {
    const view = this.ended(id);
    return view && { view };
  }

  #follow(id: string): Followed {
    const followed = this.#followed.get(id);
    followed?.stay?.();
    if (followed) return followed;
    const entry = new Followed();
    // On Workers, whatever a request has begun ends with it, so each one waits by itself.
    if (!this.#clock.perRequest) this.#followed.set(id, entry);
    const show = (view: JobView) => {
      this.note(id, view);
      entry.update({ view });
    };
    const options = { signal: entry.stop.signal, timeoutMs: false, throwOnFailure: false } as const;
    this.#client
      .waitForJob(id, { ...options, onUpdate: (job, ahead) => show(jobView({ ...ahead, job })) })
      .then((job) => show(jobView({ job, progress: 1, etaMs: 0 })))
      .catch((error: unknown) => entry.update({ error }))
      // An end is remembered, and after an error the next request polls again.
      .finally(() => this.#forget(id, entry));
    return entry;
  }

  #forget(id: string, entry: Followed): void {
    entry.stay?.();
    entry.left?.release();
    if (this.#followed.get(id) === entry) this.#followed.delete(id);
    entry.stop.abort();
  }

  /** A request leaves its job. The wait continues for a while after the last one, and counts for its user. */
  #leave(id: string, entry: Followed, user: string): void {
    if (this.#clock.perRequest) this.#forget(id, entry);
    if (entry.viewers.size > 0 || entry.stop.signal.aborted) return;
    entry.left = this.#open.add(user);
    entry.stay = this.#clock.after(LINGER_MS, () => this.#forget(id, entry));
  }

  /** Resolves when a job has moved, the time is over, or the page has left. */
  async #news(entries: readonly WatchedEntry[], { holdMs, signal }: Viewer): Promise<void> {
    const isReady = () =>
      holdMs === 0 ? entries.every(({ entry }) => entry.known !== undefined) : entries.some(hasMoved);
    if (isReady()) return;
    const isUnknown = entries.some(({ entry }) => entry.known === undefined);
    const undo: (() => void)[] = [];
    await new Promise<void>((done) => {
      // In real time: what is collected are responses that are on their way.
      const collect = (ms: number) => undo.push(systemClock.after(ms, done));
      const look = () => {
        if (isReady()) holdMs === 0 ? done() : collect(COLLECT_NEWS_MS);
        // On Workers each request begins with a poll of its own, which is no progress.
        else if (holdMs > 0 && !this.#clock.perRequest) collect(COLLECT_PROGRESS_MS);
      };
      for (const { entry } of entries) {
        entry.viewers.add(look);
        undo.push(() => void entry.viewers.delete(look));
      }
      undo.push(this.#clock.after(isUnknown ? Math.max(holdMs, FIRST_POLL_MS) : holdMs, done), onAbort(signal, done));
    });
    for (const end of undo) end();
  }
}

function hasMoved({ seen, entry: { known } }: WatchedEntry): boolean {
  return known !== undefined && ('error' in known || known.view.phase !== 'waiting' || known.view.status !== seen);
}
