import type { CreateEntry } from './ledger-entry.js';
import { nextStep } from './run.js';
import { type JobRunState, type RunRules, startRun } from './run-state.js';

/** A create that is not waited for ends with its job, whatever that came to. */
const NO_RUN: Pick<RunRules, 'resubmitPending' | 'recover'> = { resubmitPending: false, recover: {} };

/** Where the run of an entry goes on, with its time anew. `shortKey` stands for a key that is too long to be extended. */
export function resumedRun(
  { key, sentKey, jobId, phase, rules, run }: CreateEntry,
  shortKey: string,
  timeoutMs: number | null,
): JobRunState {
  const own: RunRules = {
    pollMs: null,
    retryMs: null,
    persistent: false,
    stores: false,
    ...NO_RUN,
    ...rules,
    timeoutMs,
  };
  const begun = startRun({ key, shortKey, rules: own });
  const first: JobRunState = { ...begun, step: { type: 'create', key: sentKey, model: null, isSecondKey: false } };
  let state: JobRunState = run ? { ...run, rules: own, elapsedMs: 0 } : first;
  const isPaused = phase === 'open' || state.tries.some((it) => it.jobId === jobId && phase !== 'sent');
  if (isPaused && run) return state;
  // The pause that was written down is over: the create after it was sent.
  if (state.step.type === 'wait') state = nextStep(state, { type: 'waited', woken: false });
  if (jobId === undefined || phase === 'sent' || phase === 'open') return state;
  return nextStep(state, { type: 'job', job: { id: jobId, status: 'queued' } });
}
