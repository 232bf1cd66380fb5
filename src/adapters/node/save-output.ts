import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type CopyTarget, copyFile, type OutputBody } from '../../downloading/copier.js';
import { extensionFor, type JobRef, type OutputInfo } from '../../downloading/output.js';
import { type JobFile, type OutputClient, requireOutputClient, storeOutput } from '../../downloading/output-source.js';
import { atCaller } from '../../errors/gen-error.js';
import { DownloadError, GenError } from '../../errors/index.js';
import { abortSignal, callback, checkOptions, flag, optionsOf } from '../../rules/options.js';
import { reasonOf } from '../../runtime/callbacks.js';
import { FIRST_BYTES, mediaTypeOf } from '../../schemas/file-type.js';
import { safeFileName, USUAL_EXTENSIONS } from '../../schemas/media-type.js';
import { fileSystemCode } from './flush.js';
import { ifExists, isSameContent, PartFile, type SavePath, savePath } from './part-file.js';

/** Progress of a download. */
export interface SaveProgress {
  /** Bytes received. Restarts at 0 if the download starts over. */
  readonly receivedBytes: number;
  /** File size in bytes, if the service reports it. */
  readonly totalBytes: number | undefined;
}

/** Options for `saveOutput`. */
export interface SaveOutputOptions {
  /** Called after each chunk. Errors that it throws are ignored. */
  readonly onProgress?: ((progress: SaveProgress) => unknown) | undefined;
  /** Aborts the download, which rejects with the signal's reason and leaves no file. */
  readonly signal?: AbortSignal | undefined;
  /** If true, replaces an existing file. Retains its mode, and follows symbolic links. @default false */
  readonly overwrite?: boolean | undefined;
}

const CALL = 'saveOutput(client, job, path)';
const SAVE_OPTIONS = optionsOf({ onProgress: callback, signal: abortSignal, overwrite: flag });

/** A saved file. */
export interface SavedOutput {
  /** Absolute path of the file. */
  readonly path: string;
  /** Size in bytes. */
  readonly sizeBytes: number;
  /** Media type detected from the first bytes, or the service's Content-Type. */
  readonly contentType: string | undefined;
  /** True if the job's file already existed and nothing was written. */
  readonly existed?: true;
}

/**
 * Saves a finished job's complete file, or nothing, and creates missing directories. For a directory, or a path that
 * ends in `/`, the file is named after the job. Throws a {@link DownloadError} if the file can't be downloaded or
 * written, or if a different file exists.
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
  return await atCaller(
    storeOutput(CALL, { client, job, options }, async (file) => {
      const target = await withDiskErrors(file.jobId, () => savePath(CALL, path));
      return copyFile(file, new DiskTarget(file, target, overwrite));
    }),
  );
}

/** Saves a file to a path. Disk failures are DownloadErrors. */
class DiskTarget implements CopyTarget<SavedOutput> {
  readonly needsSize = false;
  readonly #file: JobFile<SaveProgress>;
  readonly #target: SavePath;
  readonly #overwrite: boolean;

  constructor(file: JobFile<SaveProgress>, target: SavePath, overwrite: boolean) {
    this.#file = file;
    this.#target = target;
    this.#overwrite = overwrite;
  }

  /** Finds the job's file by its name and size, without transferring any bytes. */
  async find(): Promise<SavedOutput | undefined> {
    if (this.#overwrite) return undefined;
    const paths = 'file' in this.#target ? [this.#target.file] : this.#jobPaths(this.#target.directory);
    const candidates = await this.#onDisk(() =>
      Promise.all(paths.map(async (path) => ({ path, stats: await ifExists(stat(path)) }))),
    );
    const files = candidates.filter(({ stats }) => stats?.isFile());
    if (files.length === 0) return undefined;
    const info = await this.#info();
    for (const { path, stats } of files) {
      const sizeBytes = stats?.size ?? 0;
      const isSameSize = info.sizeBytes === undefined || info.sizeBytes === sizeBytes;
      // A name that the caller chose doesn't identify the job. If the size matches, `put` compares the bytes.
      if ('file' in this.#target) {
        if (isSameSize) return undefined;
        throw this.#alreadyExists(path);
      }
      if (isSameSize) return { path, sizeBytes, contentType: await this.#typeOf(path, info), existed: true };
    }
    return undefined;
  }

  async put(body: OutputBody): Promise<SavedOutput> {
    const { contentType, sizeBytes: totalBytes } = body.version;
    const path =
      'file' in this.#target ? this.#target.file : this.#jobPath(this.#target.directory, extensionFor(contentType));
    const existing = this.#overwrite ? undefined : await this.#onDisk(() => ifExists(stat(path)));
    if (existing && existing.size !== (totalBytes ?? existing.size)) throw this.#alreadyExists(path);
    const part = await this.#onDisk(() => PartFile.open(path));
    try {
      for (let bytes = await body.next(); bytes; bytes = await body.next()) {
        const written = part.write(bytes);
        if (written) await this.#onDisk(() => written);
        this.#file.report({ receivedBytes: part.sizeBytes, totalBytes });
      }
      const { sizeBytes } = part;
      const isMoved = await this.#onDisk(() => part.commit(this.#overwrite));
      if (isMoved) return { path, sizeBytes, contentType };
      const isSame = await this.#onDisk(() => isSameContent(part.path, path));
      if (!isSame) throw this.#alreadyExists(path);
      return { path, sizeBytes, contentType, existed: true };
    } finally {
      await part.remove();
    }
  }

  /** Never retries a disk failure. */
  async afterFailure(error: unknown): Promise<void> {
    throw error;
  }

  /**
   * Returns the file's info, or an empty object for an expired link, because a file with the job's name is complete
   * anyway.
   */
  async #info(): Promise<Partial<OutputInfo>> {
    try {
      return await this.#file.info();
    } catch (cause) {
      if ('directory' in this.#target && DownloadError.isInstance(cause) && cause.code === 'output_expired') return {};
      throw cause;
    }
  }

  #jobPath(directory: string, extension: string): string {
    return join(directory, `${safeFileName(this.#file.jobId, '')}${extension}`);
  }

  #jobPaths(directory: string): readonly string[] {
    return ['', ...USUAL_EXTENSIONS].map((extension) => this.#jobPath(directory, extension));
  }

  async #typeOf(path: string, { contentType }: Partial<OutputInfo>): Promise<string | undefined> {
    return this.#onDisk(async () => {
      const file = await open(path);
      try {
        const { buffer, bytesRead } = await file.read(new Uint8Array(FIRST_BYTES), 0, FIRST_BYTES, 0);
        return mediaTypeOf({ head: buffer.subarray(0, bytesRead), type: contentType }) ?? contentType;
      } finally {
        await file.close();
      }
    });
  }

  #onDisk<T>(work: () => Promise<T>): Promise<T> {
    return withDiskErrors(this.#file.jobId, work);
  }

  #alreadyExists(path: string): DownloadError {
    const { jobId } = this.#file;
    const message = `"${path}" already exists and is not the file of job ${jobId}. Pass overwrite: true to replace it.`;
    return new DownloadError(message, { jobId, code: 'file_exists' });
  }
}

async function withDiskErrors<T>(jobId: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (GenError.isInstance(cause)) throw cause;
    const hint = fileSystemCode(cause) === 'ENAMETOOLONG' ? ' Pass a shorter name.' : '';
    const message = `The file of job ${jobId} cannot be written: ${reasonOf(cause)}${hint}`;
    throw new DownloadError(message, { jobId, code: 'cannot_write', cause });
  }
}
