import { GenError } from '../errors/gen-error.js';

/** `busy`: somebody is at it (`new`: nobody had the event; `done`: it was handled). */
export type WebhookClaim = 'new' | 'busy' | 'done';

/** Remembers which events were handled (so that each is handled once; spec: Events, delivery rule 6). */
export interface WebhookStore {
  /**
   * Takes the event, atomically; a crash frees it after `leaseMs`. Of any number of claims at once, one hears `new`.
   * After the lease an event that was neither completed nor released can be claimed again.
   */
  claim(id: string, leaseMs: number): Promise<WebhookClaim>;
  /** Handled: for `ttlMs` a claim hears `done`. */
  complete(id: string, ttlMs: number): Promise<void>;
  /** Not handled: the next claim hears `new`. */
  release(id: string): Promise<void>;
}

/** How much is remembered. */
export interface MemoryStoreOptions {
  /** The oldest go first (handled events at most, and as many claims that are held). @default 10_000 */
  readonly maxEntries?: number | undefined;
  /** For tests (the current time in milliseconds). @default the system's */
  readonly now?: (() => number) | undefined;
}

/** For a receiver that is one process (a {@link WebhookStore} in its memory: bounded, and gone on a restart). */
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
