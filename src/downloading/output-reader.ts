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
import { encodingOf } from '../runtime/bytes.js';
import type { Clock } from '../runtime/clock.js';
import { abortable, onAbort, sleep } from '../runtime/deadline.js';
import { emptyFile, type OutputAnswer, type OutputInfo, type OutputVersion, readOutputAnswer } from './output.js';

/** The rest of a file, provided that it is still the same file. */
export interface RestOfOutput {
  /** The first byte, and the last one where the file is not wanted to its end. */
  readonly range: { readonly start: number; readonly end?: number | undefined };
  readonly ifRange: string;
}

/** The rest cannot be had, because the file has changed or nothing proves that it has not. `open` begins anew. */
export class RestartRequired extends DownloadError {}

export interface OutputReading {
  readonly jobId: string;
  /** Asks for the file, or for what is left of it; resolves with the head of the answer. */
  readonly open: (signal: AbortSignal, rest?: RestOfOutput) => PromiseLike<Response>;
  /** Asks for the size of the file, where the answer does not tell it. */
  readonly info: (signal: AbortSignal) => PromiseLike<Pick<OutputInfo, 'sizeBytes'>>;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

/** Cuts in a row, without a byte more than before, after which the reader gives up. */
const MAX_CUTS = 5;

/**
 * Reads a file to its last byte over any number of connections. After a cut it asks for the rest with Range and If-Range.
 * Bytes that do not continue the very same file are never given: that is a {@link RestartRequired}. It throws another
 * DownloadError when it gives up, and what `open` of the reading throws.
 */
export class OutputReader {
  readonly #reading: OutputReading;
  #abort = new AbortController();
  #forget = () => {};
  #connection: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>> | undefined;
  #version: OutputVersion | undefined;
  /** The first byte that is wanted, and the last one where the file is not wanted to its end. */
  #start = 0;
  #end: number | undefined;
  #given = 0;
  #hasEnded = false;
  /** The most that was ever given: only more than this counts as progress. */
  #furthest = 0;
  #cuts = 0;

  constructor(reading: OutputReading) {
    this.#reading = reading;
  }

  /** Opens the file at its first byte, and again after a {@link RestartRequired}. `sizeBytes` holds where no answer tells it. */
  open(sizeBytes?: number): Promise<OutputVersion> {
    this.#listen();
    this.#given = 0;
    this.#hasEnded = false;
    this.#version = undefined;
    return this.#orCancel(async () => {
      for (;;) {
        const response = await this.#open(undefined);
        if (response === undefined) continue;
        const answer = await this.#sized(response);
        if ((answer.part?.start ?? 0) === 0) return this.#enter(answer, answer.sizeBytes ?? sizeBytes);
        drop(response);
        throw this.#failure('cannot begin: the service sends a part that it was not asked for');
      }
    });
  }

  /** Begins with an answer that is already there, to whatever range was asked for. */
  begin(response: Response): Promise<OutputVersion> {
    this.#listen();
    return this.#orCancel(async () => {
      const answer = await this.#sized(response);
      const { part } = answer;
      if (part !== undefined) {
        if (Number.isNaN(part.start)) throw this.#failure('cannot be resumed: the answer does not tell its range');
        this.#start = part.start;
        if (part.whole !== part.end + 1) this.#end = part.end;
      }
      return this.#enter(answer, part ? part.end - part.start + 1 : answer.sizeBytes);
    });
  }

  /** Does something with each version of the file from its first byte on, until that comes to its end. */
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

  /** Ends whatever is under way, and closes the connection. */
  cancel(reason: unknown = new DOMException('The output is no longer read.', 'AbortError')): void {
    this.#close(reason);
    this.#abort.abort(reason);
  }

  #listen(): void {
    const { signal } = this.#reading;
    this.#forget();
    this.#abort = new AbortController();
    this.#forget = onAbort(signal, () => this.cancel(signal?.reason));
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

  /** The answer with the size of its file: without it, a body that ends too early would pass for the whole file. */
  async #sized(response: Response): Promise<OutputAnswer> {
    const answer = readOutputAnswer(this.#reading.jobId, response);
    if (answer.sizeBytes !== undefined) return answer;
    const { signal } = this.#abort;
    const told = async () => (await this.#reading.info(signal)).sizeBytes;
    try {
      const asked = told().catch(() => undefined);
      const sizeBytes = await abortable(asked, signal);
      const encoding = encodingOf(response.headers);
      if (encoding === undefined || sizeBytes !== undefined) return { ...answer, sizeBytes };
      const why = 'does not tell its size, so that a cut could not be noticed';
      throw this.#failure(`is refused: the answer has Content-Encoding ${encoding} and ${why}`);
    } catch (reason) {
      drop(response);
      throw reason;
    }
  }

  #close(reason: unknown): void {
    this.#forget();
    this.#connection?.cancel(reason).catch(() => undefined);
    this.#connection = undefined;
  }

  #enter({ contentType, etag, body }: OutputAnswer, sizeBytes: number | undefined): OutputVersion {
    this.#version = { sizeBytes, contentType, etag };
    this.#connection = body.getReader();
    return this.#version;
  }

  /** Goes on where the reading stands. There is no connection yet after a failure that may pass. */
  async #reconnect(): Promise<void> {
    this.#hasEnded = this.#isWhole();
    if (this.#hasEnded) return;
    const rest = this.#rest();
    const response = await this.#open(rest);
    if (response === undefined) return;
    const answer = readOutputAnswer(this.#reading.jobId, response);
    if (!this.#continues(response, answer, rest)) {
      drop(response);
      throw this.#changed();
    }
    this.#connection = answer.body.getReader();
  }

  #isWhole(): boolean {
    return this.#version?.sizeBytes !== undefined && this.#given >= this.#version.sizeBytes;
  }

  #rest(): RestOfOutput {
    const etag = this.#version?.etag;
    if (etag !== undefined) return { range: { start: this.#start + this.#given, end: this.#end }, ifRange: etag };
    const what = `broke off after ${this.#given} bytes and cannot go on: the file has no strong entity tag`;
    throw this.#restart('interrupted', what);
  }

  async #open(rest: RestOfOutput | undefined): Promise<Response | undefined> {
    const { signal } = this.#abort;
    try {
      return await abortable(this.#reading.open(signal, rest), signal, drop);
    } catch (cause) {
      signal.throwIfAborted();
      // A part that lies beyond the end means that the file has changed.
      if (rest !== undefined && APIError.isInstance(cause) && isUnsatisfiable(cause.status)) throw this.#changed();
      // A service that was there a moment ago may be back in the next.
      if (this.#furthest === 0 || !isPassingFailure(cause)) throw cause;
      await this.#pause(cause);
      return undefined;
    }
  }

  /** Whether the answer begins where the reading stands, in the same file. */
  #continues({ headers }: Response, { part }: OutputAnswer, { range, ifRange }: RestOfOutput): boolean {
    const tag = headers.get('etag');
    if (part === undefined || (tag !== null && tag !== ifRange)) return false;
    const whole = this.#start === 0 && this.#end === undefined ? this.#version?.sizeBytes : undefined;
    const fits = part.whole === undefined || ((whole ?? part.whole) === part.whole && part.end < part.whole);
    return part.start === range.start && fits;
  }

  /** The next bytes of a connection; undefined at its end, which may be a cut. */
  async #next(
    connection: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>,
  ): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const next = await connection
      .read()
      .catch((reason: unknown) => ({ done: true as const, value: undefined, reason }));
    this.#abort.signal.throwIfAborted();
    const total = this.#version?.sizeBytes;
    if (next.done) {
      const isEnd = this.#isWhole() || (total === undefined && !('reason' in next));
      if (isEnd && this.#given === 0) throw emptyFile(this.#reading.jobId);
      this.#hasEnded = isEnd;
      if (isEnd) return undefined;
      this.#connection = undefined;
      await this.#pause('reason' in next ? next.reason : 'the connection closed early');
      return undefined;
    }
    const left = total === undefined ? Number.POSITIVE_INFINITY : total - this.#given;
    const bytes = next.value;
    this.#given += Math.min(bytes.length, left);
    if (bytes.length <= left) return bytes;
    if (this.#end === undefined) {
      const what = `is longer than the ${total} bytes announced`;
      await this.#pause(what);
      throw this.#restart('file_changed', what);
    }
    this.#hasEnded = left === 0;
    return left === 0 ? undefined : bytes.subarray(0, left);
  }

  async #pause(cause: unknown): Promise<void> {
    const progressed = this.#given > this.#furthest;
    this.#cuts = progressed ? 1 : this.#cuts + 1;
    this.#furthest = Math.max(this.#furthest, this.#given);
    if (this.#cuts > MAX_CUTS) {
      const size = this.#version?.sizeBytes;
      const of = size === undefined ? '' : ` of ${size}`;
      const what = `broke off ${this.#cuts} times in a row, last after ${this.#furthest}${of} bytes`;
      throw typeof cause === 'string' ? this.#failure(`${what}: ${cause}`) : this.#failure(what, cause);
    }
    await sleep(this.#reading.clock, backoff(FILE_BACKOFF, this.#cuts), this.#abort.signal);
  }

  #changed(): RestartRequired {
    return this.#restart('file_changed', `cannot go on after ${this.#given} bytes: the file has changed`);
  }

  #restart(code: DownloadErrorCode, what: string): RestartRequired {
    const { jobId } = this.#reading;
    return new RestartRequired(`The download of job ${jobId} ${what}.`, { jobId, code });
  }

  #failure(what: string, cause?: unknown): DownloadError {
    const { jobId } = this.#reading;
    return new DownloadError(`The download of job ${jobId} ${what}.`, { jobId, code: 'interrupted', cause });
  }
}

function drop(response: Response): void {
  response.body?.cancel().catch(() => undefined);
}

/** Whether a failure is of the connection or of the service, and not of the request. */
function isPassingFailure(cause: unknown): boolean {
  return ConnectionError.isInstance(cause) || TimeoutError.isInstance(cause) || ServerError.isInstance(cause);
}
