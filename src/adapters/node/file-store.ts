import { realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GenError } from '../../errors/gen-error.js';
import { show } from '../../schemas/show.js';
import { LEASES, type ProcessLeases } from '../../store/port.js';
import { type NotifyingStore, openTopics, type Store, setupError } from '../../store/store.js';
import { loadFile, StoreFile } from './store-file.js';

/** A `Store` in a file. */
export interface FileStore extends NotifyingStore {
  /** Lets another process open the file. A process that ends, in whichever way, does so by itself. */
  close(): Promise<void>;
}

interface OpenFile {
  readonly store: FileStore;
  readonly file: StoreFile;
}

const FILES = Symbol.for('gen-client.files');
/** A disk that is busy takes longer for a flush than a store usually may. */
const TIMEOUT_MS = 10_000;

/**
 * A {@link Store} in a file, for one process at a time: what a program has created, and what it has spent, outlives the
 * program and the machine. The file is readable by its owner only, and it compacts itself. While a process uses it,
 * `<path>.lock` names that process, and another one is refused. The file is opened by the first call that needs it.
 *
 * @example
 * const client = new GenClient({ store: fileStore('gen.store') });
 */
export function fileStore(path: string | URL): FileStore {
  const name = realPath(pathOf(path));
  const files = openFiles();
  const known = files.get(name)?.store;
  if (known) return known;
  const file = new StoreFile(name);
  const store: FileStore & { readonly [LEASES]: ProcessLeases } = {
    timeoutMs: TIMEOUT_MS,
    // One process at a time has the file, so every other lease has ended.
    [LEASES]: { own: () => file.opening, isHeld: (name) => name === file.opening },
    read: (group, keys) => file.read(group, keys),
    write: (group, version, changes) => file.write(group, version, changes),
    ...openTopics(),
    close: () => file.close(),
  };
  files.set(name, { store, file });
  return store;
}

/** A store that only reads what is in a file now, also while a process uses it. Throws where there is no such file. */
export function readFileStore(path: string | URL): Store & { readonly groups: readonly string[] } {
  const name = pathOf(path);
  const groups = loadFile(name);
  if (!groups) throw setupError(`"${name}" is no store of gen-client: there is no such file, or it is empty.`);
  return {
    groups: groups.names,
    read: async (group, keys) => groups.read(group, keys),
    write: () => Promise.reject(new GenError(`"${name}" was opened for reading only.`)),
  };
}

/** The stores of this process by path: two of one file would each have half of it in memory. */
function openFiles(): Map<string, OpenFile> {
  const home: typeof globalThis & { [FILES]?: Map<string, OpenFile> } = globalThis;
  if (home[FILES] === undefined) {
    const files = new Map<string, OpenFile>();
    home[FILES] = files;
    process.on('exit', () => {
      for (const { file } of files.values()) file.unlock();
    });
  }
  return home[FILES];
}

function pathOf(path: string | URL): string {
  const given = path instanceof URL && path.protocol === 'file:' ? fileURLToPath(path) : path;
  if (typeof given === 'string' && given !== '' && !given.includes('\0')) return resolve(given);
  throw new GenError(`fileStore(path) takes a path or a file: URL, not ${show(given)}.`);
}

/** The path that a file has in whichever way it is named: by a link, or by a link to its directory. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // There is none yet.
  }
  try {
    return join(realpathSync(dirname(path)), basename(path));
  } catch {
    return path;
  }
}
