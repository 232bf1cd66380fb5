import { useSyncExternalStore } from 'react';
import type { Run, RunState } from '../page/run.js';

const neverNotify = () => () => {};
const noState = () => undefined;

/**
 * Returns a run's state, and rerenders the component when it changes. Returns undefined without a run.
 *
 * @example
 * const { phase, progress, url } = useRun(run);
 * const text = phase === 'done' ? url : `${phase} ${Math.round((progress ?? 0) * 100)}%`;
 */
export function useRun(run: Run): RunState;
export function useRun(run: Run | null | undefined): RunState | undefined;
export function useRun(run: Run | null | undefined): RunState | undefined {
  return useSyncExternalStore<RunState | undefined>(
    run?.subscribe ?? neverNotify,
    run?.get ?? noState,
    run?.get ?? noState,
  );
}
