// Which webhook events were handled, in the storage of a Durable Object.
import type { WebhookClaim } from '../webhooks/stores.js';
import type { SqlStorageLike } from './sql.js';

/** A claim of an event. */
export interface EventClaim {
  /** The id of the event. */
  readonly event: string;
  /** The store that claims. It may give the event back. */
  readonly owner: string;
  /** The claim's own id: the same claim may come twice, because an answer was lost. */
  readonly claim: string;
  /** Milliseconds after which another store may claim the event. */
  readonly leaseMs: number;
}

/** What is known of events. */
export interface EventTable {
  claim(claim: EventClaim): WebhookClaim;
  /** For `ttlMs` milliseconds every claim gets `done`. */
  complete(event: string, ttlMs: number): void;
  /** Gives the event back, when the owner still holds it. */
  release(event: string, owner: string): void;
}

// `owner` and `claim`: who works on the event; null when it was handled.
const SCHEMA = `
CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, owner TEXT, claim TEXT, until INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS events_by_end ON events (until);`;

/** Opens the table. `now` gives milliseconds. */
export function openEventTable(sql: SqlStorageLike, now: () => number): EventTable {
  sql.exec(SCHEMA);
  const put = (event: string, { owner, claim }: Partial<EventClaim>, ms: number) => {
    const values = [event, owner ?? null, claim ?? null, Math.ceil(now() + ms)];
    sql.exec('INSERT OR REPLACE INTO events VALUES (?, ?, ?, ?)', ...values);
  };
  return {
    claim(claim) {
      sql.exec('DELETE FROM events WHERE until <= ?', now());
      const [held] = sql.exec('SELECT claim FROM events WHERE id = ?', claim.event).toArray();
      if (held && held.claim !== claim.claim) return held.claim === null ? 'done' : 'busy';
      if (!held) put(claim.event, claim, claim.leaseMs);
      return 'new';
    },
    complete: (event, ttlMs) => put(event, {}, ttlMs),
    release: (event, owner) => void sql.exec('DELETE FROM events WHERE id = ? AND owner = ?', event, owner),
  };
}
