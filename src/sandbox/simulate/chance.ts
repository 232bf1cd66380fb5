import type { Random } from '../../runtime/clock.js';
import { createRandom, hashOf } from '../world/random.js';

/** Shares from 0 to 1: how often each fault happens. */
export interface SimulationFaults {
  /**
   * The share of requests at which the process is killed: before the request leaves, or after the service has handled it. A
   * process is also killed in between, at a tenth of that share for each timer and each call of the store. A process is
   * killed at most ten times. @default 0
   */
  readonly kill?: number | undefined;
  /** The share of requests whose answer is lost, two thirds of them after the service has handled the request. @default 0 */
  readonly lostAnswer?: number | undefined;
  /** The share of webhooks that are never delivered. @default 0 */
  readonly lostWebhook?: number | undefined;
  /** The share of webhooks that are delivered up to ten minutes late. @default 0 */
  readonly lateWebhook?: number | undefined;
  /** The share of requests whose answer takes 1 to 90 seconds. @default 0 */
  readonly slow?: number | undefined;
  /** The share of requests before which the clock of the process is set forward or back by up to an hour. @default 0 */
  readonly clock?: number | undefined;
  /**
   * The share of calls of the store at which a process loses the store for up to a minute: calls fail, are answered late,
   * or are not answered. Without the store each process keeps the limits by itself, so a 429 until one window of the limits
   * after it is left out of the checks. @default 0
   */
  readonly outage?: number | undefined;
}

/** A fault that happens at one place. `lost` says whether the service has handled the request. */
export type Fault =
  | { readonly kind: 'kill' | 'lostAnswer'; readonly isHandled: boolean }
  | { readonly kind: 'slow' | 'clock' | 'lateWebhook'; readonly ms: number }
  | { readonly kind: 'lostWebhook' }
  | { readonly kind: 'outage'; readonly how: OutageKind; readonly ms: number };

/** What becomes of calls of the store in an outage: they fail, are answered late, or are not answered. */
export const OUTAGES = ['fails', 'late', 'silent'] as const;
/** One of {@link OUTAGES}. */
export type OutageKind = (typeof OUTAGES)[number];

/**
 * Where a fault may happen: the nth request of a process, its nth pause (a timer, or the beginning or end of a call of the
 * store), its nth call of the store, or the nth webhook.
 */
export interface FaultPlace {
  readonly of: 'request' | 'pause' | 'store' | 'webhook';
  /** The process, or `w` for webhooks. */
  readonly process: number | 'w';
  readonly nth: number;
}

/** Which faults happen where: drawn from the seed, or only those that are listed. */
export interface Chances {
  /** The faults of a place. The same seed gives the same faults at the same place, whatever happens elsewhere. */
  at(place: FaultPlace, limits: { readonly mayKill: boolean }): readonly Fault[];
  /** The faults that have happened so far, as the history of a failure lists them. */
  readonly struck: readonly string[];
}

const MOST_SLOW_MS = 90_000;
const MOST_STEP_MS = 3_600_000;
const MOST_LATE_MS = 600_000;
const MOST_OUTAGE_MS = 60_000;
/** Timers and calls of the store are many for each request. */
const PAUSE_SHARE = 0.1;
/** How the history names a place. */
const PLACE_MARKS: Readonly<Record<FaultPlace['of'], string>> = { request: '', webhook: '', pause: 'p', store: 's' };

/** A stream of chance that belongs to a name. */
export function randomFor(seed: number, name: string): Random {
  const next = createRandom({ random: hashOf(`${seed} ${name}`) });
  next();
  const hex = (length: number) => Array.from({ length }, () => Math.floor(next() * 16).toString(16)).join('');
  return { next, uuid: () => `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}` };
}

/** The faults of a seed. With `only`, no others than those happen. */
export function createChances(seed: number, faults: SimulationFaults, only?: ReadonlySet<string>): Chances {
  const struck: string[] = [];
  return {
    struck,
    at(place, { mayKill }) {
      const name = `${place.process}${PLACE_MARKS[place.of]}.${place.nth}`;
      const { next } = randomFor(seed, name);
      const found = drawn(place.of, faults, next).filter(
        ({ kind }) => (mayKill || kind !== 'kill') && (only?.has(`${name}:${kind}`) ?? true),
      );
      for (const { kind } of found) struck.push(`${name}:${kind}`);
      return found;
    },
  };
}

function drawn(of: FaultPlace['of'], faults: SimulationFaults, next: () => number): Fault[] {
  const found: Fault[] = [];
  const draws = (share = 0) => next() < share;
  if (of === 'webhook') {
    if (draws(faults.lostWebhook)) return [{ kind: 'lostWebhook' }];
    return draws(faults.lateWebhook) ? [{ kind: 'lateWebhook', ms: Math.ceil(next() * MOST_LATE_MS) }] : [];
  }
  if (of === 'pause') return draws((faults.kill ?? 0) * PAUSE_SHARE) ? [{ kind: 'kill', isHandled: false }] : [];
  if (of === 'store') {
    if (!draws(faults.outage)) return [];
    const how = OUTAGES[Math.floor(next() * OUTAGES.length)] ?? 'fails';
    return [{ kind: 'outage', how, ms: Math.ceil(next() * MOST_OUTAGE_MS) }];
  }
  if (draws(faults.clock)) found.push({ kind: 'clock', ms: Math.round((2 * next() - 1) * MOST_STEP_MS) });
  if (draws(faults.slow)) found.push({ kind: 'slow', ms: 1000 + Math.round(next() * MOST_SLOW_MS) });
  if (draws(faults.kill)) found.push({ kind: 'kill', isHandled: next() < 0.5 });
  else if (draws(faults.lostAnswer)) found.push({ kind: 'lostAnswer', isHandled: next() < 2 / 3 });
  return found;
}
