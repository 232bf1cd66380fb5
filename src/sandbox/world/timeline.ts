import { type Clock, nextTurn, systemClock } from '../../runtime/clock.js';
import { sleep } from '../../runtime/deadline.js';
import type { Settings } from './options.js';
import type { DueEvent, State } from './state.js';

/** How many times as fast the waits of the sandbox's own clients pass. */
const SKIP_SPEED = 1000;
/** Real milliseconds until a wait that could not be skipped yet is looked at again. */
const SKIP_AGAIN_MS = 2;
/** The longest real wait of one timer. */
const LONGEST_TIMER_MS = 2 ** 31 - 2;

interface TimelineOptions {
  readonly settings: Pick<Settings, 'isManual' | 'speed' | 'skipsWaits'>;
  readonly startTime: number | undefined;
  readonly state: State;
  readonly activity: Activity;
  /** Does what is due. `event.at` is the moment it counts for. */
  readonly run: (event: DueEvent) => void;
}

interface Timer {
  readonly at: number;
  readonly fire: () => void;
}

/**
 * The sandbox's time, and what is due in it: events of the service, which are part of the state, and timers of those who
 * take their time from here. Both lists are in the order of time.
 */
export class Timeline {
  readonly #options: TimelineOptions;
  readonly #timers: Timer[] = [];
  #base: number;
  readonly #realBase = systemClock.now();
  #armed: { readonly at: number; readonly isIdle: boolean; readonly cancel: () => void } | undefined;

  /** The sandbox's time as a client takes it. A pending timer holds the process on the real clock only. */
  readonly clock: Clock = { now: () => this.now(), after: (ms, fire) => this.#after(ms, fire) };

  constructor(options: TimelineOptions) {
    this.#options = options;
    this.#base = options.startTime ?? this.#realBase;
    this.#arm();
  }

  now(): number {
    const { isManual, speed } = this.#options.settings;
    return isManual ? this.#base : Math.floor(this.#base + (systemClock.now() - this.#realBase) * speed);
  }

  /** Has an event happen at a moment. */
  schedule(event: DueEvent): void {
    insert(this.#options.state.events, event);
    this.#arm();
  }

  catchUp(): void {
    const { events } = this.#options.state;
    for (let next = events[0]; next !== undefined && next.at <= this.now(); next = events[0]) this.#runNext();
    this.#arm();
  }

  /** Moves the clock on to what is due next and runs it. Gives false where nothing is due. */
  step(): boolean {
    const at = this.#nextAt();
    if (at === undefined) return false;
    this.#reach(at);
    this.#runNext();
    return true;
  }

  /** Moves the clock on and runs what is due, one by one and in order. `settled` is awaited after each. */
  async advance(ms: number, settled: () => Promise<void>): Promise<void> {
    const target = this.now() + ms;
    await settled();
    for (let at = this.#nextAt(); at !== undefined && at <= target; at = this.#nextAt()) {
      this.step();
      await settled();
    }
    this.#reach(target);
    this.#arm();
  }

  /** Waits on this clock, or for `ms` real milliseconds where `inRealTime`. An abort ends the wait at once. */
  sleep(ms: number, { inRealTime, signal }: { inRealTime: boolean; signal?: AbortSignal | undefined }): Promise<void> {
    return sleep(inRealTime && !this.#options.settings.isManual ? systemClock : this.clock, ms, signal);
  }

  #after(ms: number, fire: () => void): () => void {
    const timer: Timer = { at: Math.ceil(this.now() + ms), fire };
    insert(this.#timers, timer);
    this.#options.activity.touch();
    this.#arm();
    return () => {
      const index = this.#timers.indexOf(timer);
      if (index === -1) return;
      this.#timers.splice(index, 1);
      this.#arm();
    };
  }

  /** Moves on to a moment, unless it has passed. */
  #reach(time: number): void {
    this.#base += Math.max(0, time - this.now());
  }

  #nextAt(): number | undefined {
    const event = this.#options.state.events[0];
    const timer = this.#timers[0];
    if (event === undefined || timer === undefined) return (event ?? timer)?.at;
    return Math.min(event.at, timer.at);
  }

  /** Runs one event or timer. An event goes first, so that a client which looks at the same moment sees it. */
  #runNext(): void {
    const { events } = this.#options.state;
    const [event, timer] = [events[0], this.#timers[0]];
    if (event !== undefined && (timer === undefined || event.at <= timer.at)) {
      events.shift();
      this.#options.run(event);
    } else {
      this.#timers.shift();
      timer?.fire();
    }
  }

  /** Has what is due next happen on the real clock, also when nobody looks. */
  #arm(): void {
    if (this.#options.settings.isManual) return;
    const at = this.#nextAt();
    const isIdle = this.#timers.length === 0;
    if (at !== undefined && this.#armed && this.#armed.at <= at && this.#armed.isIdle === isIdle) return;
    this.#armed?.cancel();
    this.#armed = undefined;
    if (at === undefined) return;
    const { skipsWaits, speed } = this.#options.settings;
    this.#armFor(at, (at - this.now()) / (skipsWaits && !isIdle ? SKIP_SPEED : speed), isIdle);
  }

  #armFor(at: number, ms: number, isIdle: boolean): void {
    const realMs = Math.min(Math.max(0, ms), LONGEST_TIMER_MS);
    this.#armed = { at, isIdle, cancel: systemClock.after(realMs, () => this.#wake(at, isIdle), { isIdle }) };
  }

  #wake(at: number, isIdle: boolean): void {
    this.#armed = undefined;
    if (this.#options.settings.skipsWaits && !isIdle && this.now() < at) {
      if (!this.#options.activity.isQuiet) {
        this.#armFor(at, SKIP_AGAIN_MS, isIdle);
        return;
      }
      this.#reach(at);
    }
    for (let next = this.#nextAt(); next !== undefined && next <= this.now(); next = this.#nextAt()) this.#runNext();
    this.#arm();
  }
}

/** Puts a task behind those of its time and before. */
function insert<T extends { readonly at: number }>(tasks: T[], task: T): void {
  tasks.splice(tasks.findLastIndex(({ at }) => at <= task.at) + 1, 0, task);
}

// What cannot happen in the sandbox's own time: receivers of webhooks, and the end of work that is under way.

export function realDeadline(ms: number): AbortSignal {
  return AbortSignal.timeout(ms);
}

// Looked up when the module loads, so that a test's fake timers do not hold it.
const monotonic = globalThis.performance?.now.bind(globalThis.performance) ?? systemClock.now;

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
  end(): void;
}

/** Knows whether clients and receivers are busy, or only wait for time to pass. */
export class Activity {
  readonly #marks = new Set<Mark>();
  #changes = 0;

  /** A request or a delivery begins, or the `body` of an answer that is being read. */
  begin(kind: Mark['kind']): Underway {
    const mark = { kind, movedAt: monotonic() };
    this.#marks.add(mark);
    this.touch();
    return {
      touch: () => {
        mark.movedAt = monotonic();
        this.touch();
      },
      end: () => {
        if (this.#marks.delete(mark)) this.touch();
      },
    };
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
    for (const mark of this.#marks) {
      if (monotonic() - mark.movedAt > GRACE_MS[mark.kind]) this.#marks.delete(mark);
      else if (mark.kind === kind) return true;
    }
    return false;
  }
}
