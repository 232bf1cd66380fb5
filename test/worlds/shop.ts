// A shop in one process that is killed repeatedly, on a service that loses, delays, or rejects a quarter of its responses.
// The shop stores an order's outcome after it is reported, and nothing before.
import { copyOutput } from '../../src/adapters/storage/index.js';
import { createBudget, GenError, type Job, JobError, PreflightError } from '../../src/index.js';
import { DOCUMENTED_LIMITS } from '../../src/rules/limits.js';
import type { Store } from '../../src/store/store.js';
import { type Fault, type FaultPlace, type FaultSchedule, randomFor } from './simulation/chance.js';
import { violationsOf } from './simulation/checks.js';
import { ProcessLife } from './simulation/process.js';
import { SimulatedWorld } from './simulation/world.js';

export interface Order {
  readonly id: string;
  readonly call: 'videos' | 'images' | 'videoEdits';
  /** If true, the shop passes its own keys. Otherwise, only the store has the create's key. */
  readonly hasOwnKey: boolean;
  readonly file: 'none' | 'shared' | 'fresh' | 'reviewed';
  /** If true, a tenant's budget also counts the order. */
  readonly isTenants: boolean;
  readonly isCleaned: boolean;
  readonly hasWebhook: boolean;
  /** Aborts the order's first call after this many milliseconds. */
  readonly abortMs: number | undefined;
  /** Number of jobs that fail before one completes. */
  readonly fails: number;
}

export interface ShopStore {
  readonly store: Store;
  reopen(): Promise<void>;
}

/** The shop's stored data. */
interface Disk {
  /** By order: the number of reported failures. */
  readonly failed: Map<string, number>;
  readonly files: Map<string, Uint8Array>;
  /** Jobs whose failure was reported. */
  readonly reported: Set<string>;
}

export interface Kills {
  readonly seed: number;
  /** Maximum number of pauses between kills. */
  readonly maxPauses: number;
  readonly max: number;
}

const RESTART_MS = 2_000;
const RETRY_MS = 4_000;
const LIMIT_MS = 3 * 86_400_000;
const LIMITS = { 'videos.create': { limit: 20, windowMs: 60_000 } };

/** Returns a schedule that kills the process at random pauses. The service adds its own faults. */
export function randomKills({ seed, maxPauses, max }: Kills): FaultSchedule {
  const { next } = randomFor(seed, 'kills');
  let remaining = Math.ceil(next() * maxPauses);
  let kills = 0;
  return {
    at({ of }: FaultPlace): readonly Fault[] {
      if (of !== 'pause' || kills >= max) return [];
      remaining -= 1;
      if (remaining > 0) return [];
      kills += 1;
      remaining = Math.ceil(next() * maxPauses);
      return [{ kind: 'kill', isHandled: false }];
    },
  };
}

/** Faults for a quarter of the responses. */
const FAULTS = [
  { reset: true },
  { commitThenDrop: true },
  { truncate: true },
  { status: 500, commit: true },
  { status: 503, retryAfterS: 1 },
  { latencyMs: 20_000 },
].map((fault) => ({ ...fault, probability: 0.045, match: { path: '/v1/*' } }));

const clientBudget = (store: Store) => createBudget({ maxTokens: 1e6, scope: 'shop', per: 'total', store });
const tenantBudget = (store: Store) => createBudget({ maxTokens: 1e6, scope: 'tenant', per: 'total', store });
const PNG = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, ...new Uint8Array(48)]);

/** Runs a shop to its end. Returns the violations and the number of kills. */
export async function playShop(
  { store, reopen }: ShopStore,
  orders: readonly Order[],
  {
    seed,
    chances,
    isCalm = false,
  }: { readonly seed: number; readonly chances: FaultSchedule; readonly isCalm?: boolean },
): Promise<{ readonly violations: readonly string[]; readonly kills: number; readonly history: readonly string[] }> {
  const disk: Disk = { failed: new Map(), files: new Map(), reported: new Set() };
  let isDone = false;
  const sim: SimulatedWorld = new SimulatedWorld({
    seed,
    // Don't kill the process that checks the money.
    chances: { at: (place) => (isDone ? [] : chances.at(place)) },
    client: (_, processStore) => ({ limits: LIMITS, budget: clientBudget(processStore), maxRetries: 4 }),
    sandbox: { limits: { ...DOCUMENTED_LIMITS, ...LIMITS }, review: { asset: 15_000 }, prices: 10 },
    store,
  });
  if (!isCalm) for (const fault of FAULTS) sim.service.faults.add(fault);
  let life = new ProcessLife(sim, { number: 0, life: 0 });
  let lives = 0;
  let defect: unknown;
  const start = (): void => {
    sim.lives.set(0, life);
    life.killed.then(() => {
      sim.after(RESTART_MS, () => {
        sim.runInRealTime(reopen()).then(() => {
          lives += 1;
          life = new ProcessLife(sim, { number: 0, life: lives });
          start();
        }, fail);
      });
    });
    const running = life;
    runShop(running, orders, disk).then(() => {
      isDone ||= running.isAlive;
    }, fail);
  };
  const fail = (error: unknown): void => {
    defect ??= error;
  };
  start();
  while (!isDone && defect === undefined && sim.elapsedMs < LIMIT_MS) {
    await sim.settle();
    if (!isDone && !sim.step()) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  if (defect !== undefined) throw defect;
  const violations = isDone ? [] : ['the shop never finishes'];
  violations.push(...violationsOf(sim), ...brokenOrders(sim, orders, disk));
  violations.push(...(await sim.advanceUntil(wrongMoney(sim, life, { orders, disk }))));
  return { violations, kills: sim.counts.kills, history: sim.history };
}

/** The program: resumes creates, creates missing orders, and stores each file. */
async function runShop(life: ProcessLife, orders: readonly Order[], disk: Disk): Promise<void> {
  const { client } = life;
  const shared = new Blob([PNG], { type: 'image/png' });
  const inFlight = new Set<string>();
  let defect: { readonly error: unknown } | undefined;
  const isOpen = ({ id }: Order) => !disk.files.has(id);
  while (orders.some(isOpen)) {
    try {
      for await (const { job, label = '' } of client.resume({ timeoutMs: false })) await handle(life, label, job, disk);
    } catch (error) {
      for (const cause of error instanceof AggregateError ? error.errors : [error]) {
        if (!GenError.isInstance(cause)) throw cause;
      }
    }
    const busy = new Set<unknown>(inFlight);
    try {
      for await (const { label } of client.unfinishedCreates()) busy.add(label);
    } catch {
      await pause(life, RETRY_MS);
      continue;
    }
    if (defect) throw defect.error;
    for (const order of orders) {
      if (!isOpen(order) || busy.has(order.id)) continue;
      inFlight.add(order.id);
      const done = () => inFlight.delete(order.id);
      createOrder(life, order, { disk, shared }).then(done, (error: unknown) => {
        defect = { error };
      });
    }
    await pause(life, RETRY_MS);
  }
}

/** Stores an order's outcome. */
async function handle(life: ProcessLife, id: string, job: Job, disk: Disk): Promise<void> {
  if (job.status !== 'completed') {
    // A failure may be delivered twice, but counts once.
    if (!disk.reported.has(job.id)) disk.failed.set(id, (disk.failed.get(id) ?? 0) + 1);
    disk.reported.add(job.id);
    return;
  }
  await copyOutput(life.client, job, {
    async put(body) {
      disk.files.set(id, new Uint8Array(await new Response(body).arrayBuffer()));
      return { etag: id };
    },
  });
}

/** Creates an order's job. Temporary errors and aborts leave the order to the next check of the store. */
async function createOrder(
  life: ProcessLife,
  order: Order,
  { disk, shared }: { disk: Disk; shared: Blob },
): Promise<void> {
  const { id, call, abortMs, isTenants, isCleaned, hasOwnKey } = order;
  const times = disk.failed.get(id) ?? 0;
  const stop = new AbortController();
  const cancel = abortMs !== undefined && times === 0 && life.clock.after(abortMs, () => stop.abort('impatient'));
  const options = {
    label: id,
    timeoutMs: false as const,
    signal: stop.signal,
    ...(hasOwnKey && { idempotencyKey: `order-${id}-${times}` }),
    ...(isTenants && { budget: tenantBudget(life.store) }),
    ...(isCleaned && { cleanup: 'after-job' as const }),
  };
  try {
    const namespace: { createAndWait(params: object, options: object): Promise<Job> } = life.client[call];
    const job = await namespace.createAndWait(paramsOf(order, times, shared), options);
    await handle(life, id, job, disk);
  } catch (error) {
    if (JobError.isInstance(error) && error.job && error.name !== 'WaitTimeoutError')
      await handle(life, id, error.job, disk);
    else if (!stop.signal.aborted && (!GenError.isInstance(error) || PreflightError.isInstance(error))) throw error;
  } finally {
    if (cancel) cancel();
  }
}

function paramsOf({ id, call, file, fails, hasWebhook }: Order, times: number, shared: Blob): object {
  const prompt = `order ${id}.${times} [slow:9s]${times < fails ? ' [fail:generation_failed]' : ''}`;
  const blob = file === 'shared' ? shared : new Blob([PNG, id], { type: 'image/png' });
  const url = `https://cdn.example.com/${id}.png`;
  const webhook = hasWebhook && { webhook_url: 'https://shop.example/webhooks' };
  if (call === 'videoEdits')
    return { prompt, model: 'svc-video-fast', source_video_url: 'https://cdn.example.com/source.mp4', ...webhook };
  if (file === 'none') return { prompt, ...webhook };
  if (call === 'images') return { prompt, reference_upload_ids: [blob], ...webhook };
  return {
    prompt,
    ...webhook,
    ...(file === 'reviewed' ? { reference_image_urls: [url] } : { first_frame_upload_id: blob }),
  };
}

const pause = (life: ProcessLife, ms: number) => new Promise<void>((resolve) => void life.clock.after(ms, resolve));

/** Checks that each order has one paid job with its file, and that every failure was reported. */
function brokenOrders({ service }: SimulatedWorld, orders: readonly Order[], disk: Disk): string[] {
  const paid = new Map<string, number>();
  const unreported: string[] = [];
  for (const { id, status, errorCode, prompt } of service.jobs) {
    const order = /^order ([^.]+)\./.exec(prompt ?? '')?.[1] ?? '';
    if (status === 'completed') paid.set(order, (paid.get(order) ?? 0) + 1);
    else if (errorCode !== 'reference_asset_pending' && !disk.reported.has(id))
      unreported.push(`${id} of order ${order}`);
  }
  const wrong = orders.flatMap(({ id }) => {
    const jobs = paid.get(id) ?? 0;
    return jobs === 1 && disk.files.has(id) ? [] : [`order ${id} has ${jobs} paid jobs, file: ${disk.files.has(id)}`];
  });
  return [...wrong, ...unreported.map((job) => `the failure of ${job} was not reported`)];
}

/** Checks that no create is unfinished, and that both budgets match the charges. */
async function wrongMoney(
  sim: SimulatedWorld,
  life: ProcessLife,
  { orders, disk }: { readonly orders: readonly Order[]; readonly disk: Disk },
): Promise<string[]> {
  for (let round = 0; round < 60; round++) {
    // The last calls' writes may be in flight, or lost with their process.
    await pause(life, RETRY_MS);
    for await (const { job, label = '' } of life.client.resume()) await handle(life, label, job, disk);
    let open = 0;
    for await (const _ of life.client.unfinishedCreates()) open += 1;
    if (open === 0) break;
    if (round === 59) return [`${open} creates are still unfinished`];
  }
  const tenants = new Set(orders.filter(({ isTenants }) => isTenants).map(({ id }) => id));
  const charged = { shop: 0, tenant: 0 };
  for (const { prompt, finalTokenCost } of sim.service.jobs) {
    const tokens = finalTokenCost ?? 0;
    charged.shop += tokens;
    if (tenants.has(/^order ([^.]+)\./.exec(prompt ?? '')?.[1] ?? '')) charged.tenant += tokens;
  }
  const usage = { shop: await clientBudget(life.store).usage(), tenant: await tenantBudget(life.store).usage() };
  return (['shop', 'tenant'] as const).flatMap((name) => {
    const { spentTokens, reservedTokens } = usage[name];
    if (spentTokens === charged[name] && reservedTokens === 0) return [];
    return [
      `the ${name}'s budget has spent ${spentTokens} and reserved ${reservedTokens}; ${charged[name]} were charged`,
    ];
  });
}

/** Draws random orders: 15% of their first jobs fail, and one in twelve videos waits for a reference's review. */
export function drawOrders(count: number, seed: number): Order[] {
  const { next } = randomFor(seed, 'orders');
  const pick = <T>(...all: readonly T[]): T => all[Math.floor(next() * all.length)] as T;
  return Array.from({ length: count }, (_, at) => ({
    id: `${at}`,
    call: pick('videos', 'videos', 'images', 'videoEdits'),
    hasOwnKey: next() < 0.5,
    file: next() < 0.08 ? 'reviewed' : pick('none', 'shared', 'fresh'),
    isTenants: next() < 0.5,
    isCleaned: next() < 0.3,
    hasWebhook: next() < 0.3,
    abortMs: next() < 0.15 ? Math.ceil(next() * 30_000) : undefined,
    fails: next() < 0.15 ? 1 : 0,
  }));
}
