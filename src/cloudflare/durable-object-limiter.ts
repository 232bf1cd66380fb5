import { abortable } from '../abort.js';
import { callObserver } from '../callbacks.js';
import { sleep, steady, systemClock } from '../clock.js';
import { ConnectionError } from '../errors/client-errors.js';
import { DOCUMENTED_LIMITS, InProcessLimiter } from '../limits/in-process-limiter.js';
import type { LaneLimit } from '../limits/lane-state.js';
import { createOutage, type Outage } from '../limits/outage.js';
import type { LaneSnapshot, LaneWait, RateLimiter, Release } from '../limits/rate-limiter.js';
import { checkOptions } from '../options.js';
import type { SlotCall, SlotOutcome, SlotTurn } from './account-lane.js';
import { checkAccount, LIMITER_OPTIONS } from './cloudflare-options.js';
import { type AskOptions, askObject, type GenAccountNamespace, inBackground } from './namespace.js';

/** What a {@link durableObjectLimiter} is made with. */
export interface DurableObjectLimiterOptions {
  /**
   * Limits by lane, on top of the documented ones; `limit: Infinity` takes a lane's limit away. The same in all isolates.
   * @default the documented limits (spec: Limits)
   */
  readonly limits?: Readonly<Record<string, LaneLimit>> | undefined;
  /**
   * What happens when the object does not answer, after some tries. `local`: each isolate keeps the limits for itself
   * until the object is back, so that together they may pass them; a 429 is waited out as ever. `throw`: calls are
   * rejected with a ConnectionError.
   * @default 'local'
   */
  readonly onUnavailable?: 'local' | 'throw' | undefined;
  /** Milliseconds for which one answer of the object is waited for. @default 2000 */
  readonly timeoutMs?: number | undefined;
  /** Told once when the object fails, and again only after it has answered in between. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** A limiter that any number of isolates share. */
export interface DurableObjectLimiter extends RateLimiter {
  /** The state of every limited lane, as far as this isolate knows it. */
  snapshot(): Record<string, LaneSnapshot>;
}

/** A slot is renewed this often while its call is under way: a third of the lease that the object gives. */
const KEEP_MS = 5_000;

interface Settings {
  readonly ask: AskOptions;
  readonly local: InProcessLimiter;
  readonly outage: Outage;
  readonly onUnavailable: 'local' | 'throw';
  /** Until when this isolate knows a lane to be paused. */
  readonly pausedUntil: Map<string, number>;
}

/**
 * One limiter for any number of Workers and isolates, over one {@link GenAccount} object for each account of the service.
 * The object answers at once with a time and the isolate sleeps, so that nothing is billed while calls wait. The count is
 * exact for fixed and sliding windows, by the object's clock, and calls are served in the order in which they reach the
 * object. A call whose request ends without a word gives up its place within seven seconds. Throws a GenError for an
 * argument that cannot be right.
 *
 * @example
 * const limiter = durableObjectLimiter(env.ACCOUNT, 'main');
 * const client = new GenClient({ limiter });
 */
export function durableObjectLimiter(
  namespace: GenAccountNamespace,
  name: string,
  options: DurableObjectLimiterOptions = {},
): DurableObjectLimiter {
  checkAccount('durableObjectLimiter', namespace, name);
  checkOptions('durableObjectLimiter', LIMITER_OPTIONS, options);
  const { onUnavailable = 'local', timeoutMs = 2000, limits } = options;
  const clock = steady(systemClock);
  const local = new InProcessLimiter({ limits });
  const outage = createOutage(clock, (error) => callObserver(() => options.onError?.(error)));
  const ask = { namespace, name, timeoutMs, clock };
  const settings: Settings = { ask, local, outage, onUnavailable, pausedUntil: new Map() };
  const limited: Readonly<Record<string, LaneLimit>> = { ...DOCUMENTED_LIMITS, ...limits };
  const limitOf = (lane: string): LaneLimit | undefined =>
    Object.hasOwn(limited, lane) && (limited[lane]?.limit ?? 0) < Number.POSITIVE_INFINITY ? limited[lane] : undefined;
  return {
    acquire(lane, signal, onWait) {
      const limit = limitOf(lane);
      // A lane without a limit has nothing to share.
      return limit ? acquire(settings, { lane, limit, signal, onWait }) : local.acquire(lane, signal, onWait);
    },
    pause(lane, ms) {
      local.pause(lane, ms);
      if (!(ms > 0 && ms < Number.POSITIVE_INFINITY) || !limitOf(lane)) return;
      // Adds up to a tenth (a second at most), as the limiter of one process does.
      const longer = ms + Math.random() * Math.min(ms / 10, 1000);
      settings.pausedUntil.set(lane, Math.max(settings.pausedUntil.get(lane) ?? 0, clock.now() + longer));
      inBackground(
        askObject(ask, (stub) => stub.pauseLane(lane, longer)),
        outage.began,
      );
    },
    snapshot: () => local.snapshot(),
  };
}

interface Request {
  readonly lane: string;
  readonly limit: LaneLimit;
  readonly signal: AbortSignal | undefined;
  readonly onWait: ((wait: LaneWait) => void) | undefined;
}

async function acquire(settings: Settings, request: Request): Promise<Release> {
  const { local, outage, onUnavailable } = settings;
  const { lane, signal, onWait } = request;
  signal?.throwIfAborted();
  if (onUnavailable === 'local' && outage.isFresh()) return local.acquire(lane, signal, onWait);
  const slot = createSlot(settings, request);
  try {
    const failure = await queueFor(slot, settings, request);
    if (failure === undefined) return await hold(slot, settings, request);
    slot.settle('unused');
    outage.began(failure.cause);
    if (onUnavailable === 'local') return local.acquire(lane, signal, onWait);
    // A failure like that of a connection: a wait goes on, a call may be tried again.
    throw new ConnectionError(
      'The shared limiter cannot reach its Durable Object, and onUnavailable is "throw"',
      failure,
    );
  } catch (error) {
    slot.settle('unused');
    throw error;
  }
}

/** Asks for a slot until it is granted. Gives the failure of an object that does not answer. */
async function queueFor(
  slot: Slot,
  { ask, outage }: Settings,
  { lane, signal, onWait }: Request,
): Promise<{ readonly cause: unknown } | undefined> {
  for (let isTold = false; ; isTold = true) {
    const answer = await abortable(slot.turn(), signal);
    if (!('turn' in answer)) return answer;
    outage.ended();
    const { granted, askMs, waitMs, queued, isPaused } = answer.turn;
    if (granted) return undefined;
    if (!isTold) onWait?.({ lane, waitMs, queued, reason: isPaused ? 'pause' : 'limit' });
    await sleep(ask.clock, askMs, signal);
  }
}

/** Keeps the slot until it is released. It is counted here as well: without the object, this isolate knows what it has used up. */
async function hold(slot: Slot, { ask, local }: Settings, { lane, signal }: Request): Promise<Release> {
  let stop: (() => void) | undefined;
  const keep = () => {
    stop = ask.clock.after(KEEP_MS, () => {
      slot.settle('kept');
      keep();
    });
  };
  // Before it is counted here, which takes as long as a pause that this isolate has just heard of.
  keep();
  const counted: Release = await local.acquire(lane, signal).catch((reason: unknown) => {
    stop?.();
    throw reason;
  });
  return (outcome) => {
    if (!stop) return;
    stop();
    stop = undefined;
    counted(outcome);
    slot.settle(outcome ?? 'used');
  };
}

/** One call at the object. */
interface Slot {
  /** Asks for its turn. Never rejects. */
  turn(): Promise<{ readonly turn: SlotTurn } | { readonly cause: unknown }>;
  /** Tells what became of it, after the turn that is under way. */
  settle(outcome: SlotOutcome): void;
}

function createSlot({ ask, outage, pausedUntil }: Settings, { lane, limit }: Request): Slot {
  const id = crypto.randomUUID();
  const call = (): SlotCall => ({
    id,
    lane,
    limit: limit.limit,
    // Half a per mille and a millisecond on top: two clocks drift, and times are cut off to whole milliseconds.
    restMs: Math.ceil(limit.windowMs * 1.0005) + 1,
    pauseMs: Math.max(0, (pausedUntil.get(lane) ?? 0) - ask.clock.now()),
  });
  let last: Promise<unknown> = Promise.resolve();
  let isSettled = false;
  return {
    turn() {
      const asked = askObject(ask, (stub) => stub.takeTurn(call())).then(
        (turn) => ({ turn }),
        (cause: unknown) => ({ cause }),
      );
      last = asked;
      return asked;
    },
    settle(outcome) {
      if (isSettled) return;
      isSettled = outcome !== 'kept';
      const settled = last.then(() => askObject(ask, (stub) => stub.settleSlot(call(), outcome)));
      inBackground(settled, outage.began);
    },
  };
}
