// The file of a fileStore: a header, then a line for each write. Later lines win.
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { ConnectionError } from '../../errors/client-errors.js';
import { GenError } from '../../errors/gen-error.js';
import { reasonOf } from '../../runtime/callbacks.js';
import { systemClock, systemRandom } from '../../runtime/clock.js';
import { Groups, type GroupWrite } from '../../store/groups.js';
import { type StoreChanges, type StoredValues, setupError } from '../../store/store.js';
import { fileSystemCode, flush, flushDirectory, flushPath } from './flush.js';

const HEADER = '{"gen-client":"store"';
const NEW_LINE = 0x0a;
const MODE = 0o600;
const LEAST_BYTES = 64 * 1024;
/** A file is compacted when it has grown by this factor. */
const GROWTH = 2;
/** What lives no longer than a machine takes to start again is not worth a flush: rate limits. */
const LOST_WITH_POWER_MS = 120_000;

/** Reads a file; undefined where none is, or an empty one. A line that a crash has cut is left out. */
export function loadFile(path: string): Groups | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats && !stats.isFile()) {
    const what = stats.isDirectory() ? 'a directory' : 'not a regular file';
    throw setupError(`fileStore: "${path}" is ${what}. Name a file.`);
  }
  if (!stats || stats.size === 0) return undefined;
  const bytes = readFileSync(path);
  const groups = new Groups(() => systemClock.now());
  let start = 0;
  for (let end = bytes.indexOf(NEW_LINE); end >= 0; end = bytes.indexOf(NEW_LINE, start)) {
    const line = bytes.toString('utf8', start, end);
    if (start === 0 && !line.startsWith(HEADER)) break;
    const write = parseLine(line);
    if (write) groups.put(write);
    start = end + 1;
  }
  if (start === 0) throw setupError(`fileStore: "${path}" is not a store of gen-client. Name another file.`);
  return groups;
}

/** A line that is damaged is as one that was never written. */
function parseLine(line: string): GroupWrite | undefined {
  try {
    const { group = '', version, values = {} }: Partial<GroupWrite> = JSON.parse(line);
    return typeof version === 'number' ? { group, version, values } : undefined;
  } catch {
    return undefined;
  }
}

function* linesOf(groups: Groups): Generator<string> {
  yield `${HEADER},"version":${groups.lastVersion},"group":"","values":{}}\n`;
  for (const write of groups.writes()) yield `${JSON.stringify(write)}\n`;
}

/** A file that this process has opened. It has everything in memory, too. */
export class StoreFile {
  readonly #path: string;
  #opening = systemRandom.uuid();
  #opened: Promise<Groups> | undefined;
  #closed: Promise<void> = Promise.resolve();
  #hasLock = false;
  #bytes = 0;
  /** The size at which the file is compacted. */
  #compactAt = LEAST_BYTES;
  /** The lines that were written while the file is compacted. */
  #tail: string[] | undefined;
  #settling: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  async read(group: string, keys: readonly string[]): Promise<StoredValues> {
    return (await this.#open()).read(group, keys);
  }

  async write(group: string, version: string, changes: StoreChanges): Promise<boolean> {
    const groups = await this.#open();
    const write = groups.prepare(group, version, changes);
    if (write === undefined) return false;
    try {
      // Without a pause in between, so that memory and file are always the same.
      this.#append(`${JSON.stringify(write)}\n`);
      groups.put(write);
      if (hasToLast(changes) || this.#bytes > this.#compactAt) await this.#settle(groups);
    } catch (cause) {
      throw this.#failure('written', cause);
    }
    return true;
  }

  /** A name for the time until it is closed. */
  get opening(): string {
    return this.#opening;
  }

  /** Lets another process open the file, when all that was asked so far is done. A later call opens it again. */
  async close(): Promise<void> {
    const done = this.#opened?.then(() => this.#settling).catch(() => {});
    if (done) this.#closed = done.then(() => this.unlock());
    this.#opened = undefined;
    this.#opening = systemRandom.uuid();
    await this.#closed;
  }

  /** At once, when the process ends. */
  unlock(): void {
    if (this.#hasLock) releaseLock(this.#path);
    this.#hasLock = false;
  }

  #open(): Promise<Groups> {
    const openNow = () => this.#openNow();
    this.#opened ??= this.#closed.then(openNow).catch((cause: unknown) => {
      this.#opened = undefined;
      throw this.#failure('opened', cause);
    });
    return this.#opened;
  }

  async #openNow(): Promise<Groups> {
    takeLock(this.#path);
    this.#hasLock = true;
    try {
      rmSync(this.#beside, { force: true });
      const groups = loadFile(this.#path) ?? new Groups(() => systemClock.now());
      // Without the line that a crash has cut, and readable by its owner only.
      await this.#rewrite(groups);
      return groups;
    } catch (reason) {
      this.unlock();
      throw reason;
    }
  }

  get #beside(): string {
    return `${this.#path}.compact`;
  }

  #append(line: string): void {
    const file = openSync(this.#path, constants.O_WRONLY | constants.O_APPEND);
    try {
      if (fstatSync(file).size !== this.#bytes) {
        throw setupError(
          `fileStore: another program has changed "${this.#path}". Stop that program, and start this one again.`,
        );
      }
      const bytes = Buffer.from(line);
      try {
        if (writeSync(file, bytes) < bytes.length) throw new Error('ENOSPC: no space left on device');
      } catch (reason) {
        ftruncateSync(file, this.#bytes);
        throw reason;
      }
      this.#bytes += bytes.length;
      this.#tail?.push(line);
    } finally {
      closeSync(file);
    }
  }

  /** Resolves when what is written so far will outlive the machine. The writes of one moment share one flush. */
  #settle(groups: Groups): Promise<void> {
    if (this.#next === undefined) {
      const begin = () => {
        this.#next = undefined;
        return this.#settleNow(groups);
      };
      this.#next = this.#settling.then(begin, begin);
      this.#settling = this.#next;
    }
    return this.#next;
  }

  async #settleNow(groups: Groups): Promise<void> {
    if (this.#bytes > this.#compactAt) return this.#rewrite(groups);
    try {
      await flushPath(this.#path);
    } catch (reason) {
      // What the disk did not take may be lost in silence by a second flush: only a new file is sure.
      this.#compactAt = 0;
      throw reason;
    }
  }

  /** Writes the file anew, beside it and then in its place. Other writes go on meanwhile. */
  async #rewrite(groups: Groups): Promise<void> {
    const tail: string[] = [];
    this.#tail = tail;
    const file = await open(this.#beside, 'a', MODE);
    try {
      await file.appendFile([...linesOf(groups)].join(''));
      await flush(file);
      // From here to the end without a pause, so that no write is missed.
      if (tail.length > 0) writeWhole(file.fd, Buffer.from(tail.join('')));
      const { size } = fstatSync(file.fd);
      renameSync(this.#beside, this.#path);
      this.#bytes = size;
      this.#compactAt = Math.max(LEAST_BYTES, GROWTH * size);
    } catch (reason) {
      rmSync(this.#beside, { force: true });
      throw reason;
    } finally {
      this.#tail = undefined;
      await file.close();
    }
    await flushDirectory(dirname(this.#path));
  }

  #failure(done: 'opened' | 'written', cause: unknown): GenError {
    if (GenError.isInstance(cause)) return cause;
    const failed = `The store "${this.#path}" could not be ${done}: ${reasonOf(cause)}.`;
    if (fileSystemCode(cause) === 'ENOENT' && done === 'opened')
      return setupError(`${failed} Create its directory first.`, cause);
    if (['EACCES', 'EROFS', 'EPERM', 'ERR_ACCESS_DENIED'].includes(fileSystemCode(cause)))
      return setupError(`${failed} Give this process the right to write there.`, cause);
    return new ConnectionError(failed, { cause });
  }
}

/** What is deleted has to stay deleted: a call that was given up would be sent after all. */
function hasToLast(changes: StoreChanges): boolean {
  return Object.values(changes).some((change) => change === null || change.ttlMs > LOST_WITH_POWER_MS);
}

function writeWhole(file: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
}

// The lock of a file: `<path>.lock` names the process that uses it.

interface Holder {
  readonly pid: number;
  readonly host: string;
  /** When the process began, where the system tells: a pid is given again, the start of a process is not. */
  readonly start: string | undefined;
}

/** How often it is tried again to take a lock that others are taking, too. */
const TRIES = 3;

/** Makes this process the one that uses a file. `<path>.lock` names it. Throws while another process that lives does. */
function takeLock(path: string): void {
  const lock = lockOf(path);
  const me: Holder = { pid: process.pid, host: hostname(), start: startOf(process.pid) };
  for (let tried = 0; tried < TRIES; tried++) {
    try {
      writeFileSync(lock, `${me.pid}@${me.host} ${me.start ?? ''}\n`, { flag: 'wx', mode: 0o600 });
      return;
    } catch (reason) {
      if (fileSystemCode(reason) !== 'EEXIST') throw reason;
    }
    const holder = readHolder(lock);
    if (holder && isRunning(holder)) {
      const who = holder.pid === me.pid ? 'another thread of this process' : `process ${holder.pid}`;
      throw setupError(
        `fileStore: ${who} is using "${path}". Give each process a file of its own, or share a redisStore. If that process does not use it, delete "${lock}".`,
      );
    }
    rmSync(lock, { force: true });
  }
  throw setupError(`fileStore: other processes are opening "${path}" at the same time. Give each a file of its own.`);
}

function releaseLock(path: string): void {
  rmSync(lockOf(path), { force: true });
}

function lockOf(path: string): string {
  return `${path}.lock`;
}

function readHolder(lock: string): Holder | undefined {
  const text = readText(lock);
  const [, pid, host = '', start] = /^(\d+)@(\S*) (\S*)\n$/.exec(text ?? '') ?? [];
  return pid === undefined ? undefined : { pid: Number(pid), host, start: start || undefined };
}

/** Of a process on another machine, or in another container, nothing can be seen: it counts as ended. */
function isRunning({ pid, host, start }: Holder): boolean {
  const now = startOf(pid);
  if (start !== undefined && now !== undefined) return start === now;
  return host === hostname() && pid !== process.pid && isAlive(pid);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (reason) {
    return fileSystemCode(reason) === 'EPERM';
  }
}

/** The field of `/proc/<pid>/stat` with the start of the process, counted from the first after the name of the program. */
const START_FIELD = 19;

/** When a process began, in a form that no other process has; undefined where the system does not tell. */
function startOf(pid: number): string | undefined {
  const stat = readText(`/proc/${pid}/stat`);
  const boot = readText('/proc/sys/kernel/random/boot_id')?.trim();
  // The name is in brackets, and may contain anything.
  const ticks = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[START_FIELD];
  return ticks === undefined || boot === undefined ? undefined : `${boot}/${ticks}`;
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
