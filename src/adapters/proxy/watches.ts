// Follows the jobs that pages look at, on the account's one schedule of reads.
import { WaitTimeoutError } from '../../errors/index.js';
import type { Clock } from '../../runtime/clock.js';
import { onAbort } from '../../runtime/deadline.js';
import { isSettled, type Job } from '../../schemas/job.js';
import type { ProxyClient } from './proxy-options.js';

/** How far a job has come. */
export interface Progress {
  readonly job: Job;
  readonly etaMs?: number | undefined;
  readonly share?: number | undefined;
}

/** A request that asks for progress. */
interface Viewer {
  /** The status that the page has seen; progress with another one is returned at once. */
  readonly seen: string | undefined;
  readonly holdMs: number;
  readonly signal: AbortSignal | undefined;
}

/** Holds requests until the jobs that they ask about move on. */
export interface Watches {
  /** Resolves when there is something new, and at the latest after `holdMs`; undefined when nothing is known by then. */
  progress(job: Job | string, viewer: Viewer): Promise<Progress | undefined>;
}

/** A job is followed for so long after its last viewer has left: pages come back for the next part of a hold. */
const LINGER_MS = 60_000;
/** Where nothing is known of a job yet, even a page that polls waits so long for the first read. */
const FIRST_PAGE_READ_MS = 10_000;

/** One wait that all viewers of a job share, between their requests too. */
class Followed {
  latest: Progress | undefined;
  error: unknown;
  hasEnded = false;
  readonly viewers = new Set<() => void>();
  readonly stop = new AbortController();
  forget: (() => void) | undefined;

  /** Something new is known. */
  tell(): void {
    for (const viewer of [...this.viewers]) viewer();
  }
}

/** Makes the watches of one proxy. */
export function createWatches(client: ProxyClient, clock: Clock): Watches {
  const followed = new Map<string, Followed>();

  function follow(job: Job | string): Followed {
    const id = typeof job === 'string' ? job : job.id;
    const known = followed.get(id);
    if (known) return known;
    const entry = new Followed();
    if (typeof job !== 'string') entry.latest = { job };
    followed.set(id, entry);
    const end = () => {
      entry.hasEnded = true;
      entry.tell();
      if (entry.viewers.size === 0) linger(id, entry);
    };
    wait(client, job, { signal: entry.stop.signal, timeoutMs: false }, (progress) => {
      entry.latest = progress;
      entry.tell();
    }).then(end, (error: unknown) => {
      entry.error = error;
      // The next request asks anew.
      followed.delete(id);
      end();
    });
    return entry;
  }

  function linger(id: string, entry: Followed): void {
    entry.forget?.();
    entry.forget = clock.after(LINGER_MS, () => {
      if (followed.get(id) === entry) followed.delete(id);
      entry.stop.abort();
    });
  }

  async function shared(job: Job | string, { seen, holdMs, signal }: Viewer): Promise<Progress | undefined> {
    const entry = follow(job);
    const { latest } = entry;
    const isNews = latest !== undefined && (latest.job.status !== seen || isSettled(latest.job));
    if (!isNews && !entry.hasEnded) {
      entry.forget?.();
      const mostMs = latest === undefined ? Math.max(holdMs, FIRST_PAGE_READ_MS) : holdMs;
      await nextChange(entry, clock, mostMs, signal);
    }
    if (entry.viewers.size === 0) linger(typeof job === 'string' ? job : job.id, entry);
    if (entry.error !== undefined) throw entry.error;
    return entry.latest;
  }

  return { progress: (job, viewer) => (clock.perRequest ? alone(client, job, viewer) : shared(job, viewer)) };
}

/** On Workers, whatever a request has begun ends with it, so each one waits by itself. */
async function alone(
  client: ProxyClient,
  job: Job | string,
  { seen, holdMs, signal }: Viewer,
): Promise<Progress | undefined> {
  const stop = new AbortController();
  const forget = onAbort(signal, () => stop.abort(signal?.reason));
  let latest: Progress | undefined;
  const options = { signal: stop.signal, timeoutMs: Math.max(holdMs, FIRST_PAGE_READ_MS) };
  try {
    await wait(client, job, options, (progress) => {
      latest = progress;
      if (holdMs === 0 || progress.job.status !== seen) stop.abort();
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
  client: ProxyClient,
  job: Job | string,
  options: { readonly signal: AbortSignal; readonly timeoutMs: number | false },
  tell: (progress: Progress) => void,
): Promise<void> {
  const final = await client.waitForJob(job, {
    ...options,
    throwOnFailure: false,
    onUpdate: (seen: Job, ahead?: Omit<Progress, 'job'>) => tell({ ...ahead, job: seen }),
  });
  tell({ job: final, share: 1, etaMs: 0 });
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
