import type { Clock } from '../../runtime/clock.js';
import { sleep } from '../../runtime/deadline.js';
import type { Settings } from './options.js';
import { type Activity, afterReal, realNow, standstill } from './real-time.js';
import type { DueEvent, DueTask, State } from './state.js';

/** How many times as fast the waits of the sandbox's own clients pass. */
const SKIP_SPEED = 1000;
/** Real milliseconds until a wait that could not be skipped yet is looked at again. */
const SKIP_AGAIN_MS = 2;

interface TimelineOptions {
  readonly settings: Pick<Settings, 'isManual' | 'speed' | 'skipsWaits'>;
  readonly startTime: number | undefined;
  readonly state: State;
  readonly activity: Activity;
  /** Does what is due. `event.at` is the moment it counts for. */
  readonly run: (event: DueEvent) => void;
}

interface Timer extends DueTask {
  readonly fire: () => void;
}

/**
 * The sandbox's time, and what is due in it: events of the service, which are part of the state, and timers of those who
 * take their time from here. On the real clock an event happens when somebody looks, or by a timer when it is live.
 */
export class Timeline {
  readonly #options: TimelineOptions;
  readonly #timers: Timer[] = [];
  #timerCount = 0;
  #base: number;
  readonly #realBase = realNow();
  #live = 0;
  #armed: { readonly at: number; readonly holdsProcess: boolean; readonly cancel: () => void } | undefined;

  readonly #stands = standstill();

  /** The sandbox's time as a client takes it. A pending timer holds the process on the real clock only. */
  readonly clock: Clock = { now: () => this.now(), after: (ms, fire) => this.#after(ms, fire) };

  constructor(options: TimelineOptions) {
    this.#options = options;
    this.#base = options.startTime ?? realNow();
    this.#live = options.state.events.filter((event) => event.isLive).length;
    this.#arm();
  }

  now(): number {
    const { isManual, speed } = this.#options.settings;
    if (isManual) return this.#base;
    return Math.floor(this.#base + (realNow() - this.#realBase) * speed);
  }

  /** Whether no time passes on the real clock, because a test has faked Date alone. */
  get standsStill(): boolean {
    return this.#stands() && !this.#options.settings.isManual;
  }

  /** Follows the state when its events were taken away. */
  restart(): void {
    this.#live = 0;
    this.#arm();
  }

  /** Has an event happen at a moment. A live one happens on time even if nobody looks. */
  schedule(event: Pick<DueEvent, 'kind' | 'id' | 'isLive'>, at: number): void {
    const { state } = this.#options;
    state.order += 1;
    insert(state.events, { ...event, at, order: state.order });
    if (event.isLive) this.#live += 1;
    this.#arm();
  }

  catchUp(): void {
    const { events } = this.#options.state;
    for (let next = events[0]; next !== undefined && next.at <= this.now(); next = events[0]) this.#runEvent();
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
      this.#reach(at);
      this.#runNext();
      await settled();
    }
    this.#reach(target);
    this.#arm();
  }

  /** Waits on this clock, or for `ms` real milliseconds where `inRealTime`. An abort ends the wait at once. */
  sleep(ms: number, { inRealTime, signal }: { inRealTime: boolean; signal?: AbortSignal | undefined }): Promise<void> {
    const real: Clock = { now: realNow, after: (wait, fire) => afterReal(wait, fire, { holdsProcess: true }) };
    return sleep(inRealTime && !this.#options.settings.isManual ? real : this.clock, ms, signal);
  }

  #after(ms: number, fire: () => void): () => void {
    this.#timerCount += 1;
    const timer: Timer = { at: Math.ceil(this.now() + ms), order: this.#timerCount, fire };
    insert(this.#timers, timer);
    this.#options.activity.touch();
    this.#arm();
    return () => {
      const index = placeOf(this.#timers, timer);
      if (this.#timers[index] !== timer) return;
      this.#timers.splice(index, 1);
      this.#arm();
    };
  }

  /** Moves on to a moment, unless it has passed. */
  #reach(time: number): void {
    const ahead = time - this.now();
    if (ahead > 0) this.#base += ahead;
  }

  #nextAt(): number | undefined {
    const event = this.#options.state.events[0];
    const timer = this.#timers[0];
    if (event === undefined || timer === undefined) return (event ?? timer)?.at;
    return Math.min(event.at, timer.at);
  }

  /** Runs one event or timer. An event goes first, so that a client which looks at the same moment sees it. */
  #runNext(): void {
    const event = this.#options.state.events[0];
    const timer = this.#timers[0];
    if (timer === undefined || (event !== undefined && event.at <= timer.at)) {
      this.#runEvent();
      return;
    }
    this.#timers.shift();
    timer.fire();
  }

  #runEvent(): void {
    const event = this.#options.state.events.shift();
    if (event === undefined) return;
    if (event.isLive) this.#live -= 1;
    this.#options.run(event);
  }

  #arm(): void {
    const { state, settings } = this.#options;
    const { isManual, speed, skipsWaits } = settings;
    if (isManual) return;
    const timer = this.#timers[0];
    const event = this.#live > 0 ? state.events[0] : undefined;
    const at = Math.min(timer?.at ?? Number.POSITIVE_INFINITY, event?.at ?? Number.POSITIVE_INFINITY);
    const holdsProcess = timer !== undefined;
    const isIdle = at === Number.POSITIVE_INFINITY;
    if (!isIdle && this.#armed && this.#armed.at <= at && this.#armed.holdsProcess === holdsProcess) return;
    this.#disarm();
    if (isIdle) return;
    const isSkipped = skipsWaits && holdsProcess;
    this.#armFor(at, (at - this.now()) / (isSkipped ? SKIP_SPEED : speed), holdsProcess);
  }

  #armFor(at: number, ms: number, holdsProcess: boolean): void {
    const cancel = afterReal(ms, () => this.#wake(at, holdsProcess), { holdsProcess });
    this.#armed = { at, holdsProcess, cancel };
  }

  #disarm(): void {
    this.#armed?.cancel();
    this.#armed = undefined;
  }

  #wake(at: number, holdsProcess: boolean): void {
    this.#armed = undefined;
    if (this.#options.settings.skipsWaits && holdsProcess && this.now() < at) {
      if (!this.#options.activity.isQuiet) {
        this.#armFor(at, SKIP_AGAIN_MS, holdsProcess);
        return;
      }
      this.#reach(at);
    }
    for (let next = this.#nextAt(); next !== undefined && next <= this.now(); next = this.#nextAt()) this.#runNext();
    this.#arm();
  }
}

function insert<T extends DueTask>(tasks: T[], task: T): void {
  tasks.splice(placeOf(tasks, task), 0, task);
}

/** Where a task stands, or would stand, in a list that is in the order of time: ten thousand jobs must not cost a scan each. */
function placeOf(tasks: readonly DueTask[], { at, order }: DueTask): number {
  let [from, to] = [0, tasks.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    const other = tasks[middle];
    const isBefore = other !== undefined && (other.at < at || (other.at === at && other.order < order));
    if (isBefore) from = middle + 1;
    else to = middle;
  }
  return from;
}
