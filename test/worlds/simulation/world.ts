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
import { type Chances, type Fault, type FaultPlace, type OutageKind, randomFor } from './chance.js';

/** What a world is made of. */
export interface WorldSetup {
  readonly seed: number;
  readonly chances: Chances;
  /** The client options of a process, asked for each of its lives. */
  readonly client: (process: number, store: Store) => ClientOptions;
  readonly sandbox: SandboxOptions;
  /** What is under the stores of the processes. @default a store in memory */
  readonly store?: Store;
  /** The processes share a SQLite database, with leases that a kill frees. @default false */
  readonly hasDatabase?: boolean;
  /** How often a process is killed at most, so that every run ends. @default 10 */
  readonly mostKills?: number;
}

/** One life of a process, as the world sees it. */
export interface SimulatedLife {
  readonly number: number;
  readonly client: GenClient;
  readonly clock: Clock;
  readonly isAlive: boolean;
  readonly isRunning: boolean;
  holdsLease(name: string): boolean;
  /** Requests, timers and subscriptions of the store that are pending. */
  readonly pending: { readonly requests: number; readonly timers: number; readonly subscriptions: number };
}

/** A create that the service has answered, whether or not the answer arrived. */
interface MadeJob {
  readonly key: string | null;
  readonly process: number;
  readonly life: SimulatedLife;
}

/** An exchange under way. */
export interface Sent {
  /** Says how it ended. `text` is the body of the answer. */
  end(how: string, text?: string): void;
  /** The answer has arrived at the process. */
  reported(text: string | undefined): void;
}

/** A process asks a store that was away again after five seconds, and is answered within two. Then the others know its calls. */
const BACK_MS = 8_000;
const START = Date.UTC(2026, 0, 1);
/** A fixed key and secret: they are no secrets, and a world repeats. */
const API_KEY = 'sk_sandbox_simulation';
const WEBHOOK_SECRET = 'whsec_simulation';

/** The service, the store and the network of one simulation, on one clock. */
export class SimulatedWorld {
  readonly seed: number;
  readonly service: SandboxService;
  readonly hasLeases: boolean;
  readonly store: NotifyingStore;
  readonly clientOptions: WorldSetup['client'];
  /** The processes that run now. */
  readonly lives = new Map<number, SimulatedLife>();
  /** What happened, oldest first. */
  readonly history: string[] = [];
  /** How often things happened, for those who want to know what a run has reached. */
  readonly counts = { requests: 0, kills: 0, lostAnswers: 0, outages: 0, webhooks: 0, rateLimited: 0 };
  readonly made = new Map<string, MadeJob>();
  /** What calls were told of a job, and when last. */
  readonly reported = new Map<string, { readonly quoted: unknown; readonly atMs: number }>();
  readonly #opened: OpenSandbox;
  readonly #startMs: number;
  /** The longest window of a limit. */
  readonly #windowMs: number;
  readonly #chances: Chances;
  readonly #mostKills: number;
  /** Work of the world outside that takes real time. */
  #outside = 0;
  readonly #pendingKeys = new Map<string, number>();
  readonly #places = new Map<string, number>();
  readonly #kills = new Map<number, number>();
  /** Which processes have lost the store, and until when. */
  readonly #outages = new Map<number, { readonly how: OutageKind; readonly untilMs: number }>();

  /** Until when a 429 has a reason that no client can know. */
  #excusedUntilMs = 0;

  constructor({ seed, chances, client, sandbox, store, hasDatabase = false, mostKills = MOST_KILLS }: WorldSetup) {
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
    this.#mostKills = mostKills;
    const own = () => (hasDatabase ? databaseStore(() => this.now()) : memoryStoreOn(this.#opened.clock));
    this.store = store ? this.#outsideStore(store) : clientStore(own());
  }

  now(): number {
    return this.service.now();
  }

  /** How long the simulation has taken so far, in simulated milliseconds. */
  get elapsedMs(): number {
    return this.now() - this.#startMs;
  }

  after(ms: number, fire: () => void): () => void {
    return this.#opened.clock.after(ms, fire);
  }

  fetch(url: string, init?: RequestInit): Promise<Response> {
    return this.#opened.clientFetch(url, init);
  }

  /** Moves on to what is due next. Gives false where nothing is due. */
  step(): boolean {
    return this.#opened.step();
  }

  /** Lets everything happen that needs no time, except that of a disk or a network outside. */
  async settle(): Promise<void> {
    await this.service.settled();
    while (this.#outside > 0) {
      await new Promise((resolve) => setImmediate(resolve));
      await this.service.settled();
    }
  }

  /** Does work outside, for which the time of the world stands still. */
  async outside<T>(work: Promise<T>): Promise<T> {
    this.#outside += 1;
    return work.finally(() => {
      this.#outside -= 1;
    });
  }

  #outsideStore(store: Store): NotifyingStore {
    const outside: NotifyingStore & { readonly [LEASES]: ProcessLeases | undefined } = {
      ...openTopics(),
      [LEASES]: leasesOf(store),
      // Its values, at the time of the world.
      read: async (group, keys) => ({ ...(await this.outside(store.read(group, keys))), nowMs: this.now() }),
      write: (group, version, changes) => this.outside(store.write(group, version, changes)),
    };
    return clientStore(outside);
  }

  holdsLease(name: string): boolean {
    return [...this.lives.values()].some((life) => life.holdsLease(name));
  }

  stopped(process: number, ms: number): void {
    this.note(`process ${process} is stopped for ${Math.round(ms / 1000)} s`);
    // It may have had a slot, and sends its request when nobody counts it any more.
    this.#excusedUntilMs = Math.max(this.#excusedUntilMs, this.now() + ms + this.#windowMs);
  }

  /** The service counts a request now that its client has given up. */
  excuse(): void {
    this.#excusedUntilMs = Math.max(this.#excusedUntilMs, this.now() + this.#windowMs);
  }

  note(text: string): void {
    const seconds = (this.elapsedMs / 1000).toFixed(1);
    this.history.push(`${seconds.padStart(9)} s  ${text}`);
  }

  /** The faults of the next place of this kind. */
  faultsAt(of: FaultPlace['of'], process: FaultPlace['process']): readonly Fault[] {
    const name = `${of} ${process}`;
    const nth = (this.#places.get(name) ?? 0) + 1;
    this.#places.set(name, nth);
    const killed = typeof process === 'number' ? (this.#kills.get(process) ?? 0) : 0;
    const found = this.#chances.at({ of, process, nth }, { mayKill: killed < this.#mostKills });
    if (typeof process === 'number' && found.some(({ kind }) => kind === 'kill')) {
      this.#kills.set(process, killed + 1);
      this.counts.kills += 1;
    }
    return found;
  }

  /** From now on a process is without the store, for so long. */
  loseStore(process: number, { how, ms }: { readonly how: OutageKind; readonly ms: number }): void {
    this.counts.outages += 1;
    this.note(`process ${process} is without the store for ${Math.round(ms / 1000)} s: ${OUTAGE_TEXTS[how]}`);
    this.#outages.set(process, { how, untilMs: this.now() + ms });
  }

  /** What becomes of the calls of the store that a process makes now; undefined where it has the store. */
  outageOf(process: number): OutageKind | undefined {
    const outage = this.#outages.get(process);
    return outage && outage.untilMs > this.now() ? outage.how : undefined;
  }

  /** Whether requests that a process counted by itself may be in a window of the account. */
  #countsAlone(): boolean {
    return [...this.#outages.values()].some(({ untilMs }) => untilMs + BACK_MS + this.#windowMs > this.now());
  }

  /** Notes a request of a process. */
  begin(life: SimulatedLife, url: string, init: RequestInit = {}): Sent {
    const method = init.method ?? 'GET';
    const key = new Headers(init.headers).get('idempotency-key');
    const path = new URL(url).pathname;
    const isCreate = method === 'POST' && key !== null && !path.includes('/uploads');
    const isExcused = this.#countsAlone() || this.#excusedUntilMs > this.now();
    this.counts.requests += 1;
    if (key !== null) this.#pendingKeys.set(key, (this.#pendingKeys.get(key) ?? 0) + 1);
    const jobIn = (text: string | undefined) => (isCreate && text !== undefined ? createdIn(text) : undefined);
    return {
      end: (how, text) => {
        if (key !== null) this.#pendingKeys.set(key, (this.#pendingKeys.get(key) ?? 1) - 1);
        const created = jobIn(text);
        if (created && !this.made.has(created.id)) this.made.set(created.id, { key, process: life.number, life });
        if (how.startsWith('429') && !isExcused && this.#excusedUntilMs <= this.now()) this.counts.rateLimited += 1;
        if (how.endsWith('lost')) this.counts.lostAnswers += 1;
        const job = created === undefined ? '' : `, ${created.id}`;
        if (!/^200$/.test(how) || isCreate) {
          this.note(`process ${life.number}: ${method} ${path}${key === null ? '' : `, key ${key}`}: ${how}${job}`);
        }
      },
      reported: (text) => {
        const created = jobIn(text);
        if (created) this.reported.set(created.id, { quoted: created.quoted, atMs: this.now() });
      },
    };
  }

  /** Whether a call with this key is at the service now. */
  isPending(key: string | null): boolean {
    return key !== null && (this.#pendingKeys.get(key) ?? 0) > 0;
  }

  /** Delivers a webhook to one of the processes that run, which verifies it and notifies its waits. */
  async #deliver(request: Request): Promise<Response> {
    this.counts.webhooks += 1;
    const body = await request.text();
    const { headers } = request;
    const [fault] = this.faultsAt('webhook', 'w');
    const event = headers.get('x-service-event-id');
    if (fault?.kind === 'lostWebhook') {
      this.note(`webhook ${event} is never delivered`);
      return new Response(null, { status: 204 });
    }
    if (fault?.kind !== 'lateWebhook') return this.#handOver(headers, body);
    this.note(`webhook ${event} is ${Math.round(fault.ms / 1000)} s late`);
    this.after(fault.ms, () => void this.#handOver(headers, body));
    return new Response(null, { status: 204 });
  }

  async #handOver(headers: Headers, body: string): Promise<Response> {
    const { next } = randomFor(this.seed, `receiver of webhook ${this.counts.webhooks}`);
    const alive = [...this.lives.values()].filter(({ isRunning }) => isRunning);
    const life = alive[Math.floor(next() * alive.length)];
    if (life === undefined) return new Response(null, { status: 503 });
    try {
      const event = await life.client.verifyWebhook({ headers, body }, { now: () => life.clock.now() });
      life.client.notify(event);
      return new Response(null, { status: 204 });
    } catch {
      // Where the clock of the process is off, the timestamp is too old or too new.
      return new Response(null, { status: 400 });
    }
  }
}

/** A store in SQLite, as a file store and a Durable Object have it. */
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
  late: 'answers are late',
  silent: 'no answer comes',
};

/** A process is killed at most so often, so that every run ends. */
const MOST_KILLS = 10;

/** The job that an answer to a create contains. */
function createdIn(text: string): { readonly id: string; readonly quoted: unknown } | undefined {
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
