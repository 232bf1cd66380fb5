// Follows pages' jobs within the account's polling schedule. A page watches all of its jobs with a single request.
import type { GenClient } from '../../client/client.js';
import { type Clock, systemClock } from '../../runtime/clock.js';
import { onAbort } from '../../runtime/deadline.js';
import { setAndEvict } from '../../runtime/set-and-evict.js';
import { type JobView, jobView } from './job-view.js';
import type { OpenRequest, OpenRequests } from './open-requests.js';

/** Result of the last poll. Undefined before the first one. */
export type PollResult = { readonly view: JobView } | { readonly error: unknown } | undefined;

/** A job that a page watches. */
export interface WatchedJob {
  readonly id: string;
  /** The last status that the page received. */
  readonly seen: string | undefined;
  /** The outcome, if the ticket contains it. */
  readonly result: PollResult;
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

/** A wait continues for this long after its last viewer disconnects, because pages reconnect between held requests. */
const LINGER_MS = 60_000;
/** Maximum wait for a job's first poll, even if requests aren't held. */
const FIRST_POLL_MS = 10_000;
/** Delay after a job's change to collect changes of other jobs, so that a gallery needs fewer responses. */
const COLLECT_CHANGES_MS = 100;
/** The same delay, if only the progress changed. */
const COLLECT_PROGRESS_MS = 1_000;
/** Maximum number of cached outcomes, which never change. */
const MAX_OUTCOMES = 10_000;

/** A wait that a job's viewers share. It continues between their requests. */
class SharedWait {
  result: PollResult;
  readonly viewers = new Set<() => void>();
  readonly stop = new AbortController();
  /** Counts toward the limit of the last viewer while nobody is connected. */
  idleRequest: OpenRequest | undefined;
  lingerTimer: (() => void) | undefined;

  update(result: PollResult): void {
    this.result = result;
    for (const viewer of [...this.viewers]) viewer();
  }
}

/** Holds requests until one of their jobs changes. */
export class Watches {
  readonly #client: GenClient;
  readonly #clock: Clock;
  readonly #open: OpenRequests;
  readonly #waits = new Map<string, SharedWait>();
  readonly #outcomes = new Map<string, JobView>();
  readonly #onEnd: (id: string) => void;

  constructor(client: GenClient, clock: Clock, open: OpenRequests, onEnd: (id: string) => void) {
    this.#client = client;
    this.#clock = clock;
    this.#open = open;
    this.#onEnd = onEnd;
  }

  outcomeOf(id: string): JobView | undefined {
    return this.#outcomes.get(id);
  }

  recordOutcome(id: string, view: JobView): void {
    if (view.phase === 'waiting' || this.#outcomes.has(id)) return;
    setAndEvict(this.#outcomes, id, view, MAX_OUTCOMES);
    this.#onEnd(id);
  }

  /**
   * Returns the jobs' latest results: immediately if an outcome is known, otherwise once a job changes or `holdMs` has passed.
   * Allows up to 10 seconds for a first poll. Throws a 429 if the user has too many open requests.
   */
  async progress(jobs: readonly WatchedJob[], viewer: Viewer): Promise<PollResult[]> {
    const outcomes = jobs.map(({ id, result }) => result ?? this.#cachedOutcome(id));
    if (outcomes.some(Boolean)) return jobs.map(({ id }, at) => outcomes[at] ?? this.#waits.get(id)?.result);
    const idleRequests = jobs.flatMap(({ id }) => this.#waits.get(id)?.idleRequest ?? []);
    const request = this.#open.acquire(viewer.user, idleRequests);
    const waits = jobs.map(({ id, seen }) => ({ id, seen, wait: this.#follow(id) }));
    await this.#nextChange(waits, viewer);
    for (const { id, wait } of waits) this.#leave(id, wait, viewer.user);
    request.release();
    return waits.map(({ wait }) => wait.result);
  }

  #cachedOutcome(id: string): PollResult {
    const view = this.outcomeOf(id);
    return view && { view };
  }

  #follow(id: string): SharedWait {
    const current = this.#waits.get(id);
    current?.lingerTimer?.();
    if (current) return current;
    const wait = new SharedWait();
    // On Workers, work can't outlive the request that started it, so each request has a separate wait.
    if (!this.#clock.perRequest) this.#waits.set(id, wait);
    const update = (view: JobView) => {
      this.recordOutcome(id, view);
      wait.update({ view });
    };
    const options = { signal: wait.stop.signal, timeoutMs: false, throwOnFailure: false } as const;
    this.#client
      .waitForJob(id, { ...options, onUpdate: (job, ahead) => update(jobView({ ...ahead, job })) })
      .then((job) => update(jobView({ job, progress: 1, etaMs: 0 })))
      .catch((error: unknown) => wait.update({ error }))
      // Outcomes are cached, and after an error the next request polls again.
      .finally(() => this.#forget(id, wait));
    return wait;
  }

  #forget(id: string, wait: SharedWait): void {
    wait.lingerTimer?.();
    wait.idleRequest?.release();
    if (this.#waits.get(id) === wait) this.#waits.delete(id);
    wait.stop.abort();
  }

  /** Called when a viewer disconnects. After the last one, the wait lingers and counts toward that user's limit. */
  #leave(id: string, wait: SharedWait, user: string): void {
    if (this.#clock.perRequest) this.#forget(id, wait);
    if (wait.viewers.size > 0 || wait.stop.signal.aborted) return;
    wait.idleRequest = this.#open.add(user);
    wait.lingerTimer = this.#clock.after(LINGER_MS, () => this.#forget(id, wait));
  }

  /**
   * Resolves when a job changes, `holdMs` has passed, or the page disconnects. If a job has no result yet, allows 10 seconds
   * or more. If `holdMs` is 0, resolves once every job has a result.
   */
  async #nextChange(waits: readonly WatchedWait[], { holdMs, signal }: Viewer): Promise<void> {
    const isReady = () =>
      holdMs === 0 ? waits.every(({ wait }) => wait.result !== undefined) : waits.some(hasChanged);
    if (isReady()) return;
    const isUnknown = waits.some(({ wait }) => wait.result === undefined);
    const cleanups: (() => void)[] = [];
    await new Promise<void>((done) => {
      // Real time, because the delay collects responses in flight.
      const collect = (ms: number) => cleanups.push(systemClock.after(ms, done));
      const check = () => {
        if (isReady()) holdMs === 0 ? done() : collect(COLLECT_CHANGES_MS);
        // On Workers, each request starts with a poll, which doesn't count as a change.
        else if (holdMs > 0 && !this.#clock.perRequest) collect(COLLECT_PROGRESS_MS);
      };
      for (const { wait } of waits) {
        wait.viewers.add(check);
        cleanups.push(() => void wait.viewers.delete(check));
      }
      cleanups.push(
        this.#clock.after(isUnknown ? Math.max(holdMs, FIRST_POLL_MS) : holdMs, done),
        onAbort(signal, done),
      );
    });
    for (const cleanup of cleanups) cleanup();
  }
}

function hasChanged({ seen, wait: { result } }: WatchedWait): boolean {
  return result !== undefined && ('error' in result || result.view.phase !== 'waiting' || result.view.status !== seen);
}
