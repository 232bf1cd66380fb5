// One simulated world: the service, three processes with their tasks, a shared store, webhooks, and what goes wrong.

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
const REST_MS = 900_000;
/** How long a process is without the shared store at most. */
export const LONGEST_OUTAGE_MS = 45_000;
/** How long a process is stopped at most. */
export const LONGEST_STOP_MS = 100_000;
/** Small, so that a few creates fill it. */
const LIMITS = { 'videos.create': { limit: 3, windowMs: 60_000 } } as const;
/** Just before midnight: the period of a daily budget ends in many worlds. */
const START = Date.UTC(2026, 0, 31, 23, 58);

const NEWER = 'newer ';
/** The corners that worlds have to reach. */
export const CORNERS = [
  'answer lost and killed',
  'killed with an answer under way',
  'refund after the period has ended',
  'rotated key with a full lane',
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
  'queued call taken up after a kill',
  'newer record under an older worker',
  'upload of a refused call deleted',
  'page in place of an answer',
  'route lost after the request',
  'no connection',
  'refusal under 200',
  'request counted late',
  'process stopped',
  'processes on one database',
] as const;
export type Corner = (typeof CORNERS)[number];

const OUTAGE_CORNERS = {
  fails: 'shared store failed',
  late: 'shared store late',
  silent: 'shared store silent',
} as const satisfies Record<OutageKind, Corner>;

const FAULT_CORNERS: Partial<Record<Fault['kind'], Corner>> = {
  page: 'page in place of an answer',
  lostAnswer: 'route lost after the request',
  unsent: 'no connection',
  refusal: 'refusal under 200',
  lateRequest: 'request counted late',
  stop: 'process stopped',
};

/** A world as the commands use it. */
export class World {
  readonly faults: ArmedFaults;
  readonly disk: Disk = { tasks: [], steps: new Map(), queue: emptyQueue() };
  readonly reached = new Map<Corner, number>();
  readonly #sim: SimulatedWorld;
  readonly #lives = new Map<number, number>();
  readonly #processes = new Map<number, ProcessLife>();
  /** Which processes have met the current key. */
  readonly #linked = new WeakMap<ProcessLife, boolean>();
  /** Processes that have begun what there was to do. */
  readonly #ready = new WeakSet<ProcessLife>();
  readonly #workers = new Map<number, QueueWorker>();
  /** An error of the tests' own code. */
  #defect: unknown;
  #apiKey = '';
  #hasLeftNewer = false;
  /** Records of a newer version so far. */
  #newer = 0;

  constructor(seed: number) {
    this.faults = new ArmedFaults(seed);
    const hasDatabase = seed % 2 === 0;
    if (hasDatabase) this.reach('processes on one database');
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
    this.disk.queue.added = () => {
      for (const worker of this.#workers.values()) worker.look();
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

  /** A process has the first key until it has met the current one. */
  #keyOf(process: number): string {
    const life = this.#processes.get(process);
    return life && this.#linked.get(life) ? this.#apiKey : this.#sim.service.apiKey;
  }

  /**
   * Has a process use the key that all began with and then the current one. A process that never had the first key cannot know
   * that another one belongs to the same account.
   */
  async #link(life: ProcessLife): Promise<void> {
    if (this.#apiKey === this.#sim.service.apiKey) return;
    await life.whenRunning();
    await reach(life);
    this.#linked.set(life, true);
    await reach(life);
  }

  begin(task: Omit<Task, 'id' | 'isBegun'>): void {
    const made: Task = { ...task, id: `${this.disk.tasks.length}`, isBegun: false };
    this.disk.tasks.push(made);
    this.#sim.note(`task ${made.id} of process ${made.process}: ${made.kind}, ${made.end} after ${made.slowMs} ms`);
    const life = this.#processes.get(made.process);
    if (life?.isAlive && this.#ready.has(life))
      this.#run(life.whenRunning().then(() => runTask(made, life, this.disk)));
  }

  /** Puts a record into the queue that only a newer worker knows. One takes it a minute after a worker here has left it. */
  queueNewer(): void {
    const { queue } = this.disk;
    this.#newer += 1;
    enqueue(queue, `${NEWER}${this.#newer}`, NEWER_RECORD);
    this.#sim.note('a record of a newer version is queued');
    if (this.#hasLeftNewer) this.#deployNewer();
  }

  /** Kills a process where it stands. */
  kill(process: number): void {
    this.#processes.get(process)?.kill();
  }

  /** Stops a process. It continues where it was. */
  stop(process: number, ms: number): void {
    this.#processes.get(process)?.stop(ms);
    this.reach('process stopped');
  }

  stepClock(process: number, ms: number): void {
    if (ms < 0) this.reach('clock set back');
    this.#processes.get(process)?.stepClock(ms);
  }

  /** From now on, processes use another key of the account. The one before keeps working for calls under way. */
  rotateKey(): void {
    const lane = this.#sim.service.requests.filter(({ method, path }) => method === 'POST' && path === '/v1/videos');
    const recent = lane.filter(({ at, status }) => status === 200 && Date.parse(at) > this.now - 60_000);
    if (recent.length >= LIMITS['videos.create'].limit) this.reach('rotated key with a full lane');
    this.#sim.note('the key is rotated');
    this.#apiKey = this.#sim.service.createKey();
    for (const life of this.#processes.values()) if (life.isAlive) this.#run(this.#link(life));
  }

  /** Sends a process an event that the service has not signed. */
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
    const refused = await life.client.verifyWebhook(forged, { now }).then(
      () => false,
      () => true,
    );
    if (!refused) throw new Error('a forged webhook was accepted');
    // Taken without verification it is a hint, which ends no wait.
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

  /** Nothing goes wrong any more: every task has to end, and every promise has to hold. */
  async end(): Promise<void> {
    this.faults.clear();
    // What has begun is over: outages of the store, and processes that are stopped.
    await this.advance(Math.max(LONGEST_OUTAGE_MS, LONGEST_STOP_MS));
    const untilMs = this.now + LIMIT_MS;
    const open = () => this.disk.tasks.filter(({ result }) => result === undefined);
    for (;;) {
      await this.#sim.settle();
      if (open().length === 0 && this.disk.queue.records.size === 0) break;
      if (this.now > untilMs) throw this.#failure(`tasks ${open().map(({ id }) => id)} never end`);
      if (!this.#sim.step()) throw this.#failure(`tasks ${open().map(({ id }) => id)} wait for nothing`);
    }
    await this.#rest();
    if (this.#defect !== undefined) throw this.#defect;
    await this.#check();
  }

  #start(process: number): void {
    const number = this.#lives.get(process) ?? 0;
    this.#lives.set(process, number + 1);
    const life = new ProcessLife(this.#sim, { number: process, life: number, skewMs: 0 });
    this.#processes.set(process, life);
    this.#sim.lives.set(process, life);
    if (number > 0) this.#sim.note(`process ${process} starts again`);
    life.killed.then(() => {
      this.#workers.delete(process);
      this.#countKill(life);
      this.#sim.after(RESTART_MS, () => this.#start(process));
    });
    this.#run(this.#link(life).then(() => this.#takeUp(life)));
  }

  /** Begins the tasks of a process that have not ended. */
  #takeUp(life: ProcessLife): void {
    this.#ready.add(life);
    const { queue } = this.disk;
    const worker = new QueueWorker(life, { disk: queue, report: this.#queueReport, now: () => this.now });
    this.#workers.set(life.number, worker);
    worker.look();
    const open = this.disk.tasks.filter((task) => task.process === life.number && task.result === undefined);
    const orders = open.filter(({ kind, isBegun }) => kind === 'order' && isBegun);
    if (orders.length > 0) {
      this.reach('order resumed after a kill');
      this.#run(resumeOrders(orders, life, this.disk));
    }
    for (const task of open) {
      if (orders.includes(task)) continue;
      if (task.kind === 'durable' && task.isBegun) this.reach('durable run replayed after a kill');
      this.#run(runTask(task, life, this.disk));
    }
  }

  #run(work: Promise<void>): void {
    work.catch((error: unknown) => {
      this.#defect ??= error;
    });
  }

  readonly #queueReport: QueueReport = {
    takenUp: () => this.reach('queued call taken up after a kill'),
    leftNewer: () => {
      this.reach('newer record under an older worker');
      this.#hasLeftNewer = true;
      this.#deployNewer();
    },
  };

  /** A newer worker takes the records that the older ones leave. They report such records once. */
  #deployNewer(): void {
    this.#sim.after(60_000, () => {
      const { records } = this.disk.queue;
      for (const id of records.keys()) if (id.startsWith(NEWER)) records.delete(id);
    });
  }

  #countKill(life: ProcessLife): void {
    if (life.pending.requests > 0) this.reach('killed with an answer under way');
    const isLost = [...this.#sim.made].some(([id, made]) => made.life === life && !this.#sim.reported.has(id));
    if (isLost) this.reach('answer lost and killed');
  }

  async #rest(): Promise<void> {
    const untilMs = this.now + REST_MS;
    const isResting = () => leftovers(this.#sim).length === 0;
    do await this.#sim.settle();
    while (!isResting() && this.now < untilMs && this.#sim.step());
  }

  async #check(): Promise<void> {
    const ended = new Set([0, 1, 2]);
    const broken = [...violationsOf(this.#sim, { ended }), ...leftovers(this.#sim)].map(({ text }) => text);
    for (const task of this.disk.tasks) {
      if (task.result === 'over budget') this.reach('create over budget');
      const isRight =
        task.result === (task.kind === 'refused' ? 'completed' : task.end) ||
        (task.kind === 'budget' && task.result === 'over budget');
      if (!isRight) broken.push(`task ${task.id} (${task.kind}) is ${task.result}, not ${task.end}`);
    }
    for (const how of this.faults.outages) this.reach(OUTAGE_CORNERS[how]);
    for (const name of this.faults.struck) {
      const corner = FAULT_CORNERS[name.replace(/.*:/, '') as Fault['kind']];
      if (corner) this.reach(corner);
    }
    for (const life of this.#processes.values()) {
      if (life.isAlive && listenersOf(life) > 0) broken.push(`process ${life.number} has left listeners on its signal`);
    }
    broken.push(...this.#wrongJobs(), ...this.#leftUploads(), ...(await this.#wrongBudget()));
    broken.push(...(await this.#wrongTotals()));
    if (broken.length > 0) throw this.#failure(broken.join('\n'));
  }

  /** The jobs of the tasks, and no others. A job whose reference was under review is followed by another one. */
  #wrongJobs(): string[] {
    const jobs = this.#sim.service.jobs.filter(({ errorCode }) => errorCode !== 'reference_asset_pending');
    const due = this.disk.tasks.reduce((sum, task) => sum + jobsOf(task), 0);
    for (const { key } of this.#sim.made.values()) if (key?.includes(':r')) this.reach('resubmitted after a review');
    return jobs.length === due ? [] : [`the tasks made ${jobs.length} jobs, not ${due}`];
  }

  /** A file whose call was refused is deleted, unless its process was killed or requests of it were lost. */
  #leftUploads(): string[] {
    const { requests } = this.#sim.service;
    const deleted = new Set(requests.filter(({ method }) => method === 'DELETE').map(({ path }) => path));
    return requests.flatMap(({ method, path, status, body, idempotencyKey }) => {
      const task = this.disk.tasks.find((it) => it.kind === 'refused' && keyOf(it) === idempotencyKey);
      if (task === undefined || method !== 'POST' || path !== '/v1/videos' || status !== 400) return [];
      const { first_frame_upload_id: id } = JSON.parse(body ?? '{}') as { first_frame_upload_id?: string };
      const isDeleted = deleted.has(`/v1/uploads/${id}`);
      if (isDeleted) this.reach('upload of a refused call deleted');
      const isStruck = this.faults.struck.some((name) => name.startsWith(`${task.process}.`));
      return isDeleted || isStruck || this.#lives.get(task.process) !== 1 ? [] : [`upload ${id} of ${task.id} is left`];
    });
  }

  /** What was charged stays within the limit of each period, but for one job, and the budget says what the ledger says. */
  async #wrongBudget(): Promise<string[]> {
    const keys = new Set(this.disk.tasks.filter(({ kind }) => kind === 'budget').map((task) => keyOf(task) ?? ''));
    if (keys.size === 0) return [];
    const days = new Set<number>();
    const today = Math.floor(this.now / DAY_MS);
    let charged = 0;
    let createdToday = 0;
    let reportedToday = 0;
    for (const job of this.#sim.service.jobs) {
      const made = this.#sim.made.get(job.id);
      if (!keys.has(made?.key ?? '')) continue;
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
    const usage = await this.#awaited(budgetOf(life).usage());
    const { spentTokens, reservedTokens, unresolved } = usage;
    if (reservedTokens !== 0 || unresolved.length !== 0)
      broken.push(`the budget still reserves: ${JSON.stringify(usage)}`);
    // A refund that waited for the store is lost with its process: the budget then says too much, and never too little.
    const mayLoseRefunds = this.#sim.counts.outages > 0 && [...this.#lives.values()].some((lives) => lives > 1);
    // A create counts in the period in which it is answered, which may be by a repeated call.
    if (spentTokens < createdToday || (spentTokens > reportedToday && !mayLoseRefunds)) {
      broken.push(
        `the budget says ${spentTokens} tokens for today, and the ledger ${createdToday} to ${reportedToday}`,
      );
    }
    return broken;
  }

  /** What the budgets have spent is what was charged, when nothing is open any more. */
  async #wrongTotals(): Promise<string[]> {
    const life = [...this.#processes.values()].find(({ isAlive }) => isAlive);
    if (life === undefined || this.disk.tasks.length === 0) return [];
    await this.#awaited(settleCreates(this.#sim, life, this.disk));
    return this.#awaited(wrongTotals(this.#sim, life, this.disk));
  }

  /** Lets time pass until a promise is settled. */
  async #awaited<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const done = () => {
      isSettled = true;
    };
    promise.then(done, done);
    do await this.#sim.settle();
    while (!isSettled && (this.#sim.step() || (await realPause())));
    return promise;
  }

  #failure(text: string): Error {
    return new Error(`${text}\n${this.history.join('\n')}`);
  }
}

/** Makes a call with the process's key that counts against no limit, until it succeeds. */
async function reach(life: ProcessLife): Promise<void> {
  for (;;) {
    try {
      await life.client.voices.list();
      return;
    } catch {
      await sleep(life, 1_000);
    }
  }
}

/** What is written after an answer has two seconds of real time. */
const realPause = () => new Promise<true>((resolve) => setTimeout(() => resolve(true), 10));

function dayOf(at: string | null | undefined): number {
  return Math.floor(Date.parse(at ?? '') / DAY_MS);
}
