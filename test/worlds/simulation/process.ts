import { GenClient } from '../../../src/client/client.js';
import { clientStore } from '../../../src/ledger/client-ledger.js';
import { CLOCK, type Clock, type Random } from '../../../src/runtime/clock.js';
import { LEASES, leasesOf, type ProcessLeases } from '../../../src/store/port.js';
import type { NotifyingStore } from '../../../src/store/store.js';
import { type Fault, type OutageKind, randomFor } from './chance.js';
import type { InFlightRequest, SimulatedLife, SimulatedWorld } from './world.js';

/** Delay of store responses in an outage: longer than a client waits before it considers the store unavailable. */
const LATE_STORE_MS = 5_000;

/** One run of a simulated process, until it exits or is killed. Contains its timers, requests, and store calls. */
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
  /** Timers that don't keep the process alive. */
  readonly #idleTimers = new Set<() => void>();
  readonly #subscriptions = new Set<() => void>();
  #resolveKilled: () => void = () => {};
  readonly #leaseName: string;
  #isAlive = true;
  /** Resolves when a stopped process continues. */
  #continued: Promise<void> | undefined;
  /** The process's clock offset, in milliseconds. */
  #skewMs = 0;
  #requests = 0;

  constructor(world: SimulatedWorld, { number, life }: { number: number; life: number }) {
    this.#world = world;
    this.number = number;
    this.random = randomFor(world.seed, `process ${number}, life ${life}`);
    this.killed = new Promise((resolve) => {
      this.#resolveKilled = resolve;
    });
    const clockRandom = randomFor(world.seed, `client ${number}, life ${life}`);
    this.clock = {
      now: () => world.now() + this.#skewMs,
      elapsed: () => world.elapsedMs,
      after: (ms, fire, options) => this.#after(ms, fire, options?.isIdle === true),
      random: clockRandom,
    };
    this.#leaseName = `${number}.${life}`;
    this.store = this.#storeOf(world.store);
    const { apiKey, baseUrl, webhookSecret } = world.service;
    // All processes share one account, even while some still use the previous key.
    const account = 'simulated';
    const baseOptions = { apiKey, baseUrl, webhookSecret, account, store: this.store, dangerouslyAllowBrowser: true };
    const fetch = (url: string, init?: RequestInit) => this.#fetch(url, init);
    this.client = new GenClient({
      ...baseOptions,
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

  /** Kills the process: no timer fires, no response arrives, and later calls have no effect. */
  kill(): void {
    if (!this.#isAlive) return;
    this.#isAlive = false;
    for (const cancel of [...this.#timers, ...this.#idleTimers]) cancel();
    for (const unsubscribe of this.#subscriptions) unsubscribe();
    this.#world.log(`process ${this.number} is killed`);
    this.#resolveKilled();
  }

  /** False while the process is paused and after it was killed. */
  get isRunning(): boolean {
    return this.#isAlive && this.#continued === undefined;
  }

  /** Resolves when the process runs. Never resolves after a kill. */
  async whenRunning(): Promise<void> {
    while (this.#continued) await this.#continued;
    if (!this.#isAlive) return never();
  }

  /** Pauses the process like SIGSTOP: timers and responses wait until it continues. */
  stop(ms: number): void {
    if (!this.isRunning) return;
    this.#world.stopped(this.number, ms);
    this.#continued = new Promise((resolve) => {
      this.#world.after(ms, () => {
        this.#continued = undefined;
        resolve();
      });
    });
  }

  holdsLease(name: string): boolean {
    return this.#isAlive && name === this.#leaseName;
  }

  /** Moves the process's clock. */
  stepClock(ms: number): void {
    this.#skewMs += ms;
    this.#world.log(`process ${this.number}'s clock moves by ${Math.round(ms / 1000)} s`);
  }

  #after(ms: number, fire: () => void, isIdle: boolean): () => void {
    if (!this.#isAlive) return () => {};
    const timers = isIdle ? this.#idleTimers : this.#timers;
    const run = () => {
      // Another timer may have canceled this one.
      if (timers.delete(stop)) fire();
    };
    const cancel = this.#world.after(ms, () => {
      const paused = this.#pause();
      if (paused) void paused.then(run);
      else run();
    });
    const stop = () => {
      timers.delete(stop);
      cancel();
    };
    timers.add(stop);
    return stop;
  }

  /** Applies a pause's faults. Resolves when the process runs again, or returns undefined if it's running. */
  #pause(): Promise<void> | undefined {
    const [fault] = this.#isAlive ? this.#world.faultsAt('pause', this.number) : [];
    if (fault?.kind === 'kill') this.kill();
    if (fault?.kind === 'stop') this.stop(fault.ms);
    return this.isRunning ? undefined : this.whenRunning();
  }

  /** Runs work outside the process. A killed process never receives the result. */
  async remote<T>(work: () => Promise<T>): Promise<T> {
    await this.#pause();
    const result = await resultOf(work);
    await this.#pause();
    if (!result.ok) throw result.error;
    return result.value;
  }

  #storeOf(store: NotifyingStore): NotifyingStore {
    const processStore: NotifyingStore & { readonly [CLOCK]: Clock; readonly [LEASES]: ProcessLeases | undefined } = {
      [CLOCK]: this.clock,
      [LEASES]: this.#world.hasLeases
        ? { own: () => this.#leaseName, isHeld: (name) => this.#world.holdsLease(name) }
        : leasesOf(store),
      read: (group, keys) => this.#callStore(() => store.read(group, keys)),
      write: (group, version, changes) => this.#callStore(() => store.write(group, version, changes)),
      publish: (topic, message) => this.#callStore(() => store.publish(topic, message)),
      subscribe: (topic, listener) => {
        const stop = store.subscribe(topic, (message) => {
          if (this.#world.outageOf(this.number) === undefined) void this.whenRunning().then(() => listener(message));
        });
        const unsubscribe = () => {
          this.#subscriptions.delete(unsubscribe);
          stop();
        };
        this.#subscriptions.add(unsubscribe);
        return unsubscribe;
      },
    };
    return clientStore(processStore);
  }

  /** Calls the store, which may be unavailable. */
  #callStore<T>(work: () => Promise<T>): Promise<T> {
    const [fault] = this.#world.faultsAt('store', this.number);
    if (fault?.kind === 'outage') this.#world.loseStore(this.number, fault);
    const how = this.#world.outageOf(this.number);
    return this.remote(how === undefined ? work : () => this.#outage(how, work));
  }

  async #outage<T>(how: OutageKind, work: () => Promise<T>): Promise<T> {
    if (how === 'fails') throw lostConnection();
    const result = await work();
    // The write takes effect although its response is lost.
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
    const request = world.begin(this, url, init);
    const [step, kill, lost, page, late, slow] = [
      find('clock'),
      find('kill'),
      find('lostResponse'),
      find('page'),
      find('lateRequest'),
      find('slow'),
    ];
    if (step) this.stepClock(step.ms);
    if (kill && !kill.isHandled) {
      request.end('is killed before it sends this');
      this.kill();
      return never();
    }
    if (find('unsent')) {
      request.end('no connection');
      throw noConnection();
    }
    if (lost && !lost.isHandled) {
      request.end('the connection breaks before the service receives it');
      throw lostConnection(lost.code);
    }
    if (page && !page.isHandled) {
      request.end(`a page with status ${page.status} instead`);
      return pageOf(page.status);
    }
    if (find('rejection')) {
      request.end('200, and the body rejects it');
      return Response.json({ data: null, error: { code: 'dispatch_disabled', message: 'Come back later.' } });
    }
    const response = await (late ? this.#sendLate(late.ms, { request, url, init }) : world.fetch(url, init));
    const text = await jsonText(response);
    if (slow) await this.#delay(slow.ms, init?.signal ?? undefined);
    if (kill) {
      request.end(`${response.status}, but the process is killed before the response arrives`, text);
      this.kill();
    }
    if (!this.#isAlive) request.end(`${response.status}, but no process receives it`, text);
    await this.whenRunning();
    if (lost) {
      request.end(`${response.status}, but the response is lost`, text);
      throw lostConnection(lost.code);
    }
    if (page) {
      request.end(`${response.status}, replaced by a page with status ${page.status}`, text);
      return pageOf(page.status);
    }
    request.end(`${response.status}${slow ? ` after ${Math.round(slow.ms / 1000)} s` : ''}`, text);
    request.reported(text);
    return response;
  }

  /** Sends the request late, even if the client no longer waits. */
  #sendLate(
    ms: number,
    {
      request,
      url,
      init,
    }: { readonly request: InFlightRequest; readonly url: string; readonly init: RequestInit | undefined },
  ): Promise<Response> {
    const { signal, ...rest } = init ?? {};
    const arrived = new Promise<void>((resolve) => void this.#world.after(ms, resolve));
    const lateResponse = arrived.then(() => this.#world.fetch(url, rest));
    return new Promise((resolve, reject) => {
      lateResponse.then(async (response) => {
        // The lease on a crashed process's slot may have expired before its request arrived.
        if (!this.#isAlive) this.#world.excuse();
        if (!signal?.aborted) return resolve(response);
        request.end(`${response.status}, but the client has stopped waiting`, await jsonText(response));
        this.#world.excuse();
      }, reject);
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
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

/** Returns the text of a JSON response without consuming it, or undefined for other responses. */
async function jsonText(response: Response): Promise<string | undefined> {
  if (!response.headers.get('content-type')?.includes('json')) return undefined;
  return response.clone().text();
}

async function resultOf<T>(
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

function lostConnection(code = 'ECONNRESET'): TypeError {
  return failedFetch(`read ${code}`, { code, syscall: 'read' });
}

function noConnection(): TypeError {
  return failedFetch('connect ECONNREFUSED', { code: 'ECONNREFUSED', syscall: 'connect' });
}

function failedFetch(message: string, fields: object): TypeError {
  return new TypeError('fetch failed', { cause: Object.assign(new Error(message), fields) });
}

function pageOf(status: number): Response {
  const text = `<html><head><title>${status}</title></head><body>Proxy</body></html>`;
  return new Response(text, { status, headers: { 'content-type': 'text/html' } });
}
