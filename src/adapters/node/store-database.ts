// A file store's database. It is created atomically, validated before the first write, and shared by processes.
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

/** "genc". Identifies a store of this package. */
const APPLICATION_ID = 0x67656e63;
const FORMAT = 1;
const MODE = 0o600;
const GROUP_AND_OTHERS = 0o077;

export type StoreAccess = 'read' | 'write';

export interface StoreDatabase {
  /** Runs `work` in a transaction. Throws SQLite's error if another process is writing. */
  transact<T>(access: StoreAccess, work: (groups: GroupTable) => T): T;
  /** Resolves once all previous writes would survive a power failure. Concurrent writes share a flush. */
  flush(): Promise<void>;
  close(): void;
}

/** Returns a function that flushes the write-ahead log. Opening the log without SQLite is safe, because SQLite never locks it. */
function flusherOf(path: string): () => Promise<void> {
  let directoryFlush: Promise<void> | undefined;
  return async () => {
    await flushPath(`${path}-wal`).catch((reason) => {
      // A missing log means that the database was closed, which flushed it.
      if (fileSystemCode(reason) !== 'ENOENT') throw reason;
    });
    // The log isn't renamed while the database is open, so one directory flush is enough.
    directoryFlush ??= flushDirectory(dirname(path));
    await directoryFlush;
  };
}

/** Opens a store, and creates a missing one. The path must not be a symbolic link. */
export function openStoreDatabase(path: string): StoreDatabase {
  if (!existsSync(path)) createStoreFile(path);
  const { ino: inode } = validateFile(path);
  const database = openSqlite(locationOf(path));
  // Don't flush on commit. It would block the thread, and writes couldn't share a flush.
  database.exec('pragma synchronous = normal');
  const groups = openGroupTable({ exec: statementsOf(database) }, () => systemClock.now());
  const flushLog = flusherOf(path);
  let lastFlush: Promise<void> = Promise.resolve();
  let queuedFlush: Promise<void> | undefined;
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
      if (!queuedFlush) {
        const start = () => {
          queuedFlush = undefined;
          return flushLog();
        };
        queuedFlush = lastFlush.then(start, start);
        lastFlush = queuedFlush;
      }
      return queuedFlush;
    },
    close: () => database.close(),
  };
}

const BEGIN: Readonly<Record<StoreAccess, string>> = {
  read: 'begin',
  write: 'begin immediate',
};

/** Rolls back, unless SQLite's error has already ended the transaction. */
function rollBack(database: DatabaseSync): void {
  try {
    database.exec('rollback');
  } catch {
    // No transaction is open.
  }
}

/** Returns a function that runs cached prepared statements. */
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
 * Throws unless the file is a store of this version. Opens it read-only, so that a file that isn't a store stays unchanged, and only
 * through SQLite, because closing a plain descriptor would release this process's locks on the file.
 */
function validateFile(path: string): Stats {
  const stats = statSync(path);
  if (!stats.isFile()) {
    const kind = stats.isDirectory() ? 'a directory' : 'not a regular file';
    throw setupError(`fileStore: "${path}" is ${kind}. Pass the path of a file.`);
  }
  if (stats.size === 0)
    throw setupError(`fileStore: "${path}" is empty. Restore it from a backup, or delete it to start a new store.`);
  const database = openSqlite(locationOf(path), { readOnly: true });
  try {
    const { application_id: application } = database.prepare('pragma application_id').get() ?? {};
    const { user_version: format } = database.prepare('pragma user_version').get() ?? {};
    if (application !== APPLICATION_ID) throw foreignFileError(path);
    if (format !== FORMAT)
      throw setupError(
        `fileStore: "${path}" was written by a later version of gen-client (format ${format}). Update the package.`,
      );
    const { quick_check: checkResult } = database.prepare('pragma quick_check(1)').get() ?? {};
    if (checkResult !== 'ok') throw damagedFileError(path, String(checkResult));
  } finally {
    database.close();
  }
  if ((stats.mode & GROUP_AND_OTHERS) !== 0) allowOnlyOwner(path, stats.mode);
  return stats;
}

/** Returns the path or, if the directory isn't writable, an immutable URL, because SQLite can't create files next to it. */
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
    // Only the file's owner can change its mode, and not on a read-only disk.
  }
}

export function foreignFileError(path: string): Error {
  return setupError(`fileStore: "${path}" is not a gen-client store. Pass another path.`);
}

export function damagedFileError(path: string, reason: string): Error {
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
    publishFile(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
}

function publishFile(temporary: string, path: string): void {
  try {
    linkSync(temporary, path);
  } catch (reason) {
    if (existsSync(path)) return; // Another process created it first.
    if (fileSystemCode(reason) === 'ENOENT') throw reason;
    // The file system doesn't support hard links.
    renameSync(temporary, path);
  }
}
