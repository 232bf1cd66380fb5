import { ConnectionError } from '../errors/client-errors.js';
import { type LaneReply, type LaneTurn, lookAtLane, restMsOf } from '../rules/lane.js';
import type { LaneLimit } from '../rules/limits.js';
import type { Clock, Random } from '../runtime/clock.js';
import type { InProcessLimiter } from './in-process-limiter.js';
import type { LaneSnapshot, Release } from './rate-limiter.js';
import { isSetupError, type Store } from './store.js';
import { type Outage, StoredLane, type StoredTurn, type TurnTime } from './stored-lane.js';
import { type Joining, WaitingLine } from './waiting-line.js';

/** What all lanes of a limiter have in common. */
export interface SharedLaneSettings {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  /** Counts the calls of this process, for the time that the store is unavailable. */
  readonly local: InProcessLimiter;
  readonly onUnavailable: 'local' | 'throw';
  readonly outage: Outage;
}

/** A lane, and who uses it. */
export interface SharedLaneOptions {
  readonly name: string;
  /** Where its state is in the store. */
  readonly group: string;
  readonly limit: LaneLimit;
  /** The name of this process among the others. */
  readonly member: string;
}

/** A process that takes no turn for so long is taken for dead: it loses its places, and its calls count as answered. */
const PROCESS_LEASE_MS = 15_000;
/** A process whose calls wait or are under way takes a turn at least this often. */
const TURN_MS = PROCESS_LEASE_MS / 3;
/** Clocks of processes agree by the store's, give or take its delay. Calls that come so close together come at once. */
const MOMENT_MS = 100;
const SKEW_MS = 1_000;
/** Answered calls are counted together, a hundredth of the window and at most this long after the first. */
const MOST_FLUSH_MS = 250;
/** After so many failures in a row, the store has forgotten what it knew of this process. */
const MOST_STORE_FAILURES = 3;
const STORE_RETRY_MS = 5_000;

/** A call that does not queue. */
interface Try {
  readonly warn: Joining['warn'];
  readonly resolve: (taken: Release | number | PromiseLike<Release | number>) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * One lane that many processes share, as this process sees it: its calls wait here in order, and it takes turns at the
 * state in the store for all of them. Where promises belong to requests, each call has a lane object of its own.
 */
export class SharedLane {
  readonly #options: SharedLaneOptions;
  readonly #settings: SharedLaneSettings;
  readonly #line: WaitingLine;
  readonly #tries: Try[] = [];
  readonly #flushMs: number;
  readonly #stored: StoredLane;
  #offsetMs = Number.NEGATIVE_INFINITY;
  #open = 0;
  /** How many answered calls the store has counted, and when the others were answered. */
  #counted = 0;
  #answeredAtMs: number[] = [];
  #received = 0;
  /** What the store knows of this process; NaN when an answer was lost. */
  #known = { open: 0, waiting: 0 };
  #pausedUntilMs = Number.NEGATIVE_INFINITY;
  #isPauseKnown = true;
  #isTurning = false;
  #restlessMs = TURN_MS;
  #turnedMs = Number.NEGATIVE_INFINITY;
  #nextFreeMs = Number.NEGATIVE_INFINITY;
  #unknownSinceMs = Number.POSITIVE_INFINITY;
  #failures = 0;
  #seen = { inUse: 0, untilMs: Number.NEGATIVE_INFINITY };
  #timer: { readonly dueMs: number; readonly stop: () => void } | undefined;

  constructor(options: SharedLaneOptions, settings: SharedLaneSettings) {
    this.#options = options;
    this.#settings = settings;
    this.#stored = new StoredLane({ ...settings, group: options.group }, options.limit);
    const moment = () => Math.floor(settings.clock.now() / MOMENT_MS) * MOMENT_MS;
    this.#line = new WaitingLine(() => this.#changed(), moment);
    this.#flushMs = settings.clock.perRequest ? 0 : Math.min(options.limit.windowMs / 100, MOST_FLUSH_MS);
  }

  acquire(call: Joining): Promise<Release> {
    if (this.#isAway()) this.#settings.outage.warn(call.warn);
    const slot = this.#line.join(call);
    this.#changed();
    return slot;
  }

  /** A slot that is free now, or the milliseconds until one may be free. */
  tryAcquire(warn: Joining['warn']): Promise<Release | number> {
    return new Promise((resolve, reject) => {
      this.#tries.push({ warn, resolve, reject });
      this.#plan();
    });
  }

  pause(ms: number): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, this.#settings.clock.now() + ms);
    this.#isPauseKnown = false;
    this.#plan();
  }

  /** The state as far as this process knows it. */
  snapshot(): LaneSnapshot {
    const { limit, windowMs } = this.#options.limit;
    const nowMs = this.#settings.clock.now();
    const local = this.#settings.local.lane(this.#options.name);
    const waitMs = this.#nextFreeMs - nowMs;
    const nextFreeMs = Math.max(local.nextFreeMs, this.#line.calls.size > 0 ? Math.max(1, waitMs) : 0);
    const seen = this.#seen.untilMs > nowMs ? this.#seen.inUse : 0;
    return { inUse: Math.max(local.inUse, seen), queued: this.#line.calls.size, nextFreeMs, limit, windowMs };
  }

  /** This process knows something that the store does not. */
  #changed(): void {
    this.#unknownSinceMs = Math.min(this.#unknownSinceMs, this.#settings.clock.now());
    this.#plan();
  }

  /** Sets the one timer, or takes a turn that is due. */
  #plan(): void {
    // A listener that a call notifies may start a turn.
    if (!this.#isTurning && this.#isAway()) this.#serveAlone();
    if (this.#isTurning) return;
    const nowMs = this.#settings.clock.now();
    const dueMs = this.#dueMs(nowMs);
    if (this.#timer?.dueMs === dueMs) return;
    this.#timer?.stop();
    this.#timer = undefined;
    if (dueMs <= nowMs) void this.#takeTurn();
    else if (dueMs < Number.POSITIVE_INFINITY) {
      const fire = () => {
        this.#timer = undefined;
        this.#plan();
      };
      // A process may end although the store cannot be told of its last calls.
      const isIdle = this.#failures > 0 && this.#line.calls.size === 0;
      this.#timer = { dueMs, stop: this.#settings.clock.after(dueMs - nowMs, fire, { isIdle }) };
    }
  }

  /** When the next turn is due. */
  #dueMs(nowMs: number): number {
    const waiting = this.#line.calls.size;
    if (waiting > 0 && this.#isAway()) return Math.min(this.#nextFreeMs, this.#settings.outage.untilMs);
    if (this.#tries.length > 0 || (waiting > 0 && !(this.#known.waiting > 0))) return nowMs;
    if (this.#failures > 0) return this.#isInStep() ? Number.POSITIVE_INFINITY : this.#turnedMs + STORE_RETRY_MS;
    const freeMs = waiting > 0 ? this.#nextFreeMs : Number.POSITIVE_INFINITY;
    const lookMs = waiting > 0 || this.#open > 0 ? this.#lookMs(freeMs) : Number.POSITIVE_INFINITY;
    const tellMs = this.#isInStep() ? Number.POSITIVE_INFINITY : this.#unknownSinceMs + this.#flushMs;
    const newsMs = Math.min(lookMs, this.#isPauseKnown ? tellMs : nowMs);
    // A slot that is free is worth its asks at once.
    return Math.min(freeMs, this.#known.waiting > 0 ? Math.max(newsMs, nowMs + this.#stored.waitMs()) : newsMs);
  }

  /** When the process shows that it lives: not at the same time as others, and not just before its slot is free. */
  #lookMs(freeMs: number): number {
    const lookMs = this.#turnedMs + this.#restlessMs;
    return freeMs < lookMs + TURN_MS ? Math.max(lookMs, freeMs) : lookMs;
  }

  /** Whether the store knows what this process knows. */
  #isInStep(): boolean {
    const nothing = { open: 0, waiting: 0 };
    const { open, waiting } = this.#failures > MOST_STORE_FAILURES ? nothing : this.#known;
    return (
      open === this.#open && waiting === this.#line.calls.size && this.#answeredAtMs.length === 0 && this.#isPauseKnown
    );
  }

  async #takeTurn(): Promise<void> {
    const { clock, random, outage } = this.#settings;
    this.#isTurning = true;
    this.#turnedMs = clock.now();
    this.#restlessMs = TURN_MS * (0.6 + 0.4 * random.next());
    this.#unknownSinceMs = Number.POSITIVE_INFINITY;
    this.#forgetPast();
    const pausedUntilMs = this.#pausedUntilMs;
    try {
      const taken = await this.#stored.take((time) => this.#turnAt(time));
      this.#failures = 0;
      // A longer pause may have come since.
      if (this.#pausedUntilMs === pausedUntilMs) this.#isPauseKnown = true;
      outage.ended();
      this.#settle(taken);
    } catch (error) {
      this.#failed(error);
    }
    this.#isTurning = false;
    this.#changed();
  }

  /** After an outage, calls may have been answered so long ago that their slots are free again. */
  #forgetPast(): void {
    const nowMs = this.#settings.clock.now();
    const pastMs = nowMs - restMsOf(this.#options.limit);
    const recent = this.#answeredAtMs.filter((atMs) => atMs > pastMs);
    this.#counted += this.#answeredAtMs.length - recent.length;
    this.#answeredAtMs = recent;
    if (this.#pausedUntilMs <= nowMs) this.#isPauseKnown = true;
  }

  /** What this process tells and asks for. */
  #turnAt({ nowMs, askedMs }: TurnTime): LaneTurn {
    // What was answered since may have come after the store's time of this turn. The next one tells of it.
    const answeredAtMs = this.#answeredAtMs.filter((atMs) => atMs <= askedMs);
    return {
      member: this.#options.member,
      open: this.#open + this.#answeredAtMs.length - answeredAtMs.length,
      counted: this.#counted,
      answeredAgoMs: answeredAtMs.map((atMs) => askedMs - atMs),
      received: this.#received,
      helps: true,
      waiting: this.#line.arrivals.map(({ atMs, calls }) => ({ atMs: atMs + this.#aheadMs(nowMs), calls })),
      tries: this.#tries.length,
      pauseMs: this.#isPauseKnown ? 0 : Math.max(0, this.#pausedUntilMs - this.#settings.clock.now()),
      leaseMs: PROCESS_LEASE_MS,
    };
  }

  /** By how much the store's clock is ahead, in whole moments. Small changes are the delay's. */
  #aheadMs(storeMs: number): number {
    const aheadMs = storeMs - this.#settings.clock.now();
    if (Math.abs(aheadMs - this.#offsetMs) > SKEW_MS) this.#offsetMs = Math.round(aheadMs / MOMENT_MS) * MOMENT_MS;
    return this.#offsetMs;
  }

  /** The first in the queue serves those behind it. They come a little later, and find their slots. */
  #staggerMs({ rank }: LaneReply): number {
    const { clock, random } = this.#settings;
    if (rank === 0) return 0;
    return Math.min((clock.now() - this.#turnedMs) * (1.5 + random.next()), this.#options.limit.windowMs / 50);
  }

  /** Gives out what the turn has brought. */
  #settle({ reply, turn, lane, nowMs }: StoredTurn): void {
    const { clock } = this.#settings;
    const waiting = turn.waiting.reduce((sum, { calls }) => sum + calls, 0);
    const { granted, taken, ahead, waitMs, isPaused } = reply;
    this.#counted += turn.answeredAgoMs.length;
    this.#answeredAtMs.splice(0, turn.answeredAgoMs.length);
    this.#received = reply.received;
    this.#known = { open: turn.open + granted + taken, waiting: waiting - granted };
    const { limit } = this.#options;
    this.#nextFreeMs = clock.now() + waitMs + this.#staggerMs(reply);
    this.#seen = { inUse: lookAtLane(lane, limit, nowMs).inUse, untilMs: clock.now() + limit.windowMs };
    for (let slot = 0; slot < granted; slot++) {
      const waiter = this.#line.next();
      waiter?.resolve(this.#granted(waiter.signal));
    }
    for (const [at, { resolve }] of this.#tries.splice(0, turn.tries).entries())
      resolve(at < taken ? this.#granted(undefined) : Math.max(1, waitMs));
    this.#line.tell({ lane: this.#options.name, reason: isPaused ? 'pause' : 'limit' }, (place) => ({
      waitMs: lookAtLane(lane, limit, nowMs, ahead + place).waitMs,
      queued: ahead + place + 1,
    }));
  }

  /** A slot that the store has granted. This process counts it as well, and goes on by that without the store. */
  async #granted(signal: AbortSignal | undefined): Promise<Release> {
    const { local } = this.#settings;
    const { name } = this.#options;
    const taken = local.tryAcquire(name);
    if (typeof taken === 'function') return this.#slot(taken);
    const release = this.#slot(() => {});
    try {
      const counted = await local.acquire(name, signal);
      return (outcome) => {
        counted(outcome);
        release(outcome);
      };
    } catch (error) {
      release('unused');
      throw error;
    }
  }

  /** A slot that the next turn tells the store of. */
  #slot(counted: Release): Release {
    this.#open++;
    let isOpen = true;
    return (outcome) => {
      if (!isOpen) return;
      isOpen = false;
      counted(outcome);
      this.#open--;
      if (outcome !== 'unused') this.#answeredAtMs.push(this.#settings.clock.now());
      this.#changed();
    };
  }

  #isAway(): boolean {
    const { clock, outage, onUnavailable } = this.#settings;
    return onUnavailable === 'local' && clock.now() < outage.untilMs;
  }

  /** Without the store, calls get what is free by the count of this process. The others keep their places for its return. */
  #serveAlone(): void {
    const { clock, local, outage } = this.#settings;
    const { name } = this.#options;
    for (const waiter of this.#line.calls) {
      const taken = local.tryAcquire(name);
      if (typeof taken === 'number') {
        this.#nextFreeMs = clock.now() + taken;
        break;
      }
      this.#line.next();
      outage.warn(waiter.warn);
      waiter.resolve(this.#slot(taken));
    }
    for (const { warn, resolve } of this.#tries.splice(0)) {
      outage.warn(warn);
      // Nothing is free where calls still wait.
      const taken = local.tryAcquire(name);
      resolve(typeof taken === 'number' ? taken : this.#slot(taken));
    }
    const reason = this.#pausedUntilMs > clock.now() ? 'pause' : 'limit';
    this.#line.tell({ lane: name, reason }, (place) => ({
      waitMs: local.lane(name, place).nextFreeMs,
      queued: place + 1,
    }));
  }

  #failed(error: unknown): void {
    const { onUnavailable, outage } = this.#settings;
    this.#failures += 1;
    this.#known = { open: Number.NaN, waiting: Number.NaN };
    const isSetup = isSetupError(error);
    if (!isSetup) outage.began(error);
    if (!isSetup && onUnavailable === 'local') {
      for (const { warn } of this.#line.calls) outage.warn(warn);
      return;
    }
    const reason = isSetup
      ? error
      : new ConnectionError('The store is unavailable, and onUnavailable is "throw"', { cause: error });
    for (let waiter = this.#line.next(); waiter; waiter = this.#line.next()) waiter.reject(reason);
    for (const { reject } of this.#tries.splice(0)) reject(reason);
  }
}
