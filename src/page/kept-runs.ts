import type { JobCall } from '../schemas/job.js';
import type { RunState } from './run.js';

/** A run as it is kept over a reload: its key, and what was asked with the uploads' tickets. */
export interface KeptRun {
  readonly verb: JobCall;
  readonly ask: unknown;
}

/** The runs of a tab, kept over reloads and shown alike in every tab that has them. */
export interface KeptRuns {
  all(): Record<string, KeptRun>;
  /** Keeps a run, or removes it. */
  keep(key: string, run?: KeptRun): void;
  /** Tells the other tabs what this one has learned; null: the run is forgotten. */
  announce(key: string, state: RunState | null): void;
  /** Listens to the other tabs. Called with the first run, and so never where a server renders the page. */
  listen(): void;
}

/** Opens the runs under a name. `heard` is called with what another tab announces: a duplicated tab has the same keys. */
export function openKeptRuns(name: string, heard: (key: string, state: RunState | null) => void): KeptRuns {
  let tabs: BroadcastChannel | undefined;
  const all = (): Record<string, KeptRun> => JSON.parse(storage()?.getItem(name) ?? '{}');
  return {
    all,
    keep(key, run) {
      const { [key]: _, ...others } = all();
      storage()?.setItem(name, JSON.stringify(run ? { ...others, [key]: run } : others));
    },
    announce: (key, state) => tabs?.postMessage([key, state]),
    listen() {
      if (tabs) return;
      tabs = new BroadcastChannel(name);
      tabs.onmessage = ({ data: [key, state] }: { data: [string, RunState | null] }) => heard(key, state);
    },
  };
}

/** Undefined on a server, and where the browser blocks it: a reload then starts anew. */
function storage(): Storage | undefined {
  try {
    return globalThis.sessionStorage;
  } catch {
    return undefined;
  }
}
