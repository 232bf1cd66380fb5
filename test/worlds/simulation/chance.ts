import type { Random } from '../../../src/runtime/clock.js';
import { createRandom, hashOf } from '../../../src/sandbox/world/random.js';

/** Error codes of a broken connection: the request may have arrived. */
export const LOST_ROUTES = ['ECONNRESET', 'EHOSTUNREACH', 'ENETDOWN', 'ETIMEDOUT'] as const;
/** Statuses of HTML pages that an intermediary returns instead of the service's response. */
export const PAGES = [200, 403, 404, 502] as const;

/**
 * A fault at one place. With `isHandled`, the service handles the request first. `unsent`: no connection. `rejection`: the
 * service rejects the request with status 200. `lateRequest`: the service receives the request after `ms`, even if the
 * client has given up. `stop`: the process pauses for `ms`.
 */
export type Fault =
  | { readonly kind: 'kill'; readonly isHandled: boolean }
  | { readonly kind: 'lostResponse'; readonly isHandled: boolean; readonly code?: (typeof LOST_ROUTES)[number] }
  | { readonly kind: 'page'; readonly isHandled: boolean; readonly status: (typeof PAGES)[number] }
  | { readonly kind: 'slow' | 'clock' | 'lateWebhook' | 'lateRequest' | 'stop'; readonly ms: number }
  | { readonly kind: 'lostWebhook' | 'unsent' | 'rejection' }
  | { readonly kind: 'outage'; readonly how: OutageKind; readonly ms: number };

/** What store calls do during an outage: fail, respond late, or never respond. */
export const OUTAGES = ['fails', 'late', 'silent'] as const;
export type OutageKind = (typeof OUTAGES)[number];

/**
 * Where a fault may happen: a process's nth request, nth pause (a timer, or the start or end of a store call), or nth store
 * call, or the nth webhook.
 */
export interface FaultPlace {
  readonly of: 'request' | 'pause' | 'store' | 'webhook';
  /** The process's number, or `w` for webhooks. */
  readonly process: number | 'w';
  readonly nth: number;
}

/** A schedule of faults, drawn from a seed or fixed. */
export interface FaultSchedule {
  /** Returns the faults at a place. They depend only on the seed and the place. */
  at(place: FaultPlace): readonly Fault[];
}

/** Returns a named random stream. */
export function randomFor(seed: number, name: string): Random {
  const next = createRandom({ random: hashOf(`${seed} ${name}`) });
  next();
  const hex = (length: number) => Array.from({ length }, () => Math.floor(next() * 16).toString(16)).join('');
  return { next, uuid: () => `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}` };
}
