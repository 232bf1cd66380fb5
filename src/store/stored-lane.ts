import { emptyLane, type LaneReply, type LaneState, type LaneTurn, takeTurn } from '../rules/lane.js';
import { decodeLane, encodeLane } from '../rules/lane-record.js';
import type { LaneLimit } from '../rules/limits.js';
import { reasonOf } from '../runtime/callbacks.js';
import type { Clock } from '../runtime/clock.js';
import { type Store, type StoredValues, type StoreGroup, setupError, updateGroup } from './store.js';

/** The one key of a lane's group. */
const KEY = 'lane';
/** While calls wait, a process may ask the store so often in a second, and as often again for each slot. */
const PER_S = 2;
const MOST_SAVED = 4;

/** A turn that was taken at a lane in a store. */
export interface StoredTurn {
  readonly turn: LaneTurn;
  readonly reply: LaneReply;
  /** The lane after the turn. */
  readonly lane: LaneState;
  /** The store's time of the turn. */
  readonly nowMs: number;
}

/** The store's time of a turn, and when the process asked for it: the former is not before the latter. */
export interface TurnTime {
  readonly nowMs: number;
  readonly askedMs: number;
}

/** A lane whose state is in a store. It counts how often the process asks the store, and says when it may ask again. */
export class StoredLane {
  readonly #where: StoreGroup;
  readonly #limit: LaneLimit;
  #asksLeft = MOST_SAVED;
  #countedMs: number;

  constructor(where: StoreGroup, limit: LaneLimit) {
    this.#where = where;
    this.#limit = limit;
    this.#countedMs = where.clock.now();
  }

  /** Takes a turn. `turnAt` makes it for the store's time, and runs again after a lost swap. */
  async take(turnAt: (time: TurnTime) => LaneTurn): Promise<StoredTurn> {
    const { store, group, clock } = this.#where;
    let askedMs = clock.now();
    const counting: Store = {
      timeoutMs: store.timeoutMs,
      read: (...asked) => {
        this.#mayAsk(-1);
        askedMs = clock.now();
        return store.read(...asked);
      },
      write: (...asked) => {
        this.#mayAsk(-1);
        return store.write(...asked);
      },
    };
    const taken = await updateGroup({ ...this.#where, store: counting }, [KEY], ({ values, nowMs }: StoredValues) => {
      const stored = values[KEY];
      const lane = stored === undefined ? emptyLane() : decodeLane(stored);
      if (lane === undefined) {
        throw setupError(`The store has something else under "${group}". Give gen-client a prefix of its own.`);
      }
      const turn = turnAt({ nowMs, askedMs });
      const reply = takeTurn(lane, turn, this.#limit, nowMs);
      const state = encodeLane(lane, this.#limit);
      const isWritten = reply.isChanged && (state !== null || stored !== undefined);
      return { changes: isWritten ? { [KEY]: state } : {}, result: { turn, reply, lane, nowMs } };
    });
    this.#mayAsk((taken.reply.granted + taken.reply.taken) * PER_S);
    return taken;
  }

  /** Milliseconds until a process whose calls wait may ask the store again. */
  waitMs(): number {
    this.#mayAsk(0);
    return Math.max(0, Math.ceil(((1 - this.#asksLeft) * 1000) / PER_S));
  }

  #mayAsk(more: number): void {
    const nowMs = this.#where.clock.now();
    this.#asksLeft = Math.min(MOST_SAVED, this.#asksLeft + ((nowMs - this.#countedMs) * PER_S) / 1000) + more;
    this.#countedMs = nowMs;
  }
}

/** How long a store that failed is not asked again. */
const AWAY_MS = 5_000;

type TellOutage = (message: string) => void;

/** Whether the store that a limiter uses is unavailable, as all lanes of the limiter know it. */
export interface Outage {
  /** The store failed, and is not asked before this time. */
  readonly untilMs: number;
  /** The store failed. */
  began(error: unknown): void;
  /** The store answered. */
  ended(): void;
  /** Warns a client whose call keeps its limits without the store: once for each outage. */
  warn(warn: TellOutage | undefined): void;
}

/** Makes the one record of a limiter. */
export function createOutage(clock: Clock): Outage {
  let untilMs = Number.NEGATIVE_INFINITY;
  let reason = '';
  let warned = new WeakSet<TellOutage>();
  return {
    get untilMs() {
      return untilMs;
    },
    began(error) {
      untilMs = clock.now() + AWAY_MS;
      reason = reasonOf(error);
    },
    ended() {
      untilMs = Number.NEGATIVE_INFINITY;
      warned = new WeakSet();
    },
    warn(warn) {
      if (warn === undefined || warned.has(warn)) return;
      warned.add(warn);
      warn(`The store is unavailable (${reason}). Until it answers, this process keeps the limits by itself.`);
    },
  };
}
