// The database of a file store: created in one step, checked before it is changed, and shared by processes.
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  linkSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { systemClock } from '../../runtime/clock.js';
import { GROUP_TABLES_SQL, type GroupTable, openGroupTable } from '../../store/group-table.js';
import { setupError } from '../../store/store.js';
import { fileSystemCode, flushDirectory, flushPath } from './flush.js';
import { createPrivateFile, temporaryFile } from './lease.js';
import { openSqlite } from './sqlite.js';

/** "genc", which identifies a store. */
const APPLICATION_ID = 0x67656e63;
const FORMAT = 1;
const MODE = 0o600;
const OTHERS = 0o077;

export type StoreAccess = 'read' | 'write';

export interface StoreDatabase {
  /** Runs `work` in a transaction. Throws SQLite's error if another process is writing. */
  transact<T>(access: StoreAccess, work: (groups: GroupTable) => T): T;
  /** Resolves when all writes so far survive a power cut. Concurrent writes share a flush. */
  flush(): Promise<void>;
  close(): void;
}

/** Opens the log without SQLite, which locks only the database. */
function flusherOf(path: string): () => Promise<void> {
  let names: Promise<void> | undefined;
  return async () => {
    await flushPath(`${path}-wal`).catch((reason) => {
      // Without a log, the database was closed, which flushes it.
      if (fileSystemCode(reason) !== 'ENOENT') throw reason;
    });
    // The log keeps its name while this process has the database open.
    names ??= flushDirectory(dirname(path));
    await names;
  };
}

/** Opens the store at a path, and creates it if there is no file. The path is no link. */
export function openStoreDatabase(path: string): StoreDatabase {
  if (!existsSync(path)) createStoreFile(path);
  const { ino: inode } = checkFile(path);
  const database = openSqlite(locationOf(path));
  // A commit is not flushed: SQLite would block the thread for it, and writes could not share a flush.
  database.exec('pragma synchronous = normal');
  const groups = openGroupTable({ exec: statementsOf(database) }, () => systemClock.now());
  const flushLog = flusherOf(path);
  let [last, next]: [Promise<void>, Promise<void> | undefined] = [Promise.resolve(), undefined];
  return {
    transact(access, work) {
      if (statSync(path, { throwIfNoEntry: false })?.ino !== inode)
        throw setupError(
          `fileStore: "${path}" was deleted or replaced while this process used it. Restart the process.`,
        );
      database.exec(BEGIN[access]);
      try {
        const result = work(groups);
        database.exec('commit');
        return result;
      } catch (error) {
        rollBack(database);
        throw error;
      }
    },
    flush() {
      if (!next) {
        const begin = () => {
          next = undefined;
          return flushLog();
        };
        next = last.then(begin, begin);
        last = next;
      }
      return next;
    },
    close: () => database.close(),
  };
}

const BEGIN: Readonly<Record<StoreAccess, string>> = {
  read: 'begin',
  write: 'begin immediate',
};

/** Some errors of SQLite have ended the transaction already. */
function rollBack(database: DatabaseSync): void {
  try {
    database.exec('rollback');
  } catch {
    // No transaction is open.
  }
}

/** Runs statements that are prepared once. */
function statementsOf(database: DatabaseSync) {
  const prepared = new Map<string, ReturnType<DatabaseSync['prepare']>>();
  return (query: string, ...values: SQLInputValue[]) => {
    const statement = prepared.get(query) ?? database.prepare(query);
    prepared.set(query, statement);
    const rows = statement.all(...values);
    return { toArray: () => rows };
  };
}

/**
 * Throws unless a path is a store of this version. Opens it for reading only, so that other files stay unchanged.
 * The file is never opened without SQLite: closing it would release the locks that this process has on it.
 */
function checkFile(path: string): Stats {
  const stats = statSync(path);
  if (!stats.isFile()) {
    const what = stats.isDirectory() ? 'a directory' : 'not a regular file';
    throw setupError(`fileStore: "${path}" is ${what}. Pass the path of a file.`);
  }
  if (stats.size === 0)
    throw setupError(`fileStore: "${path}" is empty. Restore it from a backup, or delete it to start a new store.`);
  const database = openSqlite(locationOf(path), { readOnly: true });
  try {
    const { application_id: application } = database.prepare('pragma application_id').get() ?? {};
    const { user_version: format } = database.prepare('pragma user_version').get() ?? {};
    if (application !== APPLICATION_ID) throw foreignFile(path);
    if (format !== FORMAT)
      throw setupError(`fileStore: "${path}" has format ${format}, of a later gen-client. Update the package.`);
    const { quick_check: found } = database.prepare('pragma quick_check(1)').get() ?? {};
    if (found !== 'ok') throw damagedFile(path, String(found));
  } finally {
    database.close();
  }
  if ((stats.mode & OTHERS) !== 0) allowOnlyOwner(path, stats.mode);
  return stats;
}

/** On a read-only disk, SQLite must not create files beside the store. */
function locationOf(path: string): string {
  if (existsSync(`${path}-wal`)) return path;
  try {
    accessSync(dirname(path), constants.W_OK);
    return path;
  } catch {
    return `${pathToFileURL(path)}?immutable=1`;
  }
}

function allowOnlyOwner(path: string, mode: number): void {
  try {
    chmodSync(path, mode & MODE);
  } catch {
    // Only its owner can, and a read-only disk has no modes to change.
  }
}

export function foreignFile(path: string): Error {
  return setupError(`fileStore: "${path}" is not a store of gen-client. Pass another path.`);
}

export function damagedFile(path: string, reason: string): Error {
  return setupError(`fileStore: "${path}" is damaged (${reason}). Restore it from a backup.`);
}

/** Creates an empty store under a temporary name, and renames it once it is complete. */
function createStoreFile(path: string): void {
  const temporary = temporaryFile(path);
  createPrivateFile(temporary);
  try {
    const database = openSqlite(temporary);
    try {
      database.exec(`${GROUP_TABLES_SQL}
        pragma application_id = ${APPLICATION_ID}; pragma user_version = ${FORMAT}; pragma journal_mode = wal`);
    } finally {
      database.close();
    }
    placeNew(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
}

function placeNew(temporary: string, path: string): void {
  try {
    linkSync(temporary, path);
  } catch (reason) {
    if (existsSync(path)) return; // Another process was faster.
    if (fileSystemCode(reason) === 'ENOENT') throw reason;
    // The file system has no hard links.
    renameSync(temporary, path);
  }
}
