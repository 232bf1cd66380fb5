// Builders for a run's events.
import { nextDetachedStep } from '../../src/rules/detached-run.js';
import type { FailureKind } from '../../src/rules/failure-kind.js';
import { type JobRunState, type RunEvent, type RunRules, startRun } from '../../src/rules/run-state.js';
import type { Job } from '../../src/schemas/job.js';

/** Rules of a run without a timeout. */
export const RULES: RunRules = {
  timeoutMs: null,
  resubmitPending: true,
  recover: {},
  stores: false,
  pollMs: null,
  retryMs: null,
};

export const start = (rules: Partial<RunRules> = {}, key = 'k') =>
  startRun({ key, shortKey: `${key.slice(0, 128)}-0123456789abcdef`, rules: { ...RULES, ...rules } });

const LINK = { providerOutputUrl: 'https://x.example/v1/jobs/job_1/output' };
export const job = (status: string, overrides: Partial<Job> = {}): RunEvent => ({
  type: 'job',
  job: { id: 'job_1', status, ...(status === 'completed' && LINK), ...overrides },
});

export const failed = (
  kind: FailureKind,
  retryAfterMs: number | null = null,
  name = 'GenError',
  isKeyUnused = false,
): RunEvent => ({
  type: 'failed',
  failure: { kind, retryAfterMs, error: { name, message: kind }, ...(isKeyUnused && { keyIsUnused: true }) },
});

export const waitElapsed: RunEvent = { type: 'waited', woken: false };
export const woken: RunEvent = { type: 'waited', woken: true };
export const stored: RunEvent = { type: 'stored' };

/** Applies the events to a detached run, in order. */
export const applyEvents = (state: JobRunState, ...events: readonly RunEvent[]) =>
  events.reduce(nextDetachedStep, state);
