// The jobs of a page. Each is a store with `get` and `subscribe`, which every framework can read; a reload keeps them.

import type { JobCall } from '../../schemas/job.js';

/** Why a run has failed. */
export interface RunError {
  /** A value to switch on: `unauthorized`, `budget_exceeded`, `prompt_required`, `network`. */
  readonly code: string;
  /** What happened, for the user. */
  readonly message: string;
}

/** How far a run is. The same object between two changes. */
export interface RunState {
  /** Where the run stands. */
  readonly phase: 'uploading' | 'creating' | 'waiting' | 'done' | 'failed';
  /** How much of the files is uploaded, from 0 to 1. */
  readonly uploaded: number;
  /** The status of the job. */
  readonly status?: string | undefined;
  /** Milliseconds to the end of the job, where they can be estimated. */
  readonly etaMs?: number | undefined;
  /** How much of the job is done, from 0 to 1, where it can be estimated. */
  readonly progress?: number | undefined;
  /** Tokens that the job costs, as far as is known. */
  readonly tokens?: number | undefined;
  /** The URL of the finished file, for `<video src>` and `<img src>`. */
  readonly url?: string | undefined;
  /** Why the run has failed. */
  readonly error?: RunError | undefined;
}

/** A job that the page has asked for. */
export interface Run {
  /** The key of the run: the same after a reload. */
  readonly id: string;
  /** The state now. The same object until something changes. */
  get(): RunState;
  /** Calls the listener after each change, until the returned function is called. */
  subscribe(listener: () => void): () => void;
  /** The final state. Rejects with an Error that has the `code` of the failure, also after `stop()`. */
  readonly done: Promise<RunState>;
  /** Stops following the job on this page. The job continues, and `resume()` follows it again. */
  stop(): void;
  /** Stops, and removes the run from what `resume()` returns. */
  forget(): void;
}

/** A run with what only its page does. */
export interface OpenRun extends Run {
  /** Aborted when the run is over or stopped: nothing is asked for it any more, and its state stays. */
  readonly signal: AbortSignal;
  /** Its create has failed and is not refused: the job may be made, and only its key finds it. */
  isUnanswered?: boolean;
  set(change: Partial<RunState>): void;
}

/** Makes a run. `forget` stops it, and forgets it. */
function openRun(id: string, phase: RunState['phase'], forget: () => void): OpenRun {
  const ended = new AbortController();
  const listeners = new Set<() => void>();
  let state: RunState = { phase, uploaded: 0 };
  let settle: { resolve(state: RunState): void; reject(error: unknown): void };
  const done = new Promise<RunState>((resolve, reject) => {
    settle = { resolve, reject };
  });
  // A page that only subscribes must not see an unhandled rejection.
  done.catch(() => {});
  const fail = ({ code, message }: RunError) => settle.reject(pageError(0, code, message));
  const stop = () => {
    ended.abort();
    fail({ code: 'stopped', message: 'The run was stopped.' });
  };
  return {
    id,
    signal: ended.signal,
    done,
    stop,
    get: () => state,
    subscribe(listener) {
      const own = () => listener();
      listeners.add(own);
      return () => listeners.delete(own);
    },
    forget,
    set(change) {
      if (ended.signal.aborted) return;
      state = { ...state, ...change };
      // Settled before the listeners are called: none of them can turn the end of the run into another.
      if (state.phase === 'done') settle.resolve(state);
      if (state.error) fail(state.error);
      if (isOver(state)) ended.abort();
      for (const listener of [...listeners]) callListener(listener);
    },
  };
}

/** The proxy's refusal, or with the status 0 a network that failed. */
export interface PageError extends Error {
  readonly status: number;
  readonly code: string;
}

export function pageError(status: number, code: string, message: string): PageError {
  return Object.assign(new Error(message), { status, code });
}

function isOver({ phase }: RunState): boolean {
  return /done|failed/.test(phase);
}

/** What a listener throws is reported as an error that nobody has caught, and goes no further. */
function callListener(listener: () => void): void {
  try {
    listener();
  } catch (error) {
    globalThis.reportError?.(error);
  }
}

/** A run as it is kept over a reload: by the ticket of its job and, until there is one, by what was asked in which session. */
export interface KeptRun {
  readonly verb?: JobCall;
  /** What was asked, with the uploads' tickets. */
  readonly input?: object;
  /** The ticket of the session in which it was asked. */
  readonly session?: string | undefined;
  readonly ticket?: string;
  readonly over?: boolean;
}

/** Runs that are kept. Those that are over are dropped first. */
const MOST_KEPT = 100;

/** The runs of a tab under a name: those that it has begun, and those that it keeps over reloads. */
export function openRuns(name: string) {
  const begun = new Map<string, OpenRun>();

  function all(): Record<string, KeptRun> {
    try {
      const runs: Record<string, KeptRun> = JSON.parse(sessionStorage.getItem(name) ?? '{}');
      return Object.fromEntries(Object.entries(runs).filter(([, { input, ticket }]) => input || ticket));
    } catch {
      // There is none on a server and where the browser blocks it, or it holds something else: a reload then starts anew.
      return {};
    }
  }

  /** Keeps a new run, changes one that is kept, or removes it. */
  function keep(key: string, run?: KeptRun): void {
    const runs = all();
    if (run && (run.input || runs[key])) runs[key] = run;
    else delete runs[key];
    const keys = Object.keys(runs);
    // One more than before at most, and so one too many at most.
    if (keys.length > MOST_KEPT) delete runs[keys.find((one) => runs[one]?.over) ?? (keys[0] as string)];
    try {
      sessionStorage.setItem(name, JSON.stringify(runs));
    } catch {
      // It is full, or blocked: the run goes on, and a reload does not find it.
    }
  }

  /** The run of a key. Its work is begun where it is not under way or over. */
  function begin(key: string, phase: RunState['phase'], work: (run: OpenRun) => Promise<void>): OpenRun {
    const known = begun.get(key);
    if (known && (isOver(known.get()) || !known.signal.aborted)) return known;
    const run = openRun(key, phase, () => {
      begun.get(key)?.stop();
      begun.delete(key);
      keep(key);
    });
    begun.set(key, run);
    work(run).catch(({ status, code, message }) => {
      // Its job is not over, as far as is known: resume() and watch() begin anew.
      begun.delete(key);
      // It is another user's, or does not exist any more. A 404 without a code is none of the proxy's.
      if ((status === 404 && code !== 'service_error') || code === 'other_user') keep(key);
      // A DOMException has a number as its code.
      run.set({ phase: 'failed', error: { code: `${code ?? 'network'}`, message } });
    });
    return run;
  }

  return { all, keep, begin };
}
