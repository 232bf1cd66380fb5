import { DownloadError, GenError } from '../errors/index.js';
import { hasNoBody } from '../rules/failure-kind.js';
import { isPart } from '../rules/files.js';
import { bodyLength, isEncoded } from '../runtime/bytes.js';
import { isFields } from '../schemas/envelope.js';
import { isDocument, mediaTypeOf } from '../schemas/file-type.js';
import { formatValue } from '../schemas/format-value.js';
import { canonicalMediaType, extensionsOf, mediaTypeEssence } from '../schemas/media-type.js';

/** Range of bytes: a Range header (`bytes=0-1023`), or the first and last byte, zero-based and inclusive. */
export type OutputRange = string | { readonly start?: number | undefined; readonly end?: number | undefined };

/** Metadata of a finished file. */
export interface OutputInfo {
  /** Media type, for example `video/mp4`. */
  readonly contentType: string | undefined;
  /** Size in bytes, if the service reports it. */
  readonly sizeBytes: number | undefined;
  /** Entity tag, which changes with the content. */
  readonly etag: string | undefined;
  /** Last-Modified header. */
  readonly lastModified: string | undefined;
  /** If true, the service supports range requests for this file. */
  readonly acceptsRanges: boolean;
  /** Expiry of the link (ISO 8601), if the service reports it. Otherwise, see the job's `providerOutputExpiresAt`. */
  readonly expiresAt: string | undefined;
}

/** A job or its ID. */
export type JobRef = string | { readonly id: string };

export function jobIdOf(job: JobRef): string {
  return typeof job === 'string' ? job : job?.id;
}

/** Returns the ID of a job argument. Throws a GenError for anything else. `call` is the signature in the message. */
export function requireJobId(call: string, job: unknown): string {
  const id = isFields(job) ? job.id : job;
  const isUrl = typeof id === 'string' && id.includes('://');
  if (typeof id === 'string' && id !== '' && !isUrl) return id;
  // Don't include the URL, because it may contain a secret.
  if (isUrl) throw new GenError(`${call}: job is a URL. Pass the job or its ID.`);
  const isCreated = isFields(job) && isFields(job.job);
  const fix = isCreated ? 'Pass created.job instead of what the create returned.' : 'Pass a job or its ID.';
  throw new GenError(`${call}: job is ${isCreated ? 'not a job' : formatValue(job)}. ${fix}`);
}

/** Builds the headers that request a file or a range. Disables content encoding, which would change the length. */
export function outputHeaders(range: OutputRange | undefined, ifRange?: string): Record<string, string> {
  const rangeValue = typeof range === 'object' ? rangeHeader(range) : range;
  return {
    'accept-encoding': 'identity',
    ...(rangeValue && { range: rangeValue }),
    ...(rangeValue && ifRange && { 'if-range': ifRange }),
  };
}

function rangeHeader({ start, end }: Exclude<OutputRange, string>): string | undefined {
  if (start === undefined && end === undefined) return undefined;
  const [firstByte, lastByte] = [start ?? 0, end ?? Number.MAX_SAFE_INTEGER];
  if (![firstByte, lastByte].every((offset) => Number.isSafeInteger(offset) && offset >= 0) || lastByte < firstByte) {
    throw new GenError(`range: start and end must be whole numbers, 0 <= start <= end, not ${start} and ${end}.`);
  }
  return `bytes=${firstByte}-${end ?? ''}`;
}

export function outputInfoOf(response: Response): OutputInfo {
  const { headers } = response;
  const get = (name: string) => headers.get(name) ?? undefined;
  return {
    contentType: get('content-type'),
    sizeBytes: totalSize(response),
    etag: get('etag'),
    lastModified: get('last-modified'),
    acceptsRanges: isPart(response.status) || /\bbytes\b/i.test(get('accept-ranges') ?? ''),
    expiresAt: isoDate(get('expires')),
  };
}

/** Returns the size of the entire file, which differs from the length of a partial or encoded response. */
function totalSize({ status, headers }: Response): number | undefined {
  if (!isPart(status)) return bodyLength(headers);
  const total = /\/(\d+)$/.exec(headers.get('content-range') ?? '')?.[1];
  return total === undefined || isEncoded(headers) ? undefined : Number(total);
}

function isoDate(date: string | undefined): string | undefined {
  const epochMs = Date.parse(date ?? '');
  return Number.isNaN(epochMs) ? undefined : new Date(epochMs).toISOString();
}

/**
 * Returns the file extension for a content type, including the dot. Returns an empty string for an unknown type.
 *
 * @example
 * const extension = extensionFor('video/mp4; codecs=avc1'); // '.mp4'
 */
export function extensionFor(contentType: string | null | undefined): string {
  const extension = extensionsOf(contentType ?? '')[0];
  return extension === undefined ? '' : `.${extension}`;
}

/** One version of a file. */
export interface OutputVersion {
  /** Number of bytes to read, if known. */
  readonly sizeBytes: number | undefined;
  /** Media type detected from the first bytes, or the service's Content-Type. */
  readonly contentType: string | undefined;
  /** Strong entity tag. Only it proves that a later range belongs to the same file. */
  readonly etag: string | undefined;
}

/** First and last byte of a range (NaN if the response doesn't send them), and the size of the entire file. */
export interface OutputPart {
  readonly start: number;
  readonly end: number;
  readonly totalBytes: number | undefined;
}

/** A response with a file, or a range of it. */
export interface OutputResponse extends OutputVersion {
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>;
  /** Range of the response, if it is partial. */
  readonly part: OutputPart | undefined;
}

/** Parses the headers of a response. Throws a DownloadError if it contains no file. */
export function parseOutputResponse(jobId: string, response: Response): OutputResponse {
  const { status, headers, body } = response;
  const { contentType, sizeBytes, etag } = outputInfoOf(response);
  if (body === null || hasNoBody(status)) {
    body?.cancel().catch(() => undefined);
    throw notMedia(jobId, `${status} and no file`);
  }
  if (sizeBytes === 0) throw notMedia(jobId, 'an empty file');
  // Lengths and ranges of an encoded response don't apply to the decoded bytes.
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
 * Returns the content type of an output, detected from its first bytes if possible. Throws a DownloadError for HTML or
 * JSON, which is an error with status 200 or a proxy's sign-in page.
 */
export function outputType(jobId: string, contentType: string | undefined, head: Uint8Array): string | undefined {
  const detectedType = mediaTypeOf({ head, type: contentType });
  if (detectedType !== undefined && isDocument(detectedType))
    throw notMedia(jobId, `${detectedType} instead of the file`);
  // Prefer the service's Content-Type if it agrees, because it can include codecs.
  const isConsistent =
    detectedType === undefined || detectedType === canonicalMediaType(mediaTypeEssence(contentType ?? ''));
  return isConsistent ? contentType : detectedType;
}

export function notMedia(jobId: string, content: string): DownloadError {
  return new DownloadError(`The service sent ${content} for job ${jobId}. Save the file again later.`, {
    jobId,
    code: 'not_media',
  });
}

function partIn(contentRange: string): OutputPart {
  const [, start, end, total] = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(contentRange) ?? [];
  return { start: Number(start), end: Number(end), totalBytes: total === '*' ? undefined : Number(total) };
}
