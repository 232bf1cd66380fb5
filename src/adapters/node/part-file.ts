import { type FileHandle, link, open, readdir, rename, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { systemClock, systemRandom } from '../../runtime/clock.js';
import { fileSystemCode, flush, flushDirectory } from './flush.js';

/** What a file system answers that knows no hard links (FAT, some network shares and containers). */
const NO_LINKS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK', 'EXDEV', 'EACCES'];
/** A part that was not written to for so long is of a program that was killed. */
const LEFT_MS = 24 * 60 * 60 * 1_000;

/** A file in the making, under a hidden name beside its target until it is whole. */
export class PartFile {
  readonly #path: string;
  readonly #file: FileHandle;
  #sizeBytes = 0;

  private constructor(path: string, file: FileHandle) {
    this.#path = path;
    this.#file = file;
  }

  /** Opens a part beside its target, and removes those that killed programs have left there. */
  static async open(target: string): Promise<PartFile> {
    const directory = dirname(target);
    removeLeft(directory).catch(() => undefined);
    const path = join(directory, `.gen-${systemRandom.uuid()}.part`);
    return new PartFile(path, await open(path, 'wx'));
  }

  /** How many bytes it holds. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  async write(bytes: Uint8Array): Promise<void> {
    await this.#file.appendFile(bytes);
    this.#sizeBytes += bytes.length;
  }

  /**
   * Puts the whole file, flushed to the disk, under its name at once; with `overwrite` false it never replaces another. `mode`
   * is that of the file that is replaced.
   */
  async commit(target: string, { overwrite, mode }: { overwrite: boolean; mode: number | undefined }): Promise<void> {
    if (mode !== undefined) await this.#file.chmod(mode);
    await flush(this.#file);
    await this.#file.close();
    if (overwrite) await rename(this.#path, target);
    else await placeNew(this.#path, target);
    await flushDirectory(dirname(target));
  }

  /** Takes it away. */
  async abandon(): Promise<void> {
    await this.#file.close().catch(() => undefined);
    await unlink(this.#path).catch(() => undefined);
  }
}

async function removeLeft(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (!/^\.gen-[\da-f-]{36}\.part$/.test(name)) continue;
    const path = join(directory, name);
    if (systemClock.now() - (await stat(path)).mtimeMs > LEFT_MS) await unlink(path);
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
