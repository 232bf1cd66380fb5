// Process leases on one machine. A lease is a file next to the store. Its process keeps the file locked while
// it runs. The operating system releases the lock even after a crash, and containers that share a volume see it, too.
import { closeSync, existsSync, openSync, readdirSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { systemClock, systemRandom } from '../../runtime/clock.js';
import { isSqliteError, openSqlite } from './sqlite.js';

export interface Lease {
  readonly name: string;
  end(): void;
}

/** A journal in memory, so that a lease is a single file. */
const LOCK_SQL = 'pragma journal_mode = memory; begin exclusive';

function leaseFile(path: string, name: string): string {
  return `${path}-lease-${name}`;
}

/** Creates an empty file that only its owner can open. */
export function createPrivateFile(path: string): void {
  closeSync(openSync(path, 'wx', 0o600));
}

export function acquireLease(path: string): Lease {
  for (;;) {
    const name = systemRandom.uuid();
    const file = leaseFile(path, name);
    createPrivateFile(file);
    const database = openSqlite(file);
    const end = () => {
      database.close();
      rmSync(file, { force: true });
    };
    try {
      database.exec(LOCK_SQL);
    } catch (cause) {
      database.close();
      // Another process is testing this lease.
      if (isSqliteError(cause, 'busy')) continue;
      throw cause;
    }
    // Another process may have removed the file before it was locked.
    if (existsSync(file)) return { name, end };
    database.close();
  }
}

/** Returns true if a process holds the lease. */
export function isLeaseHeld(path: string, name: string): boolean {
  const file = leaseFile(path, name);
  if (!existsSync(file)) return false;
  try {
    const database = openSqlite(file, { readOnly: true });
    try {
      database.prepare('select 1 from sqlite_schema').all();
      return false;
    } finally {
      database.close();
    }
  } catch {
    // A busy or unreadable file counts as held. A file that was just removed doesn't.
    return existsSync(file);
  }
}

/** If an incomplete store hasn't changed for this long, its process counts as crashed. */
const STALE_MS = 3_600_000;

/** Returns the temporary name under which a store is created. */
export function temporaryFile(path: string): string {
  return `${path}-new-${systemRandom.uuid()}`;
}

/** Removes the leases and incomplete stores of crashed processes. */
export function removeStaleFiles(path: string): void {
  const directory = dirname(path);
  for (const entry of readdirSync(directory)) {
    if (!entry.startsWith(`${basename(path)}-`)) continue;
    const [file, suffix] = [join(directory, entry), entry.slice(basename(path).length)];
    if (suffix.startsWith('-lease-')) removeIfReleased(file);
    if (suffix.startsWith('-new-') && systemClock.now() - modifiedMs(file) > STALE_MS) rmSync(file, { force: true });
  }
}

function modifiedMs(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? systemClock.now();
}

/** Removes a file while holding its lock, so that a process that is acquiring the lease notices. */
function removeIfReleased(file: string): void {
  try {
    const database = openSqlite(file);
    try {
      database.exec(LOCK_SQL);
      if (process.platform !== 'win32') rmSync(file, { force: true });
    } finally {
      database.close();
    }
    // Windows never removes an open file, so it needs no lock.
    rmSync(file, { force: true });
  } catch {
    // Its process is still running.
  }
}
