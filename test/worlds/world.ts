// A simulated world: the service, three processes with tasks, a shared store, webhooks, and faults.

import { DOCUMENTED_LIMITS } from '../../src/rules/limits.js';
import { signWebhook, type WebhookEvent } from '../../src/webhooks/index.js';
import { ArmedFaults } from './faults.js';
import { settleCreates, wrongTotals } from './money.js';
import { emptyQueue, enqueue, NEWER_RECORD, type QueueReport, QueueWorker } from './queue.js';
import type { Fault, OutageKind } from './simulation/chance.js';
import { leftovers, violationsOf } from './simulation/checks.js';
import { ProcessLife } from './simulation/process.js';
import { SimulatedWorld } from './simulation/world.js';
import {
  BUDGET,
  budgetOf,
  clientBudget,
  type Disk,
  jobsOf,
  keyOf,
  listenersOf,
  PRICE,
  resumeOrders,
  runTask,
  sleep,
  type Task,
} from './tasks.js';

export const PROCESSES = 3;
const RESTART_MS = 3_000;
const DAY_MS = 86_400_000;
const LIMIT_MS = 5 * DAY_MS;
const MAX_SETTLE_MS = 900_000;
export const MAX_OUTAGE_MS = 45_000;
export const MAX_STOP_MS = 100_000;
/** A limit that a few creates exhaust. */
const LIMITS = { 'videos.create': { limit: 3, windowMs: 60_000 } } as const;
/** Just before midnight, so that a daily budget's period often ends during a world. */
const START = Date.UTC(2026, 0, 31, 23, 58);

const NEWER = 'newer ';
/** Corner cases that the worlds must reach. */
export const CORNERS = [
  'response lost and killed',
  'killed with a response in flight',
  'refund after the period has ended',
  'rotated key at the rate limit',
  'webhook lost',
  'webhook late',
  'webhook forged',
  'clock set back',
  'create over budget',
  'durable run replayed after a kill',
  'order resumed after a kill',
  'resubmitted after a review',
  'shared store failed',
  'shared store late',
  'shared store silent',
  'queued call resumed after a kill',
  'newer record under an older worker',
  "rejected call's upload deleted",
  'page instead of a response',
  'connection lost after the request',
  'no connection',
  'rejection with status 200',
  'request counted late',
  'process stopped',
  'processes sharing one database',
] as const;
export type Corner = (typeof CORNERS)[number];

const OUTAGE_CORNERS = {
  fails: 'shared store failed',
  late: 'shared store late',
  silent: 'shared store silent',
} as const satisfies Record<OutageKind, Corner>;

const FAULT_CORNERS: Partial<Record<Fault['kind'], Corner>> = {
  page: 'page instead of a response',
  lostResponse: 'connection lost after the request',
  unsent: 'no connection',
  rejection: 'rejection with status 200',
  lateRequest: 'request counted late',
  stop: 'process stopped',
};

export class World {
  readonly faults: ArmedFaults;
  readonly disk: Disk = { tasks: [], steps: new Map(), queue: emptyQueue() };
  readonly reached = new Map<Corner, number>();
  readonly #sim: SimulatedWorld;
  readonly #lives = new Map<number, number>();
  readonly #processes = new Map<number, ProcessLife>();
  /** Processes that have used the current key. */
  readonly #linked = new WeakMap<ProcessLife, boolean>();
  /** Processes that have restarted their tasks. */
  readonly #ready = new WeakSet<ProcessLife>();
  readonly #workers = new Map<number, QueueWorker>();
  /** An error in the test's own code. */
  #defect: unknown;
  #apiKey = '';
  #hasSkippedNewer = false;
  /** Number of records of a newer version. */
  #newer = 0;

  constructor(seed: number) {
    this.faults = new ArmedFaults(seed);
    const hasDatabase = seed % 2 === 0;
    if (hasDatabase) this.reach('processes sharing one database');
    this.#sim = new SimulatedWorld({
      seed,
      hasDatabase,
      chances: this.faults,
      client: (process, store) => ({
        apiKey: () => this.#keyOf(process),
        limits: LIMITS,
        budget: clientBudget(store),
      }),
      sandbox: {
        limits: { ...DOCUMENTED_LIMITS, ...LIMITS },
        prices: PRICE,
        startTime: START,
        review: { asset: 20_000 },
      },
    });
    this.#apiKey = this.#sim.service.apiKey;
    this.disk.queue.onAdded = () => {
      for (const worker of this.#workers.values()) worker.check();
    };
    for (let process = 0; process < PROCESSES; process++) this.#start(process);
  }

  get now(): number {
    return this.#sim.now();
  }

  get history(): readonly string[] {
    return this.#sim.history;
  }

  reach(corner: Corner): void {
    this.reached.set(corner, (this.reached.get(corner) ?? 0) + 1);
  }

  /** Returns the first key until the process has used it, and then the current one. */
  #keyOf(process: number): string {
    const life = this.#processes.get(process);
    return life && this.#linked.get(life) ? this.#apiKey : this.#sim.service.apiKey;
  }

  /**
   * Uses the first key and then the current one. A process that never had the first key can't know that both belong to one
   * account.
   */
  async #link(life: ProcessLife): Promise<void> {
    if (this.#apiKey === this.#sim.service.apiKey) return;
    await life.whenRunning();
    await reachService(life);
    this.#linked.set(life, true);
    await reachService(life);
  }

  startTask(task: Omit<Task, 'id' | 'isStarted'>): void {
    const stored: Task = { ...task, id: `${this.disk.tasks.length}`, isStarted: false };
    this.disk.tasks.push(stored);
    const { id, process, kind, end, slowMs } = stored;
    this.#sim.log(`task ${id} of process ${process}: ${kind}, ${end} after ${slowMs} ms`);
    const life = this.#processes.get(process);
    if (life?.isAlive && this.#ready.has(life))
      this.#run(life.whenRunning().then(() => runTask(stored, life, this.disk)));
  }

  /** Queues a record that only a newer worker supports. A newer worker processes it a minute after these workers skip it. */
  queueNewer(): void {
    const { queue } = this.disk;
    this.#newer += 1;
    enqueue(queue, `${NEWER}${this.#newer}`, NEWER_RECORD);
    this.#sim.log('a record of a newer version is queued');
    if (this.#hasSkippedNewer) this.#deployNewer();
  }

  kill(process: number): void {
    this.#processes.get(process)?.kill();
  }

  /** Pauses a process. */
  stop(process: number, ms: number): void {
    this.#processes.get(process)?.stop(ms);
    this.reach('process stopped');
  }

  stepClock(process: number, ms: number): void {
    if (ms < 0) this.reach('clock set back');
    this.#processes.get(process)?.stepClock(ms);
  }

  /** Rotates the account's key. The previous one remains valid for calls in flight. */
  rotateKey(): void {
    const creates = this.#sim.service.requests.filter(({ method, path }) => method === 'POST' && path === '/v1/videos');
    const recent = creates.filter(({ at, status }) => status === 200 && Date.parse(at) > this.now - 60_000);
    if (recent.length >= LIMITS['videos.create'].limit) this.reach('rotated key at the rate limit');
    this.#sim.log('the key is rotated');
    this.#apiKey = this.#sim.service.createKey();
    for (const life of this.#processes.values()) if (life.isAlive) this.#run(this.#link(life));
  }

  /** Sends a process an event with a forged signature. */
  async forge(process: number): Promise<void> {
    const life = this.#processes.get(process);
    const job = this.#sim.service.jobs.find(({ status }) => status === 'processing');
    if (!life?.isRunning || job === undefined) return;
    this.reach('webhook forged');
    const event: WebhookEvent = {
      object: 'service.developer.webhook_event',
      id: `evt_${job.id}_completed`,
      type: 'job.completed',
      created: new Date(this.now).toISOString(),
      data: { job: { id: job.id, status: 'completed', providerOutputUrl: 'https://evil.example/output' } },
    };
    const now = () => life.clock.now();
    const forged = await signWebhook(event, { secret: 'whsec_wrong', now });
    const isRejected = await life.client.verifyWebhook(forged, { now }).then(
      () => false,
      () => true,
    );
    if (!isRejected) throw new Error('a forged webhook was accepted');
    // Without verification, an event is only a hint: it can't end a wait.
    life.client.notify(event);
  }

  async advance(ms: number): Promise<void> {
    const untilMs = this.now + ms;
    let isAlarmed = false;
    this.#sim.after(ms, () => {
      isAlarmed = true;
    });
    while (!isAlarmed && this.now < untilMs) {
      await this.#sim.settle();
      if (!this.#sim.step()) return;
    }
    await this.#sim.settle();
  }

  /** Stops all faults. Every task must end, and every invariant must hold. */
  async end(): Promise<void> {
    this.faults.clear();
    // Wait for outages and paused processes to end.
    await this.advance(Math.max(MAX_OUTAGE_MS, MAX_STOP_MS));
    const untilMs = this.now + LIMIT_MS;
    const openTasks = () => this.disk.tasks.filter(({ result }) => result === undefined);
    for (;;) {
      await this.#sim.settle();
      if (openTasks().length === 0 && this.disk.queue.records.size === 0) break;
      if (this.now > untilMs) throw this.#failure(`tasks ${openTasks().map(({ id }) => id)} never end`);
      if (!this.#sim.step()) throw this.#failure(`tasks ${openTasks().map(({ id }) => id)} wait, but no event is due`);
    }
    await this.#settleLeftovers();
    if (this.#defect !== undefined) throw this.#defect;
    await this.#check();
  }

  #start(process: number): void {
    const number = this.#lives.get(process) ?? 0;
    this.#lives.set(process, number + 1);
    const life = new ProcessLife(this.#sim, { number: process, life: number });
    this.#processes.set(process, life);
    this.#sim.lives.set(process, life);
    if (number > 0) this.#sim.log(`process ${process} restarts`);
    life.killed.then(() => {
      this.#workers.delete(process);
      this.#countKill(life);
      this.#sim.after(RESTART_MS, () => this.#start(process));
    });
    this.#run(this.#link(life).then(() => this.#restartTasks(life)));
  }

  /** Restarts a process's unfinished tasks. */
  #restartTasks(life: ProcessLife): void {
    this.#ready.add(life);
    const { queue } = this.disk;
    const worker = new QueueWorker(life, { disk: queue, report: this.#queueReport, now: () => this.now });
    this.#workers.set(life.number, worker);
    worker.check();
    const open = this.disk.tasks.filter((task) => task.process === life.number && task.result === undefined);
    const orders = open.filter(({ kind, isStarted }) => kind === 'order' && isStarted);
    if (orders.length > 0) {
      this.reach('order resumed after a kill');
      this.#run(resumeOrders(orders, life, this.disk));
    }
    for (const task of open) {
      if (orders.includes(task)) continue;
      if (task.kind === 'durable' && task.isStarted) this.reach('durable run replayed after a kill');
      this.#run(runTask(task, life, this.disk));
    }
  }

  #run(work: Promise<void>): void {
    work.catch((error: unknown) => {
      this.#defect ??= error;
    });
  }

  readonly #queueReport: QueueReport = {
    resumed: () => this.reach('queued call resumed after a kill'),
    skippedNewer: () => {
      this.reach('newer record under an older worker');
      this.#hasSkippedNewer = true;
      this.#deployNewer();
    },
  };

  /** Simulates a newer worker, which processes the records that older ones skip. Older ones report them once. */
  #deployNewer(): void {
    this.#sim.after(60_000, () => {
      const { records } = this.disk.queue;
      for (const id of records.keys()) if (id.startsWith(NEWER)) records.delete(id);
    });
  }

  #countKill(life: ProcessLife): void {
    if (life.pending.requests > 0) this.reach('killed with a response in flight');
    const created = [...this.#sim.createdJobs];
    const isLost = created.some(([id, job]) => job.life === life && !this.#sim.reported.has(id));
    if (isLost) this.reach('response lost and killed');
  }

  async #settleLeftovers(): Promise<void> {
    const untilMs = this.now + MAX_SETTLE_MS;
    do await this.#sim.settle();
    while (leftovers(this.#sim).length > 0 && this.now < untilMs && this.#sim.step());
  }

  async #check(): Promise<void> {
    const broken = [...violationsOf(this.#sim), ...leftovers(this.#sim)];
    for (const task of this.disk.tasks) {
      if (task.result === 'over budget') this.reach('create over budget');
      const isExpected =
        task.result === (task.kind === 'rejected' ? 'completed' : task.end) ||
        (task.kind === 'budget' && task.result === 'over budget');
      if (!isExpected) broken.push(`task ${task.id} (${task.kind}) is ${task.result}, not ${task.end}`);
    }
    for (const how of this.faults.outages) this.reach(OUTAGE_CORNERS[how]);
    for (const name of this.faults.injected) {
      const corner = FAULT_CORNERS[name.replace(/.*:/, '') as Fault['kind']];
      if (corner) this.reach(corner);
    }
    for (const life of this.#processes.values()) {
      if (life.isAlive && listenersOf(life) > 0) broken.push(`process ${life.number} left listeners on its signal`);
    }
    broken.push(...this.#wrongJobs(), ...this.#leftUploads(), ...(await this.#wrongBudget()));
    broken.push(...(await this.#wrongTotals()));
    if (broken.length > 0) throw this.#failure(broken.join('\n'));
  }

  /** Checks the number of jobs. A job whose reference was under review is resubmitted as another one. */
  #wrongJobs(): string[] {
    const jobs = this.#sim.service.jobs.filter(({ errorCode }) => errorCode !== 'reference_asset_pending');
    const due = this.disk.tasks.reduce((sum, task) => sum + jobsOf(task), 0);
    for (const { key } of this.#sim.createdJobs.values())
      if (key?.includes(':r')) this.reach('resubmitted after a review');
    return jobs.length === due ? [] : [`the tasks created ${jobs.length} jobs, not ${due}`];
  }

  /** Checks that a rejected call's file was deleted, unless its process was killed or lost requests. */
  #leftUploads(): string[] {
    const { requests } = this.#sim.service;
    const deleted = new Set(requests.filter(({ method }) => method === 'DELETE').map(({ path }) => path));
    return requests.flatMap(({ method, path, status, body, idempotencyKey }) => {
      const task = this.disk.tasks.find((stored) => stored.kind === 'rejected' && keyOf(stored) === idempotencyKey);
      if (task === undefined || method !== 'POST' || path !== '/v1/videos' || status !== 400) return [];
      const { first_frame_upload_id: id } = JSON.parse(body ?? '{}') as { first_frame_upload_id?: string };
      const isDeleted = deleted.has(`/v1/uploads/${id}`);
      if (isDeleted) this.reach("rejected call's upload deleted");
      const hadFault = this.faults.injected.some((name) => name.startsWith(`${task.process}.`));
      return isDeleted || hadFault || this.#lives.get(task.process) !== 1
        ? []
        : [`upload ${id} of ${task.id} was not deleted`];
    });
  }

  /**
   * Checks that the charges exceed the limits of the periods used by at most one job in total, and that the budget's count for
   * today matches the jobs.
   */
  async #wrongBudget(): Promise<string[]> {
    const keys = new Set(this.disk.tasks.filter(({ kind }) => kind === 'budget').map((task) => keyOf(task) ?? ''));
    if (keys.size === 0) return [];
    const days = new Set<number>();
    const today = Math.floor(this.now / DAY_MS);
    let charged = 0;
    let createdToday = 0;
    let reportedToday = 0;
    for (const job of this.#sim.service.jobs) {
      const created = this.#sim.createdJobs.get(job.id);
      if (!keys.has(created?.key ?? '')) continue;
      const createdDay = dayOf(job.createdAt);
      const endedDay = dayOf(job.completedAt);
      days.add(createdDay).add(endedDay);
      if (job.finalTokenCost === 0 && createdDay !== endedDay) this.reach('refund after the period has ended');
      charged += job.finalTokenCost ?? 0;
      const charge = job.finalTokenCost ?? 0;
      const reportedDay = Math.floor((this.#sim.reported.get(job.id)?.atMs ?? 0) / DAY_MS);
      if (createdDay === today) createdToday += charge;
      if (createdDay === today || reportedDay === today) reportedToday += charge;
    }
    const broken: string[] = [];
    if (charged > days.size * BUDGET.maxTokens + PRICE)
      broken.push(`${charged} tokens were charged in ${days.size} days`);
    const life = [...this.#processes.values()].find(({ isAlive }) => isAlive);
    if (life === undefined) return broken;
    const usage = await this.#sim.advanceUntil(budgetOf(life).usage());
    const { spentTokens, reservedTokens, unresolved } = usage;
    if (reservedTokens !== 0 || unresolved.length !== 0)
      broken.push(`the budget still reserves: ${JSON.stringify(usage)}`);
    // A crash loses a refund that waits for the store. The budget's count is then too high, never too low.
    const mayLoseRefunds = this.#sim.counts.outages > 0 && [...this.#lives.values()].some((lives) => lives > 1);
    // A create counts in the period of its response, which may be a retry's.
    if (spentTokens < createdToday || (spentTokens > reportedToday && !mayLoseRefunds)) {
      broken.push(
        `the budget has ${spentTokens} tokens for today, but the ledger has ${createdToday} to ${reportedToday}`,
      );
    }
    return broken;
  }

  /** Checks that the budgets match the charges once no create is unfinished. */
  async #wrongTotals(): Promise<string[]> {
    const life = [...this.#processes.values()].find(({ isAlive }) => isAlive);
    if (life === undefined || this.disk.tasks.length === 0) return [];
    await this.#sim.advanceUntil(settleCreates(this.#sim, life, this.disk));
    return this.#sim.advanceUntil(wrongTotals(this.#sim, life, this.disk));
  }

  #failure(text: string): Error {
    return new Error(`${text}\n${this.history.join('\n')}`);
  }
}

/** Repeats an unlimited call with the process's key until it succeeds. */
async function reachService(life: ProcessLife): Promise<void> {
  for (;;) {
    try {
      await life.client.voices.list();
      return;
    } catch {
      await sleep(life, 1_000);
    }
  }
}

function dayOf(at: string | null | undefined): number {
  return Math.floor(Date.parse(at ?? '') / DAY_MS);
}
