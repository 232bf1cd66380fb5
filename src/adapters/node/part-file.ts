import { createHash } from 'node:crypto';
import { type FileHandle, link, open, rename, stat, unlink } from 'node:fs/promises';
import { uptime } from 'node:os';
import { dirname, join } from 'node:path';
import { systemClock, systemRandom } from '../../runtime/clock.js';
import { fileSystemCode, flush, flushDirectory } from './flush.js';

/** Bytes gathered before they are written: one call in sixteen or more, at little memory. */
const BATCH_BYTES = 1024 * 1024;
/** Bytes after which the disk is set to work in the background, so that the last flush has little left to do. */
const FLUSH_BYTES = 16 * 1024 * 1024;
/** What a file system answers that knows no hard links (FAT, some network shares and containers). */
const NO_LINKS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK', 'EXDEV', 'EACCES'];
/** How often a name is tried that others are after, too. */
const NAME_TRIES = 5;

/** Which bytes a part holds. */
interface PartOf {
  /** The path that the whole file is to have. */
  readonly target: string;
  readonly jobId: string;
  readonly sizeBytes: number | undefined;
  /** The strong entity tag of the file. Without it no later run can go on with the part. */
  readonly etag: string | undefined;
}

/** How a whole file takes its place. */
interface Placing {
  readonly overwrite: boolean;
  /** The mode of the file that is replaced. */
  readonly mode: number | undefined;
}

/**
 * A file in the making, beside its target until it is whole. Its name is made from the job, the target and the version of
 * the file, so that the run after a crash finds it. Whoever finds a part copies it into a file of its own and takes over the
 * name: two that save the same file at once never write to the same one, and the handle tells each which one is its own.
 */
export class PartFile {
  readonly #path: string;
  readonly #file: FileHandle;
  #batch: Uint8Array[] = [];
  #owned: Uint8Array[] = [];
  #batched = 0;
  #position: number;
  #writing: Promise<unknown> = Promise.resolve();
  #flushedTo = 0;
  #flushing: Promise<unknown> | undefined;

  private constructor(path: string, file: FileHandle, position: number) {
    this.#path = path;
    this.#file = file;
    this.#position = position;
  }

  /** Opens the part of a file, with the bytes that an earlier run has left. */
  static async open(part: PartOf): Promise<PartFile> {
    const path = join(dirname(part.target), `.gen-${fingerprint(part)}.part`);
    for (let tried = 0; tried < NAME_TRIES; tried++) {
      const file = await openNew(path);
      if (file !== undefined) return new PartFile(path, file, 0);
      const left = await takeOver(path, part);
      if (left !== undefined) return new PartFile(path, left.file, left.bytes);
    }
    const own = `${path.slice(0, -'.part'.length)}.${systemRandom.uuid()}.part`;
    return new PartFile(own, await open(own, 'wx+'), 0);
  }

  /** How many bytes it holds, those under way included. */
  get sizeBytes(): number {
    return this.#position + this.#batched;
  }

  /**
   * Appends. What it returns, where the bytes gathered are to be written, resolves while they still are, so that reading goes
   * on meanwhile. The memory of a chunk that is
   * `isOwned` goes back as soon as it is written: the collector would come for it tens of megabytes later.
   */
  write(chunk: Uint8Array, isOwned: boolean): Promise<void> | undefined {
    this.#batch.push(chunk);
    if (isOwned) this.#owned.push(chunk);
    this.#batched += chunk.length;
    return this.#batched >= BATCH_BYTES ? this.#flush() : undefined;
  }

  /** Puts the whole file, flushed to the disk, under its name at once; with `overwrite` false it never replaces another. */
  async commit(target: string, { overwrite, mode }: Placing): Promise<void> {
    await this.#flush();
    await this.#writing;
    await this.#flushing;
    if (mode !== undefined) await this.#file.chmod(mode);
    await flush(this.#file);
    const path = await this.#claim();
    try {
      await this.#file.close();
      if (overwrite) await rename(path, target);
      else await placeNew(path, target);
    } catch (reason) {
      await unlink(path).catch(() => undefined);
      throw reason;
    }
    await flushDirectory(dirname(target));
  }

  /** Takes it away. */
  async abandon(): Promise<void> {
    await this.#writing.catch(() => undefined);
    await this.#flushing;
    if (await this.#isMine(this.#path)) await unlink(this.#path).catch(() => undefined);
    await this.#file.close().catch(() => undefined);
  }

  /** Moves the part to a name that nobody else is after. Where another has taken over its name, the bytes are copied. */
  async #claim(): Promise<string> {
    const path = join(dirname(this.#path), `.gen-${systemRandom.uuid()}.part`);
    if (await this.#isMine(this.#path)) {
      await rename(this.#path, path);
      if (await this.#isMine(path)) return path;
      // Another process took it over first. It has the bytes, and needs no name.
      await unlink(path);
    }
    const copy = await open(path, 'wx');
    try {
      await copyBytes(this.#file, copy, this.#position);
      await copy.chmod((await this.#file.stat()).mode);
      await flush(copy);
    } finally {
      await copy.close();
    }
    return path;
  }

  async #isMine(path: string): Promise<boolean> {
    const absent = () => undefined;
    const own = await this.#file.stat({ bigint: true }).catch(absent);
    const there = await stat(path, { bigint: true }).catch(absent);
    return own !== undefined && own.ino === there?.ino && own.dev === there.dev;
  }

  async #flush(): Promise<void> {
    await this.#writing;
    if (this.#batched === 0) return;
    const [batch, owned, bytes, position] = [this.#batch, this.#owned, this.#batched, this.#position];
    this.#batch = [];
    this.#owned = [];
    this.#batched = 0;
    this.#position += bytes;
    this.#writing = this.#writeAll(batch, bytes, position).then(() => owned.forEach(giveBack));
    this.#writing.catch(() => undefined); // Thrown by whoever waits for it next.
    this.#flushEarly();
  }

  /** Only a head start: what fails here fails again in the last flush, and is reported there. */
  #flushEarly(): void {
    if (this.#flushing !== undefined || this.#position - this.#flushedTo < FLUSH_BYTES) return;
    this.#flushedTo = this.#position;
    const done = () => {
      this.#flushing = undefined;
    };
    this.#flushing = flush(this.#file).then(done, done);
  }

  async #writeAll(batch: Uint8Array[], bytes: number, position: number): Promise<void> {
    const { bytesWritten } = await this.#file.writev(batch, position);
    if (bytesWritten === bytes) return;
    // A short write: a disk that is full says so on the next one.
    const rest = Buffer.concat(batch).subarray(bytesWritten);
    await writeWhole(this.#file, rest, position + bytesWritten);
  }
}

/** The same for every run that saves the same version of the same file to the same place. */
function fingerprint({ target, jobId, sizeBytes, etag }: PartOf): string {
  const told = JSON.stringify([jobId, target, sizeBytes ?? null, etag ?? null]);
  return createHash('sha256').update(told).digest('hex').slice(0, 24);
}

async function openNew(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'wx+');
  } catch (reason) {
    if (fileSystemCode(reason) === 'EEXIST') return undefined;
    throw reason;
  }
}

/** Takes over the name of a part, and a copy of its bytes where they can be trusted. Undefined when another was faster. */
async function takeOver(path: string, part: PartOf): Promise<{ file: FileHandle; bytes: number } | undefined> {
  const earlier = await open(path, 'r').catch(() => undefined);
  try {
    await unlink(path).catch(() => undefined);
    const file = await openNew(path);
    if (file === undefined || earlier === undefined) return file && { file, bytes: 0 };
    const bytes = await trustedBytes(earlier, part);
    await copyBytes(earlier, file, bytes);
    return { file, bytes };
  } finally {
    await earlier?.close();
  }
}

/** How much of an earlier part is known to be right: nothing where the machine went down after it was written. */
async function trustedBytes(earlier: FileHandle, { etag, sizeBytes }: PartOf): Promise<number> {
  const { size, mtimeMs } = await earlier.stat();
  const bootedAt = systemClock.now() - uptime() * 1_000;
  const isTrusted = etag !== undefined && sizeBytes !== undefined && size <= sizeBytes && mtimeMs > bootedAt;
  return isTrusted ? size : 0;
}

async function copyBytes(from: FileHandle, to: FileHandle, bytes: number): Promise<void> {
  const buffer = Buffer.allocUnsafeSlow(Math.min(bytes, 1024 * 1024));
  for (let at = 0; at < bytes; ) {
    const { bytesRead } = await from.read(buffer, 0, Math.min(buffer.length, bytes - at), at);
    if (bytesRead === 0) throw new Error(`The part ends after ${at} of ${bytes} bytes.`);
    await writeWhole(to, buffer.subarray(0, bytesRead), at);
    at += bytesRead;
  }
}

async function writeWhole(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    at += (await file.write(bytes, at, bytes.length - at, position + at)).bytesWritten;
  }
}

/** A hard link fails where a file is; without links an empty file takes the place first. */
async function placeNew(path: string, target: string): Promise<void> {
  try {
    await link(path, target);
    await unlink(path);
  } catch (reason) {
    if (!NO_LINKS.includes(fileSystemCode(reason))) throw reason;
    await (await open(target, 'wx')).close();
    await rename(path, target);
  }
}

/** Frees the chunk's memory; the chunk is empty from then on. */
function giveBack({ buffer }: Uint8Array): void {
  // Node 20 has no `transfer`: there the collector comes for it.
  if (buffer instanceof ArrayBuffer) buffer.transfer?.(0);
}
