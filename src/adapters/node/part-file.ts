// Writes a file next to its target, and moves it there when it is complete.
import { createHash } from 'node:crypto';
import type { Stats } from 'node:fs';
import {
  type FileHandle,
  link,
  lstat,
  mkdir,
  open,
  readdir,
  readlink,
  realpath,
  rename,
  stat,
  unlink,
} from 'node:fs/promises';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GenError } from '../../errors/index.js';
import { systemClock, systemRandom } from '../../runtime/clock.js';
import { formatValue } from '../../schemas/format-value.js';
import { fileSystemCode, flush, flushDirectory } from './flush.js';

/** The target of a file. In a directory, its name depends on its type. */
export type SavePath = { readonly directory: string } | { readonly file: string };

/**
 * Reads a path: a directory, or one that ends in a separator, is a directory. Creates missing directories. Throws before the
 * download if no file can be there. `call` is how the function is called.
 */
export async function savePath(call: string, path: unknown): Promise<SavePath> {
  const given = path instanceof URL ? fileURLToPath(path) : path;
  if (typeof given !== 'string' || given === '') {
    throw new GenError(`${call}: path must be a non-empty string or a file: URL, not ${formatValue(path)}.`);
  }
  const wanted = resolve(given);
  const endsInSeparator = given.endsWith('/') || given.endsWith(sep);
  const isDirectory = endsInSeparator || (await ifThere(stat(wanted)))?.isDirectory() === true;
  const directory = isDirectory ? wanted : dirname(wanted);
  await makeDirectories(directory);
  if (!(await stat(directory)).isDirectory()) throw new Error(`"${directory}" is not a directory.`);
  if (isDirectory) return { directory };
  await statsOfRegular(wanted);
  return { file: wanted };
}

/** Returns the stats of a path if it exists. Throws for a device, a pipe, or a socket. */
async function statsOfRegular(path: string): Promise<Stats | undefined> {
  const stats = await ifThere(stat(path));
  if (stats === undefined || stats.isFile()) return stats;
  throw new Error(`"${path}" is not a regular file.`);
}

export async function ifThere<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (reason) {
    if (fileSystemCode(reason) === 'ENOENT') return undefined;
    throw reason;
  }
}

/**
 * Creates a directory and its parents. Not with `recursive: true`, which never ends if the file system denies that a parent
 * exists, as /proc does.
 */
async function makeDirectories(path: string): Promise<void> {
  const isDirectory = async () => (await ifThere(stat(path)))?.isDirectory() === true;
  if (await isDirectory()) return;
  const parent = dirname(path);
  // A drive that does not exist is its own parent.
  if (parent !== path) await makeDirectories(parent);
  await mkdir(path).catch(async (reason) => {
    // Another process was faster.
    if (!(await isDirectory())) throw reason;
  });
}

/** The path behind symbolic links, also if the last one leads to a file that does not exist yet. */
async function linkedPath(path: string): Promise<string> {
  const real = await ifThere(realpath(path));
  if (real !== undefined) return real;
  const isLink = (await ifThere(lstat(path)))?.isSymbolicLink() === true;
  return isLink ? linkedPath(resolve(dirname(path), await readlink(path))) : path;
}

/** Bytes that are written at once: a system call for each chunk of the network halves the throughput. */
const WRITE_BYTES = 1024 * 1024;
/** Linux's `IOV_MAX`. Not every runtime splits a longer `writev`. */
const MAX_CHUNKS = 1024;
/** A part without writes for this long belongs to a killed process. */
const STALE_MS = 60 * 60 * 1_000;

/** A file beside its target, until it is complete. */
export class PartFile {
  readonly path: string;
  readonly #target: string;
  readonly #file: FileHandle;
  #chunks: Uint8Array[] = [];
  #chunkBytes = 0;
  #sizeBytes = 0;
  #writing: Promise<void> = Promise.resolve();

  private constructor(path: string, target: string, file: FileHandle) {
    this.path = path;
    this.#target = target;
    this.#file = file;
  }

  /** Opens a part, and removes those that killed processes left for the same target. */
  static async open(path: string): Promise<PartFile> {
    const target = await linkedPath(path);
    await statsOfRegular(target);
    const directory = dirname(target);
    const name = `.gen-${createHash('sha256').update(basename(target)).digest('hex').slice(0, 16)}`;
    removeStale(directory, name).catch(() => undefined);
    const part = join(directory, `${name}-${systemRandom.uuid()}.part`);
    return new PartFile(part, target, await open(part, 'wx'));
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Appends bytes. Returns a promise if they are written and the caller must wait for the disk. */
  write(bytes: Uint8Array): Promise<void> | undefined {
    this.#chunks.push(bytes);
    this.#chunkBytes += bytes.length;
    this.#sizeBytes += bytes.length;
    const isFull = this.#chunkBytes >= WRITE_BYTES || this.#chunks.length >= MAX_CHUNKS;
    return isFull ? this.#startWrite() : undefined;
  }

  /**
   * Flushes the file to the disk and moves it to its target. Returns false if the target exists and must stay. A replaced
   * file keeps its mode.
   */
  async commit(overwrite: boolean): Promise<boolean> {
    await this.#startWrite();
    await this.#writing;
    const replaced = await statsOfRegular(this.#target);
    if (overwrite && replaced) await this.#file.chmod(replaced.mode & 0o7777);
    await flush(this.#file);
    await this.#file.close();
    if (overwrite) await rename(this.path, this.#target);
    else if (!(await placeNew(this.path, this.#target))) return false;
    await flushDirectory(dirname(this.#target));
    return true;
  }

  /** Removes the part, unless it was moved to its target. */
  async remove(): Promise<void> {
    await this.#writing.catch(() => undefined);
    await this.#file.close().catch(() => undefined);
    await unlink(this.path).catch(() => undefined);
  }

  /** Waits for the write before, so that the network and the disk work at the same time and memory is bounded. */
  async #startWrite(): Promise<void> {
    await this.#writing;
    const chunks = this.#chunks;
    const bytes = this.#chunkBytes;
    this.#chunks = [];
    this.#chunkBytes = 0;
    this.#writing = writeChunks(this.#file, chunks, bytes);
    this.#writing.catch(() => undefined); // Thrown by the next write.
  }
}

/** Writes the chunks without joining them. A full disk writes only some of the bytes, and the rest throws the reason. */
async function writeChunks(file: FileHandle, chunks: readonly Uint8Array[], bytes: number): Promise<void> {
  if (bytes === 0) return;
  const { bytesWritten } = await file.writev(chunks);
  if (bytesWritten < bytes) await file.appendFile(Buffer.concat(chunks).subarray(bytesWritten));
}

async function removeStale(directory: string, name: string): Promise<void> {
  for (const file of await readdir(directory)) {
    if (!file.startsWith(`${name}-`) || !file.endsWith('.part')) continue;
    const path = join(directory, file);
    if (systemClock.now() - (await stat(path)).mtimeMs > STALE_MS) await unlink(path);
  }
}

/** Returns false if the target exists, because a hard link fails then. Without links, an empty file reserves the name. */
async function placeNew(path: string, target: string): Promise<boolean> {
  try {
    await link(path, target).catch(async (reason) => {
      if (fileSystemCode(reason) === 'EEXIST') throw reason;
      // FAT, some network shares, and some containers have no hard links.
      await (await open(target, 'wx')).close();
      await rename(path, target);
    });
    return true;
  } catch (reason) {
    if (fileSystemCode(reason) === 'EEXIST') return false;
    throw reason;
  }
}

export async function isSameContent(one: string, other: string): Promise<boolean> {
  const files = await Promise.all([one, other].map((path) => open(path)));
  try {
    const buffers = files.map(() => Buffer.allocUnsafe(WRITE_BYTES));
    for (let position = 0; ; ) {
      const [a, b] = await Promise.all(
        files.map((file, at) => bytesAt(file, buffers[at] ?? Buffer.alloc(0), position)),
      );
      if (a === undefined || b === undefined || !a.equals(b)) return false;
      if (a.length === 0) return true;
      position += a.length;
    }
  } finally {
    await Promise.all(files.map((file) => file.close()));
  }
}

/** The bytes of a file at a position: as many as fit into the buffer, fewer at its end. */
async function bytesAt(file: FileHandle, buffer: Buffer, position: number): Promise<Buffer> {
  let have = 0;
  for (let read = 1; read > 0 && have < buffer.length; have += read) {
    read = (await file.read(buffer, have, buffer.length - have, position + have)).bytesRead;
  }
  return buffer.subarray(0, have);
}
