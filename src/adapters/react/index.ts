import { useSyncExternalStore } from 'react';
import type { Run, RunState } from '../page/run.js';

const nothing = () => () => {};
const none = () => undefined;

/**
 * The state of a run, for a component that renders again with each change; undefined without a run.
 *
 * @example
 * const { phase, progress, url } = useRun(run);
 * const text = phase === 'done' ? url : `${phase} ${Math.round((progress ?? 0) * 100)} %`;
 */
export function useRun(run: Run): RunState;
export function useRun(run: Run | null | undefined): RunState | undefined;
export function useRun(run: Run | null | undefined): RunState | undefined {
  return useSyncExternalStore<RunState | undefined>(run?.subscribe ?? nothing, run?.get ?? none, run?.get ?? none);
}
