// Writes a file next to its target, and renames it once it is complete.
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

/** Target of a file. In a directory, its name depends on its type. */
export type SavePath = { readonly directory: string } | { readonly file: string };

/**
 * Resolves a path, and creates missing directories. A path is a directory if it exists as one or ends in a separator.
 * Throws, before the download, for a device, a pipe, or a socket.
 */
export async function savePath(call: string, path: unknown): Promise<SavePath> {
  const filePath = path instanceof URL ? fileURLToPath(path) : path;
  if (typeof filePath !== 'string' || filePath === '') {
    throw new GenError(`${call}: path must be a non-empty string or a file: URL, not ${formatValue(path)}.`);
  }
  const target = resolve(filePath);
  const endsInSeparator = filePath.endsWith('/') || filePath.endsWith(sep);
  const isDirectory = endsInSeparator || (await ifExists(stat(target)))?.isDirectory() === true;
  const directory = isDirectory ? target : dirname(target);
  await makeDirectories(directory);
  if (!(await stat(directory)).isDirectory()) throw new Error(`"${directory}" is not a directory.`);
  if (isDirectory) return { directory };
  await statsOfRegular(target);
  return { file: target };
}

/** Returns the stats of a path if it exists. Throws for a device, a pipe, or a socket. */
async function statsOfRegular(path: string): Promise<Stats | undefined> {
  const stats = await ifExists(stat(path));
  if (stats === undefined || stats.isFile()) return stats;
  throw new Error(`"${path}" is not a regular file.`);
}

export async function ifExists<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (reason) {
    if (fileSystemCode(reason) === 'ENOENT') return undefined;
    throw reason;
  }
}

/**
 * Creates a directory and its parents. `recursive: true` would never return if the file system denies that a parent
 * exists, as /proc does.
 */
async function makeDirectories(path: string): Promise<void> {
  const isDirectory = async () => (await ifExists(stat(path)))?.isDirectory() === true;
  if (await isDirectory()) return;
  const parent = dirname(path);
  // A missing drive is its own parent.
  if (parent !== path) await makeDirectories(parent);
  await mkdir(path).catch(async (reason) => {
    // Another process may have created it.
    if (!(await isDirectory())) throw reason;
  });
}

/** Resolves symbolic links, even if the target doesn't exist yet. */
async function resolveLinks(path: string): Promise<string> {
  const real = await ifExists(realpath(path));
  if (real !== undefined) return real;
  const isLink = (await ifExists(lstat(path)))?.isSymbolicLink() === true;
  return isLink ? resolveLinks(resolve(dirname(path), await readlink(path))) : path;
}

/** Bytes per write. One system call per network chunk would halve the throughput. */
const WRITE_BYTES = 1024 * 1024;
/** Linux's `IOV_MAX`. Some runtimes don't split a longer `writev`. */
const MAX_CHUNKS = 1024;
/** A part that hasn't been written for this long belongs to a killed process. */
const STALE_MS = 60 * 60 * 1_000;

/** An incomplete file next to its target. */
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

  /** Opens a part, and removes stale parts of the same target. */
  static async open(path: string): Promise<PartFile> {
    const target = await resolveLinks(path);
    await statsOfRegular(target);
    const directory = dirname(target);
    const name = `.gen-${createHash('sha256').update(basename(target)).digest('hex').slice(0, 16)}`;
    removeStaleParts(directory, name).catch(() => undefined);
    const part = join(directory, `${name}-${systemRandom.uuid()}.part`);
    return new PartFile(part, target, await open(part, 'wx'));
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Appends bytes. If it returns a promise, await it before the next write. */
  write(bytes: Uint8Array): Promise<void> | undefined {
    this.#chunks.push(bytes);
    this.#chunkBytes += bytes.length;
    this.#sizeBytes += bytes.length;
    const isFull = this.#chunkBytes >= WRITE_BYTES || this.#chunks.length >= MAX_CHUNKS;
    return isFull ? this.#startWrite() : undefined;
  }

  /**
   * Flushes the file and moves it to its target. Returns false if the target exists, unless `overwrite` is true. A replaced
   * file retains its mode.
   */
  async commit(overwrite: boolean): Promise<boolean> {
    await this.#startWrite();
    await this.#writing;
    const existing = await statsOfRegular(this.#target);
    if (overwrite && existing) await this.#file.chmod(existing.mode & 0o7777);
    await flush(this.#file);
    await this.#file.close();
    if (overwrite) await rename(this.path, this.#target);
    else if (!(await moveIfAbsent(this.path, this.#target))) return false;
    await flushDirectory(dirname(this.#target));
    return true;
  }

  /** Removes the part, unless it was moved to its target. */
  async remove(): Promise<void> {
    await this.#writing.catch(() => undefined);
    await this.#file.close().catch(() => undefined);
    await unlink(this.path).catch(() => undefined);
  }

  /**
   * Starts a write after the previous one, without awaiting it, so that network and disk work concurrently and memory
   * stays bounded.
   */
  async #startWrite(): Promise<void> {
    await this.#writing;
    const chunks = this.#chunks;
    const bytes = this.#chunkBytes;
    this.#chunks = [];
    this.#chunkBytes = 0;
    this.#writing = writeChunks(this.#file, chunks, bytes);
    this.#writing.catch(() => undefined); // The next write throws it.
  }
}

/** Writes the chunks without joining them. On a full disk, `writev` writes only a part, and writing the rest throws the reason. */
async function writeChunks(file: FileHandle, chunks: readonly Uint8Array[], bytes: number): Promise<void> {
  if (bytes === 0) return;
  const { bytesWritten } = await file.writev(chunks);
  if (bytesWritten < bytes) await file.appendFile(Buffer.concat(chunks).subarray(bytesWritten));
}

async function removeStaleParts(directory: string, name: string): Promise<void> {
  for (const file of await readdir(directory)) {
    if (!file.startsWith(`${name}-`) || !file.endsWith('.part')) continue;
    const path = join(directory, file);
    if (systemClock.now() - (await stat(path)).mtimeMs > STALE_MS) await unlink(path);
  }
}

/** Moves a file. Returns false if the target exists. A hard link checks this and creates the file in one step. */
async function moveIfAbsent(path: string, target: string): Promise<boolean> {
  try {
    await link(path, target).catch(async (reason) => {
      if (fileSystemCode(reason) === 'EEXIST') throw reason;
      // FAT, some network shares, and some containers have no hard links. Reserve the name with an empty file.
      await (await open(target, 'wx')).close();
      await rename(path, target);
    });
    return true;
  } catch (reason) {
    if (fileSystemCode(reason) === 'EEXIST') return false;
    throw reason;
  }
}

export async function isSameContent(path: string, otherPath: string): Promise<boolean> {
  const files = await Promise.all([path, otherPath].map((path) => open(path)));
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

/** Reads from a position until the buffer is full or the file ends. */
async function bytesAt(file: FileHandle, buffer: Buffer, position: number): Promise<Buffer> {
  let filled = 0;
  for (let bytesRead = 1; bytesRead > 0 && filled < buffer.length; filled += bytesRead) {
    bytesRead = (await file.read(buffer, filled, buffer.length - filled, position + filled)).bytesRead;
  }
  return buffer.subarray(0, filled);
}
