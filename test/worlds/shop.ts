// A shop on one process that is killed again and again, on a service that loses, delays or refuses a quarter of its answers.
// What it writes down of an order is its end, after it was told of it, and nothing before.
import { copyOutput } from '../../src/adapters/storage/index.js';
import { createBudget, GenError, type Job, JobError, PreflightError } from '../../src/index.js';
import { DOCUMENTED_LIMITS } from '../../src/rules/limits.js';
import type { Store } from '../../src/store/store.js';
import { type Chances, type Fault, type FaultPlace, randomFor } from './simulation/chance.js';
import { violationsOf } from './simulation/checks.js';
import { ProcessLife } from './simulation/process.js';
import { SimulatedWorld } from './simulation/world.js';

/** What a customer has ordered. */
export interface Order {
  readonly id: string;
  readonly call: 'videos' | 'images' | 'videoEdits';
  /** Whether the shop chooses the keys. Else only the store knows what has become of a create. */
  readonly hasOwnKey: boolean;
  readonly file: 'none' | 'shared' | 'fresh' | 'reviewed';
  /** A budget of its own counts it as well. */
  readonly isTenants: boolean;
  readonly isCleaned: boolean;
  readonly hasWebhook: boolean;
  /** The shop loses its patience with the first call of the order after so many milliseconds. */
  readonly abortMs: number | undefined;
  /** How often its job fails before one completes. */
  readonly fails: number;
}

/** Where the shop keeps its store, and how the next process opens it. */
export interface ShopStore {
  readonly store: Store;
  reopen(): Promise<void>;
}

/** What the shop has written down. */
interface Disk {
  /** By order: how many of its jobs have failed, as the shop was told. */
  readonly failed: Map<string, number>;
  readonly files: Map<string, Uint8Array>;
  /** Jobs whose failure was told. */
  readonly told: Set<string>;
}

/** How many kills, and after how many pauses each. */
export interface Kills {
  readonly seed: number;
  /** A kill follows after at most so many pauses. */
  readonly within: number;
  readonly most: number;
}

const RESTART_MS = 2_000;
const AGAIN_MS = 4_000;
const LIMIT_MS = 3 * 86_400_000;
const LIMITS = { 'videos.create': { limit: 20, windowMs: 60_000 } };

/** Kills at pauses that are drawn, and nothing else: the service draws its own faults. */
export function killing({ seed, within, most }: Kills): Chances {
  const { next } = randomFor(seed, 'kills');
  let left = Math.ceil(next() * within);
  let kills = 0;
  return {
    struck: [],
    at({ of }: FaultPlace): readonly Fault[] {
      if (of !== 'pause' || kills >= most) return [];
      left -= 1;
      if (left > 0) return [];
      kills += 1;
      left = Math.ceil(next() * within);
      return [{ kind: 'kill', isHandled: false }];
    },
  };
}

/** A quarter of the answers, each in another way. */
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

/** Plays a shop to its end. Gives what does not hold, and how often it was killed. */
export async function playShop(
  { store, reopen }: ShopStore,
  orders: readonly Order[],
  { seed, chances, isCalm = false }: { readonly seed: number; readonly chances: Chances; readonly isCalm?: boolean },
): Promise<{ readonly broken: readonly string[]; readonly kills: number; readonly history: readonly string[] }> {
  const disk: Disk = { failed: new Map(), files: new Map(), told: new Set() };
  let isDone = false;
  const sim: SimulatedWorld = new SimulatedWorld({
    seed,
    // Whoever looks at the money is not killed.
    chances: { struck: chances.struck, at: (place, limits) => (isDone ? [] : chances.at(place, limits)) },
    mostKills: Number.POSITIVE_INFINITY,
    client: (_, own) => ({ limits: LIMITS, budget: clientBudget(own), maxRetries: 4 }),
    sandbox: { limits: { ...DOCUMENTED_LIMITS, ...LIMITS }, review: { asset: 15_000 }, prices: 10 },
    store,
  });
  if (!isCalm) for (const fault of FAULTS) sim.service.faults.add(fault);
  let life = new ProcessLife(sim, { number: 0, life: 0, skewMs: 0 });
  let lives = 0;
  let defect: unknown;
  const start = (): void => {
    sim.lives.set(0, life);
    life.killed.then(() => {
      sim.after(RESTART_MS, () => {
        sim.outside(reopen()).then(() => {
          lives += 1;
          life = new ProcessLife(sim, { number: 0, life: lives, skewMs: 0 });
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
  const broken = isDone ? [] : ['the shop never ends'];
  broken.push(...violationsOf(sim, { ended: new Set([0]) }).map(({ text }) => text));
  broken.push(...brokenOrders(sim, orders, disk), ...(await stepped(sim, wrongMoney(sim, life, { orders, disk }))));
  return { broken, kills: sim.counts.kills, history: sim.history };
}

async function stepped<T>(sim: SimulatedWorld, work: Promise<T>): Promise<T> {
  let isOver = false;
  const over = () => {
    isOver = true;
  };
  work.then(over, over);
  do await sim.settle();
  while (!isOver && (sim.step() || (await new Promise((resolve) => setTimeout(() => resolve(true), 5)))));
  return work;
}

/** The program: takes up what is left, makes what is not there, and stores each file. */
async function runShop(life: ProcessLife, orders: readonly Order[], disk: Disk): Promise<void> {
  const { client } = life;
  const shared = new Blob([PNG], { type: 'image/png' });
  const flying = new Set<string>();
  let defect: { readonly error: unknown } | undefined;
  const isOpen = ({ id }: Order) => !disk.files.has(id);
  while (orders.some(isOpen)) {
    try {
      for await (const { job, label = '' } of client.resume({ timeoutMs: false })) await handle(life, label, job, disk);
    } catch (error) {
      for (const one of error instanceof AggregateError ? error.errors : [error]) {
        if (!GenError.isInstance(one)) throw one;
      }
    }
    const left = new Set<unknown>(flying);
    try {
      for await (const { label } of client.unfinishedCreates()) left.add(label);
    } catch {
      await pause(life, AGAIN_MS);
      continue;
    }
    if (defect) throw defect.error;
    for (const order of orders) {
      if (!isOpen(order) || left.has(order.id)) continue;
      flying.add(order.id);
      const done = () => flying.delete(order.id);
      make(life, order, { disk, shared }).then(done, (error: unknown) => {
        defect = { error };
      });
    }
    await pause(life, AGAIN_MS);
  }
}

/** Writes down how an order has ended. */
async function handle(life: ProcessLife, id: string, job: Job, disk: Disk): Promise<void> {
  if (job.status !== 'completed') {
    // It may be told twice, and counts once.
    if (!disk.told.has(job.id)) disk.failed.set(id, (disk.failed.get(id) ?? 0) + 1);
    disk.told.add(job.id);
    return;
  }
  await copyOutput(life.client, job, {
    async put(body) {
      disk.files.set(id, new Uint8Array(await new Response(body).arrayBuffer()));
      return { etag: id };
    },
  });
}

/** Makes an order. What passes, and an abort, leave it to the next look at the store. */
async function make(life: ProcessLife, order: Order, { disk, shared }: { disk: Disk; shared: Blob }): Promise<void> {
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

/** One paid job with its file for each order, and each failure told. */
function brokenOrders({ service }: SimulatedWorld, orders: readonly Order[], disk: Disk): string[] {
  const paid = new Map<string, number>();
  const untold: string[] = [];
  for (const { id, status, errorCode, prompt } of service.jobs) {
    const order = /^order ([^.]+)\./.exec(prompt ?? '')?.[1] ?? '';
    if (status === 'completed') paid.set(order, (paid.get(order) ?? 0) + 1);
    else if (errorCode !== 'reference_asset_pending' && !disk.told.has(id)) untold.push(`${id} of order ${order}`);
  }
  const wrong = orders.flatMap(({ id }) => {
    const jobs = paid.get(id) ?? 0;
    return jobs === 1 && disk.files.has(id) ? [] : [`order ${id} has ${jobs} paid jobs, file: ${disk.files.has(id)}`];
  });
  return [...wrong, ...untold.map((job) => `the failure of ${job} was not told`)];
}

/** Nothing is open, and both budgets say what was charged. */
async function wrongMoney(
  sim: SimulatedWorld,
  life: ProcessLife,
  { orders, disk }: { readonly orders: readonly Order[]; readonly disk: Disk },
): Promise<string[]> {
  for (let tries = 0; tries < 60; tries++) {
    // The notes of the last calls may be under way, or lost with their process.
    await pause(life, AGAIN_MS);
    for await (const { job, label = '' } of life.client.resume()) await handle(life, label, job, disk);
    let open = 0;
    for await (const _ of life.client.unfinishedCreates()) open += 1;
    if (open === 0) break;
    if (tries === 59) return [`${open} creates are still open`];
  }
  const tenants = new Set(orders.filter(({ isTenants }) => isTenants).map(({ id }) => id));
  const charged = { shop: 0, tenant: 0 };
  for (const { prompt, finalTokenCost } of sim.service.jobs) {
    const tokens = finalTokenCost ?? 0;
    charged.shop += tokens;
    if (tenants.has(/^order ([^.]+)\./.exec(prompt ?? '')?.[1] ?? '')) charged.tenant += tokens;
  }
  const found = { shop: await clientBudget(life.store).usage(), tenant: await tenantBudget(life.store).usage() };
  return (['shop', 'tenant'] as const).flatMap((name) => {
    const { spentTokens, reservedTokens } = found[name];
    if (spentTokens === charged[name] && reservedTokens === 0) return [];
    return [`the budget of the ${name} says ${spentTokens} and holds ${reservedTokens}; ${charged[name]} were charged`];
  });
}

/** Orders of every kind: 15 % of their first jobs fail, and one in twelve waits for the review of a reference. */
export function drawOrders(count: number, seed: number): Order[] {
  const { next } = randomFor(seed, 'orders');
  const one = <T>(...all: readonly T[]): T => all[Math.floor(next() * all.length)] as T;
  return Array.from({ length: count }, (_, at) => ({
    id: `${at}`,
    call: one('videos', 'videos', 'images', 'videoEdits'),
    hasOwnKey: next() < 0.5,
    file: next() < 0.08 ? 'reviewed' : one('none', 'shared', 'fresh'),
    isTenants: next() < 0.5,
    isCleaned: next() < 0.3,
    hasWebhook: next() < 0.3,
    abortMs: next() < 0.15 ? Math.ceil(next() * 30_000) : undefined,
    fails: next() < 0.15 ? 1 : 0,
  }));
}
