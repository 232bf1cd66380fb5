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
import { type ByteReader, joinBytes, readerOf } from '../runtime/bytes.js';
import type { Clock } from '../runtime/clock.js';
import { abortable, onAbort, sleep } from '../runtime/deadline.js';
import {
  emptyFile,
  type OutputAnswer,
  type OutputVersion,
  readOutputAnswer,
  refuseNonMedia,
  SNIFFED_BYTES,
} from './output.js';

/** The rest of a file, provided that it is still the same file. */
export interface RestOfOutput {
  /** The first byte, and the last one where the file is not wanted to its end. */
  readonly range: { readonly start: number; readonly end?: number | undefined };
  /** The entity tag of the file that the rest must belong to. */
  readonly ifRange: string;
}

/** What a reader gives, piece by piece. */
export type OutputPiece =
  /** A file begins: the first one, or another one because the file has changed. Bytes that came before are void. */
  | ({ readonly type: 'version' } & OutputVersion)
  /** The next bytes. `isOwned` tells that nobody else holds them, so that their memory may be given back. */
  | { readonly type: 'bytes'; readonly bytes: Uint8Array<ArrayBuffer>; readonly isOwned: boolean }
  | { readonly type: 'end' };

/** How a job's output is read. */
export interface OutputReading {
  readonly jobId: string;
  /** Asks for the file, or for what is left of it; resolves with the head of the answer. */
  readonly open: (signal: AbortSignal, rest?: RestOfOutput) => PromiseLike<Response>;
  /** Asks for the size of the file where the answer does not tell it. */
  readonly sizeOf: (signal: AbortSignal) => Promise<number | undefined>;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
  /** Whether a file that has changed begins anew. Otherwise it is a DownloadError. @default true */
  readonly restarts?: boolean | undefined;
}

/** Cuts in a row, without a byte more than before, after which the reader gives up. */
const MAX_CUTS = 5;

/** A connection that gives bytes. */
interface Connection {
  readonly reader: ByteReader;
  /** Bytes that were read only to look at them. */
  peeked: Uint8Array<ArrayBuffer> | undefined;
  /** Bytes to throw away, because they were given before: the service has ignored the range. */
  skip: number;
}

/**
 * Reads a file to its last byte over any number of connections. After a cut it asks for the rest with Range and If-Range.
 * Bytes that do not continue the very same file begin a new version, so that parts of two files are never joined.
 * `read` throws a DownloadError when it gives up, and what `open` throws.
 */
export class OutputReader {
  readonly #reading: OutputReading;
  readonly #abort = new AbortController();
  #forget = () => {};
  #connection: Connection | undefined;
  #version: OutputVersion | undefined;
  /** The first byte that is wanted, and the last one where the file is not wanted to its end. */
  #start = 0;
  #end: number | undefined;
  #given = 0;
  /** The most that was ever given: only more than this counts as progress. */
  #furthest = 0;
  #cuts = 0;

  constructor(reading: OutputReading) {
    const { signal } = reading;
    this.#reading = reading;
    this.#forget = onAbort(signal, () => this.cancel(signal?.reason));
  }

  /** Begins with an answer that is already there, to whatever range was asked for. No version is given for it. */
  async begin(response: Response): Promise<void> {
    try {
      const answer = await this.#answerOf(response);
      const { part, etag, contentType } = answer;
      if (part !== undefined) {
        if (Number.isNaN(part.start)) throw this.#failure('cannot be resumed: the answer does not tell its range');
        this.#start = part.start;
        if (part.whole !== part.end + 1) this.#end = part.end;
      }
      this.#version = { contentType, etag, sizeBytes: part ? part.end - part.start + 1 : answer.sizeBytes };
      this.#connection = await this.#inspected(response, answer);
    } catch (reason) {
      this.cancel(reason);
      throw reason;
    }
  }

  /** Leaves out bytes of the version that was given last: the caller has them from an earlier run. */
  skip(bytes: number): void {
    if (bytes === 0) return;
    this.#given = bytes;
    this.#furthest = bytes;
    this.#connection?.reader.cancel().catch(() => undefined);
    this.#connection = undefined;
  }

  /** The next piece. */
  async read(): Promise<OutputPiece> {
    const { signal } = this.#abort;
    try {
      for (;;) {
        signal.throwIfAborted();
        const piece = this.#connection === undefined ? await this.#reconnect() : await this.#readOn(this.#connection);
        if (piece?.type === 'end') this.#close(undefined);
        if (piece !== undefined) return piece;
      }
    } catch (reason) {
      const cause = signal.aborted ? signal.reason : reason;
      this.cancel(cause);
      throw cause;
    }
  }

  /** Ends whatever is under way, and closes the connection. */
  cancel(reason: unknown = new DOMException('The output is no longer read.', 'AbortError')): void {
    this.#close(reason);
    this.#abort.abort(reason);
  }

  #close(reason: unknown): void {
    this.#forget();
    this.#connection?.reader.cancel(reason).catch(() => undefined);
    this.#connection = undefined;
  }

  /** Opens the file where the reading stands. Gives a piece only when another version begins. */
  async #reconnect(): Promise<OutputPiece | undefined> {
    if (this.#isWhole()) return { type: 'end' };
    const rest = this.#rest();
    const response = await this.#open(rest);
    if (response === undefined) return undefined;
    const answer = await this.#answerOf(response);
    const skip = rest && this.#continuation(response, { answer, rest });
    if (skip !== undefined) {
      this.#connection = connect(response, skip);
      return undefined;
    }
    if (answer.part === undefined || answer.part.start === 0) return this.#restart(response, answer);
    drop(response);
    this.#forgetVersion();
    const range = response.headers.get('content-range');
    await this.#pause(`the service sends the range "${range}", which it was not asked for`);
    return undefined;
  }

  #isWhole(): boolean {
    return this.#version?.sizeBytes !== undefined && this.#given >= this.#version.sizeBytes;
  }

  /** What to ask for: undefined for the file from its first byte. */
  #rest(): RestOfOutput | undefined {
    const from = this.#start + this.#given;
    const etag = this.#version?.etag;
    if (from === 0 && this.#end === undefined) return undefined;
    if (etag !== undefined) return { range: { start: from, end: this.#end }, ifRange: etag };
    if (this.#reading.restarts !== false) return undefined;
    throw this.#failure(`broke off after ${this.#given} bytes and cannot go on: the file has no strong entity tag`);
  }

  async #open(rest: RestOfOutput | undefined): Promise<Response | undefined> {
    const { signal } = this.#abort;
    try {
      return await abortable(this.#reading.open(signal, rest), signal, drop);
    } catch (cause) {
      signal.throwIfAborted();
      // A part that lies beyond the end means that the file has changed.
      if (rest !== undefined && APIError.isInstance(cause) && isUnsatisfiable(cause.status)) this.#forgetVersion();
      // A service that was there a moment ago may be back in the next.
      else if (this.#furthest === 0 || !isPassingFailure(cause)) throw cause;
      await this.#pause(cause);
      return undefined;
    }
  }

  #forgetVersion(): void {
    if (this.#reading.restarts === false) throw this.#changed();
    this.#version = undefined;
  }

  async #answerOf(response: Response): Promise<OutputAnswer> {
    try {
      const answer = readOutputAnswer(this.#reading.jobId, response);
      const { signal } = this.#abort;
      const sizeBytes = answer.sizeBytes ?? (await abortable(this.#reading.sizeOf(signal), signal));
      if (answer.encoding === undefined || sizeBytes !== undefined) return { ...answer, sizeBytes };
      const why = 'does not tell its size, so that a cut could not be noticed';
      throw this.#failure(`is refused: the answer has Content-Encoding ${answer.encoding} and ${why}`);
    } catch (reason) {
      drop(response);
      throw reason;
    }
  }

  /** How many bytes of the answer to skip until it continues the same file; undefined when it does not continue it. */
  #continuation(
    { headers }: Response,
    { answer, rest }: { readonly answer: OutputAnswer; readonly rest: RestOfOutput },
  ): number | undefined {
    const { part, encoding, sizeBytes } = answer;
    const tag = headers.get('etag');
    const isOther = encoding !== undefined || (tag !== null && tag !== rest.ifRange);
    const whole = this.#start === 0 && this.#end === undefined ? this.#version?.sizeBytes : undefined;
    if (isOther) return undefined;
    if (part === undefined) return tag !== null && (whole ?? sizeBytes) === sizeBytes ? rest.range.start : undefined;
    const fits = part.whole === undefined || ((whole ?? part.whole) === part.whole && part.end < part.whole);
    return part.start === rest.range.start && fits ? 0 : undefined;
  }

  async #restart(response: Response, answer: OutputAnswer): Promise<OutputPiece | undefined> {
    const { sizeBytes, contentType, etag } = answer;
    const restarts = this.#reading.restarts !== false;
    const isAtStart = this.#start + this.#given === 0 && this.#end === undefined;
    if (!restarts && !(isAtStart && sizeBytes === this.#version?.sizeBytes)) {
      drop(response);
      throw this.#changed();
    }
    this.#given = 0;
    this.#version = { sizeBytes, contentType, etag };
    this.#connection = await this.#inspected(response, answer);
    return restarts ? { type: 'version', ...this.#version } : undefined;
  }

  /** The answer as a connection, its first bytes looked at. A cut in the middle shows itself in the next read. */
  async #inspected(response: Response, { contentType, part }: OutputAnswer): Promise<Connection> {
    const connection = connect(response, 0);
    const { reader } = connection;
    const chunks: Uint8Array<ArrayBuffer>[] = [];
    let bytes = 0;
    try {
      while (bytes < SNIFFED_BYTES && (part?.start ?? 0) === 0) {
        const next = await reader.read().catch(() => undefined);
        this.#abort.signal.throwIfAborted();
        if (next === undefined || next.done) break;
        chunks.push(next.value);
        bytes += next.value.length;
      }
      connection.peeked = chunks.length > 1 ? joinBytes(chunks) : chunks[0];
      refuseNonMedia(this.#reading.jobId, contentType, connection.peeked);
      return connection;
    } catch (reason) {
      reader.cancel(reason).catch(() => undefined);
      throw reason;
    }
  }

  /** The next bytes of a connection; undefined after a cut. */
  async #readOn(connection: Connection): Promise<OutputPiece | undefined> {
    const next = await nextOf(connection).catch((reason: unknown) => ({
      done: true as const,
      value: undefined,
      reason,
    }));
    this.#abort.signal.throwIfAborted();
    const total = this.#version?.sizeBytes;
    if (next.done) {
      const isEnd = this.#isWhole() || (total === undefined && !('reason' in next));
      if (isEnd && this.#given === 0) throw emptyFile(this.#reading.jobId);
      if (isEnd) return { type: 'end' };
      this.#connection = undefined;
      await this.#pause('reason' in next ? next.reason : 'the connection closed early');
      return undefined;
    }
    const skipped = Math.min(connection.skip, next.value.length);
    connection.skip -= skipped;
    if (skipped === next.value.length) return undefined;
    const left = total === undefined ? Number.POSITIVE_INFINITY : total - this.#given;
    const bytes = skipped === 0 ? next.value : next.value.subarray(skipped);
    this.#given += Math.min(bytes.length, left);
    if (bytes.length <= left) return { type: 'bytes', bytes, isOwned: connection.reader.isOwned };
    if (this.#end === undefined) throw this.#failure(`is longer than the ${total} bytes announced`);
    return left === 0 ? { type: 'end' } : { type: 'bytes', bytes: bytes.subarray(0, left), isOwned: false };
  }

  async #pause(cause: unknown): Promise<void> {
    const progressed = this.#given > this.#furthest;
    this.#cuts = progressed ? 1 : this.#cuts + 1;
    this.#furthest = Math.max(this.#furthest, this.#given);
    if (this.#cuts > MAX_CUTS) {
      const size = this.#version?.sizeBytes;
      const of = size === undefined ? '' : ` of ${size}`;
      const why = typeof cause === 'string' ? `: ${cause}` : '';
      throw this.#failure(
        `broke off ${this.#cuts} times in a row, last after ${this.#furthest}${of} bytes${why}`,
        cause,
      );
    }
    await sleep(this.#reading.clock, backoff(FILE_BACKOFF, this.#cuts), this.#abort.signal);
  }

  #changed(): DownloadError {
    return this.#failure(`cannot go on after ${this.#given} bytes: the file has changed`, undefined, 'file_changed');
  }

  #failure(what: string, cause?: unknown, code: DownloadErrorCode = 'interrupted'): DownloadError {
    const { jobId } = this.#reading;
    const isReason = typeof cause !== 'string' && cause !== undefined;
    const message = `The download of job ${jobId} ${what}.`;
    return new DownloadError(message, { jobId, code, ...(isReason && { cause }) });
  }
}

function connect(response: Response, skip: number): Connection {
  return { reader: readerOf(response), peeked: undefined, skip };
}

function drop(response: Response): void {
  response.body?.cancel().catch(() => undefined);
}

async function nextOf(connection: Connection) {
  const { peeked, reader } = connection;
  if (peeked === undefined) return reader.read();
  connection.peeked = undefined;
  return { done: false as const, value: peeked };
}

/** Whether a failure is of the connection or of the service, and not of the request. */
function isPassingFailure(cause: unknown): boolean {
  return ConnectionError.isInstance(cause) || TimeoutError.isInstance(cause) || ServerError.isInstance(cause);
}
