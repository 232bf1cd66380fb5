import { DownloadError, GenError } from '../errors/index.js';
import { hasNoBody } from '../rules/failure-kind.js';
import { isPart } from '../rules/files.js';
import { bodyLength, isEncoded } from '../runtime/bytes.js';
import { isFields } from '../schemas/envelope.js';
import { isDocument, mediaTypeOf } from '../schemas/file-type.js';
import { canonicalMediaType, extensionsOf, mediaTypeEssence } from '../schemas/media-type.js';
import { show } from '../schemas/show.js';

/** Which bytes of a file: a Range header (`bytes=0-1023`), or the first and last byte, counted from 0 and included. */
export type OutputRange = string | { readonly start?: number | undefined; readonly end?: number | undefined };

/** A finished file, described without its bytes. */
export interface OutputInfo {
  /** Media type, for example `video/mp4`. */
  readonly contentType: string | undefined;
  /** Size in bytes, if the service says it. */
  readonly sizeBytes: number | undefined;
  /** Changes with the bytes. */
  readonly etag: string | undefined;
  /** Time of the last change, as the service writes it. */
  readonly lastModified: string | undefined;
  /** If true, the service sends ranges of it. */
  readonly acceptsRanges: boolean;
  /** When the link expires (ISO 8601), if the response says it. Otherwise, see the job's `providerOutputExpiresAt`. */
  readonly expiresAt: string | undefined;
}

/** A job or its ID. */
export type JobRef = string | { readonly id: string };

export function jobIdOf(job: JobRef): string {
  return typeof job === 'string' ? job : job?.id;
}

/** The ID of a job that a function was passed. `call` is how the function is called. Throws a GenError for anything else. */
export function requireJobId(call: string, job: unknown): string {
  const id = isFields(job) ? job.id : job;
  if (typeof id === 'string' && id !== '') return id;
  const isCreated = isFields(job) && isFields(job.job);
  const fix = isCreated ? 'Pass created.job instead of what the create returned.' : 'Pass a job or its id.';
  throw new GenError(`${call}: job is ${isCreated ? 'not a job' : show(job)}. ${fix}`);
}

/** The headers that request a file or a part of it without an encoding, which would change its length. */
export function outputHeaders(range: OutputRange | undefined, ifRange?: string): Record<string, string> {
  const part = typeof range === 'object' ? rangeText(range) : range;
  return {
    'accept-encoding': 'identity',
    ...(part && { range: part }),
    ...(part && ifRange && { 'if-range': ifRange }),
  };
}

function rangeText({ start, end }: Exclude<OutputRange, string>): string | undefined {
  if (start === undefined && end === undefined) return undefined;
  const [first, last] = [start ?? 0, end ?? Number.MAX_SAFE_INTEGER];
  if (![first, last].every((edge) => Number.isSafeInteger(edge) && edge >= 0) || last < first) {
    throw new GenError(`range: start and end must be whole numbers, 0 <= start <= end, not ${start} and ${end}.`);
  }
  return `bytes=${first}-${end ?? ''}`;
}

export function outputInfoOf(response: Response): OutputInfo {
  const { headers } = response;
  const get = (name: string) => headers.get(name) ?? undefined;
  return {
    contentType: get('content-type'),
    sizeBytes: wholeSize(response),
    etag: get('etag'),
    lastModified: get('last-modified'),
    acceptsRanges: isPart(response.status) || /\bbytes\b/i.test(get('accept-ranges') ?? ''),
    expiresAt: isoDate(get('expires')),
  };
}

/** The size of the file. A part, and an encoded response, have another length. */
function wholeSize({ status, headers }: Response): number | undefined {
  if (!isPart(status)) return bodyLength(headers);
  const whole = /\/(\d+)$/.exec(headers.get('content-range') ?? '')?.[1];
  return whole === undefined || isEncoded(headers) ? undefined : Number(whole);
}

function isoDate(text: string | undefined): string | undefined {
  const at = Date.parse(text ?? '');
  return Number.isNaN(at) ? undefined : new Date(at).toISOString();
}

/**
 * Returns the file extension for a content type, with its dot: `.mp4` for `video/mp4; codecs=avc1`. Returns an empty string
 * for an unknown type.
 */
export function extensionFor(contentType: string | null | undefined): string {
  const extension = extensionsOf(contentType ?? '')[0];
  return extension === undefined ? '' : `.${extension}`;
}

/** One version of a file. */
export interface OutputVersion {
  /** Number of bytes to come, if known. */
  readonly sizeBytes: number | undefined;
  /** Media type, by the first bytes if they are recognized, otherwise as the service says it. */
  readonly contentType: string | undefined;
  /** A strong entity tag: the only proof that a later part belongs to the same file. */
  readonly etag: string | undefined;
}

/** A part of a file: first and last byte, NaN if the response does not say them, and the size of the file. */
export interface OutputPart {
  readonly start: number;
  readonly end: number;
  readonly whole: number | undefined;
}

/** A response that holds a file, or a part of it. */
export interface OutputAnswer extends OutputVersion {
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>;
  /** The bytes in the response, if it is a part. */
  readonly part: OutputPart | undefined;
}

/** Reads the headers of a response. Throws a DownloadError if it holds no file. */
export function readOutputAnswer(jobId: string, response: Response): OutputAnswer {
  const { status, headers, body } = response;
  const { contentType, sizeBytes, etag } = outputInfoOf(response);
  if (body === null || hasNoBody(status)) {
    body?.cancel().catch(() => undefined);
    throw notMedia(jobId, `${status} and no file`);
  }
  if (sizeBytes === 0) throw notMedia(jobId, 'an empty file');
  // The decoded bytes have another length and other ranges.
  const isPlain = !isEncoded(headers);
  return {
    body,
    contentType,
    sizeBytes,
    etag: isPlain && !etag?.startsWith('W/') ? etag : undefined,
    part: isPart(status) && isPlain ? partIn(headers.get('content-range') ?? '') : undefined,
  };
}

/**
 * The Content-Type of an output, by its first bytes if they are recognized. Throws a DownloadError for a page or JSON: an
 * error under status 200, or the sign-in page of a proxy.
 */
export function outputType(jobId: string, contentType: string | undefined, head: Uint8Array): string | undefined {
  const found = mediaTypeOf({ head, type: contentType });
  if (found !== undefined && isDocument(found)) throw notMedia(jobId, `${found} instead of the file`);
  // The label also has the codecs.
  const isLabel = found === undefined || found === canonicalMediaType(mediaTypeEssence(contentType ?? ''));
  return isLabel ? contentType : found;
}

export function notMedia(jobId: string, what: string): DownloadError {
  return new DownloadError(`The service sent ${what} for job ${jobId}. Save the file again later.`, {
    jobId,
    code: 'not_media',
  });
}

function partIn(contentRange: string): OutputPart {
  const [, start, end, whole] = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(contentRange) ?? [];
  return { start: Number(start), end: Number(end), whole: whole === '*' ? undefined : Number(whole) };
}
