import { type Clock, nextTurn, systemClock } from '../../runtime/clock.js';
import { sleep } from '../../runtime/deadline.js';
import type { Settings } from './options.js';
import type { DueEvent, State } from './state.js';

/** Speedup while the sandbox's own clients only wait. */
const SKIP_SPEED = 1000;
/** Interval of attempts to skip a wait, in real milliseconds. */
const SKIP_RETRY_MS = 2;
/** Maximum delay of a JavaScript timer. */
const MAX_TIMER_MS = 2 ** 31 - 2;

interface TimelineOptions {
  readonly settings: Pick<Settings, 'isManual' | 'speed' | 'skipsWaits'>;
  readonly startTime: number | undefined;
  readonly state: State;
  readonly activity: Activity;
  /** Called when an event is due. Use `event.at` as the current time. */
  readonly run: (event: DueEvent) => void;
}

interface Timer {
  readonly at: number;
  readonly fire: () => void;
}

/**
 * The sandbox's clock and its schedule: events of the service, which are part of the state, and timers of clients on this
 * clock. Both lists are sorted by time.
 */
export class Timeline {
  readonly #options: TimelineOptions;
  readonly #timers: Timer[] = [];
  #base: number;
  readonly #realBase = systemClock.now();
  #armed: { readonly at: number; readonly isIdle: boolean; readonly cancel: () => void } | undefined;

  /** Clock for clients. A pending timer keeps the process alive on the real clock only. */
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

  schedule(event: DueEvent): void {
    insert(this.#options.state.events, event);
    this.#arm();
  }

  catchUp(): void {
    const { events } = this.#options.state;
    for (let next = events[0]; next !== undefined && next.at <= this.now(); next = events[0]) this.#runNext();
    this.#arm();
  }

  /** Advances the clock to the next event or timer and runs it. Returns false if there is none. */
  step(): boolean {
    const at = this.#nextAt();
    if (at === undefined) return false;
    this.#advanceTo(at);
    this.#runNext();
    return true;
  }

  /** Advances the clock and runs all due events and timers in order. Awaits `settled` after each. */
  async advance(ms: number, settled: () => Promise<void>): Promise<void> {
    const target = this.now() + ms;
    await settled();
    for (let at = this.#nextAt(); at !== undefined && at <= target; at = this.#nextAt()) {
      this.step();
      await settled();
    }
    this.#advanceTo(target);
    this.#arm();
  }

  /** Waits on this clock, or in real time if `inRealTime` is true and the clock isn't manual. */
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

  #advanceTo(time: number): void {
    this.#base += Math.max(0, time - this.now());
  }

  #nextAt(): number | undefined {
    const event = this.#options.state.events[0];
    const timer = this.#timers[0];
    if (event === undefined || timer === undefined) return (event ?? timer)?.at;
    return Math.min(event.at, timer.at);
  }

  /** Runs one event or timer. At the same time, events run first, so that a client's poll sees them. */
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

  /** Sets a real timer for the next event or client timer, so that it runs even without a request. */
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
    const realMs = Math.min(Math.max(0, ms), MAX_TIMER_MS);
    this.#armed = { at, isIdle, cancel: systemClock.after(realMs, () => this.#wake(at, isIdle), { isIdle }) };
  }

  #wake(at: number, isIdle: boolean): void {
    this.#armed = undefined;
    if (this.#options.settings.skipsWaits && !isIdle && this.now() < at) {
      if (!this.#options.activity.isQuiet) {
        this.#armFor(at, SKIP_RETRY_MS, isIdle);
        return;
      }
      this.#advanceTo(at);
    }
    for (let next = this.#nextAt(); next !== undefined && next <= this.now(); next = this.#nextAt()) this.#runNext();
    this.#arm();
  }
}

/** Inserts in time order, after tasks of the same time. */
function insert<T extends { readonly at: number }>(tasks: T[], task: T): void {
  tasks.splice(tasks.findLastIndex(({ at }) => at <= task.at) + 1, 0, task);
}

// The rest always uses real time: deadlines of webhook receivers, and the detection of idle clients.

export function realDeadline(ms: number): AbortSignal {
  return AbortSignal.timeout(ms);
}

// Captured when the module loads, so that a test's fake timers don't affect it.
const monotonic = globalThis.performance?.now.bind(globalThis.performance) ?? systemClock.now;

/** Idle event-loop turns after which all clients count as waiting. */
const QUIET_TURNS = 12;
/** Work in flight that makes no progress for this many real milliseconds counts as waiting, too. */
const GRACE_MS = { work: 2000, body: 250 } as const;

interface Work {
  readonly kind: keyof typeof GRACE_MS;
  progressedAt: number;
}

/** Work in flight that progresses without the sandbox's clock. */
export interface WorkInFlight {
  touch(): void;
  end(): void;
}

/** Tracks whether clients and receivers are busy, or only wait for the clock. */
export class Activity {
  readonly #inFlight = new Set<Work>();
  #changes = 0;

  /** Called when a request or a delivery starts (`work`), or when the read of a response body starts (`body`). */
  begin(kind: Work['kind']): WorkInFlight {
    const work = { kind, progressedAt: monotonic() };
    this.#inFlight.add(work);
    this.touch();
    return {
      touch: () => {
        work.progressedAt = monotonic();
        this.touch();
      },
      end: () => {
        if (this.#inFlight.delete(work)) this.touch();
      },
    };
  }

  touch(): void {
    this.#changes += 1;
  }

  /** True if nothing is in flight, or nothing in flight has progressed recently. */
  get isQuiet(): boolean {
    return !this.#isBusy('work') && !this.#isBusy('body');
  }

  /** Resolves when no request or delivery is in flight and nothing new starts. */
  async settle(): Promise<void> {
    let changes = this.#changes;
    for (let quiet = 0; quiet < QUIET_TURNS; quiet++) {
      await nextTurn();
      if (this.#changes === changes && !this.#isBusy('work')) continue;
      changes = this.#changes;
      quiet = -1;
    }
  }

  /** Returns true if work of this kind has progressed recently. Stops tracking work that hasn't. */
  #isBusy(kind: Work['kind']): boolean {
    for (const work of this.#inFlight) {
      if (monotonic() - work.progressedAt > GRACE_MS[work.kind]) this.#inFlight.delete(work);
      else if (work.kind === kind) return true;
    }
    return false;
  }
}
