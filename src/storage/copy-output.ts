import { DownloadError, StorageError } from '../errors/index.js';
import { checkOptions } from '../options.js';
import { type JobRef, type OutputVersion, requireJobId } from '../resources/output.js';
import type { OutputReader } from '../resources/output-reader.js';
import {
  explained,
  type OutputClient,
  outputReader,
  requireOutputClient,
  storing,
} from '../resources/output-source.js';
import { backoff, FILE_BACKOFF, spread } from '../rules/backoff.js';
import { isAbsent, isPassingStore, isTaken, isUnknown, mayHaveStored } from '../rules/store.js';
import { callerContext, callObserver, type RunInContext } from '../runtime/callbacks.js';
import { clockOf, systemClock, systemRandom } from '../runtime/clock.js';
import { abortable, onAbort, sleep } from '../runtime/deadline.js';
import { isFields } from '../schemas/envelope.js';
import { type CopyBody, copyBody } from './copy-body.js';
import { COPY_OPTIONS, type CopyOutputOptions, DESTINATION } from './copy-options.js';
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
/** Puts that a store may ask to be repeated at once: a redirect that is seen, followed, and a clock that is set. */
const MOST_REPEATS = 4;
/** A store that gathers the bytes first is given time for them, after the last one. */
const STORE_BYTES_PER_MS = 1_000;
/** A timeout from here on is none. */
const LONGEST_TIMEOUT_MS = Number.POSITIVE_INFINITY;

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
 * Copies a finished job's file to a store of yours. The file is one
 * put of known length, so that the object is there whole or not at all. A download that is cut goes on where it was, and a
 * put that fails is sent again. An object that is there with the same job and size resolves with `existed: true` and moves
 * no byte, so that the call may be repeated at any time. The store never sees the API key.
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
  const jobId = requireJobId(CALL, job);
  checkOptions(CALL, DESTINATION, { destination });
  checkOptions('copyOutput', COPY_OPTIONS, options);
  options.signal?.throwIfAborted();
  return storing(client, { name: 'copyOutput', jobId }, () => new Copy(client, jobId, { destination, options }).run());
}

/** The file, open at its first byte. */
interface OpenOutput {
  readonly reader: OutputReader;
  readonly version: OutputVersion;
  readonly sizeBytes: number;
}

/** Says whether it is the store's turn to act, and how much longer than usual it may take. */
type TurnWatch = (isStoresTurn: boolean, extraMs?: number) => void;

/** One copy on its way. */
class Copy {
  readonly #client: OutputClient;
  readonly #jobId: string;
  readonly #destination: OutputDestination;
  readonly #options: CopyOutputOptions;
  readonly #store: string;
  readonly #inContext: RunInContext = callerContext();
  #retriesLeft: number;
  #repeatsLeft = MOST_REPEATS;
  #failures = 0;
  /** A body that the store took whole, in a put whose outcome is not known. */
  #unanswered: CopyBody | undefined;

  constructor(
    client: OutputClient,
    jobId: string,
    { destination, options }: { readonly destination: OutputDestination; readonly options: CopyOutputOptions },
  ) {
    this.#client = client;
    this.#jobId = jobId;
    this.#destination = destination;
    this.#options = options;
    this.#store = destination.store ?? 'custom';
    this.#retriesLeft = options.retries ?? 5;
  }

  async run(): Promise<StoredOutput> {
    let output: OpenOutput | undefined;
    try {
      for (;;) {
        const found = await this.#found();
        if (found) return found;
        output ??= await this.#open();
        const body = this.#body(output);
        try {
          return await this.#put(output, body);
        } catch (thrown) {
          output = await this.#next(output, { body, thrown });
        }
      }
    } finally {
      output?.reader.cancel();
    }
  }

  /** The object of this job, where it is there. Throws for another object, unless it may be replaced. */
  async #found(): Promise<StoredOutput | undefined> {
    const object = await this.#head();
    if (object === undefined) return undefined;
    const { sizeBytes, contentType, etag } = object;
    const own = this.#unanswered;
    if (own !== undefined && own.sizeBytes === sizeBytes && objectJob(object) === this.#jobId) {
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
        return head && ((await this.#attempt((signal) => head({ signal }))) ?? undefined);
      } catch (thrown) {
        const error = asStorageError(thrown, this.#store, 'to tell about the object');
        if (isAbsent(error) || isUnknown(error)) return undefined;
        await this.#again(error, false);
      }
    }
  }

  async #isSameFile(object: StoredObject): Promise<boolean> {
    if (objectJob(object) !== this.#jobId) return false;
    const { signal } = this.#options;
    try {
      const info = await this.#explained(async () => this.#client.jobs.outputInfo(this.#jobId, { signal }));
      return info.sizeBytes === undefined || info.sizeBytes === object.sizeBytes;
    } catch (cause) {
      // The service no longer tells the size once the link has expired, and an object with the job's name is always whole.
      if (DownloadError.isInstance(cause) && cause.code === 'output_expired') return true;
      throw cause;
    }
  }

  /** Opens the file. Where the service does not tell its size, the file is read once to count its bytes. */
  #open(): Promise<OpenOutput> {
    return this.#explained(async () => {
      let counted: number | undefined;
      for (;;) {
        const { signal } = this.#options;
        const reader = outputReader(this.#client, { jobId: this.#jobId, clock: clockOf(this.#client), signal });
        const version = await reader.read();
        if (version.type !== 'version') throw new TypeError('A reader begins with a version.');
        const sizeBytes = version.sizeBytes ?? counted;
        if (sizeBytes !== undefined) return { reader, version, sizeBytes };
        counted = await countBytes(reader);
      }
    });
  }

  #body({ reader, sizeBytes }: OpenOutput): CopyBody {
    return copyBody(reader, { jobId: this.#jobId, sizeBytes, handed: (bytes) => this.#tell(bytes, sizeBytes) });
  }

  async #put({ version, sizeBytes }: OpenOutput, body: CopyBody): Promise<StoredOutput> {
    const { overwrite = false } = this.#options;
    const { contentType } = version;
    const put = this.#attempt(async (signal, watch) => {
      // A store that gathers all bytes first sends them after the last one.
      body.onTurn((whose) => watch(whose === 'store', body.isWhole() ? sizeBytes / STORE_BYTES_PER_MS : 0));
      return this.#destination.put(body.stream, {
        contentType: contentType ?? 'application/octet-stream',
        sizeBytes,
        metadata: { [JOB_METADATA]: this.#jobId },
        signal,
        overwrite,
      });
    });
    const [answer, doubt] = await put.then(
      (given) => [given, this.#doubtAbout(body, given)] as const,
      (thrown: unknown) => {
        if (thrown instanceof UnconfirmedPut) return [undefined, thrown] as const;
        throw thrown;
      },
    );
    if (doubt !== undefined) return this.#confirmed(body, doubt);
    const etag = answer?.etag;
    return { sizeBytes, contentType, sha256: await body.sha256(), etag, existed: false };
  }

  /** Looks once whether the object is stored, although the put does not prove it. Throws the doubt where it is not. */
  async #confirmed(body: CopyBody, doubt: StorageError): Promise<StoredOutput> {
    if (body.isWhole()) this.#unanswered = body;
    const found = await this.#found();
    if (found) return found;
    throw doubt;
  }

  /** Why a put that resolved does not prove that the object is stored. */
  #doubtAbout(body: CopyBody, answer: unknown): StorageError | undefined {
    if (!body.isWhole()) return this.#error('body_not_read', 'says that it has the file, and has not read all of it');
    if (!isFields(answer) || answer.ok !== false || typeof answer.status !== 'number') return undefined;
    const { status } = answer;
    return this.#error(`http_${status}`, `answers the put with HTTP status ${status}`, { status });
  }

  /** What to put after a put that failed: undefined for the file from its beginning. Throws where it would fail again. */
  async #next(
    { reader }: OpenOutput,
    { body, thrown }: { readonly body: CopyBody; readonly thrown: unknown },
  ): Promise<OpenOutput | undefined> {
    this.#options.signal?.throwIfAborted();
    const broken = body.source();
    if (broken && 'version' in broken) {
      const { version } = broken;
      if (version.sizeBytes !== undefined) return { reader, version, sizeBytes: version.sizeBytes };
    }
    reader.cancel();
    if (broken && 'failure' in broken) {
      const { failure } = broken;
      // The file has changed after its bytes were counted.
      const isChanged = DownloadError.isInstance(failure) && failure.code === 'file_changed';
      if (!isChanged || this.#repeatsLeft <= 0) return this.#explained(() => Promise.reject(failure));
      this.#repeatsLeft -= 1;
    }
    if (broken) return undefined;
    const error = asStorageError(thrown, this.#store, 'to take the file');
    if (error.code === 'body_not_read') throw error;
    if (body.isWhole() && mayHaveStored(error)) this.#unanswered = body;
    const isLost = isTaken(error) && this.#options.overwrite !== true;
    if (isLost && this.#destination.head === undefined) throw this.#taken(error);
    // Another was faster: what the store holds now is looked at before anything else.
    await this.#again(error, isLost);
    return undefined;
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
    await sleep(clockOf(this.#client), pauseMs, this.#options.signal);
  }

  /** A request to the store, given up when the store does nothing for too long. The store's time is real, also in a sandbox. */
  async #attempt<T>(send: (signal: AbortSignal, watch: TurnWatch) => Promise<T>): Promise<T> {
    const { signal, timeoutMs = 60_000 } = this.#options;
    const abort = new AbortController();
    let cancelTimer = () => {};
    const late = () => abort.abort(this.#error('timeout', `did nothing for ${timeoutMs} ms (timeoutMs)`));
    const watch: TurnWatch = (isStoresTurn, extraMs = 0) => {
      cancelTimer();
      cancelTimer =
        isStoresTurn && timeoutMs < LONGEST_TIMEOUT_MS ? systemClock.after(timeoutMs + extraMs, late) : () => {};
    };
    const forget = onAbort(signal, () => abort.abort(signal?.reason));
    watch(true);
    try {
      return await abortable(
        Promise.resolve().then(() => send(abort.signal, watch)),
        abort.signal,
      );
    } finally {
      watch(false);
      forget();
    }
  }

  #explained<T>(work: () => Promise<T>): Promise<T> {
    const { signal } = this.#options;
    return explained(this.#client, { jobId: this.#jobId, clock: clockOf(this.#client), signal }, work);
  }

  #tell(receivedBytes: number, totalBytes: number): void {
    const { onProgress } = this.#options;
    if (onProgress) this.#inContext(() => callObserver(() => onProgress({ receivedBytes, totalBytes })));
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
    const message = `The store "${this.#store}" ${what} (job ${this.#jobId}).`;
    return new StorageError(message, { code, store: this.#store, ...details });
  }
}

async function countBytes(reader: OutputReader): Promise<number> {
  let bytes = 0;
  for (;;) {
    const piece = await reader.read();
    if (piece.type === 'end') return bytes;
    bytes = piece.type === 'bytes' ? bytes + piece.bytes.length : 0;
  }
}
