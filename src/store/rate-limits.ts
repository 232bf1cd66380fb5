import { noEarlier } from '../rules/backoff.js';
import { RATE_LIMIT_NAMES, RATES, type Rate, type RateLimitName } from '../rules/limits.js';
import { finiteMilliseconds, MILLISECONDS, optional, optionsOf, refined, required } from '../rules/options.js';
import { type Clock, type Random, steady } from '../runtime/clock.js';
import { type DetachedRun, RateLimit, type RateLimitedCall, type Release } from './rate-limit.js';
import { memoryBackend, type RateLimitBackend, type SharedLimits } from './rate-limit-backend.js';

/** Rate limits by name. Each replaces the documented limit with that name. */
export type Limits = {
  readonly [Name in RateLimitName]?:
    | {
        /** Calls per window, or `Infinity` for no limit. */
        readonly limit: number;
        /** Window in milliseconds. Not needed if `limit` is `Infinity`. */
        readonly windowMs?: number | undefined;
      }
    | undefined;
};

const LIMIT = required(
  'a whole number of at least 1, or Infinity',
  (value) => value === Number.POSITIVE_INFINITY || (typeof value === 'number' && Number.isInteger(value) && value >= 1),
);
const RATE = refined(
  optionsOf({ limit: LIMIT, windowMs: finiteMilliseconds }, 'an object { limit, windowMs }'),
  ({ limit, windowMs }) => windowMs !== undefined || limit === Number.POSITIVE_INFINITY,
  { option: 'windowMs', what: MILLISECONDS },
);

export const LIMITS = optional(
  optionsOf(Object.fromEntries(RATE_LIMIT_NAMES.map((name) => [name, optional(RATE)])), 'an object'),
);

export interface RateLimitsOptions {
  readonly limits: Limits | undefined;
  /** Shares the limits with other processes. @default the limits apply to this process only */
  readonly shared: SharedLimits | undefined;
  readonly clock: Clock;
  readonly random: Random;
  /** Rate-limit states of this process, by name. Clients share them even if their limits differ. */
  readonly backends: Map<string, RateLimitBackend>;
}

/** An account's rate limits, shared by clients with the same settings. */
export class RateLimits {
  readonly #options: RateLimitsOptions;
  readonly #limits: ReadonlyMap<string, Rate>;
  readonly #rateLimits = new Map<string, RateLimit>();
  readonly #create: (name: string, limit: Rate) => RateLimit;

  constructor(options: RateLimitsOptions) {
    const { limits, shared, random } = options;
    const clock = steady(options.clock);
    this.#options = { ...options, clock };
    // Calls of a client without a limit still count toward the limits of this process's other clients. In a store, counting
    // them would cost writes.
    const rateOf = (name: RateLimitName): Rate => {
      const { limit, windowMs = shared ? 0 : RATES[name].windowMs } = limits?.[name] ?? RATES[name];
      return { limit, windowMs };
    };
    this.#limits = new Map(RATE_LIMIT_NAMES.map((name) => [name, rateOf(name)]));
    const backends = shared ? new Map<string, RateLimitBackend>() : options.backends;
    this.#create = (name, limit) => {
      const backend = backends.get(name) ?? shared?.open(name) ?? memoryBackend(clock, RATES[name as RateLimitName]);
      backends.set(name, backend);
      return new RateLimit({ name, limit, backend, clock, random, outage: shared?.outage });
    };
  }

  /** Waits for a slot. Resolves with the function that releases it. */
  acquire(name: string, call: RateLimitedCall): Promise<Release> {
    return this.#get(name).acquire(call);
  }

  /**
   * Resolves with a slot if one is free, otherwise with the milliseconds until one may be. Until then, a `run` retains
   * its position.
   */
  tryAcquire(name: string, call: Pick<RateLimitedCall, 'warn'>, run?: DetachedRun): Promise<Release | number> {
    return this.#get(name).tryAcquire(call, run);
  }

  /**
   * Pauses the rate limit. Adds up to 10% (at most one second) at random, so that processes don't continue at the same
   * moment.
   */
  pause(name: string, ms: number): void {
    if (ms > 0 && ms < Number.POSITIVE_INFINITY) this.#get(name).pause(noEarlier(ms, this.#options.random.next()));
  }

  /** Returns the rate limit and the wait for its next slot, for the poll scheduler. */
  peek(name: string): Rate & { readonly nextFreeMs: number } {
    const { waitMs } = this.#get(name).peek();
    return { ...this.#limitOf(name), nextFreeMs: waitMs };
  }

  /** If true, a slot is in use, a call is queued, or a pause applies. */
  get busy(): boolean {
    return [...this.#limits.keys()].some((name) => {
      const { limit, free, queued, pausedMs } = this.#stateOf(name);
      return free < limit || queued + pausedMs > 0;
    });
  }

  /** Returns the current state of each rate limit. */
  snapshot(): Record<
    string,
    {
      /** Calls per window, or `Infinity` if no number is documented or set. */
      readonly limit: number;
      /** Window in milliseconds, or 0 if there is no limit. */
      readonly windowMs: number;
      /** Free slots, or 0 during a pause. */
      readonly free: number;
      /** Queued calls of this process. */
      readonly queued: number;
      /** Milliseconds left of the pause after a 429, or 0 without one. */
      readonly pausedMs: number;
    }
  > {
    return Object.fromEntries([...this.#limits.keys()].map((name) => [name, this.#stateOf(name)]));
  }

  #stateOf(name: string): ReturnType<RateLimits['snapshot']>[string] {
    const rate = this.#limitOf(name);
    const { limit } = rate;
    const windowMs = limit === Number.POSITIVE_INFINITY ? 0 : rate.windowMs;
    const rateLimit = this.#get(name);
    const { free, pausedMs } = rateLimit.peek();
    return { limit, windowMs, free, queued: rateLimit.queued, pausedMs };
  }

  #limitOf(name: string): Rate {
    return this.#limits.get(name) ?? { limit: Number.POSITIVE_INFINITY, windowMs: 0 };
  }

  /** On Workers, promises belong to a request, so each call creates its own object on the same state. */
  #get(name: string): RateLimit {
    const rateLimit = this.#rateLimits.get(name) ?? this.#create(name, this.#limitOf(name));
    if (!this.#options.clock.perRequest) this.#rateLimits.set(name, rateLimit);
    return rateLimit;
  }
}
