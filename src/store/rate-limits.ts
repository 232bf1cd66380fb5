import * as z from 'zod/mini';
import { noEarlier } from '../rules/backoff.js';
import { RATE_LIMIT_NAMES, RATES, type Rate, type RateLimitName } from '../rules/limits.js';
import { type Clock, type Random, steady } from '../runtime/clock.js';
import { type DetachedRun, RateLimit, type RateLimitedCall, type Release } from './rate-limit.js';
import { createOutage, memoryBackend, type RateLimitBackend, storeBackend } from './rate-limit-backend.js';
import type { Store } from './store.js';

/** Limits by name, in place of the documented ones. */
export type Limits = {
  readonly [Name in RateLimitName]?:
    | {
        /** Calls per window; `Infinity` for no limit. */
        readonly limit: number;
        /** The window in milliseconds. A limit of `Infinity` needs none. */
        readonly windowMs?: number | undefined;
      }
    | undefined;
};

const LIMIT = z.custom<number>(
  (value) => value === Number.POSITIVE_INFINITY || (typeof value === 'number' && Number.isInteger(value) && value >= 1),
  'a whole number of at least 1, or Infinity',
);
const A_WINDOW = 'a number of milliseconds above 0';
const WINDOW_MS = z.custom<number>(
  (value) => typeof value === 'number' && value > 0 && value < Number.POSITIVE_INFINITY,
  A_WINDOW,
);
const RATE = z.strictObject({ limit: LIMIT, windowMs: z.optional(WINDOW_MS) }, 'an object { limit, windowMs }').check(
  z.refine(({ limit, windowMs }) => windowMs !== undefined || limit === Number.POSITIVE_INFINITY, {
    error: A_WINDOW,
    path: ['windowMs'],
  }),
);

export const LIMITS = z.optional(
  z.strictObject(Object.fromEntries(RATE_LIMIT_NAMES.map((name) => [name, z.optional(RATE)])), 'an object'),
);

export interface RateLimitsOptions {
  readonly limits: Limits | undefined;
  /** Where they are shared with other processes, and under which name. @default they are kept in this process */
  readonly shared: { readonly store: Store; readonly account: string } | undefined;
  readonly clock: Clock;
  readonly random: Random;
  /** The states in this process by name: clients count together whatever their numbers are. */
  readonly backends: Map<string, RateLimitBackend>;
}

/** The rate limits of an account, with the numbers of some of its clients. */
export class RateLimits {
  readonly #options: RateLimitsOptions;
  readonly #limits: ReadonlyMap<string, Rate>;
  readonly #kept = new Map<string, RateLimit>();
  readonly #make: (name: string, limit: Rate) => RateLimit;

  constructor(options: RateLimitsOptions) {
    const { limits, shared, random } = options;
    const clock = steady(options.clock);
    const given = Object.entries(limits ?? {}).flatMap(([name, limit]) =>
      limit === undefined ? [] : [[name, { limit: limit.limit, windowMs: limit.windowMs ?? 0 }] as const],
    );
    this.#options = { ...options, clock };
    this.#limits = new Map([...Object.entries(RATES), ...given]);
    const outage = shared && createOutage(clock);
    const backends = shared ? new Map<string, RateLimitBackend>() : options.backends;
    const open = (name: string) => {
      if (!shared || !outage) return memoryBackend(clock);
      const { store, account } = shared;
      return storeBackend({ store, group: `${account}/limits/${name}`, clock, random }, outage);
    };
    this.#make = (name, limit) => {
      const backend = backends.get(name) ?? open(name);
      backends.set(name, backend);
      return new RateLimit({ name, limit, backend, clock, random, outage });
    };
  }

  /** Waits for a slot. Resolves with the function that releases it. */
  acquire(name: string, call: RateLimitedCall): Promise<Release> {
    return this.#of(name).acquire(call);
  }

  /** A slot that is free now, or the milliseconds until one may be. A `run` retains its position for so long. */
  tryAcquire(name: string, call: Pick<RateLimitedCall, 'warn'>, run?: DetachedRun): Promise<Release | number> {
    return this.#of(name).tryAcquire(call, run);
  }

  /** Adds up to a tenth (a second at most) to `ms`, so that processes which were refused together do not return together. */
  pause(name: string, ms: number): void {
    if (ms > 0 && ms < Number.POSITIVE_INFINITY) this.#of(name).pause(noEarlier(ms, this.#options.random.next()));
  }

  /** How a limit stands for the next read: for the scheduler of the waits. */
  look(name: string): Rate & { readonly nextFreeMs: number } {
    const { waitMs } = this.#of(name).look();
    return { ...this.#limitOf(name), nextFreeMs: waitMs };
  }

  /** Whether a call counts, waits, or is held up by a pause. */
  get busy(): boolean {
    return [...this.#limits.keys()].some((name) => {
      const { limit, free, queued, pausedMs } = this.#show(name);
      return free < limit || queued + pausedMs > 0;
    });
  }

  /** How every limit stands. */
  snapshot(): Record<
    string,
    {
      /** Calls that it takes in each window; `Infinity` where the service documents no number. */
      readonly limit: number;
      /** The window in milliseconds; 0 where there is no limit. */
      readonly windowMs: number;
      /** Calls that may be sent now; 0 while it is paused. */
      readonly free: number;
      /** Calls of this process that wait. */
      readonly queued: number;
      /** Milliseconds for which a 429 of the service still pauses it; 0 where it does not. */
      readonly pausedMs: number;
    }
  > {
    return Object.fromEntries([...this.#limits.keys()].map((name) => [name, this.#show(name)]));
  }

  #show(name: string): ReturnType<RateLimits['snapshot']>[string] {
    const { limit, windowMs } = this.#limitOf(name);
    const kept = this.#of(name);
    const { free, pausedMs } = kept.look();
    return { limit, windowMs, free, queued: kept.queued, pausedMs };
  }

  #limitOf(name: string): Rate {
    return this.#limits.get(name) ?? { limit: Number.POSITIVE_INFINITY, windowMs: 0 };
  }

  /** Where promises belong to requests, each call has one of its own, on the same state. */
  #of(name: string): RateLimit {
    const kept = this.#kept.get(name) ?? this.#make(name, this.#limitOf(name));
    if (!this.#options.clock.perRequest) this.#kept.set(name, kept);
    return kept;
  }
}
