import { type CopyTarget, copyFile, type OutputBody } from '../../downloading/copier.js';
import type { JobRef } from '../../downloading/output.js';
import { type JobFile, type OutputClient, requireOutputClient, storeOutput } from '../../downloading/output-source.js';
import { DownloadError, StorageError } from '../../errors/index.js';
import { backoff, FILE_BACKOFF, spread } from '../../rules/backoff.js';
import {
  abortSignal,
  callback,
  checkOptions,
  count,
  flag,
  milliseconds,
  optionsOf,
  requiredMethods,
} from '../../rules/options.js';
import { systemClock, systemRandom } from '../../runtime/clock.js';
import { type Deadline, sleep, startDeadline } from '../../runtime/deadline.js';
import { createSha256 } from '../../runtime/sha256.js';
import { isFields } from '../../schemas/envelope.js';
import { safeContentType } from '../../schemas/media-type.js';
import {
  asStorageError,
  JOB_METADATA,
  type OutputDestination,
  objectJob,
  RepeatRequest,
  type StoredObject,
  UnconfirmedPut,
} from './destination.js';
import { isAbsent, isConflict, isRetryableStoreError, isUnknown, mayHaveStored } from './store-responses.js';

const CALL = 'copyOutput(client, job, destination)';
/** Maximum immediate repeats of a put: to detect and follow a redirect, and to send the put without a condition. */
const MAX_REPEATS = 4;
const STORE_TIMEOUT_MS = 60_000;
/** Grants extra time after the last byte, for stores that buffer the file. */
const STORE_BYTES_PER_MS = 1_000;

/** Progress of a copy. */
export interface CopyProgress {
  /** Bytes that the store has read in this attempt. Restarts at 0 if the put is repeated. */
  readonly receivedBytes: number;
  /** Size of the file in bytes. */
  readonly totalBytes: number;
}

/** Options for `copyOutput`. */
export interface CopyOutputOptions {
  /** Called after each chunk. Errors that it throws are ignored. */
  readonly onProgress?: ((progress: CopyProgress) => unknown) | undefined;
  /** Aborts the copy, which rejects with the signal's reason and leaves no object. */
  readonly signal?: AbortSignal | undefined;
  /** If true, replaces an object of another job or with another size. @default false */
  readonly overwrite?: boolean | undefined;
  /** Maximum retries of requests to the store. The download resumes independently. @default 5 */
  readonly retries?: number | undefined;
  /**
   * Maximum idle time of the store in milliseconds. After the last byte, the store is allowed one more second per megabyte.
   * @default 60_000
   */
  readonly timeoutMs?: number | undefined;
}

const COPY_OPTIONS = optionsOf({
  onProgress: callback,
  signal: abortSignal,
  overwrite: flag,
  retries: count,
  timeoutMs: milliseconds,
});

/** Validates only `put`, because a destination may have other members. */
const DESTINATION = optionsOf({ destination: requiredMethods('put') });

/** A stored file. */
export interface StoredOutput {
  /** Size in bytes. */
  readonly sizeBytes: number;
  /** Media type, detected from the first bytes if possible. Undefined if browsers must not open it. */
  readonly contentType: string | undefined;
  /** SHA-256 as 64 hex digits. Undefined if the object already existed, because no bytes were read. */
  readonly sha256: string | undefined;
  /** Entity tag of the object, if the store returns one. */
  readonly etag: string | undefined;
  /** True if the job's object already existed and nothing was copied. */
  readonly existed: boolean;
}

/**
 * Copies a finished job's complete file to your store, or nothing. If the job's file already exists there, resolves
 * with `existed: true`. Throws a {@link StorageError} if the store rejects the file or has a different object with that
 * name, and a {@link DownloadError} if the file can't be read.
 *
 * @example
 * const stored = await copyOutput(client, job, r2(env.BUCKET, `videos/${job.id}.mp4`));
 */
export async function copyOutput(
  client: OutputClient,
  job: JobRef,
  destination: OutputDestination,
  options: CopyOutputOptions = {},
): Promise<StoredOutput> {
  requireOutputClient(CALL, client);
  checkOptions(CALL, DESTINATION, { destination });
  checkOptions('copyOutput', COPY_OPTIONS, options);
  return storeOutput(CALL, { client, job, options }, (file) =>
    copyFile(file, new StoreTarget(file, destination, options)),
  );
}

/** A put's body and its digest. Fails before the last byte if the file is unreadable or has changed. */
class PutBody {
  readonly sizeBytes: number;
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  isComplete = false;
  /** Called with the side for which the copy now waits. */
  onWait: (side: 'source' | 'store') => void = () => {};
  readonly #digest = createSha256();

  constructor(body: OutputBody, report: (progress: CopyProgress) => void) {
    const { sizeBytes = 0 } = body.version;
    this.sizeBytes = sizeBytes;
    let receivedBytes = 0;
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>) => {
      this.onWait('source');
      const bytes = await body.next();
      if (bytes !== undefined) {
        receivedBytes += bytes.length;
        // Detect a file that is too long before sending its last byte.
        if (receivedBytes === sizeBytes) await body.next();
        await this.#digest.update(bytes);
        controller.enqueue(bytes);
        report({ receivedBytes, totalBytes: sizeBytes });
      }
      this.isComplete = receivedBytes === sizeBytes;
      if (this.isComplete) controller.close();
      this.onWait('store');
    };
    this.stream = new ReadableStream({ pull }, { highWaterMark: 0 });
  }

  sha256(): string | Promise<string> {
    return this.#digest.hex();
  }
}

/** Copies a file to an object in a store. */
class StoreTarget implements CopyTarget<StoredOutput> {
  readonly needsSize = true;
  readonly #file: JobFile<CopyProgress>;
  readonly #destination: OutputDestination;
  readonly #options: CopyOutputOptions;
  readonly #store: string;
  #retriesLeft: number;
  #repeatsLeft = MAX_REPEATS;
  #failures = 0;
  #body: PutBody | undefined;
  /** The body of a put with an unknown outcome, if the store received it in full. */
  #unconfirmedBody: PutBody | undefined;

  constructor(file: JobFile<CopyProgress>, destination: OutputDestination, options: CopyOutputOptions) {
    this.#file = file;
    this.#destination = destination;
    this.#options = options;
    this.#store = destination.store ?? 'custom';
    this.#retriesLeft = options.retries ?? 5;
  }

  async find(): Promise<StoredOutput | undefined> {
    const object = await this.#head();
    if (object === undefined) return undefined;
    const { sizeBytes, contentType, etag } = object;
    const unconfirmedBody = this.#unconfirmedBody;
    if (
      unconfirmedBody !== undefined &&
      unconfirmedBody.sizeBytes === sizeBytes &&
      objectJob(object) === this.#file.jobId
    ) {
      return { sizeBytes, contentType, sha256: await unconfirmedBody.sha256(), etag, existed: false };
    }
    if (await this.#isSameFile(object)) return { sizeBytes, contentType, sha256: undefined, etag, existed: true };
    if (this.#options.overwrite === true) return undefined;
    throw this.#alreadyExists();
  }

  async #head(): Promise<StoredObject | undefined> {
    const { head } = this.#destination;
    for (;;) {
      try {
        return head && ((await this.#attempt(({ signal }) => head({ signal }))) ?? undefined);
      } catch (thrown) {
        const error = asStorageError(thrown, this.#store, 'to look for the object');
        if (isAbsent(error) || isUnknown(error)) return undefined;
        await this.#waitToRetry(error, false);
      }
    }
  }

  async #isSameFile(object: StoredObject): Promise<boolean> {
    if (objectJob(object) !== this.#file.jobId) return false;
    try {
      const info = await this.#file.info();
      return info.sizeBytes === undefined || info.sizeBytes === object.sizeBytes;
    } catch (cause) {
      // An expired link has no size. The job's object is complete anyway.
      if (DownloadError.isInstance(cause) && cause.code === 'output_expired') return true;
      throw cause;
    }
  }

  async put(source: OutputBody): Promise<StoredOutput> {
    const { overwrite = false, timeoutMs = STORE_TIMEOUT_MS } = this.#options;
    const body = new PutBody(source, this.#file.report);
    const { sizeBytes } = body;
    this.#body = body;
    // Browsers may open the stored object, so its type must be safe.
    const contentType = safeContentType(source.version.contentType ?? '');
    let etag: string | undefined;
    let putError: StorageError | undefined;
    try {
      const response = await this.#attempt(async ({ signal, restart, pause }) => {
        // A store that buffers the file needs more time after the last byte.
        body.onWait = (side) => {
          if (side === 'source') pause();
          else restart(timeoutMs + (body.isComplete ? sizeBytes / STORE_BYTES_PER_MS : 0));
        };
        return this.#destination.put(body.stream, {
          contentType: contentType ?? 'application/octet-stream',
          sizeBytes,
          metadata: { [JOB_METADATA]: this.#file.jobId },
          signal,
          overwrite,
        });
      });
      putError = this.#responseError(body, response);
      etag = response?.etag;
    } catch (thrown) {
      if (!(thrown instanceof UnconfirmedPut)) throw thrown;
      putError = thrown;
    }
    if (putError === undefined) return { sizeBytes, contentType, sha256: await body.sha256(), etag, existed: false };
    // The object may be stored. Check with one HEAD.
    if (body.isComplete) this.#unconfirmedBody = body;
    const object = await this.find();
    if (object) return object;
    throw putError;
  }

  #responseError({ isComplete }: PutBody, response: unknown): StorageError | undefined {
    if (!isComplete) return this.#error('body_not_read', 'resolved the put without reading the complete body');
    if (!isFields(response) || response.ok !== false || typeof response.status !== 'number') return undefined;
    const { status } = response;
    return this.#error(`http_${status}`, `responded to the PUT with HTTP status ${status}`, { status });
  }

  async afterFailure(thrown: unknown): Promise<void> {
    const error = asStorageError(thrown, this.#store, 'to store the file');
    if (error.code === 'body_not_read') throw error;
    if (this.#body?.isComplete && mayHaveStored(error)) this.#unconfirmedBody = this.#body;
    const isTaken = isConflict(error) && this.#options.overwrite !== true;
    if (isTaken && this.#destination.head === undefined) throw this.#alreadyExists(error);
    // After a conflict, check the other copy's object immediately.
    await this.#waitToRetry(error, isTaken);
  }

  /** Waits before a retry. Throws the error if a retry can't help. */
  async #waitToRetry(error: StorageError, isImmediate: boolean): Promise<void> {
    this.#options.signal?.throwIfAborted();
    if ((isImmediate || error instanceof RepeatRequest) && this.#repeatsLeft > 0) {
      this.#repeatsLeft -= 1;
      return;
    }
    if (!isRetryableStoreError(error) || this.#retriesLeft <= 0) throw error;
    this.#retriesLeft -= 1;
    this.#failures += 1;
    // Spread the retries of copies that failed at the same time.
    const pauseMs = spread(backoff(FILE_BACKOFF, this.#failures), systemRandom.next());
    await sleep(this.#file.clock, pauseMs, this.#file.signal);
  }

  /** Sends a request, which fails if the store is idle for too long. Uses real time, even in a sandbox. */
  async #attempt<T>(send: (deadline: Deadline) => Promise<T>): Promise<T> {
    const { signal, timeoutMs = STORE_TIMEOUT_MS } = this.#options;
    const timeoutError = () => this.#error('timeout', `made no progress for ${timeoutMs} ms (timeoutMs)`);
    const deadline = startDeadline({ clock: systemClock, ms: timeoutMs, signal, late: timeoutError });
    try {
      return await deadline.race(Promise.resolve().then(() => send(deadline)));
    } finally {
      deadline.end();
    }
  }

  #alreadyExists(cause?: StorageError): StorageError {
    const problem = 'already contains another object at this key. Pass overwrite: true to replace it';
    return this.#error('object_exists', problem, { status: 412, cause });
  }

  #error(
    code: string,
    problem: string,
    details: { readonly status?: number; readonly cause?: unknown } = {},
  ): StorageError {
    const message = `The store "${this.#store}" ${problem} (job ${this.#file.jobId}).`;
    return new StorageError(message, { code, store: this.#store, ...details });
  }
}
