// A simulation of a service, processes that share a budget, a store, and a clock.

import { ConnectionError, GenError, RateLimitError } from '../../src/errors/index.js';
import { CLOCK, type Clock } from '../../src/runtime/clock.js';
import { memoryStoreOn, type Store } from '../../src/store/store.js';
import { settle, virtualClock } from '../waiting/virtual-clock.js';
import { createReserver, type Order } from './reserver.js';

/** How a create fails. `late`: the response is lost, and the service creates the job later. */
export type Fault = 'none' | 'no price' | 'lost' | 'late' | 'not created' | 'rejected' | 'busy' | 'unsent';

export type WorldEvent =
  | {
      readonly type: 'create';
      readonly process: number;
      /** 0 and 1: videos with fixed prices. 2: an edit, whose price depends on its source. */
      readonly kind: number;
      readonly key: number;
      readonly fault: Fault;
      /** Time until the response. Also determines the price of an edit. */
      readonly ms: number;
    }
  | { readonly type: 'advance'; readonly ms: number }
  /** Moves the clock by a fraction of a period. */
  | { readonly type: 'jump'; readonly fraction: number }
  | { readonly type: 'kill'; readonly process: number }
  | { readonly type: 'outage'; readonly process: number; readonly fault: 'reads' | 'writes' | 'lost writes' | 'none' }
  | { readonly type: 'poll'; readonly process: number; readonly job: number };

export interface WorldOptions {
  readonly maxTokens: number;
  readonly per: 'total' | 'day' | 'month';
  /** The real prices. */
  readonly prices: readonly [number, number];
  readonly unknownPrice: 'one-at-a-time' | 'estimate';
  readonly startMs: number;
}

interface CreatedJob {
  readonly id: string;
  readonly tokens: number;
  readonly period: string;
}

const PROCESSES = 3;
const DAY_MS = 86_400_000;
const PERIOD_MS = { total: DAY_MS, day: DAY_MS, month: 28 * DAY_MS } as const;

/** Runs a world to its end. Returns the charges of each period, and the highest price of a job. */
export async function runWorld(
  options: WorldOptions,
  events: readonly WorldEvent[],
): Promise<{ readonly charged: ReadonlyMap<string, number>; readonly highestPrice: number; readonly jobs: number }> {
  const clock = virtualClock(options.startMs);
  const store = memoryStoreOn(clock);
  const jobs = new Map<string, CreatedJob>();
  const rejectedKeys = new Set<string>();
  let latestMs = options.startMs;
  let jumpedMs = 0;

  function periodNow(): string {
    // Setting the clock back doesn't restart an earlier period.
    latestMs = Math.max(latestMs, clock.now());
    const { per } = options;
    return per === 'total' ? per : new Date(latestMs).toISOString().slice(0, per === 'day' ? 10 : 7);
  }

  function createJob(key: string, tokens: number): CreatedJob {
    const job = jobs.get(key) ?? { id: `job-${key}`, tokens, period: periodNow() };
    jobs.set(key, job);
    return job;
  }

  const processes = Array.from({ length: PROCESSES }, () => openProcess(options, store, clock));
  for (const event of events) {
    periodNow();
    if (event.type === 'advance') await clock.advance(event.ms);
    else if (event.type === 'jump') {
      // A longer jump would expire creates in flight. Expired creates count as lost until the end of the next period.
      const ms = event.fraction * PERIOD_MS[options.per];
      if (jumpedMs + ms > 0.9 * PERIOD_MS[options.per]) continue;
      jumpedMs += Math.max(0, ms);
      clock.shiftWallClock(ms);
    } else {
      const process = processes[event.process % PROCESSES];
      if (!process) continue;
      if (event.type === 'outage') process.fault = event.fault;
      else if (event.type === 'kill') {
        process.fault = 'dead';
        processes[event.process % PROCESSES] = openProcess(options, store, clock);
      } else if (event.type === 'create') void create(process, event);
      else {
        const job = [...jobs.values()][event.job % Math.max(1, jobs.size)];
        if (job) void process.reserver.recordCharge(job.id, job.tokens).catch(() => {});
      }
    }
    await settle();
    periodNow();
  }
  await clock.advance(120_000);

  const charged = new Map<string, number>();
  for (const { period, tokens } of jobs.values()) charged.set(period, (charged.get(period) ?? 0) + tokens);
  const highestPrice = Math.max(0, ...[...jobs.values()].map(({ tokens }) => tokens));
  return { charged, highestPrice, jobs: jobs.size };

  async function create(process: Process, { kind, key: number, fault, ms }: WorldEvent & { type: 'create' }) {
    const isEdit = kind === 2;
    const key = `${kind}-${number}`;
    const tokens = isEdit ? 1 + (ms % 60) : (options.prices[kind] ?? 1);
    const callerAbort = new AbortController();
    clock.after(20_000, () => callerAbort.abort());
    const estimatedTokens = options.unknownPrice === 'estimate' ? 5 : undefined;
    const price = { priceClass: `kind ${kind}`, isFixedPrice: !isEdit, estimatedTokens };
    const order: Order = { ...price, idempotencyKey: key, signal: callerAbort.signal };
    const reservation = await process.reserver.reserve(order).catch(() => undefined);
    if (!reservation) return;
    await pause(clock, ms);
    if (isDead(process)) return;
    const isSent = fault === 'unsent' || (await reservation.send().catch(() => false));
    if (isDead(process)) return;
    if (!isSent) return void reservation.fail({ error: undefined, wasSent: false }).catch(() => {});
    const recordFailure = async (error: Error, wasSent = true) => {
      await pause(clock, ms);
      if (!isDead(process)) await reservation.fail({ error, wasSent }).catch(() => {});
    };
    if (fault === 'unsent') return recordFailure(new GenError('aborted in the queue'), false);
    if (fault === 'busy') return recordFailure(new RateLimitError('busy', BUSY));
    if (fault === 'rejected' && !jobs.has(key)) rejectedKeys.add(key);
    if (rejectedKeys.has(key)) return recordFailure(new GenError('rejected'), false);
    if (fault === 'not created') return recordFailure(new ConnectionError('reset', { attempts: 1 }));
    if (fault === 'late') {
      const lost = recordFailure(new ConnectionError('reset', { attempts: 1 }));
      const sentMs = clock.now();
      await pause(clock, ms * 20);
      // After a day, no call still waits for the job.
      if (Math.abs(clock.now() - sentMs) < DAY_MS) createJob(key, tokens);
      return lost;
    }
    const job = createJob(key, tokens);
    if (fault === 'lost') return recordFailure(new ConnectionError('reset', { attempts: 1 }));
    await pause(clock, ms);
    if (isDead(process)) return;
    const quotedTokens = fault === 'no price' ? undefined : job.tokens;
    await reservation.accept({ jobId: job.id, quotedTokens }).catch(() => {});
  }
}

const isDead = ({ fault }: Process) => fault === 'dead';

const BUSY = {
  status: 429,
  code: 'rate_limited',
  recovery: 'wait_and_retry',
  method: 'POST',
  url: 'https://service.test/v1/videos',
} as const;

interface Process {
  fault: 'reads' | 'writes' | 'lost writes' | 'none' | 'dead';
  readonly reserver: ReturnType<typeof createReserver>;
}

function openProcess({ maxTokens, per }: WorldOptions, store: Store, clock: Clock): Process {
  const never = new Promise<never>(() => {});
  const process: Pick<Process, 'fault'> = { fault: 'none' };
  const shared: Store & { readonly [CLOCK]: Clock } = {
    [CLOCK]: clock,
    read(group, keys) {
      if (process.fault === 'dead') return never;
      if (process.fault === 'reads') return Promise.reject(new Error('connection lost'));
      return store.read(group, keys);
    },
    async write(...args) {
      if (process.fault === 'dead') return never;
      if (process.fault === 'writes') throw new Error('connection lost');
      const isWritten = await store.write(...args);
      if (process.fault === 'lost writes') throw new Error('connection lost');
      return isWritten;
    },
  };
  return Object.assign(process, { reserver: createReserver(shared, clock, { scope: 'tenant', per, maxTokens }) });
}

function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => clock.after(ms, resolve));
}
