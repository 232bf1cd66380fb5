// The only reader of time, maker of timers and source of chance in the client. A test holds its own Clock, and a simulation
// seeds its chance.

/** Where the client gets its time from. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /**
   * Runs `fire` once after `ms` milliseconds, never early; gives the function that calls it off. A timer that `isIdle` does
   * not keep the process alive.
   */
  after(ms: number, fire: () => void, options?: { readonly isIdle?: boolean }): () => void;
  /**
   * Milliseconds that have really passed, from any start: a clock that is set forward or back does not change them.
   * @default as `now`
   */
  elapsed?(): number;
  /**
   * Whether timers and promises belong to the request that made them and end with it, as on Cloudflare Workers. A call
   * must then not wait for anything that another call does.
   */
  readonly perRequest?: boolean;
  /** Where those who take their time here take their chance. A simulation's clock has one with a seed. @default the runtime's */
  readonly random?: Random;
}

/** The name under which a client takes, and tells, the clock that it waits by: a sandbox passes its own. */
export const CLOCK: unique symbol = Symbol.for('gen-client.clock');

/** The clock of a client or a store that has one, so that what is done for it follows a sandbox's time; else the runtime's. */
export function clockOf(client: object): Clock {
  return (client as { readonly [CLOCK]?: Clock })[CLOCK] ?? systemClock;
}

/** Where those who take their time from a clock take their chance. */
export function randomOf(clock: Clock): Random {
  return clock.random ?? systemRandom;
}

/** Longest wait in one timer: one whose delay does not fit into 31 bits would fire at once. */
const LONGEST_TIMER_MS = 2_147_483_646;

/** Runs `fire` once after less than {@link LONGEST_TIMER_MS}. Gives the function that calls it off. */
export function shortTimer(ms: number, fire: () => void, isIdle = false): () => void {
  // A timer may fire up to 0.8 ms early, so round up and add one.
  const timer = setTimeout(fire, Math.ceil(ms) + 1);
  if (isIdle && typeof timer === 'object') timer.unref?.();
  return () => clearTimeout(timer);
}

/** The runtime's own clock. Timers are looked up at each call, so a test's fake timers are seen. */
export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  get perRequest() {
    return globalThis.navigator?.userAgent === 'Cloudflare-Workers';
  },
  after(ms, fire, options) {
    if (ms <= LONGEST_TIMER_MS) return shortTimer(ms, fire, options?.isIdle);
    const goOn = () => {
      cancel = systemClock.after(ms - LONGEST_TIMER_MS, fire);
    };
    let cancel = systemClock.after(LONGEST_TIMER_MS, goOn);
    return () => cancel();
  },
};

export interface SteadyClock extends Clock {
  /** The clock underneath: its time is the wall's, and it is the same object for all who were given it. */
  readonly wall: Clock;
}

/**
 * The same clock, made safe against a machine whose time is set: `now` counts what has really passed where the clock knows
 * it, never runs backwards, and when a timer fires its time has passed. Good for differences only.
 */
export function steady(clock: Clock | SteadyClock): SteadyClock {
  if ('wall' in clock) return clock;
  let last = Number.NEGATIVE_INFINITY;
  let shift = 0;
  const time = clock.elapsed ?? clock.now;
  const reach = (floor: number) => {
    shift += Math.max(0, floor - time.call(clock) - shift);
    last = floor;
  };
  const now = () => {
    const passed = time.call(clock) + shift;
    if (passed < last) reach(last);
    else last = passed;
    return last;
  };
  return {
    wall: clock,
    now,
    perRequest: clock.perRequest ?? false,
    ...(clock.random && { random: clock.random }),
    after(ms, fire, options) {
      const due = now() + ms;
      const reached = () => {
        if (now() < due) reach(due);
        fire();
      };
      return clock.after(ms, reached, options);
    },
  };
}

export function wallOf(clock: Clock | SteadyClock): Clock {
  return 'wall' in clock ? clock.wall : clock;
}

/** Where chance comes from. */
export interface Random {
  /** A number from 0 up to, and without, 1. */
  next(): number;
  /** A random id in the form of a UUID. */
  uuid(): string;
}

/** Bytes that nobody can guess, for a cipher: not chance that a simulation may choose. */
export const secretBytes = (size: number): Uint8Array<ArrayBuffer> => crypto.getRandomValues(new Uint8Array(size));

export const systemRandom: Random = {
  next: () => Math.random(),
  uuid: () => crypto.randomUUID(),
};

// Looked up when the module loads, so that a test's fake timers do not hold it.
const immediate: typeof setImmediate | undefined = globalThis.setImmediate;

/** Resolves in a later turn of the event loop, when all that is due now has run. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (immediate !== undefined) return void immediate(resolve);
    // The Edge runtime has neither.
    if (typeof MessageChannel === 'undefined') return void setTimeout(resolve, 0);
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
