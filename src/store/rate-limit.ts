import type { Rate } from '../rules/limits.js';
import {
  coolDownMsOf,
  lookAt,
  type RateLimitLook,
  type RateLimitState,
  type RateLimitUpdate,
  RENEW_MS,
  type SlotOutcome,
  updateSlots,
} from '../rules/rate-limit.js';
import type { Clock, Random } from '../runtime/clock.js';
import { LOOK_AGAIN_MS } from '../runtime/platform.js';
import { CallQueue, type TurnOutcome } from './call-queue.js';
import type { ChangeTime, Outage, RateLimitBackend } from './rate-limit-backend.js';

/** Reported once for each call that has to wait for a rate limit. */
export interface RateLimitWait {
  readonly limit: string;
  /** Estimated wait in milliseconds. */
  readonly waitMs: number;
  /** Calls queued for the rate limit, including this one. */
  readonly queued: number;
  /** `limit`: the limit is reached. `pause`: the service requested a pause. */
  readonly reason: 'limit' | 'pause';
}

/** Releases a slot. Only the first call has an effect. @default 'answered' */
export type Release = (outcome?: SlotOutcome) => void;

export interface RateLimitedCall {
  readonly signal?: AbortSignal | undefined;
  /** Called once if the call must wait. */
  readonly onWait?: ((wait: RateLimitWait) => void) | undefined;
  /** Writes to the logger of the call's client. */
  readonly warn: (message: string) => void;
}

/** A call that waits outside any process and retains its position in the queue meanwhile. */
export interface DetachedRun {
  readonly id: string;
  /** If true, goes before all calls and runs that aren't urgent. */
  readonly isUrgent: boolean;
}

export interface RateLimitOptions {
  readonly name: string;
  readonly limit: Rate;
  readonly backend: RateLimitBackend;
  readonly clock: Clock;
  readonly random: Random;
  /** Set if the backend is a store. */
  readonly outage: Outage | undefined;
}

/** Longest silence of a live process. After three times as long, it counts as crashed. */
const MAX_REST_MS = 5_000;
const POSITION_MS = 3 * MAX_REST_MS;
/** Interval at which a process with queued calls may use the store. It can save a few turns for a burst. */
const ASK_MS = 500;
const MAX_ASKS_SAVED = 4;
/** Spreads the turns of processes that wait for the same slot. */
const SPREAD_MS = 10;
const MAX_ASKS = 100;
/**
 * Responses are reported to the store in batches: a hundredth of the window after the first one, but at most this long.
 */
const MAX_REPORT_MS = 250;

interface Ask {
  readonly id: string;
  readonly run?: DetachedRun | undefined;
  readonly warn: RateLimitedCall['warn'];
}

/** Times are in this process's clock. */
type SlotUpdate =
  | { readonly call: string; readonly outcome: SlotOutcome; readonly atMs: number }
  | { readonly pausedUntilMs: number; readonly atMs: number };

interface TurnResult {
  readonly granted: ReadonlySet<string>;
  /** Granted calls that the state counts, so their end must be reported. */
  readonly counted: ReadonlySet<string>;
  readonly ahead: number;
  readonly waitMs: number;
  /** Milliseconds until a detached run gets its slot, by ask ID. */
  readonly runWaitMs: ReadonlyMap<string, number>;
  readonly isLocal: boolean;
  readonly isChanged: boolean;
}

/**
 * A client's queue for one rate limit, in front of the backend's state. On Workers, promises belong to a request, so
 * each call creates its own object on the same backend.
 */
export class RateLimit {
  readonly #options: RateLimitOptions;
  readonly #queue: CallQueue<Ask, Release>;
  /** If true, other processes or requests change the state, too. */
  readonly #isShared: boolean;
  readonly #reportMs: number;
  #who: string | undefined;
  #calls = 0;
  #isUpdating = false;
  readonly #open = new Set<string>();
  /** Updates not yet applied, and updates applied only to the local copy during an outage. */
  #updates: readonly SlotUpdate[] = [];
  #replay: readonly SlotUpdate[] = [];
  /** When this process may use the store again without exceeding its pace. */
  #paidMs = Number.NEGATIVE_INFINITY;
  #timer: { readonly dueMs: number; readonly stop: () => void } | undefined;

  constructor(options: RateLimitOptions) {
    const { clock, outage, limit, backend } = options;
    this.#options = options;
    this.#isShared = outage !== undefined || clock.perRequest === true;
    this.#reportMs = outage && !clock.perRequest ? Math.min(limit.windowMs / 100, MAX_REPORT_MS) : 0;
    this.#queue = new CallQueue({
      clock,
      isShared: outage !== undefined,
      turn: (asks, tries) => this.#turn(firstOf(asks), tries),
      onOrphanedGrant: (release) => release('unused'),
      onEmpty: () => this.#queue.serve(),
    });
    // Clients with different limits share the state.
    if (!clock.perRequest) {
      backend.subscribe(() => {
        if (!this.#isUpdating && this.#queue.size > 0) this.#queue.serve();
      });
    }
  }

  get queued(): number {
    const { clock, backend } = this.#options;
    return clock.perRequest ? backend.look(({ queue }) => queue.length) : this.#queue.size;
  }

  /** Waits for a slot. Resolves with the function that releases it. */
  acquire({ signal, onWait, warn }: RateLimitedCall): Promise<Release> {
    const report = onWait && ((position: number) => onWait(this.#waitAt(position)));
    return this.#queue.acquire(this.#ask(warn), { signal, onWait: report });
  }

  /**
   * Resolves with a slot if one is free, otherwise with the milliseconds until one may be. Until then, a `run` retains
   * its position.
   */
  tryAcquire({ warn }: Pick<RateLimitedCall, 'warn'>, run?: DetachedRun): Promise<Release | number> {
    return this.#queue.tryAcquire(this.#ask(warn, run));
  }

  /** Pauses the rate limit for `ms` milliseconds. */
  pause(ms: number): void {
    const atMs = this.#options.clock.now();
    this.#updates = [...this.#updates, { pausedUntilMs: atMs + ms, atMs }];
    this.#queue.serve();
  }

  look(ahead = 0): RateLimitLook {
    const { backend, limit } = this.#options;
    return backend.look((state, nowMs) => lookAt(state, limit, nowMs, ahead));
  }

  #waitAt(position: number): RateLimitWait {
    const { backend, name } = this.#options;
    const others = backend.look(({ queue }) => queue.findIndex(({ who }) => who === this.#who));
    const ahead = Math.max(0, others) + position;
    const { waitMs, pausedMs } = this.look(ahead);
    return { limit: name, waitMs, queued: ahead + 1, reason: pausedMs > 0 ? 'pause' : 'limit' };
  }

  #ask(warn: RateLimitedCall['warn'], run?: DetachedRun): Ask {
    // Don't create it in the constructor, because Workers forbid random numbers while a module loads.
    this.#who ??= this.#options.random.uuid().replaceAll('-', '').slice(-12);
    return { id: `${this.#who}.${(this.#calls++).toString(36)}`, run, warn };
  }

  /** Takes a turn for this process's calls, and for detached runs. */
  #turn(asks: readonly Ask[], tries: readonly Ask[]): Outcome | Promise<Outcome> {
    this.#timer?.stop();
    this.#timer = undefined;
    const { backend } = this.#options;
    let applied: readonly SlotUpdate[] = [];
    this.#isUpdating = true;
    const result = backend.update((state, time) => {
      applied = time.isLocal ? this.#updates : [...this.#replay, ...this.#updates];
      return this.#step(state, time, { asks, tries, updates: applied });
    });
    this.#isUpdating = false;
    const settle = (taken: TurnResult) => {
      const known = new Set(applied);
      this.#updates = this.#updates.filter((update) => !known.has(update));
      this.#replay = taken.isLocal ? this.#recent([...this.#replay, ...applied]) : [];
      return this.#outcome([...asks, ...tries], taken);
    };
    if (!(result instanceof Promise)) return settle(result);
    const failed = (error: unknown) => {
      this.#updates = [];
      throw error;
    };
    return result.then(settle, failed);
  }

  #step(state: RateLimitState, time: ChangeTime, { asks, tries, updates }: Step) {
    const { limit } = this.#options;
    const { nowMs, askedMs, isLocal } = time;
    const own = tries.filter(({ run }) => run === undefined);
    const leaseMs = this.#isShared ? coolDownMsOf(limit) + POSITION_MS : Number.POSITIVE_INFINITY;
    const reply = updateSlots(
      state,
      {
        who: this.#who ?? '',
        updates: updates.map((update) => relativeTo(askedMs, update)),
        open: this.#isShared ? this.#open : [],
        asks: asks.map(({ id }) => id),
        tries: own.map(({ id }) => id),
        leaseMs,
        positionMs: this.#isShared ? POSITION_MS : Number.POSITIVE_INFINITY,
      },
      limit,
      nowMs,
    );
    const granted = new Set(reply.granted);
    const runWaitMs = new Map<string, number>();
    let { isChanged } = reply;
    for (const { id, run } of tries) {
      if (run === undefined) continue;
      const { id: who, isUrgent } = run;
      const detached = { who, isUrgent, asks: [id], positionMs: 'untilRetry', leaseMs } as const;
      const own = updateSlots(state, { ...detached, updates: [], open: [], tries: [] }, limit, nowMs);
      if (own.granted.length > 0) granted.add(id);
      else runWaitMs.set(id, own.waitMs);
      isChanged ||= own.isChanged;
    }
    const counted = new Set([...granted].filter((id) => state.open.has(id)));
    const { ahead, waitMs } = reply;
    return { isChanged, result: { granted, counted, ahead, waitMs, runWaitMs, isLocal, isChanged } };
  }

  #outcome(asks: readonly Ask[], result: TurnResult): Outcome {
    const { granted, counted, waitMs, runWaitMs, isLocal, isChanged } = result;
    const grants = new Map<Ask, Release>();
    for (const ask of asks) {
      if (isLocal) this.#options.outage?.warn(ask.warn);
      if (granted.has(ask.id)) grants.set(ask, counted.has(ask.id) ? this.#slot(ask.id) : () => {});
    }
    const nowMs = this.#options.clock.now();
    // A turn costs one read, plus one write if it changes the state. Lost swaps are free.
    const paidMs = isLocal ? 0 : isChanged ? 2 * ASK_MS : ASK_MS;
    if (granted.size === 0) this.#paidMs = Math.max(this.#paidMs, nowMs - MAX_ASKS_SAVED * ASK_MS) + paidMs;
    this.#plan();
    return { grants, waitMsOf: ({ id }) => runWaitMs.get(id) ?? waitMs, restMs: this.#restMs(result, nowMs) };
  }

  /** Milliseconds until the next turn of queued calls. */
  #restMs({ ahead, waitMs, isLocal }: TurnResult, nowMs: number): number {
    const { outage, clock, random } = this.#options;
    if (outage === undefined) {
      // A detached run ahead in the queue may never return.
      const mostMs = clock.perRequest ? LOOK_AGAIN_MS : ahead > 0 ? MAX_REST_MS : Number.POSITIVE_INFINITY;
      return Math.min(waitMs, mostMs);
    }
    if (isLocal) return Math.min(waitMs, outage.untilMs - nowMs);
    return Math.max(Math.min(waitMs, MAX_REST_MS) + random.next() * SPREAD_MS, this.#paidMs - nowMs);
  }

  #slot(id: string): Release {
    this.#open.add(id);
    return (outcome = 'answered') => {
      if (!this.#open.delete(id)) return;
      this.#updates = [...this.#updates, { call: id, outcome, atMs: this.#options.clock.now() }];
      // Report immediately if no other process needs the update, otherwise in a batch.
      if (this.#reportMs === 0) this.#queue.serve();
      else this.#plan();
    };
  }

  /** Sets the timer for updates that no call reports. */
  #plan(): void {
    const { clock, outage } = this.#options;
    if (!this.#isShared) return;
    const nowMs = clock.now();
    const outageMs = outage && outage.untilMs > nowMs ? outage.untilMs : undefined;
    const updatesMs = (this.#updates[0]?.atMs ?? Number.POSITIVE_INFINITY) + this.#reportMs;
    const reportMs = this.#queue.size > 0 ? Math.max(updatesMs, this.#paidMs) : updatesMs;
    const isOpen = this.#open.size + this.#replay.length > 0;
    const dueMs = Math.min(reportMs, isOpen ? (outageMs ?? nowMs + RENEW_MS) : Number.POSITIVE_INFINITY);
    if (this.#timer && this.#timer.dueMs <= dueMs) return;
    this.#timer?.stop();
    this.#timer = undefined;
    if (dueMs === Number.POSITIVE_INFINITY) return;
    const fire = () => {
      this.#timer = undefined;
      this.#queue.serve();
    };
    // The process may exit even if it can't report its last calls to the store.
    const isIdle = outageMs !== undefined && this.#queue.size === 0;
    this.#timer = { dueMs, stop: clock.after(Math.max(0, dueMs - nowMs), fire, { isIdle }) };
  }

  /** Drops updates that no longer matter, because their slots are free again. */
  #recent(updates: readonly SlotUpdate[]): readonly SlotUpdate[] {
    const nowMs = this.#options.clock.now();
    const sinceMs = nowMs - coolDownMsOf(this.#options.limit) - POSITION_MS;
    return updates.filter((update) =>
      'pausedUntilMs' in update ? update.pausedUntilMs > nowMs : update.atMs > sinceMs,
    );
  }
}

/** Limits the calls per turn, because a queue may be long. */
function firstOf(asks: Iterable<Ask>): Ask[] {
  const first: Ask[] = [];
  for (const ask of asks) {
    if (first.length === MAX_ASKS) break;
    first.push(ask);
  }
  return first;
}

type Outcome = TurnOutcome<Ask, Release>;

interface Step {
  readonly asks: readonly Ask[];
  readonly tries: readonly Ask[];
  readonly updates: readonly SlotUpdate[];
}

function relativeTo(askedMs: number, update: SlotUpdate): RateLimitUpdate {
  if ('pausedUntilMs' in update) return { pauseMs: update.pausedUntilMs - askedMs };
  return { call: update.call, outcome: update.outcome, agoMs: askedMs - update.atMs };
}
