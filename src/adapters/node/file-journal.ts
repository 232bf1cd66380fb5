import {
  chmodSync,
  closeSync,
  fdatasync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { GenError } from '../../errors/index.js';
import { type KeptJournal, storedEntry } from '../../ledger/shared-journal.js';
import { compactEntries, isEntry, type JournalEntry, type OpenedEntry } from '../../rules/journal.js';
import { reasonOf } from '../../runtime/callbacks.js';
import { show } from '../../schemas/show.js';
import { fileSystemCode } from './part-file.js';

/** A `Journal` in a file. */
export interface FileJournal extends KeptJournal {
  /** Absolute path of the file. */
  readonly name: string;
  /** Lets another process take the journal. A process that ends, in whichever way, does so by itself. */
  close(): void;
}

/** How to set up {@link fileJournal}. */
export interface FileJournalOptions {
  /**
   * How many creates that nothing is left to do for are kept when the file is compacted; `Infinity` keeps all of them.
   * @default 100
   */
  readonly keep?: number | undefined;
}

const KEPT = 100;
/** A smaller file is not compacted. */
const LEAST_BYTES = 64 * 1024;
/** A file is compacted when it has grown by this factor. */
const GROWTH = 2;
const MODE = 0o600;

const flush = promisify(fdatasync);

/**
 * A `Journal` in a file of JSON lines, readable by its owner only. The file is made with the first entry, and it
 * compacts itself. One process at a time appends to it: the file `<path>.lock` names that process, and another one is
 * refused while it runs. Reading needs no lock. A line that was cut by a crash is skipped.
 *
 * @example
 * const client = new GenClient({ journal: fileJournal('jobs.jsonl') });
 * for await (const job of client.resume()) if (isCompleted(job)) await saveOutput(client, job, 'videos/');
 */
export function fileJournal(path: string | URL, { keep = KEPT }: FileJournalOptions = {}): FileJournal {
  const given = path instanceof URL && path.protocol === 'file:' ? fileURLToPath(path) : path;
  if (typeof given !== 'string' || given === '' || given.includes('\0')) {
    throw new GenError(`fileJournal(path) takes a path or a file: URL, not ${show(given)}.`);
  }
  if (!(typeof keep === 'number' && keep >= 0)) {
    throw new GenError(`fileJournal: keep must be a number, 0 or more, not ${show(keep)}.`);
  }
  return new JournalFile(resolve(given), keep);
}

class JournalFile implements FileJournal {
  readonly name: string;
  readonly #keep: number;
  #hasLock = false;
  /** The size at which the file is compacted; known once it has been read. */
  #compactAt: number | undefined;

  constructor(path: string, keep: number) {
    this.name = path;
    this.#keep = keep;
  }

  async append(entry: JournalEntry): Promise<void> {
    try {
      const file = this.#write(entry);
      try {
        // Only what comes before a create has to survive the machine; an end that is lost is learned again.
        if (entry.phase === undefined) await flush(file).catch((cause: unknown) => this.#takeBack(entry, cause));
      } finally {
        closeSync(file);
      }
    } catch (cause) {
      throw this.#failure('written', cause);
    }
  }

  /** The create is not sent, so its line, which may be in the file all the same, must not have `resume()` send it. */
  #takeBack({ key, at }: OpenedEntry, cause: unknown): never {
    closeSync(this.#write({ phase: 'closed', key, at, reason: 'unsent' }));
    throw cause;
  }

  async entries(): Promise<JournalEntry[]> {
    try {
      return entriesOf(readIfThere(this.name) ?? '');
    } catch (cause) {
      throw this.#failure('read', cause);
    }
  }

  async stored(jobId: string): Promise<void> {
    await this.append(storedEntry(jobId));
  }

  close(): void {
    if (this.#hasLock && holderOf(this.#lock)?.isMe) unlinkSync(this.#lock);
    this.#hasLock = false;
  }

  get #lock(): string {
    return `${this.name}.lock`;
  }

  /** Appends in one piece, without a pause in which this process could do something else to the file. */
  #write(entry: JournalEntry): number {
    const line = `${JSON.stringify(entry)}\n`;
    this.#takeLock();
    this.#compact();
    const file = openSync(this.name, 'a+', MODE);
    try {
      const { size, mode } = fstatSync(file);
      if ((mode & 0o777) !== MODE) chmodSync(this.name, MODE);
      // A line that was cut is ended first, so that this one can be read.
      const bytes = Buffer.from(isCut(file, size) ? `\n${line}` : line);
      try {
        if (writeSync(file, bytes) < bytes.length) throw new Error('ENOSPC: no space left on device');
      } catch (reason) {
        ftruncateSync(file, size);
        throw reason;
      }
      return file;
    } catch (reason) {
      closeSync(file);
      throw reason;
    }
  }

  /** Rewrites the file when it has grown enough, beside it and then in its place. */
  #compact(): void {
    const size = fileSize(this.name);
    if (this.#compactAt === undefined) {
      const text = size === 0 ? '' : readFileSync(this.name, 'utf8');
      const isOther = text.includes('\n') && text.trim() !== '' && entriesOf(text).length === 0;
      if (isOther) throw new Error('the file has other content than a journal.');
      this.#compactAt = LEAST_BYTES;
    }
    if (size <= this.#compactAt) return;
    const path = realpathSync(this.name);
    const entries = compactEntries(entriesOf(readFileSync(path, 'utf8')), this.#keep);
    const left = entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
    this.#compactAt = Math.max(LEAST_BYTES, GROWTH * Buffer.byteLength(left));
    if (GROWTH * Buffer.byteLength(left) > size) return;
    const beside = `${path}.${process.pid}.compact`;
    try {
      const file = openSync(beside, 'w', MODE);
      try {
        writeFileSync(file, left);
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
      renameSync(beside, path);
    } catch (reason) {
      // The journal as it stands is whole. It is compacted another time.
      rmSync(beside, { force: true });
      if (fileSystemCode(reason) !== 'ENOSPC' && fileSystemCode(reason) !== 'EDQUOT') throw reason;
    }
  }

  /** Makes this process the one that appends. Throws while another one is. */
  #takeLock(): void {
    for (let tries = 0; tries < 3; tries++) {
      const holder = holderOf(this.#lock);
      if (holder?.isMe) {
        this.#hasLock = true;
        return;
      }
      if (this.#hasLock && holder) throw new Error(`process ${holder.name} has taken it over.`);
      if (holder?.isRunning) {
        throw new Error(
          `process ${holder.name} is using it. Give each process a journal of its own, or use sharedJournal(store). If that process does not use it, delete ${this.#lock}.`,
        );
      }
      if (holder) rmSync(this.#lock, { force: true });
      try {
        writeFileSync(this.#lock, ME, { flag: 'wx', mode: MODE });
      } catch (reason) {
        if (fileSystemCode(reason) !== 'EEXIST') throw reason;
      }
    }
    throw new Error('other processes are taking it at the same time.');
  }

  #failure(verb: 'written' | 'read', cause: unknown): GenError {
    const hint = fileSystemCode(cause) === 'ENOENT' ? ` Create the directory "${dirname(this.name)}" first.` : '';
    return new GenError(`The journal "${this.name}" could not be ${verb}: ${reasonOf(cause)}${hint}`, { cause });
  }
}

/** A process as its lock names it. The same id on the same machine is this process, or one before it that has died. */
const ME = `${process.pid}@${hostname()}\n`;

interface Holder {
  readonly name: string;
  readonly isMe: boolean;
  readonly isRunning: boolean;
}

function holderOf(lock: string): Holder | undefined {
  const text = readIfThere(lock);
  if (text === undefined) return undefined;
  const name = text.trim();
  const [, pid = '', host = ''] = /^(\d+)@(.*)$/.exec(name) ?? [];
  // Of a process on another machine nothing can be seen, and of one that was killed in a container neither.
  const isRunning = host === hostname() && isAlive(Number(pid));
  return { name, isMe: text === ME, isRunning };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (reason) {
    return fileSystemCode(reason) === 'EPERM';
  }
}

function entriesOf(text: string): JournalEntry[] {
  return text.split('\n').flatMap((line) => {
    try {
      const entry: unknown = JSON.parse(line);
      return isEntry(entry) ? [entry] : [];
    } catch {
      return [];
    }
  });
}

/** Whether the file ends in the middle of a line. */
function isCut(file: number, size: number): boolean {
  if (size === 0) return false;
  const last = Buffer.alloc(1);
  readSync(file, last, 0, 1, size - 1);
  return last[0] !== 0x0a;
}

function fileSize(path: string): number {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats && !stats.isFile()) throw new Error('it is not a regular file.');
  return stats?.size ?? 0;
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (reason) {
    if (fileSystemCode(reason) === 'ENOENT') return undefined;
    throw reason;
  }
}
