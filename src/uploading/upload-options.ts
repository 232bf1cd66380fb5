import type { RequestOptions } from '../rules/options.js';
import * as option from '../rules/options.js';
import type { UploadType } from '../schemas/media-type.js';

/** Progress of an upload. */
export interface UploadProgress {
  /** Bytes sent by this attempt. Restarts at 0 if the PUT is retried, and ends at exactly `totalBytes`. */
  readonly sentBytes: number;
  /** Size of the file in bytes. */
  readonly totalBytes: number;
}

export type ReportProgress = (progress: UploadProgress) => void;

/** Description of a file to upload. */
export interface FileOptions {
  /** File name. Unsafe characters are replaced. @default the source's name, or `upload` with the type's extension */
  readonly filename?: string | undefined;
  /** Media type, for example `video/mp4`. @default detected from the first bytes, the Blob's type, or the name */
  readonly mimeType?: string | undefined;
  /** Upload type, which determines the size limit. @default IMAGE, VIDEO, or AUDIO, depending on the media type */
  readonly uploadType?: UploadType | undefined;
  /** Size in bytes. Required for a stream of unknown size, because the service needs it before the first byte. */
  readonly sizeBytes?: number | undefined;
  /**
   * Called as bytes are sent, in the async context of this call. `sentBytes` restarts at 0 if the PUT is retried. Errors
   * that it throws are ignored.
   */
  readonly onProgress?: ((progress: UploadProgress) => unknown) | undefined;
  /** If `character`, throws for an image less than 300 px wide. */
  readonly purpose?: 'character' | undefined;
  /** If true, throws for a file that exceeds the documented limits, before the first request. @default the client's setting (true) */
  readonly preflight?: boolean | undefined;
}

/** Options for `uploads.upload`. */
export interface UploadOptions extends FileOptions, Omit<RequestOptions, 'preflight'> {}

/** Options for `uploads.put`. */
export type PutOptions = Pick<FileOptions, 'sizeBytes' | 'onProgress'> &
  Omit<RequestOptions, 'idempotencyKey' | 'preflight'>;

const CALL_FIELDS = {
  signal: option.abortSignal,
  timeoutMs: option.milliseconds,
  maxRetries: option.count,
  headers: option.headers,
  // Validated with the file, because the error has the service's code.
  sizeBytes: option.anything,
  onProgress: option.callback,
} as const;

export const PUT_OPTIONS = option.optionsOf(CALL_FIELDS);

export const UPLOAD_OPTIONS = option.optionsOf({
  ...CALL_FIELDS,
  idempotencyKey: option.anything,
  filename: option.must('a string', (value) => typeof value === 'string'),
  mimeType: option.must('a string', (value) => typeof value === 'string'),
  uploadType: option.must('a string', (value) => typeof value === 'string'),
  purpose: option.oneOf('character'),
  preflight: option.flag,
});
