import * as z from 'zod/mini';
import { noEarlier } from '../rules/backoff.js';
import { LANE_LIMITS, LANES, type Lane, type LaneLimit } from '../rules/limits.js';
import { type Clock, type Random, steady } from '../runtime/clock.js';
import { type Cell, createOutage, memoryCell, storedCell } from './cell.js';
import { RateLimit, type RateLimitedCall, type Release } from './rate-limit.js';
import type { Store } from './store.js';

/** Limits by lane, in place of the documented ones. */
export type Limits = {
  readonly [Name in Lane]?:
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
const LANE_LIMIT = z
  .strictObject({ limit: LIMIT, windowMs: z.optional(WINDOW_MS) }, 'an object { limit, windowMs }')
  .check(
    z.refine(({ limit, windowMs }) => windowMs !== undefined || limit === Number.POSITIVE_INFINITY, {
      error: A_WINDOW,
      path: ['windowMs'],
    }),
  );

/** The option `limits`. */
export const LIMITS = z.optional(
  z.strictObject(Object.fromEntries(LANES.map((lane) => [lane, z.optional(LANE_LIMIT)])), 'an object'),
);

/** What rate limits are made with. */
export interface RateLimitsOptions {
  readonly limits: Limits | undefined;
  /** Where they are shared with other processes, and under which name. @default they are kept in this process */
  readonly shared: { readonly store: Store; readonly account: string } | undefined;
  readonly clock: Clock;
  readonly random: Random;
  /** The states in this process, by name and limit: what agrees on a limit counts together. */
  readonly cells: Map<string, Cell>;
}

/** The rate limits of an account, with the numbers of some of its clients. */
export class RateLimits {
  readonly #options: RateLimitsOptions;
  readonly #limits: ReadonlyMap<string, LaneLimit>;
  readonly #kept = new Map<string, RateLimit>();
  readonly #make: (name: string, limit: LaneLimit) => RateLimit;

  constructor(options: RateLimitsOptions) {
    const { limits, shared, random } = options;
    const clock = steady(options.clock);
    const given = Object.entries(limits ?? {}).flatMap(([name, limit]) =>
      limit === undefined ? [] : [[name, { limit: limit.limit, windowMs: limit.windowMs ?? 0 }] as const],
    );
    this.#options = { ...options, clock };
    this.#limits = new Map([...Object.entries(LANE_LIMITS), ...given]);
    const outage = shared && createOutage(clock);
    const cells = shared ? new Map<string, Cell>() : options.cells;
    const open = (group: string) =>
      shared && outage ? storedCell({ store: shared.store, group, clock, random }, outage) : memoryCell(clock);
    this.#make = (name, limit) => {
      const id = shared ? `${shared.account}/limits/${name}` : `${name} ${limit.limit} ${limit.windowMs}`;
      const cell = cells.get(id) ?? open(id);
      cells.set(id, cell);
      return new RateLimit({ name, limit, cell, clock, random, outage });
    };
  }

  /** Waits for a slot. Resolves with the function that releases it. */
  take(lane: string, call: RateLimitedCall): Promise<Release> {
    return this.#of(lane).take(call);
  }

  /** A slot that is free now, or the milliseconds until one may be. A `run` keeps its place in the line for so long. */
  try(lane: string, call: Pick<RateLimitedCall, 'warn'>, run?: string): Promise<Release | number> {
    return this.#of(lane).try(call, run);
  }

  /** Adds up to a tenth (a second at most) to `ms`, so that processes which were refused together do not return together. */
  pause(lane: string, ms: number): void {
    if (ms > 0 && ms < Number.POSITIVE_INFINITY) this.#of(lane).pause(noEarlier(ms, this.#options.random.next()));
  }

  /** How a limit stands for the next read: for the scheduler of the waits. */
  look(lane: string): LaneLimit & { readonly nextFreeMs: number } {
    const { waitMs } = this.#of(lane).look();
    return { ...this.#limitOf(lane), nextFreeMs: waitMs };
  }

  /** Whether a call counts, waits, or is held up by a pause. */
  get busy(): boolean {
    return [...this.#limits.keys()].some((lane) => {
      const { limit, free, queued, pausedMs } = this.#show(lane);
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
    return Object.fromEntries([...this.#limits.keys()].map((lane) => [lane, this.#show(lane)]));
  }

  #show(lane: string): ReturnType<RateLimits['snapshot']>[string] {
    const { limit, windowMs } = this.#limitOf(lane);
    const kept = this.#of(lane);
    const { free, pausedMs } = kept.look();
    return { limit, windowMs, free, queued: kept.queued, pausedMs };
  }

  #limitOf(lane: string): LaneLimit {
    return this.#limits.get(lane) ?? { limit: Number.POSITIVE_INFINITY, windowMs: 0 };
  }

  /** Where promises belong to requests, each call has one of its own, on the same state. */
  #of(lane: string): RateLimit {
    const kept = this.#kept.get(lane) ?? this.#make(lane, this.#limitOf(lane));
    if (!this.#options.clock.perRequest) this.#kept.set(lane, kept);
    return kept;
  }
}
