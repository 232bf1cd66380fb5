import type { JobProgress } from '../rules/lengths.js';
import type { Clock } from '../runtime/clock.js';
import { abortable, onAbort } from '../runtime/deadline.js';
import { LOOK_AGAIN_MS } from '../runtime/platform.js';
import type { Job } from '../schemas/job.js';
import type { Due } from './due-heap.js';
import type { Ranked, ReadQueue } from './read-queue.js';

/** A job that is waited for. */
export interface Entry extends Ranked, Due {
  readonly id: string;
  /** The first one reads; one whose read failed goes to the end. */
  readonly watches: Watch[];
  job: Job | undefined;
  /** Its class in the learned lengths, where its create is known. */
  readonly lengthClass: string | undefined;
  /** Grows with each read that showed the job. */
  version: number;
  sinceMs: number;
  lastReadMs: number;
  /** The wait whose turn it is to read, or that reads. */
  reader: Watch | undefined;
  readerSinceMs: number;
  reading: AbortController | undefined;
  failures: number;
  lastError: unknown;
  /** The best announcement so far: each kind makes the job urgent once. */
  heard: Heard;
  /** What a verified event says of the completed job, and from when on that ends the waits which take it. */
  event: { readonly job: Job; readonly atMs: number } | undefined;
}

/** How the end of a job was announced: not at all, by a notice that may be wrong, or by a verified event, which ended a wait. */
export const HEARD = { nothing: 0, hint: 1, event: 2, learned: 3 } as const;
type Heard = (typeof HEARD)[keyof typeof HEARD];

/** A verified event waits this long for a read, and then ends the wait itself. */
const EVENT_WAITS_MS = 2_000;

/** What a verified event does with the waits of its job: it ends them at once, or after a while in which the job can be read. */
export function endByEvent({ job, watches }: Entry, event: Job, now: number): NonNullable<Entry['event']> {
  const [watch] = watches;
  const isFree = watch?.queue !== undefined && watch.queue.pace.freeInMs(watch.queue.length) <= EVENT_WAITS_MS;
  const { finalTokenCost: _, providerOutputExpiresAt: __, completedAt: ___, ...known } = job ?? event;
  return { job: { ...known, ...event }, atMs: isFree ? now + EVENT_WAITS_MS : now };
}

/** Why a read is broken off that must be made again. */
export const RESTART = Symbol('read again');

/** What a wait has to do now. */
export type WatchStep =
  | { readonly kind: 'look'; readonly job: Job; readonly progress: JobProgress; readonly isRead: boolean }
  | { readonly kind: 'read'; readonly stop: AbortController }
  | { readonly kind: 'sleep' };

/** A job that is announced to have ended. */
export interface Notice {
  readonly id: string;
  /** The completed job as a verified event shows it. */
  readonly event?: Job | undefined;
  /** Whether a verified event says that the job has ended. */
  readonly isVerified?: boolean | undefined;
}

/** A read that failed. */
export interface Miss {
  readonly error: unknown;
  /** Whether the wait will not read again. */
  readonly ends: boolean;
  /** How long the service asks to wait, in milliseconds; 0 where it does not. */
  readonly askedMs: number;
}

/** What a {@link Watch} is made with. */
export interface WatchOptions {
  readonly clock: Clock;
  /** Milliseconds that the wait lasts at most; `Infinity` for no limit. */
  readonly limitMs: number;
  readonly signal: AbortSignal | undefined;
  /** Milliseconds between two reads; the shortest of all waits on the job counts. */
  readonly pollIntervalMs: number | undefined;
  /** Whether a verified event may end the wait without a read. */
  readonly takesEvents: boolean;
  /** Makes the error of a wait whose time is over. */
  readonly late: () => Error;
}

/**
 * One wait on one job. It runs in the context of its caller: it sleeps, reads and ends by itself, with one timer for its
 * time limit and one listener on its signal. The watcher says what to do next.
 */
export class Watch implements Due {
  readonly pollIntervalMs: number | undefined;
  readonly takesEvents: boolean;
  /** The job, once the watcher knows the wait. */
  entry: Entry | undefined;
  /** Where its reads are due, once the watcher knows the wait. */
  queue: ReadQueue<Entry> | undefined;
  /** When its time is over, in the watcher's time. */
  dueMs = Number.POSITIVE_INFINITY;
  place = -1;
  /** The share of the job that was shown last. */
  share: number | undefined;
  /** The version of the job that the wait has seen. */
  version = 0;
  /** When the wait last asked what to do. */
  askedMs = 0;
  readonly #clock: Clock;
  readonly #late: () => Error;
  readonly #forgetAbort: () => void;
  readonly #endsMs: number;
  #stopTimer: (() => void) | undefined;
  #ended: { readonly reason: unknown } | undefined;
  #isWoken = false;
  /** Of the sleep under way. */
  #resolve: (() => void) | undefined;
  #reject: ((reason: unknown) => void) | undefined;
  #stopLooking: (() => void) | undefined;
  /** Of the work under way. */
  #working: AbortController | undefined;

  constructor({ clock, limitMs, signal, pollIntervalMs, takesEvents, late }: WatchOptions) {
    this.#clock = clock;
    this.pollIntervalMs = pollIntervalMs;
    this.takesEvents = takesEvents;
    this.#late = late;
    this.#endsMs = clock.now() + limitMs;
    if (limitMs < Number.POSITIVE_INFINITY) this.#stopTimer = clock.after(limitMs, () => this.expire());
    this.#forgetAbort = onAbort(signal, () => this.#end(signal?.reason));
  }

  /** Milliseconds that are left. The caller ends the wait from now on: one timer does it for thousands of waits. */
  takeTimer(): number {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    return this.#endsMs - this.#clock.now();
  }

  /** Ends the wait, because its time is over. */
  expire(): void {
    this.#end(this.#late());
  }

  /** Throws the reason for which the wait has ended, if it has. */
  throwIfEnded(): void {
    if (this.#ended) throw this.#ended.reason;
  }

  /** Resolves when the wait is woken; rejects with the reason when it ends. It may resolve early. */
  sleep(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      if (this.#ended) this.#rouse().reject?.(this.#ended.reason);
      else if (this.#isWoken) this.#rouse().resolve?.();
      else if (this.#clock.perRequest) {
        this.#stopLooking = this.#clock.after(LOOK_AGAIN_MS, () => this.#rouse().resolve?.());
      }
    });
  }

  /** Ends the sleep, or the next one at once when none is under way. */
  wake(): void {
    this.#isWoken = true;
    // Where promises belong to requests, the sleeping wait finds out by itself.
    if (this.#resolve && !this.#clock.perRequest) this.#rouse().resolve?.();
  }

  /** The outcome of `work`; the reason as soon as the wait ends, or the reason of `stop` when that is aborted. */
  async during<T>(work: (signal: AbortSignal) => PromiseLike<T>, stop = new AbortController()): Promise<T> {
    this.throwIfEnded();
    this.#working = stop;
    try {
      return await abortable(work(stop.signal), stop.signal);
    } finally {
      this.#working = undefined;
    }
  }

  /** Sleeps for `ms` milliseconds, or until it is woken. */
  async pause(ms: number): Promise<void> {
    await this.sleep().finally(this.#clock.after(ms, () => this.wake()));
  }

  /** Takes timer and listener away. */
  close(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    this.#forgetAbort();
  }

  #end(reason: unknown): void {
    if (this.#ended) return;
    this.#ended = { reason };
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    this.#rouse().reject?.(reason);
    this.#working?.abort(reason);
  }

  /** Ends the sleep, and gives what settles its promise. */
  #rouse(): { readonly resolve: (() => void) | undefined; readonly reject: ((reason: unknown) => void) | undefined } {
    const roused = { resolve: this.#resolve, reject: this.#reject };
    this.#stopLooking?.();
    this.#stopLooking = undefined;
    this.#resolve = undefined;
    this.#reject = undefined;
    this.#isWoken = false;
    return roused;
  }
}
