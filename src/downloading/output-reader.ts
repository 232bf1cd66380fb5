import {
  APIError,
  ConnectionError,
  DownloadError,
  type DownloadErrorCode,
  ServerError,
  TimeoutError,
} from '../errors/index.js';
import { backoff, FILE_BACKOFF } from '../rules/backoff.js';
import { isUnsatisfiable } from '../rules/files.js';
import { joinBytes } from '../runtime/bytes.js';
import type { Clock } from '../runtime/clock.js';
import { abortable, onAbort, sleep } from '../runtime/deadline.js';
import { FIRST_BYTES } from '../schemas/file-type.js';
import {
  notMedia,
  type OutputInfo,
  type OutputResponse,
  type OutputVersion,
  outputType,
  parseOutputResponse,
} from './output.js';

/** Range and entity tag of a request for the rest of a file. */
export interface RestOfOutput {
  /** First byte, and last byte unless the rest of the file is requested. */
  readonly range: { readonly start: number; readonly end?: number | undefined };
  readonly ifRange: string;
}

/** Thrown if the file has or may have changed. Call `open` to start over. */
export class RestartRequired extends DownloadError {}

export interface OutputReading {
  readonly jobId: string;
  /** Requests the file, or the rest of it. Resolves when the headers arrive. */
  readonly open: (signal: AbortSignal, rest?: RestOfOutput) => PromiseLike<Response>;
  /** Requests the size of the file, for a response without one. */
  readonly info: (signal: AbortSignal) => PromiseLike<Pick<OutputInfo, 'sizeBytes'>>;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

/** Maximum consecutive interruptions without progress. */
const MAX_INTERRUPTIONS = 5;

type Connection = ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;
type Chunk = ReadableStreamReadResult<Uint8Array<ArrayBuffer>>;

/**
 * Reads a file over any number of connections. After an interruption, requests the rest with Range and If-Range. Throws
 * {@link RestartRequired} instead of mixing two versions of the file, another DownloadError when it gives up, and any error of
 * `reading.open`.
 */
export class OutputReader {
  readonly #reading: OutputReading;
  #abort = new AbortController();
  #removeListener = () => {};
  #connection: Connection | undefined;
  /** Chunks that `#readAhead` requested. */
  #chunksAhead: Promise<Chunk>[] = [];
  #version: OutputVersion | undefined;
  /** First byte to read. `#end` is the last one, or undefined to read to the end of the file. */
  #start = 0;
  #end: number | undefined;
  #returnedBytes = 0;
  #hasEnded = false;
  /** Most bytes ever returned, including before a restart. Only exceeding it counts as progress. */
  #furthestBytes = 0;
  #interruptions = 0;

  constructor(reading: OutputReading) {
    this.#reading = reading;
  }

  /** Opens the file at its first byte, including after a {@link RestartRequired}. `sizeBytes` replaces a missing size. */
  open(sizeBytes?: number): Promise<OutputVersion> {
    this.#listen();
    this.#returnedBytes = 0;
    this.#hasEnded = false;
    this.#version = undefined;
    return this.#orCancel(async () => {
      for (;;) {
        const response = await this.#open(undefined);
        if (response === undefined) continue;
        const output = await this.#withSize(response);
        if ((output.part?.start ?? 0) === 0) return await this.#connect(output, output.sizeBytes ?? sizeBytes);
        discard(response);
        throw this.#failure('cannot start: the service sent a range that was not requested');
      }
    });
  }

  /** Starts with an existing response, which may be partial. */
  startWith(response: Response): Promise<OutputVersion> {
    this.#listen();
    return this.#orCancel(async () => {
      const output = await this.#withSize(response);
      const { part } = output;
      if (part !== undefined) {
        if (Number.isNaN(part.start)) throw this.#failure('cannot be resumed: the response does not include its range');
        this.#start = part.start;
        if (part.totalBytes !== part.end + 1) this.#end = part.end;
      }
      return await this.#connect(output, part ? part.end - part.start + 1 : output.sizeBytes);
    });
  }

  /** Opens the file and calls `work`. Starts over if the file changes. */
  async fromStart<T>(work: (version: OutputVersion) => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await work(await this.open());
      } catch (reason) {
        if (!(reason instanceof RestartRequired)) throw reason;
      }
    }
  }

  read(): Promise<Uint8Array<ArrayBuffer> | undefined> {
    return this.#orCancel(async () => {
      while (!this.#hasEnded) {
        this.#abort.signal.throwIfAborted();
        if (this.#connection === undefined) await this.#reconnect();
        const bytes = this.#connection && (await this.#next(this.#connection));
        if (bytes !== undefined) return bytes;
      }
      this.#close(undefined);
      return undefined;
    });
  }

  /** Aborts reads in flight and closes the connection. */
  cancel(reason: unknown = new DOMException('The output stream was canceled.', 'AbortError')): void {
    this.#close(reason);
    this.#abort.abort(reason);
  }

  #listen(): void {
    const { signal } = this.#reading;
    this.#removeListener();
    this.#abort = new AbortController();
    this.#removeListener = onAbort(signal, () => this.cancel(signal?.reason));
  }

  async #orCancel<T>(work: () => Promise<T>): Promise<T> {
    const { signal } = this.#abort;
    try {
      return await work();
    } catch (reason) {
      const cause = signal.aborted ? signal.reason : reason;
      this.cancel(cause);
      throw cause;
    }
  }

  /** Returns the parsed response. Requests a missing size, because without it, a truncated body looks complete. */
  async #withSize(response: Response): Promise<OutputResponse> {
    const output = parseOutputResponse(this.#reading.jobId, response);
    if (output.sizeBytes !== undefined) return output;
    const { signal } = this.#abort;
    const info = async () => (await this.#reading.info(signal)).sizeBytes;
    try {
      return {
        ...output,
        sizeBytes: await abortable(
          info().catch(() => undefined),
          signal,
        ),
      };
    } catch (reason) {
      discard(response);
      throw reason;
    }
  }

  #close(reason: unknown): void {
    this.#removeListener();
    this.#connection?.cancel(reason).catch(() => undefined);
    this.#connection = undefined;
    this.#chunksAhead = [];
  }

  async #connect({ contentType, etag, body }: OutputResponse, sizeBytes: number | undefined): Promise<OutputVersion> {
    this.#connection = body.getReader();
    // Detect the type only from the start of the file, and only if the range has enough bytes.
    const hasHead = this.#start === 0 && (this.#end === undefined || this.#end >= FIRST_BYTES - 1);
    const head = hasHead ? await this.#readAhead(this.#connection) : undefined;
    this.#abort.signal.throwIfAborted();
    const type = head ? outputType(this.#reading.jobId, contentType, head) : contentType;
    this.#version = { sizeBytes, contentType: type, etag };
    return this.#version;
  }

  /** Reads the first bytes. `#next` returns them again, and throws the error of a failed read. */
  async #readAhead(connection: Connection): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    for (let length = 0; length < FIRST_BYTES; ) {
      const next = connection.read();
      this.#chunksAhead.push(next);
      const chunk = await next.catch(() => undefined);
      if (!chunk?.value) break;
      chunks.push(chunk.value);
      length += chunk.value.length;
    }
    return joinBytes(chunks);
  }

  /** Reconnects at the next byte. A temporary failure leaves the reader without a connection. */
  async #reconnect(): Promise<void> {
    this.#hasEnded = this.#isComplete();
    if (this.#hasEnded) return;
    const rest = this.#rest();
    const response = await this.#open(rest);
    if (response === undefined) return;
    const { jobId } = this.#reading;
    const output = parseOutputResponse(jobId, response);
    if (!this.#continues(response, output, rest)) {
      discard(response);
      throw this.#fileChangedError();
    }
    this.#connection = output.body.getReader();
  }

  #isComplete(): boolean {
    return this.#version?.sizeBytes !== undefined && this.#returnedBytes >= this.#version.sizeBytes;
  }

  #rest(): RestOfOutput {
    const etag = this.#version?.etag;
    if (etag !== undefined)
      return { range: { start: this.#start + this.#returnedBytes, end: this.#end }, ifRange: etag };
    const problem = `was interrupted after ${this.#returnedBytes} bytes and cannot be resumed: the file has no strong entity tag`;
    throw this.#restartError('interrupted', problem);
  }

  async #open(rest: RestOfOutput | undefined): Promise<Response | undefined> {
    const { signal } = this.#abort;
    try {
      return await abortable(this.#reading.open(signal, rest), signal, discard);
    } catch (cause) {
      signal.throwIfAborted();
      // An unsatisfiable range means that the file has changed.
      if (rest !== undefined && APIError.isInstance(cause) && isUnsatisfiable(cause.status))
        throw this.#fileChangedError();
      // If the service has sent bytes before, it may recover soon.
      if (this.#furthestBytes === 0 || !isPassingFailure(cause)) throw cause;
      await this.#pause(cause);
      return undefined;
    }
  }

  /** Returns true if the response starts at the next byte of the same file. */
  #continues({ headers }: Response, { part }: OutputResponse, { range, ifRange }: RestOfOutput): boolean {
    const tag = headers.get('etag');
    if (part === undefined || (tag !== null && tag !== ifRange)) return false;
    const totalBytes = this.#start === 0 && this.#end === undefined ? this.#version?.sizeBytes : undefined;
    const matchesSize =
      part.totalBytes === undefined ||
      ((totalBytes ?? part.totalBytes) === part.totalBytes && part.end < part.totalBytes);
    return part.start === range.start && matchesSize;
  }

  /** Returns the next bytes of a connection, or undefined when it ends or breaks off. */
  async #next(connection: Connection): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const chunk = this.#chunksAhead.shift() ?? connection.read();
    const result = await chunk.catch((reason: unknown) => ({ done: true as const, value: undefined, reason }));
    this.#abort.signal.throwIfAborted();
    const totalBytes = this.#version?.sizeBytes;
    if (result.done) {
      const isEnd = this.#isComplete() || (totalBytes === undefined && !('reason' in result));
      if (isEnd && this.#returnedBytes === 0) throw notMedia(this.#reading.jobId, 'an empty file');
      this.#hasEnded = isEnd;
      if (isEnd) return undefined;
      this.#connection = undefined;
      await this.#pause('reason' in result ? result.reason : 'the connection closed early');
      return undefined;
    }
    const leftBytes = totalBytes === undefined ? Number.POSITIVE_INFINITY : totalBytes - this.#returnedBytes;
    const bytes = result.value;
    this.#returnedBytes += Math.min(bytes.length, leftBytes);
    if (bytes.length <= leftBytes) return bytes;
    if (this.#end === undefined) {
      const problem = `is longer than its size of ${totalBytes} bytes`;
      await this.#pause(problem);
      throw this.#restartError('file_changed', problem);
    }
    this.#hasEnded = leftBytes === 0;
    return leftBytes === 0 ? undefined : bytes.subarray(0, leftBytes);
  }

  async #pause(cause: unknown): Promise<void> {
    const hasProgressed = this.#returnedBytes > this.#furthestBytes;
    this.#interruptions = hasProgressed ? 1 : this.#interruptions + 1;
    this.#furthestBytes = Math.max(this.#furthestBytes, this.#returnedBytes);
    if (this.#interruptions > MAX_INTERRUPTIONS) {
      const size = this.#version?.sizeBytes;
      const sizeText = size === undefined ? '' : ` of ${size}`;
      const problem = `was interrupted ${this.#interruptions} times in a row, last after ${this.#furthestBytes}${sizeText} bytes`;
      throw typeof cause === 'string' ? this.#failure(`${problem}: ${cause}`) : this.#failure(problem, cause);
    }
    await sleep(this.#reading.clock, backoff(FILE_BACKOFF, this.#interruptions), this.#abort.signal);
  }

  #fileChangedError(): RestartRequired {
    return this.#restartError(
      'file_changed',
      `cannot continue after ${this.#returnedBytes} bytes: the file has changed`,
    );
  }

  #restartError(code: DownloadErrorCode, problem: string): RestartRequired {
    const { jobId } = this.#reading;
    return new RestartRequired(`The download of job ${jobId} ${problem}.`, { jobId, code });
  }

  #failure(problem: string, cause?: unknown): DownloadError {
    const { jobId } = this.#reading;
    return new DownloadError(`The download of job ${jobId} ${problem}.`, { jobId, code: 'interrupted', cause });
  }
}

function discard(response: Response): void {
  response.body?.cancel().catch(() => undefined);
}

/** Returns true if the connection or the service failed, not the request. */
function isPassingFailure(cause: unknown): boolean {
  return ConnectionError.isInstance(cause) || TimeoutError.isInstance(cause) || ServerError.isInstance(cause);
}
