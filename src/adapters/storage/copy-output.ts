import type { JobRef, OutputVersion } from '../../downloading/output.js';
import { type OutputReader, RestartRequired } from '../../downloading/output-reader.js';
import { type JobFile, type OutputClient, requireOutputClient, storeOutput } from '../../downloading/output-source.js';
import { DownloadError, StorageError } from '../../errors/index.js';
import { backoff, FILE_BACKOFF, spread } from '../../rules/backoff.js';
import { isAbsent, isPassingStore, isTaken, isUnknown, mayHaveStored } from '../../rules/object-storage.js';
import {
  abortSignal,
  callback,
  checkOptions,
  count,
  flag,
  methods,
  milliseconds,
  optionsOf,
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

const CALL = 'copyOutput(client, job, destination)';
/** Puts that a store may ask to be repeated at once: a redirect that is seen, one that is followed, a condition left out. */
const MOST_REPEATS = 4;
const STORE_TIMEOUT_MS = 60_000;
/** A store that gathers the bytes first is given time for them, after the last one. */
const STORE_BYTES_PER_MS = 1_000;

/** How far a copy has come. */
export interface CopyProgress {
  /** Bytes that the store has taken in this attempt; begins at 0 again when the put is repeated. */
  readonly receivedBytes: number;
  /** Size of the file in bytes. */
  readonly totalBytes: number;
}

/** What `copyOutput` takes beside the job and the destination. */
export interface CopyOutputOptions {
  /** Told how far the copy has come, after each piece. It only observes: what it throws changes nothing. */
  readonly onProgress?: ((progress: CopyProgress) => unknown) | undefined;
  /** Ends the copy at once; it rejects with the signal's own reason, and no object is there. */
  readonly signal?: AbortSignal | undefined;
  /** Whether an object of another job, or another size, is replaced. @default false */
  readonly overwrite?: boolean | undefined;
  /** How often a request to the store that failed is sent again. The download heals itself besides. @default 5 */
  readonly retries?: number | undefined;
  /**
   * Milliseconds in which the store must take the next bytes, or answer; after the last byte a second more for each
   * megabyte. @default 60_000
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

/** The members of a destination. Others may stand beside them: a destination is often an object with a life of its own. */
const DESTINATION = optionsOf({ destination: methods<OutputDestination>('put') });

/** A file that is in the store. */
export interface StoredOutput {
  /** Its size in bytes. */
  readonly sizeBytes: number;
  /** Its media type. */
  readonly contentType: string | undefined;
  /** SHA-256 of its bytes as 64 hex digits; undefined when the object existed, because no byte was read. */
  readonly sha256: string | undefined;
  /** The store's entity tag, where it tells one. */
  readonly etag: string | undefined;
  /** Whether the object of this job was there already, so that nothing was copied. */
  readonly existed: boolean;
}

/**
 * Copies a finished job's file to a store of yours, in one put of known length: the object is there whole or not at all. A
 * download that is cut goes on where it was, and a put that fails is sent again. An object that is there with the same job
 * and size resolves with `existed: true` and moves no byte. The store never sees the API key.
 *
 * Throws a {@link StorageError} when the store refuses the file or holds another object under the same name, and a
 * {@link DownloadError} when the file cannot be read.
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
  return storeOutput(CALL, { client, job, options }, (file) => new Copy(file, destination, options).run());
}

/** One version of a file on its way to a store. */
class CopyBody {
  readonly version: OutputVersion;
  /** Size of the file in bytes. */
  readonly sizeBytes: number;
  /** Exactly the announced bytes. It breaks before the last of them when the file cannot be read, or has changed. */
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  isWhole = false;
  failure: { readonly reason: unknown } | undefined;
  /** Told who is to act next: the source when bytes are asked for, the store when they are there. */
  onTurn: (whose: 'source' | 'store') => void = () => {};
  readonly #reader: OutputReader;
  readonly #digest = createSha256();

  constructor(reader: OutputReader, version: OutputVersion, sizeBytes: number, handed: (bytes: number) => void) {
    this.#reader = reader;
    this.version = version;
    this.sizeBytes = sizeBytes;
    let count = 0;
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>) => {
      this.onTurn('source');
      const bytes = await this.#next();
      if (bytes !== undefined) {
        count += bytes.length;
        // A file that is longer than announced is noticed before its last byte leaves.
        if (count === sizeBytes) await this.#next();
        await this.#digest.update(bytes);
        controller.enqueue(bytes);
        handed(count);
      }
      this.isWhole = count === sizeBytes;
      if (this.isWhole) controller.close();
      this.onTurn('store');
    };
    this.stream = new ReadableStream({ pull }, { highWaterMark: 0 });
  }

  sha256(): string | Promise<string> {
    return this.#digest.hex();
  }

  async #next(): Promise<Uint8Array<ArrayBuffer> | undefined> {
    try {
      return await this.#reader.read();
    } catch (reason) {
      this.failure = { reason };
      throw reason;
    }
  }
}

/** The file at its first byte. Where the service does not tell its size, the file is read once to count its bytes. */
async function openBody(reader: OutputReader, handed: (bytes: number) => void): Promise<CopyBody> {
  const opened = await reader.fromStart(async (version) => ({
    version,
    sizeBytes: version.sizeBytes ?? (await countBytes(reader)),
  }));
  const version = opened.version.sizeBytes === undefined ? await reader.open(opened.sizeBytes) : opened.version;
  return new CopyBody(reader, version, version.sizeBytes ?? opened.sizeBytes, handed);
}

async function countBytes(reader: OutputReader): Promise<number> {
  let count = 0;
  for (let bytes = await reader.read(); bytes; bytes = await reader.read()) count += bytes.length;
  return count;
}

class Copy {
  readonly #file: JobFile<CopyProgress>;
  readonly #destination: OutputDestination;
  readonly #options: CopyOutputOptions;
  readonly #store: string;
  #retriesLeft: number;
  #repeatsLeft = MOST_REPEATS;
  #failures = 0;
  /** A body that the store took whole, in a put whose outcome is not known. */
  #unanswered: CopyBody | undefined;

  constructor(file: JobFile<CopyProgress>, destination: OutputDestination, options: CopyOutputOptions) {
    this.#file = file;
    this.#destination = destination;
    this.#options = options;
    this.#store = destination.store ?? 'custom';
    this.#retriesLeft = options.retries ?? 5;
  }

  async run(): Promise<StoredOutput> {
    let reader = this.#file.reader();
    try {
      for (;;) {
        const found = await this.#found();
        if (found) return found;
        // A put that has failed begins with the file from its beginning.
        const handed = (receivedBytes: number) => this.#file.tell({ receivedBytes, totalBytes: body.sizeBytes });
        const body: CopyBody = await this.#file.explained(() => openBody(reader, handed));
        try {
          return await this.#put(body);
        } catch (thrown) {
          if (body.failure?.reason instanceof RestartRequired) continue;
          reader.cancel();
          await this.#afterFailure(body, thrown);
          reader = this.#file.reader();
        }
      }
    } finally {
      reader.cancel();
    }
  }

  /** The object of this job, where it is there. Throws for another object, unless it may be replaced. */
  async #found(): Promise<StoredOutput | undefined> {
    const object = await this.#head();
    if (object === undefined) return undefined;
    const { sizeBytes, contentType, etag } = object;
    const own = this.#unanswered;
    if (own !== undefined && own.sizeBytes === sizeBytes && objectJob(object) === this.#file.jobId) {
      return { sizeBytes, contentType, sha256: await own.sha256(), etag, existed: false };
    }
    if (await this.#isSameFile(object)) return { sizeBytes, contentType, sha256: undefined, etag, existed: true };
    if (this.#options.overwrite === true) return undefined;
    throw this.#taken();
  }

  async #head(): Promise<StoredObject | undefined> {
    const { head } = this.#destination;
    for (;;) {
      try {
        return head && ((await this.#attempt(({ signal }) => head({ signal }))) ?? undefined);
      } catch (thrown) {
        const error = asStorageError(thrown, this.#store, 'to tell about the object');
        if (isAbsent(error) || isUnknown(error)) return undefined;
        await this.#again(error, false);
      }
    }
  }

  async #isSameFile(object: StoredObject): Promise<boolean> {
    if (objectJob(object) !== this.#file.jobId) return false;
    try {
      const info = await this.#file.explained(() => this.#file.info());
      return info.sizeBytes === undefined || info.sizeBytes === object.sizeBytes;
    } catch (cause) {
      // The service no longer tells the size once the link has expired, and an object with the job's name is always whole.
      if (DownloadError.isInstance(cause) && cause.code === 'output_expired') return true;
      throw cause;
    }
  }

  async #put(body: CopyBody): Promise<StoredOutput> {
    const { version, sizeBytes } = body;
    const { overwrite = false, timeoutMs = STORE_TIMEOUT_MS } = this.#options;
    // What the store holds is served to browsers later, so its type is checked like that of a file that is shown.
    const contentType = safeContentType(version.contentType ?? '');
    let etag: string | undefined;
    let doubt: StorageError | undefined;
    try {
      const answer = await this.#attempt(async ({ signal, restart, pause }) => {
        // A store that gathers all bytes first sends them after the last one.
        body.onTurn = (whose) => {
          if (whose === 'source') pause();
          else restart(timeoutMs + (body.isWhole ? sizeBytes / STORE_BYTES_PER_MS : 0));
        };
        return this.#destination.put(body.stream, {
          contentType: contentType ?? 'application/octet-stream',
          sizeBytes,
          metadata: { [JOB_METADATA]: this.#file.jobId },
          signal,
          overwrite,
        });
      });
      doubt = this.#doubtAbout(body, answer);
      etag = answer?.etag;
    } catch (thrown) {
      if (!(thrown instanceof UnconfirmedPut)) throw thrown;
      doubt = thrown;
    }
    if (doubt === undefined) return { sizeBytes, contentType, sha256: await body.sha256(), etag, existed: false };
    // The put does not prove that the object is stored. One look decides.
    if (body.isWhole) this.#unanswered = body;
    const found = await this.#found();
    if (found) return found;
    throw doubt;
  }

  #doubtAbout(body: CopyBody, answer: unknown): StorageError | undefined {
    if (!body.isWhole) return this.#error('body_not_read', 'says that it has the file, and has not read all of it');
    if (!isFields(answer) || answer.ok !== false || typeof answer.status !== 'number') return undefined;
    const { status } = answer;
    return this.#error(`http_${status}`, `answers the put with HTTP status ${status}`, { status });
  }

  /** Waits until a put that failed may be made again. Throws where it would fail again. */
  async #afterFailure(body: CopyBody, thrown: unknown): Promise<void> {
    this.#options.signal?.throwIfAborted();
    const { failure } = body;
    if (failure) return this.#file.explained(() => Promise.reject(failure.reason));
    const error = asStorageError(thrown, this.#store, 'to take the file');
    if (error.code === 'body_not_read') throw error;
    if (body.isWhole && mayHaveStored(error)) this.#unanswered = body;
    const isLost = isTaken(error) && this.#options.overwrite !== true;
    if (isLost && this.#destination.head === undefined) throw this.#taken(error);
    // Another was faster: what the store holds now is looked at before anything else.
    await this.#again(error, isLost);
  }

  /** Waits before a request is sent again, unless it is to be repeated at once. Throws what would fail in the same way. */
  async #again(error: StorageError, atOnce: boolean): Promise<void> {
    this.#options.signal?.throwIfAborted();
    if ((atOnce || error instanceof RepeatRequest) && this.#repeatsLeft > 0) {
      this.#repeatsLeft -= 1;
      return;
    }
    if (!isPassingStore(error) || this.#retriesLeft <= 0) throw error;
    this.#retriesLeft -= 1;
    this.#failures += 1;
    // Copies that failed together must not come back together.
    const pauseMs = spread(backoff(FILE_BACKOFF, this.#failures), systemRandom.next());
    await sleep(this.#file.clock, pauseMs, this.#file.signal);
  }

  /** A request to the store, given up when the store does nothing for too long. The store's time is real, also in a sandbox. */
  async #attempt<T>(send: (deadline: Deadline) => Promise<T>): Promise<T> {
    const { signal, timeoutMs = STORE_TIMEOUT_MS } = this.#options;
    const late = () => this.#error('timeout', `did nothing for ${timeoutMs} ms (timeoutMs)`);
    const deadline = startDeadline({ clock: systemClock, ms: timeoutMs, signal, late });
    try {
      return await deadline.race(Promise.resolve().then(() => send(deadline)));
    } finally {
      deadline.end();
    }
  }

  #taken(cause?: StorageError): StorageError {
    const what = 'holds another object there. Pass overwrite: true to replace it';
    return this.#error('object_exists', what, { status: 412, cause });
  }

  #error(
    code: string,
    what: string,
    details: { readonly status?: number; readonly cause?: unknown } = {},
  ): StorageError {
    const message = `The store "${this.#store}" ${what} (job ${this.#file.jobId}).`;
    return new StorageError(message, { code, store: this.#store, ...details });
  }
}
