import { GenError } from '../errors/gen-error.js';

/** What a claim found: nobody had the event, somebody is at it, or it was handled. */
export type WebhookClaim = 'new' | 'busy' | 'done';

/** Remembers which events were handled, so that each is handled once (spec: Events, delivery rule 6). */
export interface WebhookStore {
  /**
   * Takes the event for `leaseMs` milliseconds, atomically. Of any number of claims at once, one hears `new`. After the
   * lease an event that was neither completed nor released can be claimed again: whoever held it crashed.
   */
  claim(id: string, leaseMs: number): Promise<WebhookClaim>;
  /** The event was handled: for `ttlMs` milliseconds every claim hears `done`. */
  complete(id: string, ttlMs: number): Promise<void>;
  /** The event was not handled: the next claim hears `new`. */
  release(id: string): Promise<void>;
}

/** How much a {@link memoryStore} remembers. */
export interface MemoryStoreOptions {
  /** Handled events that are remembered at most, and claims that are held at most; the oldest go first. @default 10_000 */
  readonly maxEntries?: number | undefined;
  /** The current time in milliseconds, for tests. @default the system's */
  readonly now?: (() => number) | undefined;
}

/** A {@link WebhookStore} in this process's memory, for a receiver that is one process. Bounded; gone on a restart. */
export function memoryStore({ maxEntries = 10_000, now = Date.now }: MemoryStoreOptions = {}): WebhookStore {
  if (!(maxEntries >= 1)) throw new GenError('`maxEntries` must be at least 1.');
  const held = new Map<string, number>();
  const handled = new Map<string, number>();
  const isLive = (until: number | undefined) => until !== undefined && until > now();
  const keep = (entries: Map<string, number>, id: string, until: number) => {
    entries.delete(id);
    entries.set(id, until);
    for (const oldest of entries.keys()) {
      if (entries.size <= maxEntries) break;
      entries.delete(oldest);
    }
  };
  return {
    async claim(id, leaseMs) {
      if (isLive(handled.get(id))) return 'done';
      if (isLive(held.get(id))) return 'busy';
      keep(held, id, now() + leaseMs);
      return 'new';
    },
    async complete(id, ttlMs) {
      held.delete(id);
      keep(handled, id, now() + ttlMs);
    },
    async release(id) {
      held.delete(id);
    },
  };
}
