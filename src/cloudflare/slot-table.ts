import type { SqlStorageLike } from './sql.js';

/** A slot in use: `flight`, its call is under way until its lease ends; `rest`, it is free again at `untilMs`. */
export interface StoredSlot {
  readonly id: string;
  readonly lane: string;
  readonly state: 'flight' | 'rest';
  readonly untilMs: number;
}

/** A call that waits, and its place in the queue. */
export interface StoredTicket {
  readonly id: string;
  readonly lane: string;
  readonly place: number;
}

/** What a restart of the object must not forget. */
export interface SlotTable {
  tickets(): StoredTicket[];
  putTicket(ticket: StoredTicket): void;
  slots(): StoredSlot[];
  put(slot: StoredSlot): void;
  remove(id: string): void;
  /** Forgets the slots of a lane that are free again. */
  sweep(lane: string, nowMs: number): void;
  pauses(): { readonly lane: string; readonly untilMs: number; readonly ms: number }[];
  putPause(lane: string, untilMs: number, ms: number): void;
}

// `at`: of a waiting call its place; else `untilMs`.
const SCHEMA = `
CREATE TABLE IF NOT EXISTS calls (id TEXT PRIMARY KEY, lane TEXT NOT NULL, state TEXT NOT NULL, at INTEGER NOT NULL)
WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pauses (lane TEXT PRIMARY KEY, until INTEGER NOT NULL, ms INTEGER NOT NULL) WITHOUT ROWID;`;

/** Opens the tables. */
export function openSlotTable(sql: SqlStorageLike): SlotTable {
  sql.exec(SCHEMA);
  const put = (values: readonly (string | number)[]) =>
    void sql.exec('INSERT OR REPLACE INTO calls VALUES (?, ?, ?, ?)', ...values);
  return {
    tickets: () =>
      sql
        .exec("SELECT id, lane, at FROM calls WHERE state = 'wait' ORDER BY at")
        .toArray()
        .map(({ id, lane, at }) => ({ id: String(id), lane: String(lane), place: Number(at) })),
    putTicket: ({ id, lane, place }) => put([id, lane, 'wait', place]),
    slots: () =>
      sql
        .exec("SELECT id, lane, state, at FROM calls WHERE state <> 'wait'")
        .toArray()
        .map(({ id, lane, state, at }) => ({
          id: String(id),
          lane: String(lane),
          state: state === 'rest' ? 'rest' : 'flight',
          untilMs: Number(at),
        })),
    put: ({ id, lane, state, untilMs }) => put([id, lane, state, untilMs]),
    remove: (id) => void sql.exec('DELETE FROM calls WHERE id = ?', id),
    sweep: (lane, nowMs) =>
      void sql.exec("DELETE FROM calls WHERE lane = ? AND state = 'rest' AND at <= ?", lane, nowMs),
    pauses: () =>
      sql
        .exec('SELECT lane, until, ms FROM pauses')
        .toArray()
        .map(({ lane, until, ms }) => ({ lane: String(lane), untilMs: Number(until), ms: Number(ms) })),
    putPause: (lane, untilMs, ms) => void sql.exec('INSERT OR REPLACE INTO pauses VALUES (?, ?, ?)', lane, untilMs, ms),
  };
}
