import type { Rate } from '../rules/limits.js';
import {
  lookAt,
  type RateLimitLook,
  type RateLimitNews,
  type RateLimitState,
  RENEW_MS,
  restMsOf,
  takeTurn,
} from '../rules/rate-limit.js';
import type { Clock, Random } from '../runtime/clock.js';
import { LOOK_AGAIN_MS } from '../runtime/platform.js';
import type { Cell, ChangeTime, Outage } from './cell.js';
import { Line, type TurnOutcome } from './line.js';

/** Told once for each call that has to wait for a rate limit. */
export interface RateLimitWait {
  readonly limit: string;
  /** Milliseconds that the call will wait, as far as is known now. */
  readonly waitMs: number;
  /** Calls that wait for the rate limit, this one included. */
  readonly queued: number;
  /** `limit`: the limit is reached. `pause`: the service asked to wait. */
  readonly reason: 'limit' | 'pause';
}

/** Releases a slot. `unused`: the service has not counted the call. `accepted`: it has done what the call asks for. */
export type Release = (outcome?: 'unused' | 'accepted') => void;

export interface RateLimitedCall {
  readonly signal?: AbortSignal | undefined;
  /** Called once when the call has to wait. */
  readonly onWait?: ((wait: RateLimitWait) => void) | undefined;
  /** Writes to the logger of the call's client. */
  readonly warn: (message: string) => void;
}

export interface RateLimitOptions {
  readonly name: string;
  readonly limit: Rate;
  readonly cell: Cell;
  readonly clock: Clock;
  readonly random: Random;
  /** Where the cell is in a store: whether that is away. */
  readonly outage: Outage | undefined;
}

/** A process that shares a limit says nothing for so long at most. It is taken for dead after three times as long. */
const MOST_REST_MS = 5_000;
const PLACE_MS = 3 * MOST_REST_MS;
/** A process whose calls wait may ask the store so often in a second, and so often at once. */
const ASK_MS = 500;
const MOST_ASKS_SAVED = 4;
/** Processes that wait for the same slot do not come in the same millisecond. */
const APART_MS = 10;
const MOST_ASKS = 100;
/** Answers are told together, a hundredth of the window and at most this long after the first. */
const MOST_TELL_MS = 250;

interface Ask {
  readonly id: string;
  /** Waits outside of any process, under this name. */
  readonly run?: string | undefined;
  readonly warn: RateLimitedCall['warn'];
}

/** What has happened, by the clock of this process. */
type News =
  | { readonly answered: string; readonly atMs: number; readonly isAccepted: boolean }
  | { readonly unused: string; readonly atMs: number }
  | { readonly pausedUntilMs: number; readonly atMs: number };

interface TurnResult {
  readonly granted: ReadonlySet<string>;
  /** Those of which the state has to learn the end. */
  readonly held: ReadonlySet<string>;
  readonly ahead: number;
  readonly waitMs: number;
  /** Milliseconds until a run has its slot. */
  readonly runWaitMs: ReadonlyMap<string, number>;
  readonly isAlone: boolean;
  readonly isChanged: boolean;
}

/**
 * One rate limit as this process sees it: a line of calls before the state in a cell. Where promises belong to requests, each
 * call has an object of its own, on the same cell.
 */
export class RateLimit {
  readonly #options: RateLimitOptions;
  readonly #line: Line<Ask, Release>;
  /** Whether others change the state as well. */
  readonly #isShared: boolean;
  readonly #tellMs: number;
  #who: string | undefined;
  #calls = 0;
  readonly #open = new Set<string>();
  /** What the state does not know yet, and what only the known state of a store that is away knows. */
  #news: readonly News[] = [];
  #late: readonly News[] = [];
  /** When the process has used up its asks. */
  #paidMs = Number.NEGATIVE_INFINITY;
  #timer: { readonly dueMs: number; readonly stop: () => void } | undefined;

  constructor(options: RateLimitOptions) {
    const { clock, outage, limit } = options;
    this.#options = options;
    this.#isShared = outage !== undefined || clock.perRequest === true;
    this.#tellMs = outage && !clock.perRequest ? Math.min(limit.windowMs / 100, MOST_TELL_MS) : 0;
    this.#line = new Line({
      clock,
      isShared: outage !== undefined,
      turn: (asks, tries) => this.#turn(firstOf(asks), tries),
      giveBack: (release) => release('unused'),
      left: () => this.#line.serve(),
    });
  }

  /** Calls of this process that wait. */
  get queued(): number {
    const { clock, cell } = this.#options;
    return clock.perRequest ? cell.look(({ line }) => line.length) : this.#line.size;
  }

  /** Waits for a slot. Resolves with the function that releases it. */
  take({ signal, onWait, warn }: RateLimitedCall): Promise<Release> {
    const tell = onWait && ((place: number) => onWait(this.#waitAt(place)));
    return this.#line.wait(this.#ask(warn), { signal, onWait: tell });
  }

  /** A slot that is free now, or the milliseconds until one may be. A `run` keeps its place in the line for so long. */
  try({ warn }: Pick<RateLimitedCall, 'warn'>, run?: string): Promise<Release | number> {
    return this.#line.try(this.#ask(warn, run));
  }

  /** Nothing is sent for `ms` milliseconds. */
  pause(ms: number): void {
    const atMs = this.#options.clock.now();
    this.#note({ pausedUntilMs: atMs + ms, atMs });
    this.#line.serve();
  }

  /** How the limit stands, as far as this process knows it. */
  look(ahead = 0): RateLimitLook {
    const { cell, limit } = this.#options;
    return cell.look((state, nowMs) => lookAt(state, limit, nowMs, ahead));
  }

  #waitAt(place: number): RateLimitWait {
    const { cell, name } = this.#options;
    const others = cell.look(({ line }) => line.findIndex(([who]) => who === this.#who));
    const ahead = Math.max(0, others) + place;
    const { waitMs, pausedMs } = this.look(ahead);
    return { limit: name, waitMs, queued: ahead + 1, reason: pausedMs > 0 ? 'pause' : 'limit' };
  }

  #ask(warn: RateLimitedCall['warn'], run?: string): Ask {
    // With the first call: a Worker draws no random numbers while its module loads.
    this.#who ??= this.#options.random.uuid().replaceAll('-', '').slice(-12);
    return { id: `${this.#who}.${(this.#calls++).toString(36)}`, run, warn };
  }

  #note(news: News): void {
    this.#news = [...this.#news, news];
  }

  /** Takes a turn for the calls of this process, and for the runs that ask in it. */
  #turn(asks: readonly Ask[], tries: readonly Ask[]): Outcome | Promise<Outcome> {
    this.#timer?.stop();
    this.#timer = undefined;
    const { cell } = this.#options;
    let told: readonly News[] = [];
    const result = cell.update((state, time) => {
      told = time.isAlone ? this.#news : [...this.#late, ...this.#news];
      return this.#step(state, time, { asks, tries, told });
    });
    const settle = (taken: TurnResult) => {
      const known = new Set(told);
      this.#news = this.#news.filter((it) => !known.has(it));
      this.#late = taken.isAlone ? this.#recent([...this.#late, ...told]) : [];
      return this.#outcome([...asks, ...tries], taken);
    };
    if (!(result instanceof Promise)) return settle(result);
    const failed = (error: unknown) => {
      this.#news = [];
      throw error;
    };
    return result.then(settle, failed);
  }

  #step(state: RateLimitState, time: ChangeTime, { asks, tries, told }: Step) {
    const { limit } = this.#options;
    const { nowMs, askedMs, isAlone } = time;
    const own = tries.filter(({ run }) => run === undefined);
    const leaseMs = this.#isShared ? restMsOf(limit) + PLACE_MS : Number.POSITIVE_INFINITY;
    const reply = takeTurn(
      state,
      {
        who: this.#who ?? '',
        news: told.map((it) => toldAt(it, askedMs)),
        open: this.#isShared ? this.#open : [],
        asks: asks.map(({ id }) => id),
        tries: own.map(({ id }) => id),
        leaseMs,
        placeMs: this.#isShared ? PLACE_MS : Number.POSITIVE_INFINITY,
      },
      limit,
      nowMs,
    );
    const granted = new Set(reply.granted);
    const runWaitMs = new Map<string, number>();
    let { isChanged } = reply;
    for (const { id, run } of tries) {
      if (run === undefined) continue;
      const turn = { who: run, news: [], open: [], asks: [id], tries: [], leaseMs, placeMs: 'told' } as const;
      const place = takeTurn(state, turn, limit, nowMs);
      if (place.granted.length > 0) granted.add(id);
      else runWaitMs.set(id, place.waitMs);
      isChanged ||= place.isChanged;
    }
    const held = new Set([...granted].filter((id) => state.open.has(id)));
    const { ahead, waitMs } = reply;
    return { isChanged, result: { granted, held, ahead, waitMs, runWaitMs, isAlone, isChanged } };
  }

  #outcome(asks: readonly Ask[], result: TurnResult): Outcome {
    const { granted, held, waitMs, runWaitMs, isAlone, isChanged } = result;
    const grants = new Map<Ask, Release>();
    for (const ask of asks) {
      if (isAlone) this.#options.outage?.warn(ask.warn);
      if (granted.has(ask.id)) grants.set(ask, held.has(ask.id) ? this.#slot(ask.id) : () => {});
    }
    const nowMs = this.#options.clock.now();
    // A turn is a read, and a write where it changes something. Where others were faster, it is no more for that.
    const paidMs = isAlone ? 0 : isChanged ? 2 * ASK_MS : ASK_MS;
    if (granted.size === 0) this.#paidMs = Math.max(this.#paidMs, nowMs - MOST_ASKS_SAVED * ASK_MS) + paidMs;
    this.#plan();
    return { grants, waitMsOf: ({ id }) => runWaitMs.get(id) ?? waitMs, restMs: this.#restMs(result, nowMs) };
  }

  /** How long the calls that wait rest until the next turn. */
  #restMs({ ahead, waitMs, isAlone }: TurnResult, nowMs: number): number {
    const { outage, clock, random } = this.#options;
    if (outage === undefined) {
      // A run that is in front may never come.
      const mostMs = clock.perRequest ? LOOK_AGAIN_MS : ahead > 0 ? MOST_REST_MS : Number.POSITIVE_INFINITY;
      return Math.min(waitMs, mostMs);
    }
    if (isAlone) return Math.min(waitMs, outage.untilMs - nowMs);
    return Math.max(Math.min(waitMs, MOST_REST_MS) + random.next() * APART_MS, this.#paidMs - nowMs);
  }

  /** A slot whose end the state learns. */
  #slot(id: string): Release {
    this.#open.add(id);
    return (outcome) => {
      if (!this.#open.delete(id)) return;
      const atMs = this.#options.clock.now();
      if (outcome === 'unused') this.#note({ unused: id, atMs });
      else this.#note({ answered: id, atMs, isAccepted: outcome === 'accepted' });
      this.#tell();
    };
  }

  /** The state is told what has happened: at once where nobody else changes it, else together with what follows. */
  #tell(): void {
    if (this.#tellMs === 0) this.#line.serve();
    else this.#plan();
  }

  /** Sets the one timer for what the state has to learn although no call asks for it. */
  #plan(): void {
    const { clock, outage } = this.#options;
    if (!this.#isShared) return;
    const nowMs = clock.now();
    const awayMs = outage && outage.untilMs > nowMs ? outage.untilMs : undefined;
    const newsMs = (this.#news[0]?.atMs ?? Number.POSITIVE_INFINITY) + this.#tellMs;
    const tellMs = this.#line.size > 0 ? Math.max(newsMs, this.#paidMs) : newsMs;
    const isOpen = this.#open.size + this.#late.length > 0;
    const dueMs = Math.min(tellMs, isOpen ? (awayMs ?? nowMs + RENEW_MS) : Number.POSITIVE_INFINITY);
    if (this.#timer && this.#timer.dueMs <= dueMs) return;
    this.#timer?.stop();
    this.#timer = undefined;
    if (dueMs === Number.POSITIVE_INFINITY) return;
    const fire = () => {
      this.#timer = undefined;
      this.#line.serve();
    };
    // A process may end although the store cannot be told of its last calls.
    const isIdle = awayMs !== undefined && this.#line.size === 0;
    this.#timer = { dueMs, stop: clock.after(Math.max(0, dueMs - nowMs), fire, { isIdle }) };
  }

  /** What still matters: a slot that is free again by now need not be told of. */
  #recent(news: readonly News[]): readonly News[] {
    const sinceMs = this.#options.clock.now() - restMsOf(this.#options.limit);
    return news.filter((it) =>
      'pausedUntilMs' in it ? it.pausedUntilMs > this.#options.clock.now() : it.atMs > sinceMs,
    );
  }
}

/** Those that one turn is taken for: a queue may be long. */
function firstOf(asks: Iterable<Ask>): Ask[] {
  const first: Ask[] = [];
  for (const ask of asks) {
    if (first.length === MOST_ASKS) break;
    first.push(ask);
  }
  return first;
}

type Outcome = TurnOutcome<Ask, Release>;

interface Step {
  readonly asks: readonly Ask[];
  readonly tries: readonly Ask[];
  readonly told: readonly News[];
}

function toldAt(news: News, askedMs: number): RateLimitNews {
  if ('pausedUntilMs' in news) return { pauseMs: news.pausedUntilMs - askedMs };
  if ('unused' in news) return news;
  return { answered: news.answered, isAccepted: news.isAccepted, agoMs: askedMs - news.atMs };
}
