// The tasks of a world's processes. A task is stored before it starts, and restarts after a kill.

import { getEventListeners } from 'node:events';
import { createActivities, type DurableEngine, generate, type Json } from '../../src/adapters/durable/index.js';
import { APIError, BudgetExceededError, createBudget, GenError, JobError } from '../../src/index.js';
import type { Store } from '../../src/store/store.js';
import { COMPLETED, enqueue, type QueueDisk } from './queue.js';
import type { ProcessLife } from './simulation/process.js';

/** How a task creates its job. */
export const KINDS = ['wait', 'create', 'budget', 'order', 'durable', 'queue', 'file', 'review', 'rejected'] as const;
export type Kind = (typeof KINDS)[number];

/** How a task's job ends. */
export const ENDS = ['completed', 'failed', 'canceled'] as const;
export type End = (typeof ENDS)[number];

export interface Task {
  readonly id: string;
  readonly process: number;
  readonly kind: Kind;
  readonly end: End;
  /** The job's duration, in milliseconds. */
  readonly slowMs: number;
  readonly hasWebhook: boolean;
  isStarted: boolean;
  /** The task's outcome, or undefined while it's running. */
  result?: string;
}

/** Data that survives a crash. */
export interface Disk {
  readonly tasks: Task[];
  /** Step results of durable runs. */
  readonly steps: Map<string, Json>;
  readonly queue: QueueDisk;
}

export const BUDGET = { maxTokens: 35, per: 'day', scope: 'worlds' } as const;
export const PRICE = 10;
const WEBHOOK_URL = 'https://app.example/webhooks';
const RETRY_MS = 5_000;
/** Longest retry delay of a task whose budget may recover tokens. */
const MAX_RETRY_MS = 60_000;

export const keyOf = ({ id }: Pick<Task, 'id'>): string => `task-${id}`;

/** Runs a task. Like a supervisor, repeats calls that fail temporarily. */
export async function runTask(task: Task, life: ProcessLife, disk: Disk): Promise<void> {
  task.isStarted = true;
  for (let attempts = 0; ; attempts++) {
    try {
      await TASKS[task.kind](task, life, disk);
      task.result = 'completed';
      return;
    } catch (error) {
      const end = endOf(error);
      // A reserved budget recovers its tokens or becomes spent by the end of its period.
      const isUnresolved = BudgetExceededError.isInstance(error) && end === undefined;
      if (end !== undefined || (attempts > 50 && !isUnresolved)) {
        task.result = end ?? `gave up: ${String(error)}`;
        return;
      }
      await sleep(life, isUnresolved ? Math.min(RETRY_MS * 2 ** attempts, MAX_RETRY_MS) : RETRY_MS);
    }
  }
}

/** Resumes crashed processes' creates, then creates the orders that the store doesn't contain. */
export async function resumeOrders(orders: readonly Task[], life: ProcessLife, disk: Disk): Promise<void> {
  const running = new Set<string>();
  while (orders.some(({ result }) => result === undefined)) {
    try {
      await resumeAll(life, disk);
      const labels = new Set<unknown>();
      for await (const { label } of life.client.unfinishedCreates()) labels.add(label);
      for (const order of orders) {
        if (order.result !== undefined || labels.has(order.id) || running.has(order.id)) continue;
        running.add(order.id);
        // Not awaited: it may depend on a create that is resumed later.
        void runTask(order, life, disk).then(() => running.delete(order.id));
      }
    } catch {
      // resume() reports failures last, and a killed process's lease expires after 30 seconds.
    }
    await sleep(life, RETRY_MS);
  }
}

/** Resumes all creates. Like a program, stores each result before it handles the next one. */
export async function resumeAll({ client }: ProcessLife, { tasks }: Disk): Promise<void> {
  for await (const { job, label } of client.resume()) {
    const order = tasks.find(({ id }) => id === label);
    if (order) order.result = job.status;
    if (job.status === 'completed') await client.markStored(job);
  }
}

const paramsOf = ({ end, slowMs, hasWebhook }: Task) => ({
  prompt: `a fox [slow:${slowMs}ms]${end === 'completed' ? '' : end === 'failed' ? ' [fail:generation_failed]' : ' [canceled]'}`,
  ...(hasWebhook && { webhook_url: WEBHOOK_URL }),
});

const SIGNALS = new WeakMap<ProcessLife, AbortSignal>();

/** Returns wait options without a timeout. All calls of a process share one long-lived signal. */
function waitOf(life: ProcessLife): { readonly timeoutMs: false; readonly signal: AbortSignal } {
  const signal = SIGNALS.get(life) ?? new AbortController().signal;
  SIGNALS.set(life, signal);
  return { timeoutMs: false, signal };
}

/** Returns the number of listeners that a process's calls have left on its signal. */
export function listenersOf(life: ProcessLife): number {
  return getEventListeners(waitOf(life).signal, 'abort').length;
}

const TASKS: Readonly<Record<Kind, (task: Task, life: ProcessLife, disk: Disk) => Promise<unknown>>> = {
  wait: (task, life) =>
    life.client.videos.createAndWait(paramsOf(task), { ...waitOf(life), idempotencyKey: keyOf(task) }),
  async create(task, life) {
    const { signal } = waitOf(life);
    const { job } = await life.client.images.create(paramsOf(task), { idempotencyKey: keyOf(task), signal });
    return life.client.waitForJob(job.id, waitOf(life));
  },
  budget: (task, life) =>
    life.client.videos.createAndWait(paramsOf(task), {
      ...waitOf(life),
      idempotencyKey: keyOf(task),
      budget: budgetOf(life),
    }),
  // Without its own key, so only the store has its outcome.
  async order(task, life) {
    const job = await life.client.videos.createAndWait(
      { ...paramsOf(task), ...(isEven(task) ? frameOf() : reviewOf(task)) },
      { ...waitOf(life), label: task.id, budget: orderBudget(life.store), recover: { generation_failed: 1 } },
    );
    task.result = 'completed';
    await life.client.markStored(job).catch(() => {});
  },
  durable: (task, life, disk) =>
    generate(engineOf(task, life, disk), {
      call: 'videos',
      params: paramsOf(task),
      key: `task-${task.id}`,
      timeoutMs: false,
    }),
  async queue(task, life, { queue }) {
    const id = `task-${task.id}`;
    if (!queue.outcomes.has(id)) enqueue(queue, id, { call: 'videos', params: paramsOf(task) });
    while (!queue.outcomes.has(id)) await sleep(life, RETRY_MS);
    const end = queue.outcomes.get(id);
    if (end !== COMPLETED) throw end;
  },
  // The service reviews a new reference, and the call is sent again with a derived key.
  review: (task, life) =>
    life.client.videos.createAndWait(
      { ...paramsOf(task), ...reviewOf(task) },
      { ...waitOf(life), idempotencyKey: keyOf(task) },
    ),
  file: (task, life) =>
    life.client.videos.createAndWait(
      { ...paramsOf(task), ...frameOf() },
      { ...waitOf(life), idempotencyKey: keyOf(task), cleanup: 'after-job' },
    ),
  // Uploads the file, then fails because the model doesn't exist.
  rejected: (task, life) =>
    life.client.videos
      .create(
        { ...paramsOf(task), model: 'svc-video-none', ...frameOf() },
        { idempotencyKey: keyOf(task), signal: waitOf(life).signal },
      )
      .then(
        () => Promise.reject(new Error('the create was not rejected')),
        (error) => {
          if (!APIError.isInstance(error) || error.recovery !== 'change_request') throw error;
        },
      ),
};

const PNG = new Uint8Array(64).fill(1);
const frameOf = () => ({ first_frame_upload_id: new Blob([PNG], { type: 'image/png' }) });
const reviewOf = ({ id }: Task) => ({ reference_image_urls: [`https://cdn.example.com/${id}.png`] });
const isEven = ({ id }: Task) => Number(id) % 2 === 0;

/** Returns the number of jobs that a task creates. A failed order is retried once. */
export function jobsOf({ kind, end, result }: Task): number {
  if (kind === 'rejected' || result === 'over budget') return 0;
  return kind === 'order' && end === 'failed' ? 2 : 1;
}

/** Unlimited budgets of a client and of an order. They must match the charges. */
export const clientBudget = (store: Store) => createBudget({ maxTokens: 1e9, scope: 'client', store });
export const orderBudget = (store: Store) => createBudget({ maxTokens: 1e9, scope: 'orders', store });

/** Opens the limited budget in a process. */
export function budgetOf(life: ProcessLife) {
  return createBudget({ ...BUDGET, store: life.store });
}

/** Creates an engine that stores step results, and repeats steps without one. */
function engineOf(task: Task, life: ProcessLife, { steps }: Disk): DurableEngine {
  const activities = createActivities(life.client);
  const runOnce = async (step: string, work: () => Promise<Json>): Promise<Json> => {
    const name = `${task.id} ${step}`;
    const stored = steps.get(name);
    if (stored !== undefined) return stored;
    const result = await work();
    steps.set(name, result);
    return result;
  };
  return {
    call: (step, activity, input) => runOnce(step, () => activities[activity](input)),
    wait: async (step, _jobId, ms) => (await runOnce(step, () => sleep(life, ms).then(() => false))) === true,
    fail(error) {
      throw Object.assign(new GenError(error.message), { ended: error.name });
    },
  };
}

/** Returns the outcome of a task that failed, or undefined if the error is temporary. */
function endOf(error: unknown): string | undefined {
  if (JobError.isInstance(error)) return error.job?.status ?? 'failed';
  if (BudgetExceededError.isInstance(error)) return error.reason === 'spent' ? 'over budget' : undefined;
  if (typeof error === 'object' && error !== null && 'ended' in error) {
    return FAILED[String(error.ended)] ?? String(error.ended);
  }
  // From a queued call's record.
  if (error instanceof Error && FAILED[error.name] !== undefined) return FAILED[error.name];
  if (GenError.isInstance(error) && TEMPORARY.includes(error.recovery)) return undefined;
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

const FAILED: Readonly<Record<string, string>> = { JobFailedError: 'failed', JobCanceledError: 'canceled' };
const TEMPORARY: readonly string[] = ['retry', 'retry_later', 'wait_and_retry', 'wait_again'];

export function sleep(life: ProcessLife, ms: number): Promise<void> {
  return new Promise((resolve) => void life.clock.after(ms, resolve));
}
