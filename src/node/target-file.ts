import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { access, type FileHandle, link, lstat, open, rename, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Bytes gathered before they are written: one call in four or more, at little memory. */
const BATCH_BYTES = 512 * 1024;
/** Bytes after which the disk is set to work in the background, so that the last flush has little left to do. */
const FLUSH_BYTES = 16 * 1024 * 1024;
/** What a file system answers that knows no hard links (FAT, some network shares and containers). */
const NO_LINKS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK', 'EXDEV', 'EACCES'];

/** A file in the making: under a temporary name of its own beside the target, until it is whole. */
export class TemporaryFile {
  readonly #path: string;
  readonly #file: FileHandle;
  #batch: Uint8Array[] = [];
  #owned: Uint8Array[] = [];
  #batched = 0;
  #position = 0;
  #writing: Promise<unknown> = Promise.resolve();
  #flushedTo = 0;
  #flushing: Promise<unknown> | undefined;

  private constructor(path: string, file: FileHandle) {
    this.#path = path;
    this.#file = file;
  }

  /** Makes it in `directory`, which must be there and writable. */
  static async in(directory: string): Promise<TemporaryFile> {
    await access(directory, constants.W_OK);
    const path = join(directory, `.gen-${randomUUID()}.part`);
    return new TemporaryFile(path, await open(path, 'wx'));
  }

  /**
   * Appends; resolves while the bytes are still being written, so that reading goes on meanwhile. The memory of a chunk that is
   * `isOwned` goes back as soon as it is written: the collector would come for it tens of megabytes later.
   */
  async write(chunk: Uint8Array, isOwned: boolean): Promise<void> {
    this.#batch.push(chunk);
    if (isOwned) this.#owned.push(chunk);
    this.#batched += chunk.length;
    if (this.#batched >= BATCH_BYTES) await this.#flush();
  }

  /** Empties it. */
  async restart(): Promise<void> {
    await this.#writing;
    this.#batch = [];
    this.#owned = [];
    this.#batched = 0;
    this.#position = 0;
    this.#flushedTo = 0;
    await this.#file.truncate(0);
  }

  /** Puts the whole file, flushed to the disk, under its name at once; with `overwrite` false it never replaces another. */
  async commit(target: string, overwrite: boolean): Promise<void> {
    await this.#flush();
    await this.#writing;
    await this.#flushing;
    await this.#file.sync();
    await this.#file.close();
    if (overwrite) await rename(this.#path, target);
    else await this.#placeNew(target);
    await syncDirectory(dirname(target));
  }

  /** Takes it away. */
  async abandon(): Promise<void> {
    await this.#writing.catch(() => undefined);
    await this.#flushing;
    await this.#file.close().catch(() => undefined);
    await unlink(this.#path).catch(() => undefined);
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

  /** Only a head start: what fails here fails again in the last flush, and is told there. */
  #flushEarly(): void {
    if (this.#flushing !== undefined || this.#position - this.#flushedTo < FLUSH_BYTES) return;
    this.#flushedTo = this.#position;
    const done = () => {
      this.#flushing = undefined;
    };
    this.#flushing = this.#file.datasync().then(done, done);
  }

  async #writeAll(batch: Uint8Array[], bytes: number, position: number): Promise<void> {
    const { bytesWritten } = await this.#file.writev(batch, position);
    if (bytesWritten === bytes) return;
    // A short write: a disk that is full says so on the next one.
    const rest = Buffer.concat(batch).subarray(bytesWritten);
    for (let at = 0; at < rest.length; ) {
      at += (await this.#file.write(rest, at, rest.length - at, position + bytesWritten + at)).bytesWritten;
    }
  }

  /** A hard link fails where a file is; without links an empty file takes the place first. */
  async #placeNew(target: string): Promise<void> {
    try {
      await link(this.#path, target);
      await unlink(this.#path);
    } catch (reason) {
      if (!NO_LINKS.includes(codeOf(reason))) throw reason;
      await (await open(target, 'wx')).close();
      await rename(this.#path, target);
    }
  }
}

/** Frees the chunk's memory; the chunk is empty from then on. */
function giveBack({ buffer }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}

/** Whether anything is at `path`, a dangling link too. */
export async function isTaken(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    (reason: unknown) => {
      if (codeOf(reason) === 'ENOENT') return false;
      throw reason;
    },
  );
}

/** The code of a file system's error. */
export function codeOf(reason: unknown): string {
  return reason instanceof Error && 'code' in reason ? String(reason.code) : '';
}

/** Makes the new name last through a power cut, where the system can flush a directory (Windows cannot). */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r').catch(() => undefined);
  await directory?.sync().catch(() => undefined);
  await directory?.close();
}
