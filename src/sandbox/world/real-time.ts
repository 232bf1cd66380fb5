// Real time, for what cannot happen in the sandbox's own: receivers of webhooks, and the end of work that is under way.
import { nextTurn } from '../../runtime/clock.js';

// Looked up when the module loads, so that a test's fake timers do not hold it.
/** Real milliseconds for differences only: they never run backwards. */
const monotonic = globalThis.performance?.now.bind(globalThis.performance) ?? Date.now;

const TIMER_BOUND_MS = 2 ** 31 - 1;

const timeout = globalThis.setTimeout;

export function realNow(): number {
  return Date.now();
}

/** Real milliseconds after which a Date that has not moved stands still. */
const STANDSTILL_MS = 2000;

/** Makes the function that says whether Date, looked at again and again, stands still while the timers go on. */
export function standstill(): () => boolean {
  let seen = { date: realNow(), real: monotonic() };
  return () => {
    const [date, real] = [realNow(), monotonic()];
    if (date !== seen.date) seen = { date, real };
    return real - seen.real > STANDSTILL_MS && globalThis.setTimeout === timeout;
  };
}

export function deadline(ms: number): AbortSignal {
  return AbortSignal.timeout(ms);
}

/**
 * Runs `fire` after `ms` real milliseconds, or at the runtime's longest delay. Gives the function that cancels it.
 * The timer keeps the process alive where it `holdsProcess`.
 */
export function afterReal(
  ms: number,
  fire: () => void,
  { holdsProcess }: { readonly holdsProcess: boolean },
): () => void {
  const timer = setTimeout(fire, Math.min(Math.max(0, Math.ceil(ms)), TIMER_BOUND_MS));
  if (!holdsProcess && typeof timer === 'object') timer.unref?.();
  return () => clearTimeout(timer);
}

export function realPause(ms: number): Promise<void> {
  return new Promise((resolve) => void afterReal(ms, resolve, { holdsProcess: true }));
}

/** Turns of the event loop without anything new, after which everybody is taken to be waiting. */
const QUIET_TURNS = 12;
/** Real milliseconds after which work that does not move is taken to be waiting, too. */
const GRACE_MS = { work: 2000, body: 250 } as const;

interface Mark {
  readonly kind: keyof typeof GRACE_MS;
  movedAt: number;
}

/** Something under way that goes on by itself, without the sandbox's time passing. */
export interface Underway {
  touch(): void;
  /** Ends it, or pauses it while it waits for time to pass. */
  end(): void;
  resume(): void;
}

/** Knows whether clients and receivers are busy, or only wait for time to pass. */
export class Activity {
  readonly #marks = new Set<Mark>();
  #changes = 0;

  /** A request or a delivery begins, or the `body` of an answer that is being read. */
  begin(kind: Mark['kind']): Underway {
    const mark = { kind, movedAt: 0 };
    const touch = () => {
      mark.movedAt = monotonic();
      this.touch();
    };
    const resume = () => {
      this.#marks.add(mark);
      touch();
    };
    const end = () => {
      if (this.#marks.delete(mark)) this.touch();
    };
    resume();
    return { touch, end, resume };
  }

  touch(): void {
    this.#changes += 1;
  }

  /** Whether nothing is under way, or what is under way has not moved for a while. */
  get isQuiet(): boolean {
    return !this.#moves('work') && !this.#moves('body');
  }

  /** Resolves when no request or delivery is under way and nothing new happens. */
  async settle(): Promise<void> {
    let seen = this.#changes;
    for (let quiet = 0; quiet < QUIET_TURNS; quiet++) {
      await nextTurn();
      if (this.#changes === seen && !this.#moves('work')) continue;
      seen = this.#changes;
      quiet = -1;
    }
  }

  /** Whether something of the kind has moved lately. What has not is forgotten. */
  #moves(kind: Mark['kind']): boolean {
    const now = monotonic();
    for (const mark of this.#marks) {
      if (mark.kind !== kind) continue;
      if (now - mark.movedAt <= GRACE_MS[kind]) return true;
      this.#marks.delete(mark);
    }
    return false;
  }
}
