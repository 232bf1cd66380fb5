import type { Clock } from '../clock.js';
import { ConnectionError } from '../errors/client-errors.js';
import { GenError } from '../errors/gen-error.js';
import type { InProcessLimiter } from '../limits/in-process-limiter.js';
import type { LaneLimit } from '../limits/lane-state.js';
import type { Outage } from '../limits/outage.js';
import type { LaneSnapshot, LaneWait, Release } from '../limits/rate-limiter.js';
import type { LaneScripts } from './lane-scripts.js';
import { WaitingLine } from './waiting-line.js';

/** What all lanes of a limiter have in common. */
export interface RedisLaneSettings {
  /** This limiter's name among the processes. */
  readonly process: () => string;
  /** Keeps the limits of this process alone, for the time that Redis is away. */
  readonly local: InProcessLimiter;
  readonly onUnavailable: 'local' | 'throw';
  readonly outage: Outage;
  /** How long an answer of Redis is waited for. */
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** A process that is not heard of for so long is taken for dead: its place in the queue is given up, its calls for answered. */
const LEASE_MS = 15_000;

/**
 * One lane as this process sees it: its calls wait here in order, and take turns at the state in Redis. Where timers and
 * promises belong to a request, each call has a lane of its own, and calls meet in Redis alone.
 */
export class RedisLane {
  readonly #name: string;
  readonly #limit: LaneLimit;
  readonly #restMs: number;
  readonly #scripts: LaneScripts;
  readonly #settings: RedisLaneSettings;
  readonly #line = new WaitingLine(() => this.#takeTurns());
  readonly #underWay = new Set<string>();
  /** How many calls the queue in Redis believes to wait, as far as is known. */
  #announced = 0;
  /** The last pause on its way to Redis: no turn may pass it. */
  #pausing: Promise<void> | undefined;
  #turning = false;
  #again = false;
  #nextFreeAt = Number.NEGATIVE_INFINITY;
  #disarm: Release | undefined;
  #stopBeat: Release | undefined;

  constructor(name: string, limit: LaneLimit & { readonly scripts: LaneScripts }, settings: RedisLaneSettings) {
    this.#name = name;
    this.#limit = { limit: limit.limit, windowMs: limit.windowMs };
    // Half a per mille and a millisecond on top: two clocks drift, and times are cut off to whole milliseconds.
    this.#restMs = Math.ceil(limit.windowMs * 1.0005) + 1;
    this.#scripts = limit.scripts;
    this.#settings = settings;
  }

  /** The state of the lane as far as this process knows it. */
  snapshot(): LaneSnapshot {
    const local = this.#settings.local.snapshot()[this.#name];
    const nextFreeMs = this.#line.size > 0 ? Math.max(1, this.#nextFreeAt - this.#settings.clock.now()) : 0;
    const { limit, windowMs } = this.#limit;
    return { inUse: local?.inUse ?? 0, queued: this.#line.size, nextFreeMs, limit, windowMs };
  }

  acquire(signal?: AbortSignal, onWait?: (wait: LaneWait) => void): Promise<Release> {
    const { local, outage, onUnavailable } = this.#settings;
    if (onUnavailable === 'local' && outage.isFresh()) return local.acquire(this.#name, signal, onWait);
    const slot = this.#line.join(signal, onWait);
    this.#takeTurns();
    return slot;
  }

  /** Adds up to a tenth (a second at most), as the limiter of one process does. */
  pause(ms: number): void {
    this.#pausing = this.#run('pause', [Math.ceil(ms + Math.random() * Math.min(ms / 10, 1000))]);
  }

  /** One turn at a time; what came up meanwhile gets the next. */
  async #takeTurns(): Promise<void> {
    this.#again = true;
    if (this.#turning) return;
    this.#turning = true;
    // All calls of one tick share a turn.
    await undefined;
    while (this.#again) {
      this.#again = false;
      this.#disarm?.();
      if (this.#line.size > 0 || this.#announced > 0) await this.#turn();
    }
    this.#turning = false;
  }

  async #turn(): Promise<void> {
    const want = this.#line.size;
    try {
      const reply = await this.#ask([this.#limit.limit, this.#restMs, this.#settings.process(), LEASE_MS, want]);
      this.#settings.outage.ended();
      const slots = slotsIn(reply);
      this.#announced = want - slots.length;
      this.#grant(slots);
      if (this.#line.size > 0) this.#wait(reply.map(Number));
    } catch (error) {
      this.#unavailable(error);
    }
  }

  #grant(slots: readonly string[]): void {
    const taken = slots.slice(0, this.#line.size);
    for (const slot of taken) {
      const waiter = this.#line.next();
      waiter?.resolve(this.#releaseOf(slot, waiter.signal));
    }
    this.#giveBack(slots.slice(taken.length));
  }

  #wait([waitMs = 0, ahead = 0, paused = 0]: readonly number[]): void {
    // Not longer than a third of the lease, so that the others know that this process lives.
    const nextMs = Math.min(Math.max(1, waitMs), LEASE_MS / 3);
    this.#disarm = this.#settings.clock.after(nextMs, () => this.#takeTurns());
    this.#nextFreeAt = this.#settings.clock.now() + waitMs;
    const queued = ahead + this.#line.size;
    this.#line.tell({ lane: this.#name, waitMs, queued, reason: paused ? 'pause' : 'limit' });
  }

  /**
   * Counted here as well: without Redis, and with a Redis that has lost its data, this process still knows what it has
   * used up and waits for that.
   */
  async #releaseOf(slot: string, signal: AbortSignal | undefined): Promise<Release> {
    this.#underWay.add(slot);
    this.#stopBeat ??= this.#beat();
    const counted: Release = await this.#settings.local.acquire(this.#name, signal).catch((reason: unknown) => {
      this.#release(slot, 'unused');
      throw reason;
    });
    return (outcome) => {
      counted(outcome);
      this.#release(slot, outcome);
    };
  }

  #release(slot: string, outcome: 'unused' | undefined): void {
    if (!this.#underWay.delete(slot)) return;
    if (this.#underWay.size === 0) {
      this.#stopBeat?.();
      this.#stopBeat = undefined;
    }
    if (outcome === 'unused') this.#giveBack([slot]);
    else this.#run('answered', [this.#restMs, slot]);
  }

  /** Keeps the slots of calls that take long. */
  #beat(): Release {
    return this.#settings.clock.after(LEASE_MS / 3, () => {
      this.#run('underWay', [LEASE_MS, ...this.#underWay]);
      this.#stopBeat = this.#beat();
    });
  }

  /** Asks for a turn. What comes after all patience is gone goes back. */
  #ask(values: readonly (string | number)[]): Promise<unknown[]> {
    const { clock, timeoutMs } = this.#settings;
    return new Promise((resolve, reject) => {
      let late = false;
      const cancel = clock.after(timeoutMs, () => {
        late = true;
        reject(new GenError(`Redis did not answer within ${timeoutMs} ms.`));
      });
      const answered = (reply: unknown) => {
        if (!Array.isArray(reply)) throw new GenError('Redis did not answer as the script does.');
        if (late) this.#withdraw(reply);
        resolve(reply);
      };
      const turn = async () => {
        await this.#pausing;
        return this.#scripts.turn(values);
      };
      turn().finally(cancel).then(answered).catch(reject);
    });
  }

  /** These calls went another way meanwhile: their slots are free, and what is left of them must not stand in the queue. */
  #withdraw(reply: readonly unknown[]): void {
    this.#giveBack(slotsIn(reply));
    this.#announced = 1;
    this.#takeTurns();
  }

  #giveBack(slots: readonly string[]): void {
    if (slots.length > 0) this.#run('unused', slots);
  }

  /** For what may fail without harm: the lease of a slot runs out by itself. */
  async #run(script: keyof LaneScripts, values: readonly (string | number)[]): Promise<void> {
    try {
      await this.#scripts[script](values);
    } catch (error) {
      this.#settings.outage.began(error);
    }
  }

  #unavailable(cause: unknown): void {
    const { local, onUnavailable, outage } = this.#settings;
    outage.began(cause);
    this.#announced = 0;
    for (let waiter = this.#line.next(); waiter; waiter = this.#line.next()) {
      if (onUnavailable === 'local') waiter.resolve(local.acquire(this.#name, waiter.signal, waiter.onWait));
      else
        waiter.reject(
          // A failure like that of a connection: a wait goes on, a call may be tried again.
          new ConnectionError('The shared limiter cannot reach Redis, and onUnavailable is "throw"', { cause }),
        );
    }
  }
}

function slotsIn(reply: readonly unknown[]): string[] {
  return reply.slice(3).map(String);
}
