// Follows a page's jobs with a single held request, because all tabs share the browser's six connections.
import type { JobReply, WatchReply } from '../proxy/job-view.js';
import { pause, post } from './requests.js';
import type { OpenRun, PageError, Runs } from './run.js';

/** Maximum jobs per request. More jobs take turns. */
const MAX_JOBS = 100;

/** Returns a function that follows a ticket's job until it ends. `firstReply` is the job's state, if known. */
export function createWatch(base: string, runs: Runs) {
  const watched = new Map<OpenRun, string>();
  /** Ends the current request or pause. */
  let current: AbortController | undefined;

  function update(run: OpenRun, ticket: string, reply: JobReply | PageError): void {
    if ('phase' in reply) {
      if (reply.phase !== 'waiting') runs.persist(run.id, { ticket, over: true });
      run.set({ ...reply, isCancelable: false, url: reply.url && `${base}/${reply.url}` });
    } else runs.fail(run, reply);
  }

  async function loop(): Promise<void> {
    while (watched.size > 0) {
      current = new AbortController();
      const { signal } = current;
      // Runs that start in the same tick share a request.
      await null;
      const entries = [...watched].slice(0, MAX_JOBS);
      const jobs = entries.map(([run, ticket]) => ({ ticket, seen: run.get().status }));
      // A hidden tab polls instead, so that it doesn't use up a connection.
      const hold = !globalThis.document?.hidden;
      const watch = post<WatchReply>(`${base}/watch`, { jobs, hold }, 'jobs', signal, 0);
      const { jobs: replies, againMs } = await watch.catch(
        (error): WatchReply => ({ jobs: jobs.map(() => error), againMs: 0 }),
      );
      if (signal.aborted) continue;
      for (const [at, [run, ticket]] of entries.entries()) {
        const reply = replies[at];
        watched.delete(run);
        if (reply) update(run, ticket, reply);
        // Move the run to the end, so that all jobs take turns.
        if (!run.signal.aborted) watched.set(run, ticket);
      }
      if (againMs) await pause(againMs, signal);
    }
    current = undefined;
  }

  return (run: OpenRun, ticket: string, firstReply?: JobReply): void => {
    if (firstReply) update(run, ticket, firstReply);
    if (run.signal.aborted) return;
    watched.set(run, ticket);
    run.signal.addEventListener('abort', () => {
      watched.delete(run);
      if (watched.size === 0) current?.abort();
    });
    // The request in flight doesn't include this ticket, so replace it.
    if (current) current.abort();
    else loop();
  };
}
