import { DownloadError, GenError } from '../errors/index.js';
import { hasNoBody } from '../rules/failure-kind.js';
import { isPart } from '../rules/files.js';
import { bodyLength, encodingOf } from '../runtime/bytes.js';
import { isFields } from '../schemas/envelope.js';
import { extensionsOf, mediaTypeEssence } from '../schemas/media-type.js';
import { show } from '../schemas/show.js';

/** Which bytes of a file: a Range header as it stands (`bytes=0-1023`), or first and last byte, both counted from 0 and included. */
export type OutputRange = string | { readonly start?: number | undefined; readonly end?: number | undefined };

/** What is known of a finished file without its bytes. */
export interface OutputInfo {
  /** Media type, for example `video/mp4`. */
  readonly contentType: string | undefined;
  /** Whole size in bytes, where the service says it. */
  readonly sizeBytes: number | undefined;
  /** Changes with the bytes. */
  readonly etag: string | undefined;
  /** When it was last changed, as the service writes it. */
  readonly lastModified: string | undefined;
  /** Whether a part of it can be asked for. */
  readonly acceptsRanges: boolean;
  /** When the link expires (ISO 8601), where the answer says it; else see the job's `providerOutputExpiresAt`. */
  readonly expiresAt: string | undefined;
}

/** A job or its id, as every call on a job's output takes it. */
export type JobRef = string | { readonly id: string };

export function jobIdOf(job: JobRef): string {
  return typeof job === 'string' ? job : job?.id;
}

/** The id of a finished job that a function was given; `call` is how the function is called. Throws a GenError for anything else. */
export function requireJobId(call: string, job: unknown): string {
  const id = isFields(job) ? job.id : job;
  if (typeof id === 'string' && id !== '') return id;
  const isCreated = isFields(job) && isFields(job.job);
  const fix = isCreated ? 'Pass created.job instead of what the create returned.' : 'Pass a job or its id.';
  throw new GenError(`${call}: job is ${isCreated ? 'not a job' : show(job)}. ${fix}`);
}

/** The headers that ask for a file or a part of it, as it is: a re-encoded one has another length. */
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

/** The whole size. The length of a part or of an encoded answer is another one. */
function wholeSize({ status, headers }: Response): number | undefined {
  if (!isPart(status)) return bodyLength(headers);
  const whole = /\/(\d+)$/.exec(headers.get('content-range') ?? '')?.[1];
  return whole === undefined || encodingOf(headers) !== undefined ? undefined : Number(whole);
}

function isoDate(text: string | undefined): string | undefined {
  const at = Date.parse(text ?? '');
  return Number.isNaN(at) ? undefined : new Date(at).toISOString();
}

/**
 * The file extension for a content type, with its dot: `.mp4` for `video/mp4; codecs=avc1`. An unknown type gives an
 * empty string. Made for naming a downloaded file.
 */
export function extensionFor(contentType: string | null | undefined): string {
  const extension = extensionsOf(contentType ?? '')[0];
  return extension === undefined ? '' : `.${extension}`;
}

/** One version of a file. */
export interface OutputVersion {
  /** Number of bytes that are to come, where it is known. */
  readonly sizeBytes: number | undefined;
  /** Media type, as the service gives it. */
  readonly contentType: string | undefined;
  /** A strong entity tag: the only proof that a later part belongs to the same file. */
  readonly etag: string | undefined;
}

/** A part of a file: first and last byte, NaN where the answer does not tell them, and size of the whole file. */
export interface OutputPart {
  readonly start: number;
  readonly end: number;
  readonly whole: number | undefined;
}

/** An answer that holds a file, or a part of it. */
export interface OutputAnswer extends OutputVersion {
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>;
  /** The bytes that the answer holds, where it is a part. */
  readonly part: OutputPart | undefined;
}

/** A page, JSON or XML stands where a finished file should: an error that was answered with 200, or the sign-in page of a proxy. */
const NOT_MEDIA = /^(text\/html|application\/xhtml\+xml|(application|text)\/xml|application\/(.+\+)?json|text\/json)$/;

/** Reads the head of an answer. Throws a DownloadError for one that holds no file. */
export function readOutputAnswer(jobId: string, response: Response): OutputAnswer {
  const { status, headers, body } = response;
  const { contentType, sizeBytes, etag } = outputInfoOf(response);
  const type = mediaTypeEssence(contentType ?? '');
  if (body === null || hasNoBody(status) || NOT_MEDIA.test(type)) {
    body?.cancel().catch(() => undefined);
    const what = NOT_MEDIA.test(type) ? `${type} instead of the file` : `${status} and no file`;
    throw new DownloadError(`The service answered with ${what} of job ${jobId}.`, { jobId, code: 'not_media' });
  }
  if (sizeBytes === 0) throw emptyFile(jobId);
  // What comes out of an encoded answer has another length and other ranges.
  const isEncoded = encodingOf(headers) !== undefined;
  return {
    body,
    contentType,
    sizeBytes,
    etag: isEncoded || etag?.startsWith('W/') ? undefined : etag,
    part: isPart(status) && !isEncoded ? partIn(headers.get('content-range') ?? '') : undefined,
  };
}

/** The error for a file of no byte: it can neither be shown nor be made again from the job. */
export function emptyFile(jobId: string): DownloadError {
  return new DownloadError(`The service answered with an empty file for job ${jobId}.`, { jobId, code: 'not_media' });
}

function partIn(contentRange: string): OutputPart {
  const [, start, end, whole] = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(contentRange) ?? [];
  return { start: Number(start), end: Number(end), whole: whole === '*' ? undefined : Number(whole) };
}
