// Leases of processes on one machine: a file beside the store, which its process locks for as long as it runs. The operating
// system releases the lock however the process exits, and containers that share a volume see it, too.
import { closeSync, existsSync, openSync, readdirSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { systemClock, systemRandom } from '../../runtime/clock.js';
import { isSqliteError, openSqlite } from './sqlite.js';

export interface Lease {
  readonly name: string;
  end(): void;
}

/** Without a journal on the disk, a lease is one file. */
const LOCK_SQL = 'pragma journal_mode = memory; begin exclusive';

function leaseFile(path: string, name: string): string {
  return `${path}-lease-${name}`;
}

/** Creates an empty file that only its owner may open. */
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
    // Before the lock, another process may have removed the file as that of a crashed process.
    if (existsSync(file)) return { name, end };
    database.close();
  }
}

/** Returns true while a process has the lease. */
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
    // Busy or unreadable counts as held. A file that was just removed was free.
    return existsSync(file);
  }
}

/** After this time, the process of an incomplete new store counts as crashed. */
const LEFT_MS = 3_600_000;

/** Returns the name under which a store is created, until it is complete. */
export function temporaryFile(path: string): string {
  return `${path}-new-${systemRandom.uuid()}`;
}

/** Removes leases and incomplete stores of crashed processes. */
export function removeLeftFiles(path: string): void {
  const directory = dirname(path);
  for (const entry of readdirSync(directory)) {
    if (!entry.startsWith(`${basename(path)}-`)) continue;
    const [file, kind] = [join(directory, entry), entry.slice(basename(path).length)];
    if (kind.startsWith('-lease-')) removeIfEnded(file);
    if (kind.startsWith('-new-') && systemClock.now() - modifiedMs(file) > LEFT_MS) rmSync(file, { force: true });
  }
}

function modifiedMs(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? systemClock.now();
}

/** Removes a file while it is locked, so that another process notices and uses another name. */
function removeIfEnded(file: string): void {
  try {
    const database = openSqlite(file);
    try {
      database.exec(LOCK_SQL);
      if (process.platform !== 'win32') rmSync(file, { force: true });
    } finally {
      database.close();
    }
    // Windows does not remove a file that a process has open, so no lock is needed there.
    rmSync(file, { force: true });
  } catch {
    // Its process is still running.
  }
}
