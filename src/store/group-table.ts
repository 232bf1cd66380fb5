// Stores groups in SQLite: in a Durable Object's storage, or in a file.
import type { StoreChanges, StoredValues } from './port.js';

/** The subset of SQLite that the tables use. */
export interface SqlStorageLike {
  /** Runs one statement. */
  exec(query: string, ...values: (string | number | null)[]): { toArray(): Readonly<Record<string, unknown>>[] };
}

/** Reads groups and compares and swaps their values. */
export interface GroupTable {
  read(group: string, keys: readonly string[]): StoredValues;
  write(group: string, version: string, changes: StoreChanges): boolean;
  /** Deletes all expired rows. Returns when the last remaining group expires, or undefined if none is left. */
  sweep(): number | undefined;
}

/** Creates the tables that {@link openGroupTable} uses. */
export const GROUP_TABLES_SQL = `
CREATE TABLE IF NOT EXISTS groups (name TEXT PRIMARY KEY, version INTEGER NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS groups_by_end ON groups (until);
CREATE TABLE IF NOT EXISTS pairs (name TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, until INTEGER NOT NULL,
  PRIMARY KEY (name, key)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS pairs_by_end ON pairs (until);`;

/** Minimum lifetime of a group's version, so that a late write doesn't match an old version. */
const MIN_VERSION_MS = 60_000;
/** Maximum rows that a write deletes from each table: more than it inserts, so that the file doesn't grow over time. */
const SWEPT_PER_WRITE = 64;
const ALL_ROWS = -1;

/** Opens the tables. `now` returns the time in milliseconds. */
export function openGroupTable(sql: SqlStorageLike, now: () => number): GroupTable {
  const versionOf = (group: string) => {
    const [row] = sql.exec('SELECT version, until FROM groups WHERE name = ?', group).toArray();
    return row ? { version: Number(row.version), untilMs: Number(row.until) } : { version: 0, untilMs: 0 };
  };
  const sweep = (limit: number) => {
    const deleteExpiredSql = (columns: string, table: string) =>
      `DELETE FROM ${table} WHERE (${columns}) IN (SELECT ${columns} FROM ${table} WHERE until <= ? LIMIT ?)`;
    sql.exec(deleteExpiredSql('name, key', 'pairs'), now(), limit);
    sql.exec(deleteExpiredSql('name', 'groups'), now(), limit);
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
      const stored = versionOf(group);
      if (String(stored.version) !== version) return false;
      sweep(SWEPT_PER_WRITE);
      const nowMs = now();
      let untilMs = Math.max(stored.untilMs, nowMs + MIN_VERSION_MS);
      for (const [key, change] of Object.entries(changes)) {
        if (change === null) sql.exec('DELETE FROM pairs WHERE name = ? AND key = ?', group, key);
        else {
          const endMs = nowMs + Math.ceil(change.ttlMs);
          untilMs = Math.max(untilMs, endMs);
          sql.exec('INSERT OR REPLACE INTO pairs VALUES (?, ?, ?, ?)', group, key, change.value, endMs);
        }
      }
      // Based on the time, so that a deleted group never repeats a version.
      const nextVersion = Math.max(stored.version + 1, nowMs * 1000);
      sql.exec('INSERT OR REPLACE INTO groups VALUES (?, ?, ?)', group, nextVersion, untilMs);
      return true;
    },
    sweep() {
      sweep(ALL_ROWS);
      const [row] = sql.exec('SELECT MAX(until) AS until FROM groups').toArray();
      return row?.until ? Number(row.until) : undefined;
    },
  };
}
