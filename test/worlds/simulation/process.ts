import { GenClient } from '../../../src/client/client.js';
import { withLedger } from '../../../src/ledger/client-ledger.js';
import { CLOCK, type Clock, type Random } from '../../../src/runtime/clock.js';
import { LEASES, leasesOf, type ProcessLeases } from '../../../src/store/port.js';
import type { NotifyingStore } from '../../../src/store/store.js';
import { type Fault, type OutageKind, randomFor } from './chance.js';
import type { SimulatedLife, SimulatedWorld } from './world.js';

/** How late a store answers in an outage: more than the time after which a client counts it as away. */
const LATE_STORE_MS = 5_000;

/** One life of a simulated process: from its start until it ends or is killed. Whatever it does goes through here. */
export class ProcessLife implements SimulatedLife {
  readonly number: number;
  readonly random: Random;
  readonly clock: Clock;
  readonly store: NotifyingStore;
  readonly client: GenClient;
  /** Resolves when the process is killed. */
  readonly killed: Promise<void>;
  readonly #world: SimulatedWorld;
  readonly #timers = new Set<() => void>();
  /** Timers that would not keep a process alive. */
  readonly #idleTimers = new Set<() => void>();
  readonly #subscriptions = new Set<() => void>();
  #tellKilled: () => void = () => {};
  #isAlive = true;
  #skewMs: number;
  #requests = 0;

  constructor(world: SimulatedWorld, { number, life, skewMs }: { number: number; life: number; skewMs: number }) {
    this.#world = world;
    this.number = number;
    this.#skewMs = skewMs;
    this.random = randomFor(world.seed, `process ${number}, life ${life}`);
    this.killed = new Promise((resolve) => {
      this.#tellKilled = resolve;
    });
    const clockRandom = randomFor(world.seed, `client ${number}, life ${life}`);
    this.clock = {
      now: () => world.now() + this.#skewMs,
      elapsed: () => world.elapsedMs,
      after: (ms, fire, options) => this.#after(ms, fire, options?.isIdle === true),
      random: clockRandom,
    };
    this.store = this.#storeOf(world.store);
    const { apiKey, baseUrl, webhookSecret } = world.service;
    // All processes have one account, also while some still have the key from before its rotation.
    const account = 'simulated';
    const own = { apiKey, baseUrl, webhookSecret, account, store: this.store, dangerouslyAllowBrowser: true };
    const fetch = (url: string, init?: RequestInit) => this.#fetch(url, init);
    this.client = new GenClient({
      ...own,
      ...world.clientOptions(number, this.store),
      ...{ fetch, [CLOCK]: this.clock },
    });
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  get pending(): SimulatedLife['pending'] {
    return { requests: this.#requests, timers: this.#timers.size, subscriptions: this.#subscriptions.size };
  }

  /** How far the clock of this process is off, in milliseconds. */
  get skewMs(): number {
    return this.#skewMs;
  }

  /** Ends the process where it stands: no timer fires, no answer arrives, and nothing that it still does has an effect. */
  kill(): void {
    if (!this.#isAlive) return;
    this.#isAlive = false;
    for (const cancel of [...this.#timers, ...this.#idleTimers]) cancel();
    for (const unsubscribe of this.#subscriptions) unsubscribe();
    this.#world.note(`process ${this.number} is killed`);
    this.#tellKilled();
  }

  /** Sets the clock of the process. */
  stepClock(ms: number): void {
    this.#skewMs += ms;
    this.#world.note(`the clock of process ${this.number} moves by ${Math.round(ms / 1000)} s`);
  }

  #after(ms: number, fire: () => void, isIdle: boolean): () => void {
    if (!this.#isAlive) return () => {};
    const cancel = this.#world.after(ms, () => {
      this.#timers.delete(stop);
      this.#idleTimers.delete(stop);
      this.#pause();
      if (this.#isAlive) fire();
    });
    const stop = () => {
      this.#timers.delete(stop);
      this.#idleTimers.delete(stop);
      cancel();
    };
    (isIdle ? this.#idleTimers : this.#timers).add(stop);
    return stop;
  }

  /** A place at which the process may be killed. */
  #pause(): void {
    if (this.#isAlive && this.#world.faultsAt('pause', this.number).length > 0) this.kill();
  }

  /** What a promise of the world outside gives this process; a killed process never gets it. */
  async arriving<T>(work: () => Promise<T>): Promise<T> {
    this.#pause();
    if (!this.#isAlive) return never();
    const result = await settled(work);
    this.#pause();
    if (!this.#isAlive) return never();
    if (!result.ok) throw result.error;
    return result.value;
  }

  #storeOf(store: NotifyingStore): NotifyingStore {
    const own: NotifyingStore & { readonly [CLOCK]: Clock; readonly [LEASES]: ProcessLeases | undefined } = {
      [CLOCK]: this.clock,
      [LEASES]: leasesOf(store),
      read: (group, keys) => this.#asking(() => store.read(group, keys)),
      write: (group, version, changes) => this.#asking(() => store.write(group, version, changes)),
      publish: (topic, message) => this.#asking(() => store.publish(topic, message)),
      subscribe: (topic, listener) => {
        const stop = store.subscribe(topic, (message) => {
          if (this.#isAlive && this.#world.outageOf(this.number) === undefined) listener(message);
        });
        const unsubscribe = () => {
          this.#subscriptions.delete(unsubscribe);
          stop();
        };
        this.#subscriptions.add(unsubscribe);
        return unsubscribe;
      },
    };
    return withLedger(own);
  }

  /** A call of the store, which an outage may meet. */
  #asking<T>(work: () => Promise<T>): Promise<T> {
    const [fault] = this.#world.faultsAt('store', this.number);
    if (fault?.kind === 'outage') this.#world.loseStore(this.number, fault);
    const how = this.#world.outageOf(this.number);
    return this.arriving(how === undefined ? work : () => this.#outage(how, work));
  }

  async #outage<T>(how: OutageKind, work: () => Promise<T>): Promise<T> {
    if (how === 'fails') throw lostConnection();
    const result = await work();
    // What was written without an answer is written all the same.
    if (how === 'silent') return never();
    await new Promise<void>((resolve) => void this.#after(LATE_STORE_MS, resolve, true));
    return result;
  }

  async #fetch(url: string, init?: RequestInit): Promise<Response> {
    if (!this.#isAlive) return never();
    this.#requests += 1;
    try {
      return await this.#exchange(url, init);
    } finally {
      this.#requests -= 1;
    }
  }

  async #exchange(url: string, init?: RequestInit): Promise<Response> {
    const world = this.#world;
    const faults = world.faultsAt('request', this.number);
    const find = <K extends Fault['kind']>(kind: K) =>
      faults.find((fault): fault is Fault & { readonly kind: K } => fault.kind === kind);
    const sent = world.begin(this, url, init);
    const step = find('clock');
    if (step) this.stepClock(step.ms);
    const kill = find('kill');
    const lost = find('lostAnswer');
    if (kill && !kill.isHandled) {
      sent.end('is killed before it sends this');
      this.kill();
      return never();
    }
    if (lost && !lost.isHandled) {
      sent.end('the connection breaks before the service gets it');
      throw lostConnection();
    }
    const response = await world.fetch(url, init);
    const text = await jsonText(response);
    const slow = find('slow');
    if (slow) await this.#delay(slow.ms, init?.signal ?? undefined);
    if (kill) {
      sent.end(`${response.status}, and the process is killed before it gets the answer`, text);
      this.kill();
    }
    if (!this.#isAlive) return never();
    if (lost) {
      sent.end(`${response.status}, and the answer is lost`, text);
      throw lostConnection();
    }
    sent.end(`${response.status}${slow ? ` after ${Math.round(slow.ms / 1000)} s` : ''}`, text);
    sent.reported(text);
    return response;
  }

  #delay(ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const cancel = this.#world.after(ms, resolve);
      signal?.addEventListener(
        'abort',
        () => {
          cancel();
          reject(signal.reason);
        },
        { once: true },
      );
    });
  }
}

/** The text of a JSON answer, read from a copy; undefined for any other answer. */
async function jsonText(response: Response): Promise<string | undefined> {
  if (!response.headers.get('content-type')?.includes('json')) return undefined;
  return response.clone().text();
}

async function settled<T>(
  work: () => Promise<T>,
): Promise<{ readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown }> {
  try {
    return { ok: true, value: await work() };
  } catch (error) {
    return { ok: false, error };
  }
}

function never<T>(): Promise<T> {
  return new Promise(() => {});
}

function lostConnection(): TypeError {
  const cause = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
  return new TypeError('fetch failed', { cause });
}
