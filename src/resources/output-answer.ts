import { DownloadError } from '../errors/index.js';
import { hasNoBody } from '../rules/fate.js';
import { isPart } from '../rules/output.js';
import { outputInfoOf } from './output.js';

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

/** What the head of an answer says of a file. */
export interface OutputAnswer extends OutputVersion {
  /** The bytes that the answer holds, where it is a part. */
  readonly part: OutputPart | undefined;
  /** The Content-Encoding, where there is one. */
  readonly encoding: string | undefined;
}

/** Reads the head of an answer. Throws a DownloadError for one that holds no file. */
export function readOutputAnswer(jobId: string, response: Response): OutputAnswer {
  const { status, headers } = response;
  if (response.body === null || hasNoBody(status)) {
    throw new DownloadError(`The service answered with ${status} and no file for job ${jobId}.`, {
      jobId,
      code: 'not_media',
    });
  }
  const { contentType, sizeBytes, etag } = outputInfoOf(response);
  if (sizeBytes === 0) throw emptyFile(jobId);
  const encoding = headers.get('content-encoding') ?? 'identity';
  const isEncoded = encoding !== 'identity';
  return {
    contentType,
    sizeBytes,
    // A range of an encoded file counts encoded bytes.
    etag: isEncoded || etag?.startsWith('W/') ? undefined : etag,
    part: isPart(status) ? partIn(headers.get('content-range') ?? '') : undefined,
    encoding: isEncoded ? encoding : undefined,
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
