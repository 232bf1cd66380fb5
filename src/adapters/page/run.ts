// A page's runs. Each follows one job, survives a reload, and has `get` and `subscribe`, which every framework supports.

import type { JobCall } from '../../schemas/job.js';

/** Reason for a run's failure. */
export interface RunError {
  /** Error code, such as `unauthorized`, `budget_exceeded`, `prompt_required`, or `network`. */
  readonly code: string;
  /** Message to show to the user. */
  readonly message: string;
}

/** A run's state. The object stays the same until something changes. */
export interface RunState {
  /** Current step. A run without files starts at `creating`, and a run from a ticket at `waiting`. */
  readonly phase: 'uploading' | 'creating' | 'waiting' | 'done' | 'failed';
  /** If true, the create hasn't been sent yet, so `forget()` cancels it without a charge. */
  readonly isCancelable: boolean;
  /** Upload progress of the files, from 0 to 1. Without files, 1. */
  readonly uploaded: number;
  /** Status of the job. */
  readonly status?: string | undefined;
  /** Estimated milliseconds until the job finishes. */
  readonly etaMs?: number | undefined;
  /** Estimated progress of the job, from 0 to 1. */
  readonly progress?: number | undefined;
  /** Cost in tokens: quoted, or charged once the job is completed. */
  readonly tokens?: number | undefined;
  /** URL of the finished file, for `<video src>` and `<img src>`. */
  readonly url?: string | undefined;
  /** Reason for the failure. */
  readonly error?: RunError | undefined;
}

/** A job that the page follows. */
export interface Run {
  /** Key of the run, which survives a reload. */
  readonly id: string;
  /** Returns the current state. The object stays the same until something changes. */
  get(): RunState;
  /** Calls the listener after each change. Returns a function that unsubscribes. */
  subscribe(listener: () => void): () => void;
  /** Resolves with the final state. Rejects with an Error whose `code` is the failure's, or `stopped` after `stop()`. */
  readonly done: Promise<RunState>;
  /** Stops following the job on this page. The job continues, and `resume()` follows it again. */
  stop(): void;
  /** Stops the run, and removes it from those that `resume()` returns. If its create is in flight, removes it afterward. */
  forget(): void;
}

/** A run with its internal state. */
export interface OpenRun extends Run {
  /** Aborts when the run ends or is stopped. Afterward, its state never changes. */
  readonly signal: AbortSignal;
  /** If true, a job may exist under this key, so the same create reuses the key. */
  isUnanswered?: boolean;
  set(change: Partial<RunState>): void;
}

const STOPPED: RunError = { code: 'stopped', message: 'The run was stopped.' };

function openRun(id: string, phase: RunState['phase'], isCancelable: boolean, forget: () => void): OpenRun {
  const controller = new AbortController();
  const { signal } = controller;
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
    stop: () => controller.abort(),
    get: () => state,
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    forget,
    set(change) {
      if (signal.aborted) return;
      state = { ...state, ...change };
      // Abort before calling the listeners, so that none of them can change the outcome.
      if (isOver(state)) controller.abort();
      for (const listener of [...listeners]) {
        try {
          listener();
        } catch (error) {
          // Report it as an uncaught error, so that the other listeners are still called.
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

/** A run in the tab's storage: its job's ticket or, until the job exists, the create and its session. */
export interface StoredRun {
  readonly verb?: JobCall;
  /** The input, with upload tickets. */
  readonly input?: object;
  readonly session?: string | undefined;
  readonly ticket?: string;
  readonly over?: boolean;
}

const MAX_STORED = 100;

export type Runs = ReturnType<typeof openRuns>;

/**
 * Manages a tab's runs: those of this page, and those in the tab's storage, which survive a reload. Unless `isLive`, no run is
 * registered or started, and each stays `waiting`.
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

  /** Stores, updates, or removes a run. */
  function persist(key: string, run?: StoredRun): void {
    const runs = all();
    if (run && (run.input || runs[key])) runs[key] = run;
    else delete runs[key];
    const keys = Object.keys(runs);
    if (keys.length > MAX_STORED) delete runs[keys.find((name) => runs[name]?.over) ?? (keys[0] as string)];
    try {
      sessionStorage.setItem(name, JSON.stringify(runs));
    } catch {
      // The storage is full or blocked. The run continues but doesn't survive a reload.
    }
  }

  function fail(run: OpenRun, { code, message, status, retry }: PageError): void {
    // The run's job may still be running, so a later resume() or watch() must start the run again.
    if (begun.get(run.id) === run) begun.delete(run.id);
    // Remove the run if its create was rejected, because no job exists then. A 401 or 429 can pass, and stop() sets no status.
    // A ticket that isn't found is another user's, or its job no longer exists.
    if ((run.isUnanswered && !retry && /^(?!401|429)\d/.test(`${status}`)) || /not_found$/.test(code)) {
      run.isUnanswered = false;
      persist(run.id);
    }
    run.set({ phase: 'failed', isCancelable: false, error: { code, message } });
  }

  /** Returns a key's run, and starts its work unless it is in progress or over. */
  function begin(
    key: string,
    phase: RunState['phase'],
    work: (run: OpenRun) => unknown,
    isCancelable = false,
  ): OpenRun {
    const existing = begun.get(key);
    if (existing && (isOver(existing.get()) || !existing.signal.aborted)) return existing;
    const run = openRun(key, isLive ? phase : 'waiting', isCancelable, () => {
      const latest = begun.get(key) ?? run;
      latest.stop();
      begun.delete(key);
      // A create in flight may still be charged, and only its key finds the job.
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
