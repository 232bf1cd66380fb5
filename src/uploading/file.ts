import { PreflightError, UploadError } from '../errors/index.js';
import { CHARACTER_WIDTH, MB, UPLOAD_BYTES } from '../rules/limits.js';
import { bodyOfLength, joinBytes } from '../runtime/bytes.js';
import { callerContext, callObserver } from '../runtime/callbacks.js';
import {
  mediaTypeEssence,
  mediaTypeOfName,
  safeFileName,
  type UploadType,
  uploadTypeOf,
} from '../schemas/media-type.js';
import type { CreateUploadParams } from '../schemas/upload.js';
import { IMAGE_HEADER_BYTES, imageSize, SNIFF_BYTES, sniffMediaType } from './sniff.js';
import { recogniseSource, type Source } from './source.js';
import type { FileOptions, ReportProgress } from './upload-options.js';

/** A file ready to be sent. Its beginning may have been read; nothing of it is lost by that. */
export interface UploadFile {
  readonly kind: string;
  readonly sizeBytes: number;
  readonly repeatable: boolean;
  /** The request body, which calls `moved` at each chunk. Content that cannot be read again gives it once. */
  body(moved: () => void): Promise<BodyInit>;
  /** Why the content itself could not be sent, if that is what went wrong. */
  failure(): { readonly reason: unknown } | undefined;
  /** Tells the last of the progress: the bytes have arrived. */
  finish(): void;
  /** Ends a source that is not going to be sent. */
  discard(): void;
  /** The first `bytes` bytes, or all there are. */
  peek(bytes: number): Promise<Uint8Array>;
}

/** A file with what the service asks to be told about it. */
export interface DescribedFile extends UploadFile {
  readonly params: CreateUploadParams;
}

/** The documented sizes. A type that the service adds later has none. */
const MAX_BYTES: Readonly<Record<string, number>> = UPLOAD_BYTES;

/** Opens content for step 2 alone: the service knows the file already, so only its size matters. */
export function openFile(given: unknown, options: Pick<FileOptions, 'sizeBytes' | 'onProgress'>): UploadFile {
  const { source, sizeBytes } = openSource(given, options);
  return toFile(source, sizeBytes, reporter(options));
}

/**
 * Finds out what the service asks about a file, and refuses what is over a documented limit. The first bytes are read only
 * where nothing else tells the type. No call is made.
 */
export async function describeFile(given: unknown, options: FileOptions): Promise<DescribedFile> {
  const { source, sizeBytes } = openSource(given, options);
  const name = options.filename ?? source.name;
  const declared = [options.mimeType, source.type].map((type) => mediaTypeEssence(type ?? '')).find(isTelling);
  const named = declared ?? mediaTypeOfName(name ?? '');
  const isImage = uploadTypeOf(named ?? 'image/') === 'IMAGE';
  const wanted =
    options.purpose === 'character' && isImage ? IMAGE_HEADER_BYTES : named === undefined ? SNIFF_BYTES : 0;
  const file = toFile(source, sizeBytes, reporter(options));
  try {
    const head =
      wanted > 0 ? await file.peek(wanted).catch((cause) => unreadableSource(cause, source.kind)) : new Uint8Array();
    const mimeType = named ?? sniffMediaType(head) ?? refuseType(name);
    const uploadType = options.uploadType ?? uploadTypeOf(mimeType) ?? refuseKind(mimeType);
    if (options.preflight !== false) checkLimits({ sizeBytes, uploadType, head, purpose: options.purpose });
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

function reporter({ onProgress }: Pick<FileOptions, 'onProgress'>): ReportProgress {
  if (onProgress === undefined) return () => {};
  const inContext = callerContext();
  return (progress) => inContext(() => callObserver(() => onProgress(progress)));
}

function toFile(source: Source, sizeBytes: number, report: ReportProgress): UploadFile {
  const { kind, repeatable } = source;
  let begun: AsyncIterator<Uint8Array> | undefined;
  let current: ReturnType<typeof meteredBody> | undefined;
  let failed: { readonly reason: unknown } | undefined;
  const start = () => {
    const content = begun ?? source.open();
    begun = undefined;
    return content;
  };
  return {
    kind,
    sizeBytes,
    repeatable,
    async body(moved) {
      if (failed !== undefined) throw failed.reason;
      const fail = (reason: unknown) => {
        failed = { reason };
      };
      current = meteredBody(start(), { sizeBytes, report, moved, fail });
      return bodyOfLength(current.stream, sizeBytes, source.blob);
    },
    failure: () => failed,
    finish: () => current?.finish(),
    discard: () => {
      // Not by its stream, which whoever sends it may have locked.
      if (current !== undefined) current.end();
      else if (!repeatable) stop(start());
    },
    async peek(bytes) {
      const content = source.open();
      const chunks = await firstChunks(content, bytes);
      if (repeatable) stop(content);
      else begun = replay(chunks, content);
      return joinBytes(chunks).subarray(0, bytes);
    },
  };
}

async function firstChunks(content: AsyncIterator<Uint8Array>, bytes: number): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  for (let have = 0; have < bytes; ) {
    const { done, value } = await content.next();
    if (done) break;
    chunks.push(value);
    have += value.length;
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

function isTelling(type: string): boolean {
  return type !== '' && type !== 'application/octet-stream' && type !== 'binary/octet-stream';
}

/** A source and its size. A stream that is refused is ended, so that its connection or descriptor is free. */
function openSource(given: unknown, options: FileOptions): { readonly source: Source; readonly sizeBytes: number } {
  let source: Source;
  try {
    source = recogniseSource(given);
  } catch (cause) {
    return unreadableSource(cause);
  }
  try {
    return { source, sizeBytes: sourceSize(source, options) };
  } catch (reason) {
    if (!source.repeatable) stop(source.open());
    throw reason;
  }
}

function sourceSize({ kind, sizeBytes: seen }: Source, { sizeBytes }: FileOptions): number {
  const size = sizeBytes ?? seen;
  if (size === undefined) {
    throw invalid(
      `sizeBytes is missing. The service needs the size before the first byte, and ${kind} does not tell it.`,
      'sizeBytes',
    );
  }
  if (!Number.isSafeInteger(size) || size < 0) {
    throw invalid(`sizeBytes must be a whole number of bytes, not ${size}.`, 'sizeBytes');
  }
  if (size === 0) throw invalid(`${kind} is empty, so there is nothing to upload.`, 'source');
  if (seen !== undefined && seen !== size) {
    throw invalid(`sizeBytes is ${size}, but ${kind} has ${seen} bytes. Leave sizeBytes out.`, 'sizeBytes');
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
      `The file has ${sizeBytes} bytes, and ${uploadType} uploads may have ${maxBytes} (${maxBytes / MB} MB).`,
      { code: 'upload_too_large', param: 'source' },
    );
  }
  if (purpose !== 'character') return;
  if (uploadType !== 'IMAGE') throw invalid(`A character needs an image, and this file is ${uploadType}.`, 'source');
  const width = imageSize(head)?.width;
  if (width !== undefined && width < CHARACTER_WIDTH) {
    throw invalid(`The image is ${width} px wide. A character needs at least ${CHARACTER_WIDTH} px.`, 'source');
  }
}

function refuseType(name: string | undefined): never {
  const who =
    name === undefined ? 'The first bytes do not tell' : `Neither the name "${name}" nor the first bytes tell`;
  throw invalid(`${who} the type of the file. Pass mimeType, for example "video/mp4".`, 'mimeType');
}

function refuseKind(mimeType: string): never {
  throw invalid(
    `"${mimeType}" is not the type of an image, a video or audio. Pass the right mimeType, or uploadType.`,
    'mimeType',
  );
}

function invalid(message: string, param: string): PreflightError {
  return new PreflightError(message, { code: 'upload_invalid', param });
}

/** A source that cannot be read is a failure before the first step. */
function unreadableSource(cause: unknown, kind = 'The source'): never {
  const reason = cause instanceof Error ? cause.message : String(cause);
  throw new UploadError(`Nothing was uploaded: ${kind} cannot be read. ${reason}`, { step: 'prepare', cause });
}

interface Meter {
  readonly sizeBytes: number;
  readonly report: ReportProgress;
  readonly moved: () => void;
  /** Told the reason when the content cannot be sent: it gave too much, too little, or an error of its own. */
  readonly fail: (reason: unknown) => void;
}

/**
 * Turns content into a request body of exactly `sizeBytes` that counts what leaves. A chunk counts once the next one is asked
 * for. Content that gives more or less breaks the request before its last byte.
 */
function meteredBody(content: AsyncIterator<Uint8Array>, meter: Meter) {
  const { sizeBytes } = meter;
  let queued = 0;
  let reported = -1;
  const report = () => {
    if (queued === reported) return;
    reported = queued;
    meter.report({ sentBytes: queued, totalBytes: sizeBytes });
  };
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>) => {
    try {
      report();
      meter.moved();
      const chunk = queued < sizeBytes ? await nextChunk(content) : undefined;
      if (queued + (chunk?.length ?? 0) >= sizeBytes)
        await expectEnd(content, queued + (chunk?.length ?? 0), sizeBytes);
      else if (chunk === undefined) throw new RangeError(`The content ended after ${queued} of ${sizeBytes} bytes.`);
      if (chunk === undefined) return controller.close();
      queued += chunk.length;
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
    /** Call it once the bytes are known to have arrived: a runtime may stop pulling at the last one. */
    finish() {
      queued = sizeBytes;
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

/** Looks past the last byte before it is sent, so that content longer than announced is never taken for whole. */
async function expectEnd(content: AsyncIterator<Uint8Array>, given: number, sizeBytes: number): Promise<void> {
  const more = given > sizeBytes || (await nextChunk(content)) !== undefined;
  if (more) throw new RangeError(`The content is longer than the ${sizeBytes} bytes announced.`);
}

/** Ends the reading of content without waiting for it: a stalled source must not hold up an abort. */
function stop(content: AsyncIterator<Uint8Array>): void {
  Promise.resolve(content.return?.()).catch(() => undefined);
}
