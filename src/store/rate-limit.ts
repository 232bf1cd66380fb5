import type { Rate } from '../rules/limits.js';
import {
  coolDownMsOf,
  type RateLimitState,
  type RateLimitUpdate,
  type RateLimitView,
  RENEW_MS,
  type SlotOutcome,
  updateSlots,
  viewAt,
} from '../rules/rate-limit.js';
import type { Clock, Random } from '../runtime/clock.js';
import { WORKERS_POLL_MS } from '../runtime/platform.js';
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

/** Releases a slot. Only the first call has an effect. @default 'counted' */
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

/** Longest silence of a live process. After three times as long, the process counts as crashed. */
const MAX_REST_MS = 5_000;
const POSITION_MS = 3 * MAX_REST_MS;
/** Average interval at which a process with queued calls may use the store. Unused turns allow a burst. */
const TURN_MS = 500;
const MAX_SAVED_TURNS = 4;
/** Spreads the turns of processes that wait for the same slot. */
const SPREAD_MS = 10;
const MAX_PER_TURN = 100;
/** Maximum time for which responses are collected, to report them to the store together. Usually 1% of the window. */
const MAX_REPORT_MS = 250;

interface SlotRequest {
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
  /** Granted calls that the state counts, so their outcomes must be reported. */
  readonly counted: ReadonlySet<string>;
  readonly ahead: number;
  readonly waitMs: number;
  /** Milliseconds until a detached run receives its slot, by request ID. */
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
  readonly #queue: CallQueue<SlotRequest, Release>;
  /** If true, other processes or requests change the state, too. */
  readonly #isShared: boolean;
  readonly #reportMs: number;
  #owner: string | undefined;
  #calls = 0;
  #isUpdating = false;
  readonly #inFlight = new Set<string>();
  /** Updates not yet applied, and updates applied only to the local copy during an outage. */
  #updates: readonly SlotUpdate[] = [];
  #replay: readonly SlotUpdate[] = [];
  /** When this process may use the store again without exceeding its pace. */
  #nextTurnMs = Number.NEGATIVE_INFINITY;
  #timer: { readonly dueMs: number; readonly stop: () => void } | undefined;

  constructor(options: RateLimitOptions) {
    const { clock, outage, limit, backend } = options;
    this.#options = options;
    this.#isShared = outage !== undefined || clock.perRequest === true;
    this.#reportMs = outage && !clock.perRequest ? Math.min(limit.windowMs / 100, MAX_REPORT_MS) : 0;
    this.#queue = new CallQueue({
      clock,
      isShared: outage !== undefined,
      turn: (queued, immediate) => this.#turn(firstOf(queued), immediate),
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
    return clock.perRequest ? backend.peek(({ queue }) => queue.length) : this.#queue.size;
  }

  /** Waits for a slot. Resolves with the function that releases it. */
  acquire({ signal, onWait, warn }: RateLimitedCall): Promise<Release> {
    const report = onWait && ((position: number) => onWait(this.#waitAt(position)));
    return this.#queue.acquire(this.#newRequest(warn), { signal, onWait: report });
  }

  /**
   * Resolves with a slot if one is free, otherwise with the milliseconds until one may be. Until then, a `run` retains
   * its position.
   */
  tryAcquire({ warn }: Pick<RateLimitedCall, 'warn'>, run?: DetachedRun): Promise<Release | number> {
    return this.#queue.tryAcquire(this.#newRequest(warn, run));
  }

  /** Pauses the rate limit for `ms` milliseconds. */
  pause(ms: number): void {
    const atMs = this.#options.clock.now();
    this.#updates = [...this.#updates, { pausedUntilMs: atMs + ms, atMs }];
    this.#queue.serve();
  }

  peek(ahead = 0): RateLimitView {
    const { backend, limit } = this.#options;
    return backend.peek((state, nowMs) => viewAt(state, limit, nowMs, ahead));
  }

  #waitAt(position: number): RateLimitWait {
    const { backend, name } = this.#options;
    const others = backend.peek(({ queue }) => queue.findIndex(({ owner }) => owner === this.#owner));
    const ahead = Math.max(0, others) + position;
    const { waitMs, pausedMs } = this.peek(ahead);
    return { limit: name, waitMs, queued: ahead + 1, reason: pausedMs > 0 ? 'pause' : 'limit' };
  }

  #newRequest(warn: RateLimitedCall['warn'], run?: DetachedRun): SlotRequest {
    // Don't create it in the constructor, because Workers forbid random numbers while a module loads.
    this.#owner ??= this.#options.random.uuid().replaceAll('-', '').slice(-12);
    return { id: `${this.#owner}.${(this.#calls++).toString(36)}`, run, warn };
  }

  /** Takes a turn for this process's calls, and for detached runs. */
  #turn(queued: readonly SlotRequest[], immediate: readonly SlotRequest[]): Outcome | Promise<Outcome> {
    this.#timer?.stop();
    this.#timer = undefined;
    const { backend } = this.#options;
    let applied: readonly SlotUpdate[] = [];
    this.#isUpdating = true;
    const result = backend.update((state, time) => {
      applied = time.isLocal ? this.#updates : [...this.#replay, ...this.#updates];
      return this.#step(state, time, { queued, immediate, updates: applied });
    });
    this.#isUpdating = false;
    const onResult = (turn: TurnResult) => {
      const appliedUpdates = new Set(applied);
      this.#updates = this.#updates.filter((update) => !appliedUpdates.has(update));
      this.#replay = turn.isLocal ? this.#relevantUpdates([...this.#replay, ...applied]) : [];
      return this.#outcome([...queued, ...immediate], turn);
    };
    if (!(result instanceof Promise)) return onResult(result);
    const onFailure = (error: unknown) => {
      this.#updates = [];
      throw error;
    };
    return result.then(onResult, onFailure);
  }

  #step(state: RateLimitState, time: ChangeTime, { queued, immediate, updates }: Step) {
    const { limit } = this.#options;
    const { nowMs, startMs, isLocal } = time;
    const calls = immediate.filter(({ run }) => run === undefined);
    const leaseMs = this.#isShared ? coolDownMsOf(limit) + POSITION_MS : Number.POSITIVE_INFINITY;
    const reply = updateSlots(
      state,
      {
        owner: this.#owner ?? '',
        updates: updates.map((update) => relativeTo(startMs, update)),
        inFlight: this.#isShared ? this.#inFlight : [],
        queued: queued.map(({ id }) => id),
        immediate: calls.map(({ id }) => id),
        leaseMs,
        positionMs: this.#isShared ? POSITION_MS : Number.POSITIVE_INFINITY,
      },
      limit,
      nowMs,
    );
    const granted = new Set(reply.granted);
    const runWaitMs = new Map<string, number>();
    let { isChanged } = reply;
    for (const { id, run } of immediate) {
      if (run === undefined) continue;
      const { id: owner, isUrgent } = run;
      const detached = { owner, isUrgent, queued: [id], positionMs: 'untilRetry', leaseMs } as const;
      const turn = updateSlots(state, { ...detached, updates: [], inFlight: [], immediate: [] }, limit, nowMs);
      if (turn.granted.length > 0) granted.add(id);
      else runWaitMs.set(id, turn.waitMs);
      isChanged ||= turn.isChanged;
    }
    const counted = new Set([...granted].filter((id) => state.inFlight.has(id)));
    const { ahead, waitMs } = reply;
    return { isChanged, result: { granted, counted, ahead, waitMs, runWaitMs, isLocal, isChanged } };
  }

  #outcome(queued: readonly SlotRequest[], result: TurnResult): Outcome {
    const { granted, counted, waitMs, runWaitMs, isLocal, isChanged } = result;
    const grants = new Map<SlotRequest, Release>();
    for (const request of queued) {
      if (isLocal) this.#options.outage?.warn(request.warn);
      if (granted.has(request.id)) grants.set(request, counted.has(request.id) ? this.#slot(request.id) : () => {});
    }
    const nowMs = this.#options.clock.now();
    // A turn costs a read, plus a write if it changes the state. Retries of a lost swap cost nothing extra.
    const costMs = isLocal ? 0 : isChanged ? 2 * TURN_MS : TURN_MS;
    if (granted.size === 0) this.#nextTurnMs = Math.max(this.#nextTurnMs, nowMs - MAX_SAVED_TURNS * TURN_MS) + costMs;
    this.#plan();
    return {
      grants,
      waitMsOf: ({ id }) => runWaitMs.get(id) ?? waitMs,
      nextTurnMs: this.#nextTurnInMs(result, nowMs),
    };
  }

  /** Returns the milliseconds until the next turn of queued calls. */
  #nextTurnInMs({ ahead, waitMs, isLocal }: TurnResult, nowMs: number): number {
    const { outage, clock, random } = this.#options;
    if (outage === undefined) {
      // A detached run ahead in the queue may never return.
      const maxMs = clock.perRequest ? WORKERS_POLL_MS : ahead > 0 ? MAX_REST_MS : Number.POSITIVE_INFINITY;
      return Math.min(waitMs, maxMs);
    }
    if (isLocal) return Math.min(waitMs, outage.untilMs - nowMs);
    return Math.max(Math.min(waitMs, MAX_REST_MS) + random.next() * SPREAD_MS, this.#nextTurnMs - nowMs);
  }

  #slot(id: string): Release {
    this.#inFlight.add(id);
    return (outcome = 'counted') => {
      if (!this.#inFlight.delete(id)) return;
      this.#updates = [...this.#updates, { call: id, outcome, atMs: this.#options.clock.now() }];
      // Report immediately if no other process needs the update, otherwise in a batch.
      if (this.#reportMs === 0) this.#queue.serve();
      else this.#plan();
    };
  }

  /** Sets a timer for the next report of updates and the next renewal of leases, unless a call takes a turn earlier. */
  #plan(): void {
    const { clock, outage } = this.#options;
    if (!this.#isShared) return;
    const nowMs = clock.now();
    const outageMs = outage && outage.untilMs > nowMs ? outage.untilMs : undefined;
    const updatesMs = (this.#updates[0]?.atMs ?? Number.POSITIVE_INFINITY) + this.#reportMs;
    const reportMs = this.#queue.size > 0 ? Math.max(updatesMs, this.#nextTurnMs) : updatesMs;
    const hasCalls = this.#inFlight.size + this.#replay.length > 0;
    const dueMs = Math.min(reportMs, hasCalls ? (outageMs ?? nowMs + RENEW_MS) : Number.POSITIVE_INFINITY);
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

  /** Returns the updates that still matter. Drops those about ended pauses, and about slots that are free again. */
  #relevantUpdates(updates: readonly SlotUpdate[]): readonly SlotUpdate[] {
    const nowMs = this.#options.clock.now();
    const sinceMs = nowMs - coolDownMsOf(this.#options.limit) - POSITION_MS;
    return updates.filter((update) =>
      'pausedUntilMs' in update ? update.pausedUntilMs > nowMs : update.atMs > sinceMs,
    );
  }
}

/** Returns the first calls of a queue, as many as one turn handles. */
function firstOf(queued: Iterable<SlotRequest>): SlotRequest[] {
  const requests: SlotRequest[] = [];
  for (const request of queued) {
    if (requests.length === MAX_PER_TURN) break;
    requests.push(request);
  }
  return requests;
}

type Outcome = TurnOutcome<SlotRequest, Release>;

interface Step {
  readonly queued: readonly SlotRequest[];
  readonly immediate: readonly SlotRequest[];
  readonly updates: readonly SlotUpdate[];
}

function relativeTo(startMs: number, update: SlotUpdate): RateLimitUpdate {
  if ('pausedUntilMs' in update) return { pauseMs: update.pausedUntilMs - startMs };
  return { call: update.call, outcome: update.outcome, agoMs: startMs - update.atMs };
}
