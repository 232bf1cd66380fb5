// The work of a world's processes. A task is stored before it starts, and starts again after a kill.

import { getEventListeners } from 'node:events';
import { createActivities, type DurableEngine, generate, type Json } from '../../src/adapters/durable/index.js';
import { APIError, BudgetExceededError, createBudget, GenError, JobError } from '../../src/index.js';
import type { Store } from '../../src/store/store.js';
import { COMPLETED, enqueue, type QueueDisk } from './queue.js';
import type { ProcessLife } from './simulation/process.js';

/** The way that a task creates its job. */
export const KINDS = ['wait', 'create', 'budget', 'order', 'durable', 'queue', 'file', 'review', 'refused'] as const;
export type Kind = (typeof KINDS)[number];

/** How the service ends the job of a task. */
export const ENDS = ['completed', 'failed', 'canceled'] as const;
export type End = (typeof ENDS)[number];

/** A task in the database. */
export interface Task {
  readonly id: string;
  readonly process: number;
  readonly kind: Kind;
  readonly end: End;
  /** Duration of the job in milliseconds. */
  readonly slowMs: number;
  readonly hasWebhook: boolean;
  isBegun: boolean;
  /** The task's outcome. Undefined while it is running. */
  result?: string;
}

/** The data that survives a process. */
export interface Disk {
  readonly tasks: Task[];
  /** Results of the steps of durable runs. */
  readonly steps: Map<string, Json>;
  /** The records of the queue. */
  readonly queue: QueueDisk;
}

export const BUDGET = { maxTokens: 35, per: 'day', scope: 'worlds' } as const;
export const PRICE = 10;
const WEBHOOK_URL = 'https://app.example/webhooks';
const AGAIN_MS = 5_000;
/** The longest pause of a task whose budget may get tokens back. */
const MOST_AGAIN_MS = 60_000;

/** The key of a task. */
export const keyOf = ({ id }: Pick<Task, 'id'>): string => `task-${id}`;

/** Runs what a process has to do. A call that fails for a reason that passes is repeated, as a supervisor does. */
export async function runTask(task: Task, life: ProcessLife, disk: Disk): Promise<void> {
  task.isBegun = true;
  for (let tries = 0; ; tries++) {
    try {
      await TASKS[task.kind](task, life, disk);
      task.result = 'completed';
      return;
    } catch (error) {
      const ended = endOf(error);
      // A budget whose tokens may come back has room again, or is spent, when its period ends at the latest.
      const isUnresolved = BudgetExceededError.isInstance(error) && ended === undefined;
      if (ended !== undefined || (tries > 50 && !isUnresolved)) {
        task.result = ended ?? `gave up: ${String(error)}`;
        return;
      }
      await sleep(life, isUnresolved ? Math.min(AGAIN_MS * 2 ** tries, MOST_AGAIN_MS) : AGAIN_MS);
    }
  }
}

/** Takes up what processes have left, and then makes the orders of which the store has nothing. A file is stored at once. */
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
        // Not awaited: it may wait for what is resumed only later.
        void runTask(order, life, disk).then(() => running.delete(order.id));
      }
    } catch {
      // What cannot be resumed is told last, and the hold of a killed process ends after half a minute.
    }
    await sleep(life, AGAIN_MS);
  }
}

/** Goes through all that can be resumed. A program writes down what it got before it says that it has it. */
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

/** No wait has a time limit. All calls of a process have one signal, which lives as long as the process. */
function waitOf(life: ProcessLife): { readonly timeoutMs: false; readonly signal: AbortSignal } {
  const signal = SIGNALS.get(life) ?? new AbortController().signal;
  SIGNALS.set(life, signal);
  return { timeoutMs: false, signal };
}

/** How many listeners the calls of a process have left on its signal. */
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
  // Without a key of its own: only the store knows what has become of it.
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
    if (!queue.ends.has(id)) enqueue(queue, id, { call: 'videos', params: paramsOf(task) });
    while (!queue.ends.has(id)) await sleep(life, AGAIN_MS);
    const end = queue.ends.get(id);
    if (end !== COMPLETED) throw end;
  },
  // A reference that the service sees for the first time is under review, and the call is sent again under a derived key.
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
  // The file is uploaded, and then the service knows no such model.
  refused: (task, life) =>
    life.client.videos
      .create(
        { ...paramsOf(task), model: 'svc-video-none', ...frameOf() },
        { idempotencyKey: keyOf(task), signal: waitOf(life).signal },
      )
      .then(
        () => Promise.reject(new Error('was not refused')),
        (error) => {
          if (!APIError.isInstance(error) || error.recovery !== 'change_request') throw error;
        },
      ),
};

const PNG = new Uint8Array(64).fill(1);
const frameOf = () => ({ first_frame_upload_id: new Blob([PNG], { type: 'image/png' }) });
const reviewOf = ({ id }: Task) => ({ reference_image_urls: [`https://cdn.example.com/${id}.png`] });
const isEven = ({ id }: Task) => Number(id) % 2 === 0;

/** How many jobs a task makes, whatever happens. A failed order is tried once more. */
export function jobsOf({ kind, end, result }: Task): number {
  if (kind === 'refused' || result === 'over budget') return 0;
  return kind === 'order' && end === 'failed' ? 2 : 1;
}

/** The budgets of a client and of an order, which nothing exceeds: what they have spent is what was charged. */
export const clientBudget = (store: Store) => createBudget({ maxTokens: 1e9, scope: 'client', store });
export const orderBudget = (store: Store) => createBudget({ maxTokens: 1e9, scope: 'orders', store });

/** The budget as a process sees it. */
export function budgetOf(life: ProcessLife) {
  return createBudget({ ...BUDGET, store: life.store });
}

/** An engine that keeps the results of its steps, and repeats a step of which it has none. */
function engineOf(task: Task, life: ProcessLife, { steps }: Disk): DurableEngine {
  const activities = createActivities(life.client);
  const once = async (step: string, work: () => Promise<Json>): Promise<Json> => {
    const name = `${task.id} ${step}`;
    const known = steps.get(name);
    if (known !== undefined) return known;
    const made = await work();
    steps.set(name, made);
    return made;
  };
  return {
    call: (step, activity, input) => once(step, () => activities[activity](input)),
    wait: async (step, _jobId, ms) => (await once(step, () => sleep(life, ms).then(() => false))) === true,
    fail(error) {
      throw Object.assign(new GenError(error.message), { ended: error.name });
    },
  };
}

/** How a task has ended by an error; undefined for one that passes. */
function endOf(error: unknown): string | undefined {
  if (JobError.isInstance(error)) return error.job?.status ?? 'failed';
  if (BudgetExceededError.isInstance(error)) return error.reason === 'spent' ? 'over budget' : undefined;
  if (typeof error === 'object' && error !== null && 'ended' in error) {
    return FAILED[String(error.ended)] ?? String(error.ended);
  }
  // Out of the record of a queued call.
  if (error instanceof Error && FAILED[error.name] !== undefined) return FAILED[error.name];
  if (GenError.isInstance(error) && PASSING.includes(error.recovery)) return undefined;
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

const FAILED: Readonly<Record<string, string>> = { JobFailedError: 'failed', JobCanceledError: 'canceled' };
const PASSING: readonly string[] = ['retry', 'retry_later', 'wait_and_retry', 'wait_again'];

export function sleep(life: ProcessLife, ms: number): Promise<void> {
  return new Promise((resolve) => void life.clock.after(ms, resolve));
}
