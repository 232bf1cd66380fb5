// A version's data in a user's engine and queue: steps of durable runs, and records of queued calls.
import { type GenJobData, loadRun, recordOf } from '../../src/adapters/bullmq/call-record.js';
import {
  createActivities,
  type DurableEngine,
  type GenerateOptions,
  generate,
  type Json,
} from '../../src/adapters/durable/index.js';
import { nextDetachedStep } from '../../src/rules/detached-run.js';
import type { RunEvent, RunRules } from '../../src/rules/run-state.js';
import { createSandbox, type Sandbox } from '../../src/sandbox/index.js';

/** One step as an engine stores it. */
export type RecordedStep =
  | { readonly step: string; readonly activity: string; readonly input: Json; readonly result: Json }
  | { readonly step: string; readonly jobId: string | null; readonly ms: number; readonly result: boolean };

/** A durable run's steps and outcome. */
export interface RecordedRun {
  readonly name: string;
  readonly options: GenerateOptions;
  readonly steps: readonly RecordedStep[];
  readonly end: Json;
}

/** A record of a queued call, the event that followed, and the step to which it led. */
export interface QueueRecord {
  readonly name: string;
  readonly id: string;
  readonly data: Json;
  readonly step: Json;
  readonly event: Json;
  readonly next: Json;
}

export interface Recordings {
  readonly version: string;
  readonly runs: readonly RecordedRun[];
  readonly records: readonly QueueRecord[];
}

/** The rules of the worker that continues the records. */
export const WORKER_RULES: RunRules = {
  timeoutMs: 1_800_000,
  resubmitPending: true,
  recover: {},
  stores: false,
  pollMs: 12_000,
  retryMs: 60_000,
};

type Scenario = readonly [name: string, options: Omit<GenerateOptions, 'key'>, prepare: (sandbox: Sandbox) => void];

const params = { prompt: 'a fox at dawn' };
const call = 'videos';
const failedJob = (errorCode: string, errorData = {}) => ({ status: 'failed', errorCode, errorData }) as const;

/** Scenarios of runs that an upgrade can interrupt. */
const SCENARIOS: readonly Scenario[] = [
  ['a video', { call, params }, () => {}],
  [
    'a lost response',
    { call, params },
    ({ faults }) => void faults.add({ match: { method: 'POST' }, commitThenDrop: true }),
  ],
  [
    'a service that fails',
    { call, params },
    ({ faults }) => void faults.add({ match: { path: '/v1/*' }, status: 500, times: 3 }),
  ],
  [
    'a reference under review',
    { call, params },
    ({ outcomes }) => outcomes.next({ ...failedJob('reference_asset_pending', { retry_after: 40 }), durationMs: 0 }),
  ],
  [
    'a recovery with another model',
    { call, params, recover: { generation_unavailable: { models: ['svc-video-mini'] } } },
    ({ outcomes }) => outcomes.next(failedJob('generation_unavailable')),
  ],
  ['a failed job', { call, params }, ({ outcomes }) => outcomes.next(failedJob('generation_rejected'))],
  ['a rejected create', { call, params: { ...params, duration: 7 } }, () => {}],
  ['a job that takes too long', { call, params: { prompt: '[slow:2h]' }, timeoutMs: 600_000 }, () => {}],
];

/** Runs every scenario on the sandbox and records the data of an engine and a queue. */
export async function recordAll(version: string): Promise<Recordings> {
  const runs: RecordedRun[] = [];
  const records: QueueRecord[] = [];
  for (const [at, [name, options, prepare]] of SCENARIOS.entries()) {
    const run = await recordRun(name, { ...options, key: `run-${at}` }, prepare);
    runs.push(run);
    records.push(...recordQueue(run));
  }
  return { version, runs, records };
}

async function recordRun(
  name: string,
  options: GenerateOptions,
  prepare: (sandbox: Sandbox) => void,
): Promise<RecordedRun> {
  const sandbox = createSandbox({ clock: 'manual', seed: 1, startTime: Date.UTC(2026, 0, 1), jobDurationMs: 30_000 });
  prepare(sandbox);
  const activities = createActivities(sandbox.client({ preflight: false, maxRetries: 0 }));
  const steps: RecordedStep[] = [];
  const engine: DurableEngine = {
    async call(step, activity, input) {
      const result = await activities[activity](input);
      steps.push({ step, activity, input, result });
      return result;
    },
    async wait(step, jobId, ms) {
      await sandbox.advance(ms);
      steps.push({ step, jobId, ms, result: false });
      return false;
    },
    fail(error) {
      throw new EngineFailure(json(error));
    },
  };
  return { name, options, steps, end: await endOf(engine, options) };
}

/** Converts a run's steps to the records that a queue would have stored. */
function recordQueue({ name, options, steps }: RecordedRun): QueueRecord[] {
  const records: QueueRecord[] = [];
  const { call, params, key: id, recover } = options;
  let data: GenJobData = { version: 1, call, params: { ...params }, ...(recover && { recover }) };
  for (const step of steps) {
    const run = loadRun({ id, data }, { ...WORKER_RULES, recover: recover ?? {} });
    const event = eventOf(step);
    if ((event.type === 'waited') !== (run.step.type === 'wait')) break;
    const next = nextDetachedStep(run, event);
    records.push({
      name,
      id,
      data: json(data),
      step: json(run.step),
      event: json(event),
      next: json(next.step),
    });
    data = recordOf(data, next, Date.UTC(2026, 0, 1));
  }
  return records;
}

function eventOf(step: RecordedStep): RunEvent {
  if ('activity' in step) return step.result as never;
  return { type: 'waited', woken: step.result, passedMs: step.ms };
}

class EngineFailure extends Error {
  readonly end: Json;

  constructor(end: Json) {
    super('the run failed');
    this.end = end;
  }
}

/** Returns a run's job, or the engine's error. */
export async function endOf(engine: DurableEngine, options: GenerateOptions): Promise<Json> {
  try {
    return json(await generate(engine, options));
  } catch (error) {
    if (error instanceof EngineFailure) return { error: error.end };
    throw error;
  }
}

/** Creates an engine that returns only recorded results, and rejects any other step. */
export function createReplayEngine(
  steps: readonly RecordedStep[],
): DurableEngine & { readonly remaining: () => number } {
  let position = 0;
  const replay = (requested: object) => {
    const recorded = steps[position];
    position += 1;
    const { result, ...step } = recorded ?? { result: null };
    if (JSON.stringify(step) !== JSON.stringify(requested)) {
      throw new Error(
        `step ${position} is ${JSON.stringify(requested)}, but the engine recorded ${JSON.stringify(step)}`,
      );
    }
    return result;
  };
  return {
    call: async (step, activity, input) => replay({ step, activity, input }),
    wait: async (step, jobId, ms) => replay({ step, jobId, ms }) === true,
    fail(error) {
      throw new EngineFailure(json(error));
    },
    remaining: () => steps.length - position,
  };
}

export function json(value: unknown): Json {
  return JSON.parse(JSON.stringify(value));
}
