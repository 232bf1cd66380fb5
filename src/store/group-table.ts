// The groups of a shared store, in the storage of a Durable Object.
import type { StoreChanges, StoredValues } from './port.js';

/** What is used of the SQLite storage of a Durable Object. */
export interface SqlStorageLike {
  /** Runs one statement. */
  exec(query: string, ...values: (string | number | null)[]): { toArray(): Readonly<Record<string, unknown>>[] };
}

/** Reads groups, and compares and swaps. */
export interface GroupTable {
  read(group: string, keys: readonly string[]): StoredValues;
  write(group: string, version: string, changes: StoreChanges): boolean;
  /** Forgets what is over. Returns when the rest is over, or undefined when nothing is left. */
  sweep(): number | undefined;
}

const TABLE_SQL = `
CREATE TABLE IF NOT EXISTS groups (name TEXT PRIMARY KEY, version INTEGER NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS groups_by_end ON groups (until);
CREATE TABLE IF NOT EXISTS pairs (name TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, until INTEGER NOT NULL,
  PRIMARY KEY (name, key)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS pairs_by_end ON pairs (until);`;

/** The version of a group is kept at least this long, so that a write that comes late does not meet an old version. */
const LEAST_MS = 60_000;

/** Opens the tables. `now` gives milliseconds. */
export function openGroupTable(sql: SqlStorageLike, now: () => number): GroupTable {
  sql.exec(TABLE_SQL);
  const versionOf = (group: string) => {
    const [row] = sql.exec('SELECT version, until FROM groups WHERE name = ?', group).toArray();
    return row ? { version: Number(row.version), untilMs: Number(row.until) } : { version: 0, untilMs: 0 };
  };
  const sweep = () => {
    sql.exec('DELETE FROM pairs WHERE until <= ?', now());
    sql.exec('DELETE FROM groups WHERE until <= ?', now());
  };
  return {
    read(group, keys) {
      const nowMs = now();
      const values: Record<string, string> = {};
      for (const key of keys) {
        const [row] = sql
          .exec('SELECT value FROM pairs WHERE name = ? AND key = ? AND until > ?', group, key, nowMs)
          .toArray();
        if (row) values[key] = String(row.value);
      }
      return { version: String(versionOf(group).version), nowMs, values };
    },
    write(group, version, changes) {
      const known = versionOf(group);
      if (String(known.version) !== version) return false;
      sweep();
      const nowMs = now();
      let untilMs = Math.max(known.untilMs, nowMs + LEAST_MS);
      for (const [key, change] of Object.entries(changes)) {
        if (change === null) sql.exec('DELETE FROM pairs WHERE name = ? AND key = ?', group, key);
        else {
          const endMs = nowMs + Math.ceil(change.ttlMs);
          untilMs = Math.max(untilMs, endMs);
          sql.exec('INSERT OR REPLACE INTO pairs VALUES (?, ?, ?, ?)', group, key, change.value, endMs);
        }
      }
      // The time makes it unlike every version before the group was forgotten.
      const next = Math.max(known.version + 1, nowMs * 1000);
      sql.exec('INSERT OR REPLACE INTO groups VALUES (?, ?, ?)', group, next, untilMs);
      return true;
    },
    sweep() {
      sweep();
      const [row] = sql.exec('SELECT MAX(until) AS until FROM groups').toArray();
      return row?.until ? Number(row.until) : undefined;
    },
  };
}
