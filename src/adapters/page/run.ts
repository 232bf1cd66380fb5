// The jobs of a page. Each has `get` and `subscribe`, which every framework supports, and survives a reload.

import type { JobCall } from '../../schemas/job.js';

/** Why a run failed. */
export interface RunError {
  /** A value to switch on: `unauthorized`, `budget_exceeded`, `prompt_required`, `network`. */
  readonly code: string;
  /** Text for the user. */
  readonly message: string;
}

/** State of a run. The same object until something changes. */
export interface RunState {
  /** Current step. A run without files starts with `creating`, one with a ticket with `waiting`. */
  readonly phase: 'uploading' | 'creating' | 'waiting' | 'done' | 'failed';
  /** If true, the create hasn't been sent yet, so `forget()` cancels it without a charge. */
  readonly isCancelable: boolean;
  /** Uploaded part of the files, from 0 to 1. 1 without files. */
  readonly uploaded: number;
  /** Status of the job. */
  readonly status?: string | undefined;
  /** Estimated milliseconds until the job ends. */
  readonly etaMs?: number | undefined;
  /** Estimated progress of the job, from 0 to 1. */
  readonly progress?: number | undefined;
  /** Tokens that the job costs: quoted, or charged once it is completed. */
  readonly tokens?: number | undefined;
  /** URL of the finished file, for `<video src>` and `<img src>`. */
  readonly url?: string | undefined;
  /** Why the run failed. */
  readonly error?: RunError | undefined;
}

/** A job of the page. */
export interface Run {
  /** Key of the run, which stays the same after a reload. */
  readonly id: string;
  /** Returns the current state. The same object until something changes. */
  get(): RunState;
  /** Calls the listener after each change, until the returned function is called. */
  subscribe(listener: () => void): () => void;
  /** Resolves with the final state. Rejects with an Error that has the `code` of the failure, also after `stop()`. */
  readonly done: Promise<RunState>;
  /** Stops following the job on this page. The job continues, and `resume()` follows it again. */
  stop(): void;
  /** Stops, and removes the run from what `resume()` returns. A create in flight is removed after its response. */
  forget(): void;
}

/** A run with its internal state. */
export interface OpenRun extends Run {
  /** Aborted when the run is over or stopped. Its state never changes after that. */
  readonly signal: AbortSignal;
  /** If true, a job may exist under its key, so the same create reuses the key. */
  isUnanswered?: boolean;
  set(change: Partial<RunState>): void;
}

const STOPPED: RunError = { code: 'stopped', message: 'The run was stopped.' };

function openRun(id: string, phase: RunState['phase'], isCancelable: boolean, forget: () => void): OpenRun {
  const ended = new AbortController();
  const { signal } = ended;
  const listeners = new Set<() => void>();
  let state: RunState = { phase, isCancelable, uploaded: phase === 'uploading' ? 0 : 1 };
  const done = new Promise<RunState>((resolve, reject) => {
    signal.onabort = () => {
      const { error: { code, message } = STOPPED } = state;
      if (state.phase === 'done') resolve(state);
      else reject(Object.assign(new Error(message), { code }));
    };
  });
  // A page that only subscribes must not see an unhandled rejection.
  done.catch(() => {});
  return {
    id,
    signal,
    done,
    stop: () => ended.abort(),
    get: () => state,
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    forget,
    set(change) {
      if (signal.aborted) return;
      state = { ...state, ...change };
      // Before the listeners are called, so that none of them can change the outcome.
      if (isOver(state)) ended.abort();
      for (const listener of [...listeners]) {
        try {
          listener();
        } catch (error) {
          // As an uncaught error, so that the other listeners are still called.
          globalThis.reportError?.(error);
        }
      }
    },
  };
}

/** Thrown if a request to the proxy fails. */
export interface PageError extends RunError {
  /** The HTTP status. 0 without a response. */
  readonly status?: number;
  /** If true, the same request may succeed later. */
  readonly retry?: boolean | undefined;
}

function isOver({ phase }: RunState): boolean {
  return /done|failed/.test(phase);
}

/** A run in the tab's storage: the ticket of its job or, until there is one, the create and its session. */
export interface StoredRun {
  readonly verb?: JobCall;
  /** The input, with the tickets of its uploads. */
  readonly input?: object;
  readonly session?: string | undefined;
  readonly ticket?: string;
  readonly over?: boolean;
}

const MAX_STORED = 100;

export type Runs = ReturnType<typeof openRuns>;

/**
 * The runs of a tab: those of this page, and those in the tab's storage, which survive a reload. Without `isLive`
 * nothing is registered and no work begins.
 */
export function openRuns(name: string, isLive: boolean) {
  const begun = new Map<string, OpenRun>();

  function all(): Record<string, StoredRun> {
    try {
      const runs: Record<string, StoredRun> = JSON.parse(sessionStorage.getItem(name) ?? '{}');
      return Object.fromEntries(Object.entries(runs).filter(([, { input, ticket }]) => input || ticket));
    } catch {
      // The storage is missing, blocked, or contains other data.
      return {};
    }
  }

  /** Stores a new run, changes a stored one, or removes it. */
  function persist(key: string, run?: StoredRun): void {
    const runs = all();
    if (run && (run.input || runs[key])) runs[key] = run;
    else delete runs[key];
    const keys = Object.keys(runs);
    if (keys.length > MAX_STORED) delete runs[keys.find((one) => runs[one]?.over) ?? (keys[0] as string)];
    try {
      sessionStorage.setItem(name, JSON.stringify(runs));
    } catch {
      // The storage is full or blocked. The run continues but doesn't survive a reload.
    }
  }

  function fail(run: OpenRun, { code, message, status, retry }: PageError): void {
    // Its job may still be running, so resume() and watch() start again.
    if (begun.get(run.id) === run) begun.delete(run.id);
    // No job exists after a rejected create, except if it needs a session or comes too early. Not after stop(), whose
    // reason has no status. A ticket that is not found is another user's, or its job no longer exists.
    if ((run.isUnanswered && !retry && /^(?!401|429)\d/.test(`${status}`)) || /not_found$/.test(code)) {
      run.isUnanswered = false;
      persist(run.id);
    }
    run.set({ phase: 'failed', isCancelable: false, error: { code, message } });
  }

  /** Returns the run of a key, and begins its work unless it is in progress or over. */
  function begin(
    key: string,
    phase: RunState['phase'],
    work: (run: OpenRun) => unknown,
    isCancelable = false,
  ): OpenRun {
    const known = begun.get(key);
    if (known && (isOver(known.get()) || !known.signal.aborted)) return known;
    const run = openRun(key, phase, isCancelable, () => {
      const latest = begun.get(key) ?? run;
      latest.stop();
      begun.delete(key);
      // In flight, the create may still be paid for, and only its key finds the job.
      const { isUnanswered, get } = latest;
      if (!isUnanswered || get().isCancelable || isOver(get())) persist(key);
    });
    if (!isLive) return run;
    begun.set(key, run);
    Promise.resolve(run)
      .then(work)
      .catch((error) => fail(run, error));
    return run;
  }

  return { begun, all, persist, fail, begin };
}
