import { lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ConnectionError } from '../../errors/client-errors.js';
import { GenError } from '../../errors/gen-error.js';
import { clientStore } from '../../ledger/client-ledger.js';
import { backoff, spread } from '../../rules/backoff.js';
import { reasonOf } from '../../runtime/callbacks.js';
import { systemClock, systemRandom } from '../../runtime/clock.js';
import { sleep } from '../../runtime/deadline.js';
import { formatValue } from '../../schemas/format-value.js';
import type { GroupTable } from '../../store/group-table.js';
import { LEASES, type ProcessLeases, type StoreChanges } from '../../store/port.js';
import { type NotifyingStore, openTopics, setupError } from '../../store/store.js';
import { fileSystemCode } from './flush.js';
import { acquireLease, isLeaseHeld, type Lease, removeStaleFiles } from './lease.js';
import { isSqliteError } from './sqlite.js';
import {
  damagedFileError,
  foreignFileError,
  openStoreDatabase,
  type StoreAccess,
  type StoreDatabase,
} from './store-database.js';

/** A store in a file. */
export interface FileStore extends NotifyingStore {
  /** Closes the file. The next call reopens it. When the process exits, it closes automatically. */
  close(): Promise<void>;
}

const FILES = Symbol.for('gen-client.files');
/** A longer timeout than other stores have, because a busy disk flushes slowly. */
const TIMEOUT_MS = 10_000;
const BUSY_PAUSE = { firstMs: 1, maxMs: 25 } as const;
/** Values with a shorter TTL, such as rate limits, expire before a machine can restart, so they aren't flushed. */
const MAX_UNFLUSHED_TTL_MS = 120_000;

/**
 * Creates a store in an SQLite file, which all processes of one machine can share. Creates and budgets survive a crash and a
 * power failure. Only the file's owner can read it.
 *
 * @example
 * const client = new GenClient({ store: fileStore('gen.store') });
 */
export function fileStore(path: string | URL): FileStore {
  const name = realPath(pathOf(path));
  const stores = openStores();
  const store = stores.get(name) ?? clientStore(new StoreFile(name).store());
  stores.set(name, store);
  return store;
}

/** A store file in this process. All clients share its connection and lease. */
class StoreFile {
  readonly #path: string;
  #database: StoreDatabase | undefined;
  #lease: Lease | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  store(): FileStore & { readonly [LEASES]: ProcessLeases } {
    return {
      timeoutMs: TIMEOUT_MS,
      [LEASES]: { own: () => this.#ownLease().name, isHeld: (name) => this.#isHeld(name) },
      read: (group, keys) => this.#transact('read', (groups) => groups.read(group, keys)),
      write: (group, version, changes) => this.#write(group, version, changes),
      ...openTopics(),
      close: async () => this.#close(),
    };
  }

  /** Runs `work` in a transaction. Retries while another process is writing, without blocking the thread. */
  async #transact<T>(access: StoreAccess, work: (groups: GroupTable) => T): Promise<T> {
    const startMs = performance.now();
    for (let attempts = 1; ; attempts++) {
      try {
        return this.#open().transact(access, work);
      } catch (cause) {
        if (!isSqliteError(cause, 'busy') || performance.now() - startMs > TIMEOUT_MS) throw this.#failure(cause);
      }
      await sleep(systemClock, spread(backoff(BUSY_PAUSE, attempts), systemRandom.next()));
    }
  }

  async #write(group: string, version: string, changes: StoreChanges): Promise<boolean> {
    const isWritten = await this.#transact('write', (groups) => groups.write(group, version, changes));
    if (isWritten && mustBeDurable(changes)) {
      await this.#open()
        .flush()
        .catch((cause) => {
          throw this.#failure(cause);
        });
    }
    return isWritten;
  }

  #open(): StoreDatabase {
    this.#database ??= openStoreDatabase(this.#path);
    return this.#database;
  }

  #ownLease(): Lease {
    try {
      if (!this.#lease) removeStaleFiles(this.#path);
      this.#lease ??= acquireLease(this.#path);
      return this.#lease;
    } catch (cause) {
      throw this.#failure(cause);
    }
  }

  #isHeld(name: string): boolean {
    return name === this.#lease?.name || isLeaseHeld(this.#path, name);
  }

  #close(): void {
    this.#database?.close();
    this.#database = undefined;
    this.#lease?.end();
    this.#lease = undefined;
  }

  #failure(cause: unknown): unknown {
    if (GenError.isInstance(cause)) return cause;
    const reason = reasonOf(cause);
    if (isSqliteError(cause, 'foreign')) return foreignFileError(this.#path);
    if (isSqliteError(cause, 'damaged')) return damagedFileError(this.#path, reason);
    const message = `fileStore: "${this.#path}" cannot be used: ${reason}.`;
    const code = fileSystemCode(cause);
    if (code === 'ENOENT') return setupError(`${message} Create its directory.`, cause);
    if (ACCESS_CODES.includes(code) || isSqliteError(cause, 'read-only'))
      return setupError(`${message} Allow this process to write to the file and its directory.`, cause);
    return new ConnectionError(message, { cause });
  }
}

const ACCESS_CODES = ['EACCES', 'EROFS', 'EPERM', 'ERR_ACCESS_DENIED'];

/**
 * Returns true if the changes must survive a power failure. Deletions must, or an aborted call would be sent after a
 * restart.
 */
function mustBeDurable(changes: StoreChanges): boolean {
  return Object.values(changes).some((change) => change === null || change.ttlMs > MAX_UNFLUSHED_TTL_MS);
}

/** Returns this process's stores by path. Two stores of the same file would count as two owners. */
function openStores(): Map<string, FileStore> {
  const globals: typeof globalThis & { [FILES]?: Map<string, FileStore> } = globalThis;
  if (globals[FILES]) return globals[FILES];
  const stores = new Map<string, FileStore>();
  globals[FILES] = stores;
  process.on('exit', () => {
    for (const store of stores.values()) void store.close();
  });
  return stores;
}

function pathOf(path: string | URL): string {
  const file = path instanceof URL && path.protocol === 'file:' ? fileURLToPath(path) : path;
  if (file === ':memory:') throw new GenError('fileStore(path): ":memory:" is not a file. Use memoryStore().');
  if (typeof file === 'string' && file !== '' && !file.includes('\0')) return resolve(file);
  throw new GenError(
    `fileStore: path must be the path of a file or a file: URL, not ${formatValue(file)}. Pass fileStore('gen.store').`,
  );
}

const MAX_LINKS = 40;

/** Resolves symbolic links, even if the target doesn't exist yet. */
function realPath(path: string, links = 0): string {
  try {
    return realpathSync(path);
  } catch {
    // It does not exist yet.
  }
  if (links < MAX_LINKS && lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink())
    return realPath(resolve(dirname(path), readlinkSync(path)), links + 1);
  try {
    return join(realpathSync(dirname(path)), basename(path));
  } catch {
    return path;
  }
}
