import { noEarlier } from '../rules/backoff.js';
import { DOCUMENTED_LIMITS, type LaneLimit } from '../rules/limits.js';
import { type Clock, type Random, steady } from '../runtime/clock.js';
import { InProcessLimiter, type LanePool } from './in-process-limiter.js';
import type { AnyLimiter, LaneSnapshot, LaneWait, Release } from './rate-limiter.js';
import { SharedLane } from './shared-lane.js';
import type { Store } from './store.js';
import { createOutage } from './stored-lane.js';

/** What a shared limiter is made with. */
export interface SharedLimiterOptions {
  readonly store: Store;
  /** Names the account in the store. */
  readonly account: string;
  /** Limits by lane, in place of the documented ones of the same lane. */
  readonly limits: Readonly<Record<string, LaneLimit>> | undefined;
  readonly onUnavailable: 'local' | 'throw';
  readonly clock: Clock;
  readonly random: Random;
  /** The account's lanes in this process. */
  readonly pool: LanePool;
}

/** The limits of an account that many processes share. */
export class SharedLimiter {
  readonly #local: InProcessLimiter;
  readonly #laneOf: (name: string) => SharedLane | undefined;
  readonly #lanes: ReadonlyMap<string, SharedLane>;
  readonly #random: Random;

  constructor({ store, account, limits, onUnavailable, clock, random, pool }: SharedLimiterOptions) {
    const time = steady(clock);
    const local = new InProcessLimiter({ limits }, clock, { random, pool });
    const settings = { store, local, onUnavailable, outage: createOutage(time), clock: time, random };
    const limited = Object.entries({ ...DOCUMENTED_LIMITS, ...limits }).filter(
      ([, { limit }]) => limit < Number.POSITIVE_INFINITY,
    );
    const open = (name: string, limit: LaneLimit, member: string) =>
      new SharedLane({ name, limit, member, group: `${account}/limits/${name}` }, settings);
    // Made with the first call: a Worker draws no random numbers while its module loads.
    const lanes = new Map<string, SharedLane>();
    const limitOf = new Map(limited);
    this.#laneOf = (name) => {
      const limit = limitOf.get(name);
      if (limit === undefined) return undefined;
      const known = lanes.get(name);
      if (known) return known;
      const lane = open(name, limit, random.uuid());
      // Where promises belong to requests, each call is a member of its own.
      if (!clock.perRequest) lanes.set(name, lane);
      return lane;
    };
    this.#lanes = lanes;
    this.#local = local;
    this.#random = random;
  }

  /** The limiter for the calls of one client. `warn` writes to the client's logger. */
  for(warn: (message: string) => void): AnyLimiter {
    const local = this.#local;
    return {
      acquire: (lane: string, signal?: AbortSignal, onWait?: (wait: LaneWait) => void): Promise<Release> =>
        // A lane without a limit has nothing to share.
        this.#laneOf(lane)?.acquire({ signal, onWait, warn }) ?? local.acquire(lane, signal, onWait),
      tryShared: async (lane) => this.#laneOf(lane)?.tryAcquire(warn) ?? local.tryAcquire(lane),
      pause: (lane, ms) => this.#pause(lane, ms),
      snapshot: () => this.#snapshot(),
    };
  }

  #pause(lane: string, ms: number): void {
    if (!(ms > 0 && ms < Number.POSITIVE_INFINITY)) return;
    this.#local.pause(lane, ms);
    this.#laneOf(lane)?.pause(noEarlier(ms, this.#random.next()));
  }

  #snapshot(): Record<string, LaneSnapshot> {
    const shared = [...this.#lanes].map(([name, lane]) => [name, lane.snapshot()]);
    return { ...this.#local.snapshot(), ...Object.fromEntries(shared) };
  }
}
