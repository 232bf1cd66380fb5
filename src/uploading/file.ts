import { PreflightError, TimeoutError, UploadError } from '../errors/index.js';
import { CHARACTER_WIDTH, DEFAULT_TIMEOUT_MS, MB, UPLOAD_BYTES } from '../rules/limits.js';
import { bodyOfLength, joinBytes } from '../runtime/bytes.js';
import { callerContext, callObserver } from '../runtime/callbacks.js';
import { systemClock } from '../runtime/clock.js';
import { startDeadline } from '../runtime/deadline.js';
import { FIRST_BYTES, mediaTypeOf } from '../schemas/file-type.js';
import { safeFileName, type UploadType, uploadTypeOf } from '../schemas/media-type.js';
import type { CreateUploadParams } from '../schemas/upload.js';
import { IMAGE_HEADER_BYTES, imageSize } from './image-size.js';
import { recognizeSource, type Source } from './source.js';
import type { FileOptions, ReportProgress } from './upload-options.js';

/** A file that is ready to send, including the bytes that `peek` read. */
export interface UploadFile {
  readonly kind: string;
  readonly sizeBytes: number;
  readonly repeatable: boolean;
  /** Returns a request body that calls `onActivity` for each chunk. Call it only once unless the source is `repeatable`. */
  body(onActivity: () => void): Promise<BodyInit>;
  /** Returns the source's error, if it failed. */
  failure(): { readonly reason: unknown } | undefined;
  /** Reports the final progress. Called when the bytes have arrived. */
  finish(): void;
  /** Closes a source that won't be sent. */
  discard(): void;
  /** Returns the first `bytes` bytes, or fewer if the file is shorter. */
  peek(bytes: number): Promise<Uint8Array>;
}

/** A file and its params of `uploads.create`. */
export interface DescribedFile extends UploadFile {
  readonly params: CreateUploadParams;
}

/** Documented size limits. Types that the service adds later have no limit. */
const MAX_BYTES: Readonly<Record<string, number>> = UPLOAD_BYTES;

/** Opens a source for the PUT alone. `uploads.create` has described the file, so only its size is validated. */
export function openFile(value: unknown, options: Pick<FileOptions, 'sizeBytes' | 'onProgress'>): UploadFile {
  const { source, sizeBytes } = openSource(value, options);
  return toFile(source, sizeBytes, reporter(options));
}

/** Timeout for the first bytes of a source. */
export interface ReadLimit {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Timeout for files that are validated without a client. */
export const DEFAULT_LIMIT: ReadLimit = { timeoutMs: DEFAULT_TIMEOUT_MS };

/** Returns a file with its params for `uploads.create`. Throws if the file exceeds a documented limit. Sends no request. */
export async function describeFile(
  value: unknown,
  options: FileOptions,
  limit = DEFAULT_LIMIT,
): Promise<DescribedFile> {
  const { source, sizeBytes } = openSource(value, options);
  const { mimeType: option, purpose } = options;
  const name = options.filename ?? source.name;
  const firstBytes = purpose === 'character' ? IMAGE_HEADER_BYTES : mediaTypeOf({ option }) ? 0 : FIRST_BYTES;
  const file = toFile(source, sizeBytes, reporter(options));
  try {
    const head = await firstBytesOf(file, firstBytes, limit);
    const mimeType = mediaTypeOf({ option, head, type: source.type, name }) ?? throwUnknownType(name);
    const uploadType = options.uploadType ?? uploadTypeOf(mimeType) ?? throwUnsupportedType(mimeType);
    if (options.preflight !== false) checkLimits({ sizeBytes, uploadType, head, purpose });
    const params: CreateUploadParams = {
      file_name: safeFileName(name, mimeType),
      mime_type: mimeType,
      file_size: sizeBytes,
      upload_type: uploadType,
    };
    return { ...file, params };
  } catch (reason) {
    file.discard();
    throw reason;
  }
}

/** Reads the first bytes within the timeout, because a stream may never yield any. Uses real time, even in a sandbox. */
async function firstBytesOf(file: UploadFile, bytes: number, { timeoutMs: ms, signal }: ReadLimit) {
  const late = () => new TimeoutError(`It did not yield enough bytes within ${ms} ms (timeoutMs).`, { timeoutMs: ms });
  const deadline = startDeadline({ clock: systemClock, ms, signal, late });
  try {
    return await deadline.race(file.peek(bytes));
  } catch (cause) {
    signal?.throwIfAborted();
    return throwUnreadable(cause, file.kind);
  } finally {
    deadline.end();
  }
}

function reporter({ onProgress }: Pick<FileOptions, 'onProgress'>): ReportProgress {
  if (onProgress === undefined) return () => {};
  const inContext = callerContext();
  return (progress) => inContext(() => callObserver(() => onProgress(progress)));
}

function toFile(source: Source, sizeBytes: number, report: ReportProgress): UploadFile {
  const { kind, repeatable } = source;
  let openedContent: AsyncIterator<Uint8Array> | undefined;
  let currentBody: ReturnType<typeof meteredBody> | undefined;
  let sourceFailure: { readonly reason: unknown } | undefined;
  const takeContent = () => {
    const content = openedContent ?? source.open();
    openedContent = undefined;
    return content;
  };
  return {
    kind,
    sizeBytes,
    repeatable,
    async body(onActivity) {
      if (sourceFailure !== undefined) throw sourceFailure.reason;
      const fail = (reason: unknown) => {
        sourceFailure = { reason };
      };
      currentBody = meteredBody(takeContent(), { sizeBytes, report, onActivity, fail });
      return bodyOfLength(currentBody.stream, sizeBytes, source.blob);
    },
    failure: () => sourceFailure,
    finish: () => currentBody?.finish(),
    discard: () => {
      // The request may have locked the stream, so stop the content directly.
      if (currentBody !== undefined) currentBody.end();
      else if (openedContent !== undefined || !repeatable) stop(takeContent());
    },
    async peek(bytes) {
      if (bytes === 0) return new Uint8Array();
      const content = source.open();
      // Store the content first, so that `discard` can stop a read in flight.
      openedContent = content;
      const chunks = await firstChunks(content, bytes);
      openedContent = repeatable ? undefined : replay(chunks, content);
      if (repeatable) stop(content);
      return joinBytes(chunks).subarray(0, bytes);
    },
  };
}

async function firstChunks(content: AsyncIterator<Uint8Array>, bytes: number): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  for (let length = 0; length < bytes; ) {
    const { done, value } = await content.next();
    if (done) break;
    chunks.push(value);
    length += value.length;
  }
  return chunks;
}

function replay(chunks: readonly Uint8Array[], rest: AsyncIterator<Uint8Array>): AsyncIterator<Uint8Array> {
  const queue = [...chunks];
  return {
    next() {
      const value = queue.shift();
      return value === undefined ? rest.next() : Promise.resolve({ done: false, value });
    },
    async return() {
      await rest.return?.();
      return { done: true, value: undefined };
    },
  };
}

/** Opens a source. Cancels an invalid stream, which frees its connection or file descriptor. */
function openSource(value: unknown, options: FileOptions): { readonly source: Source; readonly sizeBytes: number } {
  let source: Source;
  try {
    source = recognizeSource(value);
  } catch (cause) {
    return throwUnreadable(cause);
  }
  try {
    return { source, sizeBytes: sourceSize(source, options) };
  } catch (reason) {
    if (!source.repeatable) stop(source.open());
    throw reason;
  }
}

function sourceSize({ kind, sizeBytes: knownBytes }: Source, { sizeBytes }: FileOptions): number {
  const size = sizeBytes ?? knownBytes;
  if (size === undefined) {
    throw invalidUpload(
      `sizeBytes is missing. The service needs the size before the first byte, and ${kind} has none.`,
      'sizeBytes',
    );
  }
  if (!Number.isSafeInteger(size) || size < 0) {
    throw invalidUpload(`sizeBytes must be a whole number of bytes, not ${size}.`, 'sizeBytes');
  }
  if (size === 0) throw invalidUpload(`${kind} is empty, so there is nothing to upload.`, 'source');
  if (knownBytes !== undefined && knownBytes !== size) {
    throw invalidUpload(`sizeBytes is ${size}, but ${kind} has ${knownBytes} bytes. Omit sizeBytes.`, 'sizeBytes');
  }
  return size;
}

function checkLimits(file: {
  readonly sizeBytes: number;
  readonly uploadType: UploadType;
  readonly head: Uint8Array;
  readonly purpose: FileOptions['purpose'];
}): void {
  const { sizeBytes, uploadType, head, purpose } = file;
  const maxBytes = MAX_BYTES[uploadType];
  if (maxBytes !== undefined && sizeBytes > maxBytes) {
    throw new PreflightError(
      `The file has ${sizeBytes} bytes, but ${uploadType} uploads can have at most ${maxBytes} (${maxBytes / MB} MB).`,
      { code: 'upload_too_large', param: 'source' },
    );
  }
  if (purpose !== 'character') return;
  if (uploadType !== 'IMAGE')
    throw invalidUpload(`A character needs an image, but this file is ${uploadType}.`, 'source');
  const width = imageSize(head)?.width;
  if (width !== undefined && width < CHARACTER_WIDTH) {
    throw invalidUpload(`The image is ${width} px wide. A character needs at least ${CHARACTER_WIDTH} px.`, 'source');
  }
}

function throwUnknownType(name: string | undefined): never {
  const evidence = name === undefined ? 'from its first bytes' : `from its first bytes or its name "${name}"`;
  throw invalidUpload(
    `The type of the file could not be detected ${evidence}. Pass mimeType: "video/mp4".`,
    'mimeType',
  );
}

function throwUnsupportedType(mimeType: string): never {
  throw invalidUpload(
    `The file is ${mimeType}, which is not an image, video, or audio. Pass another file, or mimeType and uploadType.`,
    'mimeType',
  );
}

function invalidUpload(message: string, param: string): PreflightError {
  return new PreflightError(message, { code: 'upload_invalid', param });
}

function throwUnreadable(cause: unknown, kind = 'The source'): never {
  const reason = cause instanceof Error ? cause.message : String(cause);
  throw new UploadError(`Nothing was uploaded: ${kind} cannot be read. ${reason}`, { step: 'prepare', cause });
}

interface Meter {
  readonly sizeBytes: number;
  readonly report: ReportProgress;
  readonly onActivity: () => void;
  /** Called if the content is too long, too short, or throws. */
  readonly fail: (reason: unknown) => void;
}

/**
 * Builds a request body of exactly `sizeBytes` and reports its progress. A chunk counts as sent when the next one is
 * requested. Longer or shorter content fails the request before its last byte.
 */
function meteredBody(content: AsyncIterator<Uint8Array>, meter: Meter) {
  const { sizeBytes } = meter;
  let queuedBytes = 0;
  let reportedBytes = -1;
  const report = () => {
    if (queuedBytes === reportedBytes) return;
    reportedBytes = queuedBytes;
    meter.report({ sentBytes: queuedBytes, totalBytes: sizeBytes });
  };
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>) => {
    try {
      report();
      meter.onActivity();
      const chunk = queuedBytes < sizeBytes ? await nextChunk(content) : undefined;
      if (queuedBytes + (chunk?.length ?? 0) >= sizeBytes)
        await expectEnd(content, queuedBytes + (chunk?.length ?? 0), sizeBytes);
      else if (chunk === undefined)
        throw new RangeError(`The content ended after ${queuedBytes} of ${sizeBytes} bytes.`);
      if (chunk === undefined) return controller.close();
      queuedBytes += chunk.length;
      controller.enqueue(chunk as Uint8Array<ArrayBuffer>);
    } catch (reason) {
      meter.fail(reason);
      controller.error(reason);
      stop(content);
    }
  };
  const stream = new ReadableStream({ pull, cancel: () => stop(content) }, { highWaterMark: 0 });
  return {
    stream,
    /** Reports the last chunk, because a runtime may not pull again after the last byte. */
    finish() {
      queuedBytes = sizeBytes;
      report();
    },
    end: () => stop(content),
  };
}

async function nextChunk(content: AsyncIterator<Uint8Array>): Promise<Uint8Array | undefined> {
  for (;;) {
    const { done, value } = await content.next();
    if (done) return undefined;
    if (value.length > 0) return value;
  }
}

/** Throws unless the content ends here. Called before the last byte is sent, because changed content may be longer. */
async function expectEnd(content: AsyncIterator<Uint8Array>, length: number, sizeBytes: number): Promise<void> {
  const isLonger = length > sizeBytes || (await nextChunk(content)) !== undefined;
  if (isLonger) throw new RangeError(`The content is longer than its size of ${sizeBytes} bytes.`);
}

/** Stops the source without waiting, because a stalled one must not delay an abort. */
function stop(content: AsyncIterator<Uint8Array>): void {
  Promise.resolve(content.return?.()).catch(() => undefined);
}
