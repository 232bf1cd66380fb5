// The client's only source of time, timers, and randomness. Tests control their Clock, and simulations seed its
// randomness.

/** The client's source of time. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /**
   * Runs `fire` once after `ms` milliseconds, never early. Returns a function that cancels the timer. If `isIdle` is
   * true, the timer doesn't keep the process alive.
   */
  after(ms: number, fire: () => void, options?: { readonly isIdle?: boolean }): () => void;
  /** Monotonic milliseconds from any start, unaffected by changes of the system time. @default `now` */
  elapsed?(): number;
  /**
   * If true, timers and promises end with the request that created them, as on Cloudflare Workers. A call must then not
   * wait for another call's work.
   */
  readonly perRequest?: boolean;
  /** Source of randomness. A simulation's clock has a seeded one. @default the runtime's */
  readonly random?: Random;
}

/** Option and property for a client's clock. A sandbox passes its own. */
export const CLOCK: unique symbol = Symbol.for('gen-client.clock');

/** Returns the clock of a client or a store: a sandbox's or, by default, the runtime's. */
export function clockOf(client: object): Clock {
  return (client as { readonly [CLOCK]?: Clock })[CLOCK] ?? systemClock;
}

/** Returns a clock's source of randomness. */
export function randomOf(clock: Clock): Random {
  return clock.random ?? systemRandom;
}

/** Maximum delay of a timer. A timer with a delay over 31 bits would fire immediately. */
const MAX_TIMER_MS = 2_147_483_646;

/** Runs `fire` once after at most {@link MAX_TIMER_MS}. Returns a function that cancels it. */
export function shortTimer(ms: number, fire: () => void, isIdle = false): () => void {
  // A timer may fire up to 0.8 ms early, so round up and add one.
  const timer = setTimeout(fire, Math.ceil(ms) + 1);
  if (isIdle && typeof timer === 'object') timer.unref?.();
  return () => clearTimeout(timer);
}

/** The runtime's clock. Looks up timers on each call, so fake timers work. */
export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  get perRequest() {
    return globalThis.navigator?.userAgent === 'Cloudflare-Workers';
  },
  after(ms, fire, options) {
    if (ms <= MAX_TIMER_MS) return shortTimer(ms, fire, options?.isIdle);
    const continueWaiting = () => {
      cancel = systemClock.after(ms - MAX_TIMER_MS, fire, options);
    };
    let cancel = systemClock.after(MAX_TIMER_MS, continueWaiting, options);
    return () => cancel();
  },
};

export interface SteadyClock extends Clock {
  /** The underlying clock, with wall time. All users of one clock share this object. */
  readonly wall: Clock;
}

/**
 * Returns a clock that changes of the system time don't affect. `now` is monotonic, and has reached a timer's due time
 * when the timer fires. Use it only for differences.
 */
export function steady(clock: Clock | SteadyClock): SteadyClock {
  if ('wall' in clock) return clock;
  let lastMs = Number.NEGATIVE_INFINITY;
  let shiftMs = 0;
  const time = clock.elapsed ?? clock.now;
  const advanceTo = (minMs: number) => {
    shiftMs += Math.max(0, minMs - time.call(clock) - shiftMs);
    lastMs = minMs;
  };
  const now = () => {
    const elapsedMs = time.call(clock) + shiftMs;
    if (elapsedMs < lastMs) advanceTo(lastMs);
    else lastMs = elapsedMs;
    return lastMs;
  };
  return {
    wall: clock,
    now,
    perRequest: clock.perRequest ?? false,
    ...(clock.random && { random: clock.random }),
    after(ms, fire, options) {
      const dueMs = now() + ms;
      const onDue = () => {
        if (now() < dueMs) advanceTo(dueMs);
        fire();
      };
      return clock.after(ms, onDue, options);
    },
  };
}

export function wallOf(clock: Clock | SteadyClock): Clock {
  return 'wall' in clock ? clock.wall : clock;
}

/** A source of randomness. */
export interface Random {
  /** A number in the range [0, 1). */
  next(): number;
  /** A random UUID. */
  uuid(): string;
}

/** Returns unpredictable bytes for a cipher, which a simulation must not seed. */
export const secretBytes = (size: number): Uint8Array<ArrayBuffer> => crypto.getRandomValues(new Uint8Array(size));

export const systemRandom: Random = {
  next: () => Math.random(),
  uuid: () => crypto.randomUUID(),
};

// Captured when the module loads, so that fake timers don't affect it.
const originalSetImmediate: typeof setImmediate | undefined = globalThis.setImmediate;

/** Resolves in a later turn of the event loop, after everything that is due now. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    try {
      if (originalSetImmediate !== undefined) return void originalSetImmediate(resolve);
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        port1.close();
        resolve();
      };
      port2.postMessage(null);
    } catch {
      // The Edge runtime has neither. In Next.js, both exist there and throw.
      setTimeout(resolve, 0);
    }
  });
}
