import type { Stats } from 'node:fs';
import { type FileHandle, link, mkdir, open, readdir, rename, stat, unlink } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { extensionFor, type JobRef, type OutputVersion } from '../../downloading/output.js';
import type { OutputReader } from '../../downloading/output-reader.js';
import { type JobFile, type OutputClient, requireOutputClient, storeOutput } from '../../downloading/output-source.js';
import { atCaller } from '../../errors/gen-error.js';
import { DownloadError, GenError } from '../../errors/index.js';
import { abortSignal, callback, checkOptions, flag, optionsOf } from '../../rules/options.js';
import { reasonOf } from '../../runtime/callbacks.js';
import { systemClock, systemRandom } from '../../runtime/clock.js';
import { safeFileName } from '../../schemas/media-type.js';
import { show } from '../../schemas/show.js';
import { fileSystemCode, flush, flushDirectory } from './flush.js';

/** How far a download has come. */
export interface SaveProgress {
  /** Bytes that are there so far; begins at 0 again when the download has to start over. */
  readonly receivedBytes: number;
  /** Size of the file in bytes, where the service says it. */
  readonly totalBytes: number | undefined;
}

/** What `saveOutput` takes beside the job and the path. */
export interface SaveOutputOptions {
  /** Told how far the download has come, after each piece. It only observes: what it throws changes nothing. */
  readonly onProgress?: ((progress: SaveProgress) => unknown) | undefined;
  /** Ends the download at once; it rejects with the signal's own reason and leaves no file. */
  readonly signal?: AbortSignal | undefined;
  /** Whether a file that is already there is replaced. @default false */
  readonly overwrite?: boolean | undefined;
}

const CALL = 'saveOutput(client, job, path)';
const SAVE_OPTIONS = optionsOf({ onProgress: callback, signal: abortSignal, overwrite: flag });

/** A file that was saved. */
export interface SavedOutput {
  /** Absolute path of the file. */
  readonly path: string;
  /** Its size in bytes. */
  readonly sizeBytes: number;
  /** Its media type, as the service gave it. */
  readonly contentType: string | undefined;
  /** Whether the file of this job was there already, so that nothing was written. */
  readonly existed?: true;
}

/**
 * Saves a finished job's file. The path holds the whole file, checked and flushed to the disk, or none. After a cut the
 * download goes on where it was, if the service takes ranges and the file is still the same, and starts over otherwise.
 *
 * A path that is a directory, or ends in `/`, gets a file named after the job. A missing directory is made. Where the job's
 * own file is there already, the call resolves with `existed: true`: it has the job's name and the right size, or, under a
 * name of yours, the same bytes. Throws a {@link DownloadError} when the file cannot be fetched or written, or another is there.
 *
 * @example
 * const { path } = await saveOutput(client, job, 'videos/');
 */
export async function saveOutput(
  client: OutputClient,
  job: JobRef,
  path: string | URL,
  options: SaveOutputOptions = {},
): Promise<SavedOutput> {
  requireOutputClient(CALL, client);
  checkOptions('saveOutput', SAVE_OPTIONS, options);
  const { overwrite = false } = options;
  return await atCaller(storeOutput(CALL, { client, job, options }, (file) => new Saving(file, overwrite).to(path)));
}

/** One download on its way: the client's calls and the disk, with failures told in the user's words. */
class Saving {
  readonly #file: JobFile<SaveProgress>;
  readonly #overwrite: boolean;

  constructor(file: JobFile<SaveProgress>, overwrite: boolean) {
    this.#file = file;
    this.#overwrite = overwrite;
  }

  async to(given: unknown): Promise<SavedOutput> {
    const target = await this.#inDisk(() => saveTarget(given));
    const reader = this.#file.reader();
    const save = (version: OutputVersion) => this.#save(reader, version, target);
    try {
      return await this.#file.explained(() => reader.fromStart(save));
    } finally {
      reader.cancel();
    }
  }

  async #save(reader: OutputReader, version: OutputVersion, target: SaveTarget): Promise<SavedOutput> {
    const { sizeBytes, contentType } = version;
    const path =
      'file' in target
        ? target.file
        : join(target.directory, `${safeFileName(this.#file.jobId, '')}${extensionFor(contentType)}`);
    const found = await this.#sizeAt(path, sizeBytes);
    if (found === undefined) return this.#fetch(reader, path, version);
    // No other file has the job's name and the file's size.
    return 'file' in target
      ? this.#compare(reader, path, version)
      : { path, sizeBytes: found, contentType, existed: true };
  }

  /** Fetches the file into a part beside its target, which then takes the target's place. */
  async #fetch(reader: OutputReader, path: string, { sizeBytes, contentType }: OutputVersion): Promise<SavedOutput> {
    const part = await this.#inDisk(() => PartFile.open(path));
    try {
      for (let bytes = await reader.read(); bytes; bytes = await reader.read()) {
        const chunk = bytes;
        await this.#inDisk(() => part.write(chunk));
        this.#file.tell({ receivedBytes: part.sizeBytes, totalBytes: sizeBytes });
      }
      await this.#inDisk(async () => {
        await statsOfRegular(path);
        await part.commit(path, this.#overwrite);
      }, path);
      return { path, sizeBytes: part.sizeBytes, contentType };
    } catch (cause) {
      await part.abandon();
      throw cause;
    }
  }

  /** Compares the file that is there with the one of the job: a name of the caller's own does not say whose file it is. */
  async #compare(reader: OutputReader, path: string, { contentType }: OutputVersion): Promise<SavedOutput> {
    const file = await this.#inDisk(() => open(path));
    try {
      let sizeBytes = 0;
      for (let bytes = await reader.read(); bytes; bytes = await reader.read()) {
        const { length } = bytes;
        const own = await this.#inDisk(() => bytesAt(file, sizeBytes, length));
        if (!own.equals(bytes)) throw this.#taken(path);
        sizeBytes += length;
      }
      return { path, sizeBytes, contentType, existed: true };
    } finally {
      await file.close();
    }
  }

  /** The size of the file at the path; undefined where it may be written. Throws for one that is not of the job's size. */
  async #sizeAt(path: string, sizeBytes: number | undefined): Promise<number | undefined> {
    const stats = await this.#inDisk(() => statsOfRegular(path));
    if (this.#overwrite || stats === undefined) return undefined;
    if (stats.size !== sizeBytes) throw this.#taken(path);
    return sizeBytes;
  }

  /** Does something on the disk; its failure is a DownloadError that names the place. */
  async #inDisk<T>(work: () => Promise<T>, target?: string): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      if (GenError.isInstance(cause)) throw cause;
      if (fileSystemCode(cause) === 'EEXIST' && target !== undefined) throw this.#taken(target, cause);
      const { jobId } = this.#file;
      throw new DownloadError(`The file of job ${jobId} cannot be written: ${reasonOf(cause)}`, {
        jobId,
        code: 'cannot_write',
        cause,
      });
    }
  }

  #taken(path: string, cause?: unknown): DownloadError {
    return new DownloadError(`"${path}" is already there. Pass overwrite: true to replace it.`, {
      jobId: this.#file.jobId,
      code: 'file_exists',
      cause,
    });
  }
}

/** The bytes of a file at a position; fewer where it ends. */
async function bytesAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(length);
  let have = 0;
  for (let read = 1; read > 0 && have < length; have += read) {
    read = (await file.read(buffer, have, length - have, position + have)).bytesRead;
  }
  return buffer.subarray(0, have);
}

/** Where a file is to go, as far as it is known before its type is. */
type SaveTarget = { readonly directory: string } | { readonly file: string };

/**
 * Reads the path: one that ends in a separator is a directory; so is one where a directory is. What is missing is made. Throws for a
 * place where no file can be made, before a byte is fetched.
 */
async function saveTarget(path: unknown): Promise<SaveTarget> {
  const given = path instanceof URL ? fileURLToPath(path) : path;
  if (typeof given !== 'string' || given === '') {
    throw new GenError(`${CALL}: path must be a non-empty string or a file: URL, not ${show(path)}.`);
  }
  const wanted = resolve(given);
  const isDirectory =
    given.endsWith('/') || given.endsWith(sep) || (await ifThere(stat(wanted)))?.isDirectory() === true;
  const directory = isDirectory ? wanted : dirname(wanted);
  await makeDirectories(directory);
  if (!(await stat(directory)).isDirectory()) throw new Error(`"${directory}" is not a directory.`);
  if (isDirectory) return { directory };
  await statsOfRegular(wanted);
  return { file: wanted };
}

/** What is at `path`; undefined where nothing is. Throws for a device, a pipe or a socket: a file must not replace it. */
async function statsOfRegular(path: string): Promise<Stats | undefined> {
  const stats = await ifThere(stat(path));
  if (stats === undefined || stats.isFile()) return stats;
  throw new Error(`"${path}" is not a regular file.`);
}

async function ifThere<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (reason) {
    if (fileSystemCode(reason) === 'ENOENT') return undefined;
    throw reason;
  }
}

/**
 * Makes a directory and those above it. Not with `recursive: true`, which never ends where the file system denies that a
 * parent is there, as /proc does.
 */
export async function makeDirectories(path: string): Promise<void> {
  const isDirectory = async () => (await ifThere(stat(path)))?.isDirectory() === true;
  if (await isDirectory()) return;
  const parent = dirname(path);
  // A drive that is not there is its own parent.
  if (parent !== path) await makeDirectories(parent);
  await mkdir(path).catch(async (reason) => {
    // Another process was faster.
    if (!(await isDirectory())) throw reason;
  });
}

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

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  async write(bytes: Uint8Array): Promise<void> {
    await this.#file.appendFile(bytes);
    this.#sizeBytes += bytes.length;
  }

  /** Puts the whole file, flushed to the disk, under its name at once; without `overwrite` it never replaces another. */
  async commit(target: string, overwrite: boolean): Promise<void> {
    await flush(this.#file);
    await this.#file.close();
    if (overwrite) await rename(this.#path, target);
    else await placeNew(this.#path, target);
    await flushDirectory(dirname(target));
  }

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
    if (fileSystemCode(reason) === 'EEXIST') throw reason;
    // FAT, some network shares and containers know no hard links.
    await (await open(target, 'wx')).close();
    await rename(path, target);
  }
}
