import type { GenClient } from '../../../src/client/client.js';
import type { ClientOptions } from '../../../src/client/client-options.js';
import { clientStore } from '../../../src/ledger/client-ledger.js';
import { DOCUMENTED_LIMITS } from '../../../src/rules/limits.js';
import type { Clock } from '../../../src/runtime/clock.js';
import type { SandboxService } from '../../../src/sandbox/control/contract.js';
import { type OpenSandbox, openSandbox } from '../../../src/sandbox/sandbox.js';
import type { SandboxOptions } from '../../../src/sandbox/world/options.js';
import { isFields } from '../../../src/schemas/envelope.js';
import { openGroupTable } from '../../../src/store/group-table.js';
import { LEASES, leasesOf, type ProcessLeases } from '../../../src/store/port.js';
import { memoryStoreOn, type NotifyingStore, openTopics, type Store } from '../../../src/store/store.js';
import { openSql } from '../../cloudflare/sqlite.js';
import { type Fault, type FaultPlace, type FaultSchedule, type OutageKind, randomFor } from './chance.js';

export interface WorldSetup {
  readonly seed: number;
  readonly chances: FaultSchedule;
  /** Returns a process's client options. Called once per life. */
  readonly client: (process: number, store: Store) => ClientOptions;
  readonly sandbox: SandboxOptions;
  /** The processes' shared store. @default a memory store */
  readonly store?: Store;
  /** If true, the processes share a SQLite database whose leases end with a kill. @default false */
  readonly hasDatabase?: boolean;
}

/** The parts of a `ProcessLife` that the world uses. */
export interface SimulatedLife {
  readonly number: number;
  readonly client: GenClient;
  readonly clock: Clock;
  readonly isAlive: boolean;
  readonly isRunning: boolean;
  holdsLease(name: string): boolean;
  /** Pending requests, timers, and store subscriptions. */
  readonly pending: { readonly requests: number; readonly timers: number; readonly subscriptions: number };
}

/** A job that the service has created, even if the response was lost. */
interface CreatedJob {
  readonly key: string | null;
  readonly process: number;
  readonly life: SimulatedLife;
}

/** A request in flight. */
export interface InFlightRequest {
  /** Records how it ended. `text` is the response body. */
  end(how: string, text?: string): void;
  /** Records that the response has arrived at the process. */
  reported(text: string | undefined): void;
}

/** A process retries an unavailable store after five seconds and waits two for it. After that, its calls are shared. */
const RECOVERY_MS = 8_000;
const START = Date.UTC(2026, 0, 1);
/** Fixed, so that worlds are reproducible. */
const API_KEY = 'sk_sandbox_simulation';
const WEBHOOK_SECRET = 'whsec_simulation';

/** A simulation's service, store, and network, on one clock. */
export class SimulatedWorld {
  readonly seed: number;
  readonly service: SandboxService;
  readonly hasLeases: boolean;
  readonly store: NotifyingStore;
  readonly clientOptions: WorldSetup['client'];
  /** The running processes. */
  readonly lives = new Map<number, SimulatedLife>();
  /** Events, oldest first. */
  readonly history: string[] = [];
  /** Number of events by kind. */
  readonly counts = { kills: 0, outages: 0, webhooks: 0, rateLimited: 0 };
  readonly createdJobs = new Map<string, CreatedJob>();
  /** By job: the last quote that a call received, and when. */
  readonly reported = new Map<string, { readonly quoted: unknown; readonly atMs: number }>();
  readonly #opened: OpenSandbox;
  readonly #startMs: number;
  /** The longest rate-limit window. */
  readonly #windowMs: number;
  readonly #chances: FaultSchedule;
  /** Number of pending tasks in real time. */
  #outside = 0;
  readonly #pendingKeys = new Map<string, number>();
  readonly #places = new Map<string, number>();
  /** By process: its store outage. */
  readonly #outages = new Map<number, { readonly how: OutageKind; readonly untilMs: number }>();

  /** Until this time, a 429 is no violation: its cause is invisible to clients. */
  #excusedUntilMs = 0;

  constructor({ seed, chances, client, sandbox, store, hasDatabase = false }: WorldSetup) {
    this.seed = seed;
    this.hasLeases = hasDatabase;
    this.#chances = chances;
    this.clientOptions = client;
    this.#opened = openSandbox(
      {
        jobDurationMs: [2000, 90_000],
        balanceTokens: 1_000_000,
        ...sandbox,
        clock: 'manual',
        seed,
        startTime: sandbox.startTime ?? START,
        apiKey: API_KEY,
        webhookSecret: WEBHOOK_SECRET,
        webhookFetch: (input, init) => this.#deliver(new Request(input, init)),
      },
      { signsInOwnTime: true },
    );
    this.service = this.#opened.service;
    this.#startMs = this.service.now();
    const limits = typeof sandbox.limits === 'object' ? sandbox.limits : DOCUMENTED_LIMITS;
    this.#windowMs = Math.max(0, ...Object.values(limits).map((limit) => limit?.windowMs ?? 0));
    const newStore = () => (hasDatabase ? databaseStore(() => this.now()) : memoryStoreOn(this.#opened.clock));
    this.store = store ? this.#outsideStore(store) : clientStore(newStore());
  }

  now(): number {
    return this.service.now();
  }

  /** Milliseconds of simulated time since the start. */
  get elapsedMs(): number {
    return this.now() - this.#startMs;
  }

  after(ms: number, fire: () => void): () => void {
    return this.#opened.clock.after(ms, fire);
  }

  fetch(url: string, init?: RequestInit): Promise<Response> {
    return this.#opened.clientFetch(url, init);
  }

  /** Advances to the next due event. Returns false if there is none. */
  step(): boolean {
    return this.#opened.step();
  }

  /** Runs everything that needs no simulated time, including real disk and network I/O. */
  async settle(): Promise<void> {
    await this.service.settled();
    while (this.#outside > 0) {
      await new Promise((resolve) => setImmediate(resolve));
      await this.service.settled();
    }
  }

  /** Advances time until a promise settles. */
  async advanceUntil<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const end = () => {
      isSettled = true;
    };
    promise.then(end, end);
    do await this.settle();
    while (!isSettled && (this.step() || (await realPause())));
    return promise;
  }

  /** Runs work in real time, without advancing the simulated clock. */
  async runInRealTime<T>(work: Promise<T>): Promise<T> {
    this.#outside += 1;
    return work.finally(() => {
      this.#outside -= 1;
    });
  }

  #outsideStore(store: Store): NotifyingStore {
    const outside: NotifyingStore & { readonly [LEASES]: ProcessLeases | undefined } = {
      ...openTopics(),
      [LEASES]: leasesOf(store),
      // Uses the simulated time.
      read: async (group, keys) => ({ ...(await this.runInRealTime(store.read(group, keys))), nowMs: this.now() }),
      write: (group, version, changes) => this.runInRealTime(store.write(group, version, changes)),
    };
    return clientStore(outside);
  }

  holdsLease(name: string): boolean {
    return [...this.lives.values()].some((life) => life.holdsLease(name));
  }

  stopped(process: number, ms: number): void {
    this.log(`process ${process} is stopped for ${Math.round(ms / 1000)} s`);
    // It may send a request after its slot has expired.
    this.#excusedUntilMs = Math.max(this.#excusedUntilMs, this.now() + ms + this.#windowMs);
  }

  /** Excuses 429s: the service counts a request whose client has given up or crashed. */
  excuse(): void {
    this.#excusedUntilMs = Math.max(this.#excusedUntilMs, this.now() + this.#windowMs);
  }

  log(text: string): void {
    const seconds = (this.elapsedMs / 1000).toFixed(1);
    this.history.push(`${seconds.padStart(9)} s  ${text}`);
  }

  /** Returns the faults at the next place of this kind. */
  faultsAt(of: FaultPlace['of'], process: FaultPlace['process']): readonly Fault[] {
    const name = `${of} ${process}`;
    const nth = (this.#places.get(name) ?? 0) + 1;
    this.#places.set(name, nth);
    const faults = this.#chances.at({ of, process, nth });
    if (faults.some(({ kind }) => kind === 'kill')) this.counts.kills += 1;
    return faults;
  }

  /** Cuts a process off from the store for some time. */
  loseStore(process: number, { how, ms }: { readonly how: OutageKind; readonly ms: number }): void {
    this.counts.outages += 1;
    this.log(`process ${process} loses the store for ${Math.round(ms / 1000)} s: ${OUTAGE_TEXTS[how]}`);
    this.#outages.set(process, { how, untilMs: this.now() + ms });
  }

  /** Returns the process's current store outage, or undefined. */
  outageOf(process: number): OutageKind | undefined {
    const outage = this.#outages.get(process);
    return outage && outage.untilMs > this.now() ? outage.how : undefined;
  }

  /** Returns true if the current window may contain requests that a process counted only locally. */
  #hasLocalCounts(): boolean {
    return [...this.#outages.values()].some(({ untilMs }) => untilMs + RECOVERY_MS + this.#windowMs > this.now());
  }

  /** Records a process's request. */
  begin(life: SimulatedLife, url: string, init: RequestInit = {}): InFlightRequest {
    const method = init.method ?? 'GET';
    const key = new Headers(init.headers).get('idempotency-key');
    const path = new URL(url).pathname;
    const isCreate = method === 'POST' && key !== null && !path.includes('/uploads');
    const isExcused = this.#hasLocalCounts() || this.#excusedUntilMs > this.now();
    if (key !== null) this.#pendingKeys.set(key, (this.#pendingKeys.get(key) ?? 0) + 1);
    const jobIn = (text: string | undefined) => (isCreate && text !== undefined ? parseCreatedJob(text) : undefined);
    return {
      end: (how, text) => {
        if (key !== null) this.#pendingKeys.set(key, (this.#pendingKeys.get(key) ?? 1) - 1);
        const created = jobIn(text);
        if (created && !this.createdJobs.has(created.id)) {
          this.createdJobs.set(created.id, { key, process: life.number, life });
        }
        if (how.startsWith('429') && !isExcused && this.#excusedUntilMs <= this.now()) this.counts.rateLimited += 1;
        const job = created === undefined ? '' : `, ${created.id}`;
        if (!/^200$/.test(how) || isCreate) {
          this.log(`process ${life.number}: ${method} ${path}${key === null ? '' : `, key ${key}`}: ${how}${job}`);
        }
      },
      reported: (text) => {
        const created = jobIn(text);
        if (created) this.reported.set(created.id, { quoted: created.quoted, atMs: this.now() });
      },
    };
  }

  /** Returns true if a request with this key is in flight. */
  isPending(key: string | null): boolean {
    return key !== null && (this.#pendingKeys.get(key) ?? 0) > 0;
  }

  /** Delivers a webhook to a running process, which verifies it and notifies its waits. */
  async #deliver(request: Request): Promise<Response> {
    this.counts.webhooks += 1;
    const body = await request.text();
    const { headers } = request;
    const [fault] = this.faultsAt('webhook', 'w');
    const event = headers.get('x-service-event-id');
    if (fault?.kind === 'lostWebhook') {
      this.log(`webhook ${event} is never delivered`);
      return new Response(null, { status: 204 });
    }
    if (fault?.kind !== 'lateWebhook') return this.#receive(headers, body);
    this.log(`webhook ${event} is ${Math.round(fault.ms / 1000)} s late`);
    this.after(fault.ms, () => void this.#receive(headers, body));
    return new Response(null, { status: 204 });
  }

  async #receive(headers: Headers, body: string): Promise<Response> {
    const { next } = randomFor(this.seed, `receiver of webhook ${this.counts.webhooks}`);
    const alive = [...this.lives.values()].filter(({ isRunning }) => isRunning);
    const life = alive[Math.floor(next() * alive.length)];
    if (life === undefined) return new Response(null, { status: 503 });
    try {
      const event = await life.client.verifyWebhook({ headers, body }, { now: () => life.clock.now() });
      life.client.notify(event);
      return new Response(null, { status: 204 });
    } catch {
      // With a wrong clock, the timestamp is too old or too new.
      return new Response(null, { status: 400 });
    }
  }
}

/** Waits in real time, because writes after a response may take two real seconds. */
const realPause = () => new Promise<true>((resolve) => setTimeout(() => resolve(true), 10));

/** A SQLite store, as in the file store and Durable Objects. */
function databaseStore(now: () => number): NotifyingStore {
  const table = openGroupTable(openSql(), now);
  return {
    read: async (group, keys) => table.read(group, keys),
    write: async (group, version, changes) => table.write(group, version, changes),
    ...openTopics(),
  };
}

const OUTAGE_TEXTS: Readonly<Record<OutageKind, string>> = {
  fails: 'calls fail',
  late: 'responses are late',
  silent: 'no response arrives',
};

/** Returns the job in a create's response. */
function parseCreatedJob(text: string): { readonly id: string; readonly quoted: unknown } | undefined {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return undefined;
  }
  const data = isFields(body) && isFields(body.data) ? body.data : body;
  if (!isFields(data)) return undefined;
  const job = isFields(data.job) ? data.job : data;
  return typeof job.id === 'string' ? { id: job.id, quoted: data.quoted_token_cost } : undefined;
}
