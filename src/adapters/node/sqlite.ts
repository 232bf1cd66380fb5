// The SQLite module of Node, Bun, and Deno.
import type { DatabaseSync } from 'node:sqlite';
import { reasonOf } from '../../runtime/callbacks.js';
import { builtIn } from '../../runtime/platform.js';
import { setupError } from '../../store/store.js';

/** Opens a database. A locked database throws immediately instead of blocking the thread. */
export function openSqlite(path: string, options: { readonly readOnly?: boolean } = {}): DatabaseSync {
  const { DatabaseSync: Database } = loadSqlite();
  const database = new Database(path, options);
  // Deno's default is five seconds.
  database.exec('pragma busy_timeout = 0');
  return database;
}

/** Loads the module without Node 22's warning that SQLite is experimental. */
function loadSqlite(): typeof import('node:sqlite') {
  const { emitWarning } = process;
  process.emitWarning = (warning: string | Error, ...rest: unknown[]) => {
    if (!String(warning).startsWith('SQLite is an experimental feature'))
      Reflect.apply(emitWarning, process, [warning, ...rest]);
  };
  try {
    const sqlite = builtIn<typeof import('node:sqlite')>('sqlite');
    if (sqlite) return sqlite;
  } finally {
    process.emitWarning = emitWarning;
  }
  throw setupError('fileStore: this runtime has no node:sqlite. Use Node 22.13 or later, Bun, or Deno.');
}

/** SQLite's result codes, and the messages that Deno throws without a code. */
const CONDITIONS = {
  busy: [5, 'database is locked'],
  'read-only': [8, 'attempt to write a readonly database'],
  damaged: [11, 'database disk image is malformed'],
  'cannot open': [14, 'unable to open database file'],
  foreign: [26, 'file is not a database'],
} as const;

export function isSqliteError(error: unknown, condition: keyof typeof CONDITIONS): boolean {
  const [code, message] = CONDITIONS[condition];
  const { errcode } = (error ?? {}) as { readonly errcode?: unknown };
  // The low byte is the primary code.
  return typeof errcode === 'number' ? (errcode & 0xff) === code : reasonOf(error).includes(message);
}
