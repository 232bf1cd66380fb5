import type { Random } from '../../../src/runtime/clock.js';
import { createRandom, hashOf } from '../../../src/sandbox/world/random.js';

/** Errors of a connection that had been established: the request may have arrived. */
export const LOST_ROUTES = ['ECONNRESET', 'EHOSTUNREACH', 'ENETDOWN', 'ETIMEDOUT'] as const;
/** Statuses of pages that a proxy returns instead of the service's response. */
export const PAGES = [200, 403, 404, 502] as const;

/**
 * A fault that happens at one place. `isHandled` is true if the service has handled the request. `unsent`: no connection.
 * `refusal`: the service rejects the request with status 200. `lateRequest`: the service receives the request after `ms`, even
 * if the client has given up. `stop`: the process stops for `ms`.
 */
export type Fault =
  | { readonly kind: 'kill'; readonly isHandled: boolean }
  | { readonly kind: 'lostAnswer'; readonly isHandled: boolean; readonly code?: (typeof LOST_ROUTES)[number] }
  | { readonly kind: 'page'; readonly isHandled: boolean; readonly status: (typeof PAGES)[number] }
  | { readonly kind: 'slow' | 'clock' | 'lateWebhook' | 'lateRequest' | 'stop'; readonly ms: number }
  | { readonly kind: 'lostWebhook' | 'unsent' | 'refusal' }
  | { readonly kind: 'outage'; readonly how: OutageKind; readonly ms: number };

/** How an outage of the store affects its calls: they fail, respond late, or never respond. */
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

/** The schedule of faults: random from the seed, or a fixed list. */
export interface Chances {
  /** Returns the faults of a place. They depend only on the seed and the place. */
  at(place: FaultPlace, limits: { readonly mayKill: boolean }): readonly Fault[];
  /** The faults so far, as the history of a failure lists them. */
  readonly struck: readonly string[];
}

/** Returns a random stream for a name. */
export function randomFor(seed: number, name: string): Random {
  const next = createRandom({ random: hashOf(`${seed} ${name}`) });
  next();
  const hex = (length: number) => Array.from({ length }, () => Math.floor(next() * 16).toString(16)).join('');
  return { next, uuid: () => `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}` };
}
