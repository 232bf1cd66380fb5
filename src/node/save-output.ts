import { stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../clock.js';
import { DownloadError } from '../errors/index.js';
import { extensionFor, type JobRef, jobIdOf, type OutputInfo } from '../resources/output.js';
import { type RestOfOutput, readOutput, type WrittenAt } from '../resources/output-reader.js';
import { explainRefusal } from '../resources/output-refusal.js';
import type { Job } from '../schemas/job.js';
import { safeFileName } from '../uploading/file-name.js';
import { codeOf, isTaken, TemporaryFile } from './target-file.js';

/** How each call is made. */
interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** What `saveOutput` needs of a client; a GenClient has it. */
export interface SaveClient {
  readonly jobs: {
    get(id: string, options?: CallOptions): PromiseLike<Job>;
    output(job: string, options?: CallOptions & Partial<RestOfOutput>): PromiseLike<Response>;
    outputInfo(job: string, options?: CallOptions): PromiseLike<OutputInfo>;
  };
}

/** How far a download has come. */
export interface SaveProgress {
  /** Bytes received so far; begins at 0 again when the download has to start over. */
  readonly receivedBytes: number;
  /** Size of the file in bytes, where the service says it. */
  readonly totalBytes: number | undefined;
}

/** What `saveOutput` takes beside the job and the path. */
export interface SaveOutputOptions {
  /** Told how far the download has come, after each piece. */
  readonly onProgress?: ((progress: SaveProgress) => void) | undefined;
  /** Ends the download at once; it rejects with the signal's own reason and leaves no file. */
  readonly signal?: AbortSignal | undefined;
  /** Whether a file that is already there is replaced. @default false */
  readonly overwrite?: boolean | undefined;
}

/** A file that was saved. */
export interface SavedOutput {
  /** Absolute path of the file. */
  readonly path: string;
  /** Its size in bytes. */
  readonly sizeBytes: number;
  /** Its media type, as the service gave it. */
  readonly contentType: string | undefined;
}

/**
 * Saves a finished job's file (spec: GET /v1/jobs/{job_id}/output). It is written beside the target under a temporary
 * name, checked, flushed to the disk and only then renamed, so that the path holds the whole file or none. After a cut it
 * goes on where it was, if the service takes ranges and the file is still the same, and starts over otherwise. A path
 * that is a directory gets a file named after the job. Throws a {@link DownloadError}, also for a file that is there.
 */
export async function saveOutput(
  client: SaveClient,
  job: JobRef,
  path: string | URL,
  options: SaveOutputOptions = {},
): Promise<SavedOutput> {
  options.signal?.throwIfAborted();
  const jobId = jobIdOf(job);
  const wanted = resolve(typeof path === 'string' ? path : fileURLToPath(path));
  const saving = new Saving(client, jobId, options);
  const isDirectory = await stat(wanted).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
  if (!isDirectory) await saving.refuseTaken(wanted);
  const file = await saving.inDisk(() => TemporaryFile.in(isDirectory ? wanted : dirname(wanted)));
  try {
    const whole = await saving.read(file);
    const name = isDirectory ? `${safeFileName(jobId, '')}${extensionFor(whole.contentType)}` : basename(wanted);
    const target = isDirectory ? join(wanted, name) : wanted;
    await saving.inDisk(() => file.commit(target, options.overwrite === true), target);
    return { path: target, ...whole };
  } catch (cause) {
    await file.abandon();
    throw cause;
  }
}

/** One download on its way: the client's calls and the disk, with failures told in the user's words. */
class Saving {
  readonly #client: SaveClient;
  readonly #jobId: string;
  readonly #options: SaveOutputOptions;

  constructor(client: SaveClient, jobId: string, options: SaveOutputOptions) {
    this.#client = client;
    this.#jobId = jobId;
    this.#options = options;
  }

  async refuseTaken(path: string): Promise<void> {
    if (this.#options.overwrite !== true && (await isTaken(path))) throw this.#taken(path);
  }

  async read(file: TemporaryFile) {
    const { jobs } = this.#client;
    const { signal, onProgress } = this.#options;
    const jobId = this.#jobId;
    let receivedBytes = 0;
    const sink = {
      write: async (chunk: Uint8Array, { totalBytes, isOwned }: WrittenAt) => {
        receivedBytes += chunk.length;
        await this.inDisk(() => file.write(chunk, isOwned));
        onProgress?.({ receivedBytes, totalBytes });
      },
      restart: () => {
        receivedBytes = 0;
        return this.inDisk(() => file.restart());
      },
    };
    const open = (rest?: RestOfOutput) => jobs.output(jobId, { signal, ...rest });
    const sizeOf = () =>
      Promise.resolve(jobs.outputInfo(jobId, { signal })).then(
        ({ sizeBytes }) => sizeBytes,
        () => undefined,
      );
    try {
      return await readOutput({ jobId, open, sizeOf, sink, signal, clock: systemClock });
    } catch (cause) {
      signal?.throwIfAborted();
      const job = () => Promise.resolve(jobs.get(jobId, { signal })).catch(() => undefined);
      throw await explainRefusal({ jobId, cause, job, now: systemClock.now() });
    }
  }

  /** Does something on the disk; its failure is a DownloadError that names the place. */
  async inDisk<T>(work: () => Promise<T>, target?: string): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      if (codeOf(cause) === 'EEXIST' && target !== undefined) throw this.#taken(target, cause);
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new DownloadError(`The file of job ${this.#jobId} cannot be written: ${reason}`, {
        jobId: this.#jobId,
        cause,
      });
    }
  }

  #taken(path: string, cause?: unknown): DownloadError {
    return new DownloadError(`"${path}" is already there. Pass overwrite: true to replace it.`, {
      jobId: this.#jobId,
      cause,
    });
  }
}
