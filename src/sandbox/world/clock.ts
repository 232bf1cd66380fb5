// The sandbox's own clock: the only reader of time and maker of timers here.
import { type Clock, sleep } from '../../clock.js';
import type { DueEvent, State } from './store.js';

/** What the clock is made with. */
export interface TimelineOptions {
  readonly isManual: boolean;
  /** Sandbox seconds a real second, on the real clock. */
  readonly speed: number;
  readonly startTime: number | undefined;
  readonly state: State;
  /** Does what is due; `event.at` is the moment it counts for. */
  readonly run: (event: DueEvent) => void;
}

/** Longest delay a runtime's timer holds. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The sandbox's time and what is due in it. On the real clock events happen when somebody looks, or by timer when live. */
export class Timeline {
  readonly #options: TimelineOptions;
  readonly #wakers = new Map<string, () => void>();
  #base: number;
  #realBase = Date.now();
  #live = 0;
  #timer: { cancel(): void; at: number } | undefined;

  constructor(options: TimelineOptions) {
    this.#options = options;
    this.#base = options.startTime ?? Date.now();
  }

  /** Milliseconds since the epoch, in the sandbox's time. */
  now(): number {
    if (this.#options.isManual) return this.#base;
    return Math.floor(this.#base + (Date.now() - this.#realBase) * this.#options.speed);
  }

  /** Moves the clock to `time` without running anything: for restoring a snapshot. */
  jump(time: number): void {
    this.#base = time;
    this.#realBase = Date.now();
    for (const id of [...this.#wakers.keys()]) this.wake(id);
    this.#live = this.#options.state.events.filter((event) => event.isLive).length;
    this.#arm();
  }

  /** Has `kind` happen to `id` in `ms` milliseconds. A live one happens on time even if nobody looks. */
  schedule(event: Pick<DueEvent, 'kind' | 'id' | 'isLive'>, at: number): void {
    const { state } = this.#options;
    state.order += 1;
    push(state.events, { ...event, at, order: state.order });
    if (event.isLive) {
      this.#live += 1;
      this.#arm();
    }
  }

  /** Runs what is due by now. */
  catchUp(): void {
    for (let ran = this.#step(this.now()); ran; ran = this.#step(this.now()));
    this.#arm();
  }

  /** Moves the clock on, running what falls due in order; on a manual clock `afterEach` is awaited between moments. */
  async advance(ms: number, afterEach: () => Promise<void>): Promise<void> {
    const { events } = this.#options.state;
    if (!this.#options.isManual) {
      this.#base += ms;
      this.catchUp();
      return afterEach();
    }
    const target = this.#base + ms;
    await afterEach();
    for (let next = events[0]; next && next.at <= target; next = events[0]) {
      this.#base = Math.max(this.#base, next.at);
      this.#step(next.at);
      await afterEach();
    }
    this.#base = target;
  }

  /** Waits: sandbox time on a manual clock, real time on the real one. An abort ends it at once. */
  sleep(ms: number, signal?: AbortSignal | null): Promise<void> {
    const clock: Clock = { now: () => this.now(), after: (wait, fire) => this.#wakeIn(wait, fire) };
    return sleep(clock, ms, signal ?? undefined);
  }

  /** Wakes a sleeper whose moment has come. */
  wake(id: string): void {
    this.#wakers.get(id)?.();
    this.#wakers.delete(id);
  }

  #stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #wakeIn(ms: number, fire: () => void): () => void {
    if (!this.#options.isManual) {
      const timer = setTimeout(fire, Math.min(ms, LONGEST_TIMER_MS));
      return () => clearTimeout(timer);
    }
    const id = `sleep_${this.#options.state.order + 1}`;
    this.#wakers.set(id, fire);
    this.schedule({ kind: 'wake', id, isLive: false }, this.#base + ms);
    return () => void this.#wakers.delete(id);
  }

  #step(until: number): boolean {
    const { events } = this.#options.state;
    const next = events[0];
    if (next === undefined || next.at > until) return false;
    pop(events);
    if (next.isLive) this.#live -= 1;
    this.#options.run(next);
    return true;
  }

  #arm(): void {
    const next = this.#options.state.events[0];
    const isIdle = this.#options.isManual || this.#live === 0 || next === undefined;
    if (!isIdle && this.#timer !== undefined && this.#timer.at <= next.at) return;
    this.#stop();
    if (isIdle) return;
    const delay = Math.max(0, Math.ceil((next.at - this.now()) / this.#options.speed));
    const timer = setTimeout(
      () => {
        this.#timer = undefined;
        this.catchUp();
      },
      Math.min(delay, LONGEST_TIMER_MS),
    );
    // A sandbox that nobody waits for must not hold the process.
    if (typeof timer === 'object') timer.unref?.();
    this.#timer = { at: next.at, cancel: () => clearTimeout(timer) };
  }
}

/** A signal that aborts after `ms` real milliseconds. */
export function deadline(ms: number): AbortSignal {
  return AbortSignal.timeout(ms);
}

/** Real milliseconds since the epoch: what a receiver's own clock shows. */
export function realNow(): number {
  return Date.now();
}

function isBefore(left: DueEvent, right: DueEvent): boolean {
  return left.at < right.at || (left.at === right.at && left.order < right.order);
}

/** A binary heap in an array: 10,000 jobs must not cost a scan each. */
function push(heap: DueEvent[], event: DueEvent): void {
  let at = heap.length;
  heap.push(event);
  while (at > 0) {
    const above = (at - 1) >> 1;
    const parent = heap[above];
    if (parent === undefined || !isBefore(event, parent)) break;
    heap[at] = parent;
    at = above;
  }
  heap[at] = event;
}

function pop(heap: DueEvent[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let at = 0;
  for (;;) {
    let below = 2 * at + 1;
    const left = heap[below];
    const right = heap[below + 1];
    if (left === undefined) break;
    const least = right !== undefined && isBefore(right, left) ? right : left;
    if (least === right) below += 1;
    if (!isBefore(least, last)) break;
    heap[at] = least;
    at = below;
  }
  heap[at] = last;
}
