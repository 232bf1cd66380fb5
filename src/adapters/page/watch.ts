// Follows all jobs of a page with one request that the proxy holds open: a browser has six connections for all tabs.
import type { JobReply, WatchReply } from '../proxy/job-view.js';
import { pause, post } from './requests.js';
import type { OpenRun, PageError, Runs } from './run.js';

/** Jobs in one request. More take turns. */
const MAX_JOBS = 100;
/** The shortest time between two requests that end no run, also if the proxy does not hold them. */
const MIN_INTERVAL_MS = 1_000;

/** Returns a function that follows the job of a ticket until it is over. `first` is what is known of it. */
export function createWatch(base: string, runs: Runs) {
  const watched = new Map<OpenRun, string>();
  /** Ends the current request or pause. */
  let current: AbortController | undefined;

  /** Shows a reply. Returns whether the run is over. */
  function show(run: OpenRun, ticket: string, reply: JobReply | null | undefined): boolean {
    if (!reply) return false;
    if ('code' in reply) {
      runs.fail(run, reply);
      return true;
    }
    const { final, file, ...state } = reply;
    const phase = final ? (state.error ? 'failed' : 'done') : 'waiting';
    if (final) runs.keep(run.id, { ticket, over: true });
    run.set({ ...state, phase, isCancelable: false, url: file && `${base}/file?t=${file}` });
    return final;
  }

  async function loop(): Promise<void> {
    while (watched.size > 0) {
      current = new AbortController();
      const { signal } = current;
      // Runs that are begun in one tick share a request.
      await null;
      const entries = [...watched].slice(0, MAX_JOBS);
      const jobs = entries.map(([run, ticket]) => ({ ticket, seen: run.get().status }));
      // A hidden tab polls, so that many tabs do not use up the connections of the visible one.
      const hold = !globalThis.document?.hidden;
      const startMs = performance.now();
      try {
        const options = { signal, attempts: Number.POSITIVE_INFINITY };
        const reply = await post<WatchReply>(`${base}/watch`, { jobs, hold }, 'jobs', options);
        let pauseMs = Math.max(reply.againMs ?? 0, startMs + MIN_INTERVAL_MS - performance.now());
        for (const [at, [run, ticket]] of entries.entries()) {
          watched.delete(run);
          if (show(run, ticket, reply.jobs[at])) pauseMs = 0;
          // As the last one, so that all take turns.
          else if (!run.signal.aborted) watched.set(run, ticket);
        }
        if (pauseMs > 0) await pause(pauseMs, signal);
      } catch (error) {
        if (!signal.aborted)
          for (const [run] of entries) {
            watched.delete(run);
            runs.fail(run, error as PageError);
          }
      }
    }
    current = undefined;
  }

  return (run: OpenRun, ticket: string, first?: JobReply): void => {
    if (run.signal.aborted || show(run, ticket, first)) return;
    watched.set(run, ticket);
    run.signal.addEventListener('abort', () => {
      watched.delete(run);
      if (watched.size === 0) current?.abort();
    });
    // The request in flight does not have this ticket.
    if (current) current.abort();
    else loop();
  };
}
