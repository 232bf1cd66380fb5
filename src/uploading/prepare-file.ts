import { mediaTypeEssence, mediaTypeOfName, type UploadType, uploadTypeOf } from '../schemas/media-type.js';
import type { CreateUploadParams } from '../schemas/upload.js';
import { safeFileName } from './file-name.js';
import { FileProblem } from './file-problem.js';
import { imageWidth, WIDTH_BYTES } from './image-width.js';
import { SNIFF_BYTES, sniffMediaType } from './media-type.js';
import { type OpenFile, openFile, type PreparedFile } from './prepared-file.js';
import type { UploadProgress } from './progress-stream.js';
import { type Content, contentOf } from './upload-source.js';

/** What a caller may say about a file that is uploaded. */
export interface FileOptions {
  /** Name for the service; reduced to a safe one. @default the source's own name, else `upload` with the type's extension */
  readonly filename?: string | undefined;
  /** Media type, for example `video/mp4`. @default the Blob's, else by the name, else by the first bytes */
  readonly mimeType?: string | undefined;
  /** What the service takes it for; sets the size limit. @default by the media type: IMAGE, VIDEO or AUDIO */
  readonly uploadType?: UploadType | undefined;
  /** Size in bytes. Needed for streams, whose size cannot be seen; the service wants it before the first byte. */
  readonly sizeBytes?: number | undefined;
  /** Told how far the upload has come. Begins at 0 again when the PUT has to be repeated. */
  readonly onProgress?: ((progress: UploadProgress) => void) | undefined;
  /** `character`: also refuse an image whose header says that it is less than 300 px wide (spec: POST /v1/characters). */
  readonly purpose?: 'character' | undefined;
  /** Whether what the documented limits refuse is refused before the first call. @default the client's (true) */
  readonly preflight?: boolean | undefined;
}

/** Opens a file that the service was told of before: only its size still matters. */
export function openSource(source: unknown, options: Pick<FileOptions, 'sizeBytes' | 'onProgress'>): OpenFile {
  const content = readableContent(source);
  return openFile(content, sizeOf(content, options), options.onProgress);
}

const MB = 1024 * 1024;
/** Documented size limits (spec: Limits). */
const MAX_MB: Readonly<Record<string, number>> = { IMAGE: 50, VIDEO: 200, AUDIO: 15 };
/** Narrowest image that may become a character (spec: Limits). */
const CHARACTER_WIDTH_PX = 300;

/**
 * Finds out what the service wants to know of a file, reading its first bytes only where nothing else tells its type, and
 * refuses what is over a documented limit. No call is made, and of a stream nothing is read but its beginning.
 */
export async function prepareFile(source: unknown, options: FileOptions): Promise<PreparedFile> {
  const content = readableContent(source);
  const sizeBytes = sizeOf(content, options);
  const declared = [options.mimeType, content.type].map((type) => mediaTypeEssence(type ?? '')).find(isTelling);
  const named = declared ?? mediaTypeOfName(options.filename ?? content.name ?? '');
  const isImage = uploadTypeOf(named ?? 'image/') === 'IMAGE';
  const wanted = options.purpose === 'character' && isImage ? WIDTH_BYTES : named === undefined ? SNIFF_BYTES : 0;
  const opened = openFile(content, sizeBytes, options.onProgress);
  try {
    const head = wanted > 0 ? await guardedAsync(() => opened.peek(wanted), content) : new Uint8Array();
    const mimeType = named ?? sniffMediaType(head) ?? refuseType(options, content);
    const uploadType = options.uploadType ?? uploadTypeOf(mimeType) ?? refuseKind(mimeType);
    if (options.preflight !== false) checkLimits({ sizeBytes, uploadType, head, purpose: options.purpose });
    const file_name = safeFileName(options.filename ?? content.name, mimeType);
    const params: CreateUploadParams = {
      file_name,
      mime_type: mimeType,
      file_size: sizeBytes,
      upload_type: uploadType,
    };
    return { ...opened, params };
  } catch (reason) {
    opened.discard();
    throw reason;
  }
}

function isTelling(type: string): boolean {
  return type !== '' && type !== 'application/octet-stream' && type !== 'binary/octet-stream';
}

function sizeOf(content: Content, { sizeBytes }: FileOptions): number {
  const seen = content.sizeBytes;
  const size = sizeBytes ?? seen;
  if (size === undefined) {
    throw invalid(
      `sizeBytes is missing: the service wants the size before the first byte, and ${content.kind} does not tell it.`,
      'sizeBytes',
    );
  }
  if (!Number.isSafeInteger(size) || size < 0)
    throw invalid(`sizeBytes must be a whole number of bytes, not ${size}.`, 'sizeBytes');
  if (size === 0) throw invalid(`${content.kind} is empty: there is nothing to upload.`, 'source');
  if (seen !== undefined && seen !== size) {
    throw invalid(`sizeBytes says ${size}, but ${content.kind} has ${seen} bytes. Leave sizeBytes out.`, 'sizeBytes');
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
  const maxMB = MAX_MB[uploadType];
  if (maxMB !== undefined && sizeBytes > maxMB * MB) {
    throw new FileProblem(
      `The file has ${(sizeBytes / MB).toFixed(1)} MB; ${uploadType} uploads may have ${maxMB} MB. Make it smaller first.`,
      { code: 'upload_too_large', param: 'source' },
    );
  }
  if (purpose !== 'character') return;
  if (uploadType !== 'IMAGE') throw invalid(`A character is made from an image, not from ${uploadType}.`, 'source');
  const width = imageWidth(head);
  if (width !== undefined && width < CHARACTER_WIDTH_PX) {
    throw invalid(`The image is ${width} px wide; a character needs at least ${CHARACTER_WIDTH_PX} px.`, 'source');
  }
}

function refuseType(options: FileOptions, content: Content): never {
  const name = options.filename ?? content.name;
  throw invalid(
    `${name === undefined ? 'The first bytes do not tell' : `Neither the name "${name}" nor the first bytes tell`} the type of the file: pass mimeType, for example "video/mp4".`,
    'mimeType',
  );
}

function refuseKind(mimeType: string): never {
  throw invalid(`"${mimeType}" is no image, video or audio: pass the right mimeType, or uploadType.`, 'mimeType');
}

function invalid(message: string, param: string): FileProblem {
  return new FileProblem(message, { code: 'upload_invalid', param });
}

/** A source that cannot even be opened is told as a failure before the first step. */
function readableContent(source: unknown): Content {
  try {
    return contentOf(source);
  } catch (cause) {
    throw unreadable(cause);
  }
}

async function guardedAsync<T>(read: () => Promise<T>, { kind }: Content): Promise<T> {
  try {
    return await read();
  } catch (cause) {
    throw unreadable(cause, kind);
  }
}

function unreadable(cause: unknown, kind = 'The source'): FileProblem {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new FileProblem(`Upload not begun: ${kind} cannot be read. ${reason}`, { step: 'prepare', cause });
}
