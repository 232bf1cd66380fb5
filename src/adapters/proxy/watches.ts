// Follows the jobs of pages, within the account's polling schedule. A single request follows all jobs of a page.
import type { GenClient } from '../../client/client.js';
import { type Clock, systemClock } from '../../runtime/clock.js';
import { onAbort } from '../../runtime/deadline.js';
import { setAndEvict } from '../../runtime/set-and-evict.js';
import { type JobView, jobView } from './job-view.js';
import type { OpenRequest, OpenRequests } from './open-requests.js';

/** The last result of a poll. Undefined before the first one. */
export type Known = { readonly view: JobView } | { readonly error: unknown } | undefined;

/** A job that a page watches. */
export interface WatchedJob {
  readonly id: string;
  /** The status that the page has seen. */
  readonly seen: string | undefined;
  /** How it ended, if its ticket says so. */
  readonly known: Known;
}

interface WatchedWait {
  readonly seen: string | undefined;
  readonly wait: SharedWait;
}

interface Viewer {
  readonly user: string;
  readonly holdMs: number;
  readonly signal: AbortSignal | undefined;
}

/** A job is followed for this time after its last viewer has left: pages come back for the next part of a wait. */
const LINGER_MS = 60_000;
/** Maximum wait for the first poll of a job, even if the page itself polls. */
const FIRST_POLL_MS = 10_000;
/** Milliseconds to collect changes of other jobs after the first, so that a gallery needs fewer responses. */
const COLLECT_NEWS_MS = 100;
/** The same for changes of the progress only. */
const COLLECT_PROGRESS_MS = 1_000;
/** Maximum number of cached outcomes, which never change. */
const MAX_ENDS = 10_000;

/** A wait that all viewers of a job share, also between their requests. */
class SharedWait {
  known: Known;
  readonly viewers = new Set<() => void>();
  readonly stop = new AbortController();
  /** Counts for the last viewer until the wait ends. */
  left: OpenRequest | undefined;
  lingerTimer: (() => void) | undefined;

  update(known: Known): void {
    this.known = known;
    for (const viewer of [...this.viewers]) viewer();
  }
}

/** Holds requests until one of their jobs changes. */
export class Watches {
  readonly #client: GenClient;
  readonly #clock: Clock;
  readonly #open: OpenRequests;
  readonly #waits = new Map<string, SharedWait>();
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

  /** Resolves when a job changes, or after `holdMs`. Throws a 429 if the user has too many open requests. */
  async progress(jobs: readonly WatchedJob[], viewer: Viewer): Promise<Known[]> {
    const ended = jobs.map(({ id, known }) => known ?? this.#knownEnd(id));
    if (ended.some(Boolean)) return jobs.map(({ id }, at) => ended[at] ?? this.#waits.get(id)?.known);
    const lefts = jobs.flatMap(({ id }) => this.#waits.get(id)?.left ?? []);
    const request = this.#open.take(viewer.user, lefts);
    const waits = jobs.map(({ id, seen }) => ({ id, seen, wait: this.#follow(id) }));
    await this.#news(waits, viewer);
    for (const { id, wait } of waits) this.#leave(id, wait, viewer.user);
    request.release();
    return waits.map(({ wait }) => wait.known);
  }

  #knownEnd(id: string): Known {
    const view = this.ended(id);
    return view && { view };
  }

  #follow(id: string): SharedWait {
    const followed = this.#waits.get(id);
    followed?.lingerTimer?.();
    if (followed) return followed;
    const wait = new SharedWait();
    // On Workers, work can't outlive the request that started it, so each request has its own wait.
    if (!this.#clock.perRequest) this.#waits.set(id, wait);
    const show = (view: JobView) => {
      this.note(id, view);
      wait.update({ view });
    };
    const options = { signal: wait.stop.signal, timeoutMs: false, throwOnFailure: false } as const;
    this.#client
      .waitForJob(id, { ...options, onUpdate: (job, ahead) => show(jobView({ ...ahead, job })) })
      .then((job) => show(jobView({ job, progress: 1, etaMs: 0 })))
      .catch((error: unknown) => wait.update({ error }))
      // Outcomes are cached. After an error, the next request polls again.
      .finally(() => this.#forget(id, wait));
    return wait;
  }

  #forget(id: string, wait: SharedWait): void {
    wait.lingerTimer?.();
    wait.left?.release();
    if (this.#waits.get(id) === wait) this.#waits.delete(id);
    wait.stop.abort();
  }

  /** Removes a viewer. After the last one, the wait continues for a while, and counts for that user. */
  #leave(id: string, wait: SharedWait, user: string): void {
    if (this.#clock.perRequest) this.#forget(id, wait);
    if (wait.viewers.size > 0 || wait.stop.signal.aborted) return;
    wait.left = this.#open.add(user);
    wait.lingerTimer = this.#clock.after(LINGER_MS, () => this.#forget(id, wait));
  }

  /** Resolves when a job changes, the time is up, or the page disconnects. */
  async #news(waits: readonly WatchedWait[], { holdMs, signal }: Viewer): Promise<void> {
    const isReady = () => (holdMs === 0 ? waits.every(({ wait }) => wait.known !== undefined) : waits.some(hasMoved));
    if (isReady()) return;
    const isUnknown = waits.some(({ wait }) => wait.known === undefined);
    const undo: (() => void)[] = [];
    await new Promise<void>((done) => {
      // Real time, because it collects responses that are in flight.
      const collect = (ms: number) => undo.push(systemClock.after(ms, done));
      const look = () => {
        if (isReady()) holdMs === 0 ? done() : collect(COLLECT_NEWS_MS);
        // On Workers, each request starts with its own poll, which doesn't count as a change.
        else if (holdMs > 0 && !this.#clock.perRequest) collect(COLLECT_PROGRESS_MS);
      };
      for (const { wait } of waits) {
        wait.viewers.add(look);
        undo.push(() => void wait.viewers.delete(look));
      }
      undo.push(this.#clock.after(isUnknown ? Math.max(holdMs, FIRST_POLL_MS) : holdMs, done), onAbort(signal, done));
    });
    for (const end of undo) end();
  }
}

function hasMoved({ seen, wait: { known } }: WatchedWait): boolean {
  return known !== undefined && ('error' in known || known.view.phase !== 'waiting' || known.view.status !== seen);
}
