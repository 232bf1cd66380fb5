import type { GenClient } from '../../client/client.js';
import { GenError } from '../../errors/index.js';
import { reasonOf } from '../../runtime/callbacks.js';
import type { Random } from '../../runtime/clock.js';
import type { NotifyingStore } from '../../store/store.js';
import type { SandboxService } from '../control/contract.js';
import { randomFor } from './chance.js';
import { ProcessLife } from './process.js';
import { SimulatedWorld, WEBHOOK_URL, type WorldSetup } from './world.js';

/** The service as a program of a simulation sees it. */
export interface SimulatedService
  extends Pick<
    SandboxService,
    | 'baseUrl'
    | 'apiKey'
    | 'webhookSecret'
    | 'now'
    | 'outcomes'
    | 'dispatch'
    | 'jobs'
    | 'requests'
    | 'deliveries'
    | 'ledger'
  > {
  /** Give it to a create as `webhook_url`: its webhook is delivered to one of the processes, which notifies its waits. */
  readonly webhookUrl: string;
  /** Waits in simulated time. A timer of the runtime does not move in a simulation. */
  sleep(ms: number): Promise<void>;
  /**
   * Rejects with a GenError unless each job was reported to some call, charges are the quotes, budgets in the store
   * count at least what was charged, and the service returned no 429.
   * Calls that are under way and processes that are down are left out. `simulate` runs it once more when all have ended.
   */
  check(): Promise<void>;
}

/** What a program of a simulation gets. */
export interface SimulatedProcess {
  /** A fresh client for each life of the process. The clients of all processes share one store. */
  readonly client: GenClient;
  /** The number of the process, from 0. It stays the same when the process is started again. */
  readonly process: number;
  /** The service, and its checks. */
  readonly service: SimulatedService;
  /**
   * Chance that follows from the seed: `random()` as `Math.random()`, and `random.uuid()`. Other chance makes a failure
   * that cannot be replayed.
   */
  readonly random: SimulatedRandom;
  /** The store that the processes share, for budgets and for state of the program's own. */
  readonly store: NotifyingStore;
  /** What the processes keep on disk or in a database: it survives a kill, and is empty when a simulation begins. */
  readonly storage: Map<string, unknown>;
}

/** A seeded `Math.random`, with ids. */
export type SimulatedRandom = Random & (() => number);

/** The program that each process runs. */
export type SimulatedProgram = (context: SimulatedProcess) => unknown;

/** A run that has ended. */
export interface RunResult {
  readonly violation: Violation | undefined;
  readonly world: SimulatedWorld;
}

/** What a run is made of. */
export interface RunOptions extends WorldSetup {
  readonly processes: number;
  /** Simulated milliseconds in which every program has to end. */
  readonly timeoutMs: number;
}

/** How often a process is started again after a failure that passes. */
const MOST_CRASHES = 20;
const MOST_DOWN_MS = 30_000;
/** Simulated milliseconds after the last program in which timers may still end. */
const REST_MS = 900_000;
/** Turns of the event loop, in real time, after which a program that waits for nothing simulated is given up. */
const PATIENCE_TURNS = 200;
/** Failures of a call after which a supervisor starts the program again. */
const RESTARTED: readonly unknown[] = ['retry', 'retry_later', 'wait_and_retry', 'wait_again'];

/** Runs the program in every process until all have ended, or something does not hold. */
export async function runProcesses(options: RunOptions, program: SimulatedProgram): Promise<RunResult> {
  const world = new SimulatedWorld(options);
  const ended = new Set<number>();
  const storage = new Map<string, unknown>();
  let violation: Violation | undefined;
  const fail = (found: Violation) => {
    violation ??= found;
  };
  const start = (process: number, life: number, crashes: number): void => {
    const { next } = randomFor(options.seed, `start of process ${process}, life ${life}`);
    const current = new ProcessLife(world, { number: process, life, skewMs: 0 });
    world.lives.set(process, current);
    if (life > 0) world.note(`process ${process} starts again`);
    const again = (count: number) => world.after(next() * MOST_DOWN_MS, () => start(process, life + 1, count));
    const service = serviceFor(world, () => ({ asker: process, ended }));
    const { client, store } = current;
    const random = Object.assign(() => current.random.next(), current.random);
    const work = (async () => program({ client, process, service, random, store, storage }))();
    Promise.race([work, current.killed]).then(
      () => {
        if (!current.isAlive) again(crashes);
        else ended.add(process);
      },
      (error: unknown) => {
        if (!current.isAlive) again(crashes);
        else if (error instanceof BrokenPromise) fail(error.violation);
        else if (!isRestarted(error) || crashes >= MOST_CRASHES) fail({ rule: 'program', text: crash(process, error) });
        else {
          world.note(`process ${process} ends with ${reasonOf(error)}`);
          current.kill();
          again(crashes + 1);
        }
      },
    );
    // A rejection after a kill concerns nobody.
    work.catch(() => {});
  };
  for (let process = 0; process < options.processes; process++) start(process, 0, 0);
  const untilMs = world.now() + options.timeoutMs;
  const isOver = () => violation !== undefined || ended.size === options.processes;
  await drive(world, { isOver, untilMs, fail, waiting: () => waitingOf(options.processes, ended) });
  if (violation === undefined) {
    await restWorld(world);
    violation = [...violationsOf(world, { ended }), ...leftovers(world)][0];
  }
  return { violation, world };
}

interface Driving {
  readonly isOver: () => boolean;
  readonly untilMs: number;
  readonly fail: (violation: Violation) => void;
  readonly waiting: () => string;
}

async function drive(world: SimulatedWorld, { isOver, untilMs, fail, waiting }: Driving): Promise<void> {
  let idleTurns = 0;
  for (;;) {
    await world.settle();
    if (isOver()) return;
    if (world.now() > untilMs) {
      fail({ rule: 'waits', text: `${waiting()} did not end within the simulated time (timeoutMs)` });
    } else if (world.step()) idleTurns = 0;
    else if (idleTurns < PATIENCE_TURNS) idleTurns += 1;
    else fail({ rule: 'waits', text: `${waiting()} waits for something that never happens in simulated time` });
  }
}

/** Gives timers that end by themselves the time to do so. */
async function restWorld(world: SimulatedWorld): Promise<void> {
  const untilMs = world.now() + REST_MS;
  const isResting = () => leftovers(world).length === 0;
  do await world.settle();
  while (!isResting() && world.now() < untilMs && world.step());
}

function serviceFor(world: SimulatedWorld, asking: () => Parameters<typeof violationsOf>[1]): SimulatedService {
  const { service } = world;
  return {
    baseUrl: service.baseUrl,
    apiKey: service.apiKey,
    webhookSecret: service.webhookSecret,
    webhookUrl: WEBHOOK_URL,
    outcomes: service.outcomes,
    now: () => service.now(),
    get dispatch() {
      return service.dispatch;
    },
    set dispatch(dispatch) {
      service.dispatch = dispatch;
    },
    get jobs() {
      return service.jobs;
    },
    get requests() {
      return service.requests;
    },
    get deliveries() {
      return service.deliveries;
    },
    ledger: (choice) => service.ledger(choice),
    sleep: (ms) => new Promise((resolve) => void world.after(ms, resolve)),
    async check() {
      const [violation] = violationsOf(world, asking());
      if (violation) throw new BrokenPromise(violation);
    },
  };
}

/** What `service.check()` rejects with. */
class BrokenPromise extends GenError {
  readonly violation: Violation;

  constructor(violation: Violation) {
    super(`The simulation found that ${violation.text}.`, { recovery: 'none' });
    this.violation = violation;
  }
}

function isRestarted(error: unknown): boolean {
  return GenError.isInstance(error) && RESTARTED.includes(error.recovery);
}

function crash(process: number, error: unknown): string {
  return `the program of process ${process} failed: ${reasonOf(error)}`;
}

function waitingOf(processes: number, ended: ReadonlySet<number>): string {
  const numbers = Array.from({ length: processes }, (_, at) => at).filter((at) => !ended.has(at));
  return `process ${numbers.join(', ')}`;
}

/** A promise that did not hold. */
export interface Violation {
  /** Which promise. */
  readonly rule: 'jobs' | 'charges' | 'budgets' | 'limits' | 'waits' | 'rest' | 'program';
  readonly text: string;
}

/** Who asks: a process that still runs, or nobody when all have ended. */
export interface Asking {
  readonly asker?: number | undefined;
  /** Processes whose program has ended. */
  readonly ended: ReadonlySet<number>;
}

/** What does not hold at this moment. Calls that are still under way, and processes that are down, are left out. */
export function violationsOf(world: SimulatedWorld, asking: Asking): Violation[] {
  return [...unreportedJobs(world, asking), ...wrongCharges(world), ...wrongBudgets(world), ...refusedByLimits(world)];
}

/** What is left in the processes once all programs have ended. */
export function leftovers(world: SimulatedWorld): Violation[] {
  return [...world.lives.values()].flatMap(({ number, pending, isAlive }): Violation[] => {
    const { timers, requests, subscriptions } = pending;
    if (!isAlive || timers + requests + subscriptions === 0) return [];
    const left = `${timers} timers, ${requests} requests and ${subscriptions} subscriptions`;
    const text = `process ${number} has ended and still has ${left}`;
    return [{ rule: 'rest', text }];
  });
}

function unreportedJobs(world: SimulatedWorld, { asker, ended }: Asking): Violation[] {
  return world.service.jobs.flatMap((job): Violation[] => {
    const made = world.made.get(job.id);
    if (made === undefined || world.reported.has(job.id)) return [];
    const isOver = ended.has(made.process) || (made.process === asker && made.life.isAlive);
    if (!isOver || world.isPending(made.key)) return [];
    const cost = job.completedAt
      ? `${job.finalTokenCost} tokens were charged`
      : `${job.quotedTokenCost} tokens are reserved`;
    const text = `process ${made.process} made ${job.id} with the key ${made.key}, and no call was told of it: ${cost}`;
    return [{ rule: 'jobs', text }];
  });
}

function wrongCharges(world: SimulatedWorld): Violation[] {
  const { jobs } = world.service;
  const found: Violation[] = [];
  let charged = 0;
  for (const { id, status, finalTokenCost, quotedTokenCost, completedAt } of jobs) {
    const { quoted } = world.reported.get(id) ?? {};
    charged += finalTokenCost ?? 0;
    const due = status === 'completed' ? quotedTokenCost : 0;
    if (completedAt && finalTokenCost !== due) {
      found.push({ rule: 'charges', text: `${id} is ${status} and was charged ${finalTokenCost}, not ${due}` });
    }
    if (quoted !== undefined && quoted !== quotedTokenCost) {
      found.push({ rule: 'charges', text: `${id} was quoted at ${quoted}, and ${quotedTokenCost} are reserved` });
    }
  }
  const { spentTokens } = world.service.ledger();
  if (Math.abs(spentTokens - charged) < 1e-6) return found;
  return [...found, { rule: 'charges', text: `the ledger says ${spentTokens} tokens, and the jobs ${charged}` }];
}

/** A budget counts at least what the service has charged for the creates that it has let through. */
function wrongBudgets({ budgets, service, made }: SimulatedWorld): Violation[] {
  const texts = budgets.undercounted(service.jobs, (jobId) => made.get(jobId)?.key ?? null);
  return [...texts].map((text) => ({ rule: 'budgets', text }));
}

function refusedByLimits({ counts }: SimulatedWorld): Violation[] {
  const { rateLimited } = counts;
  return rateLimited === 0 ? [] : [{ rule: 'limits', text: `the service refused ${rateLimited} requests with a 429` }];
}
