import * as z from 'zod/mini';
import type { RequestOptions } from '../rules/options.js';
import * as option from '../rules/options.js';
import type { UploadType } from '../schemas/media-type.js';

/** How far an upload has come. */
export interface UploadProgress {
  /** Bytes sent by this attempt. Starts at 0 again when the PUT is repeated, and ends at exactly `totalBytes`. */
  readonly sentBytes: number;
  /** Size of the file in bytes. */
  readonly totalBytes: number;
}

export type ReportProgress = (progress: UploadProgress) => void;

/** What you can say about a file that is uploaded. */
export interface FileOptions {
  /** Name for the service, reduced to a safe one. @default the source's own name, else `upload` with the type's extension */
  readonly filename?: string | undefined;
  /** Media type, for example `video/mp4`. @default by the first bytes, otherwise the Blob's, otherwise by the name */
  readonly mimeType?: string | undefined;
  /** What the service takes the file for; sets the size limit. @default by the media type: IMAGE, VIDEO or AUDIO */
  readonly uploadType?: UploadType | undefined;
  /** Size in bytes. Required for streams that do not tell it: the service needs it before the first byte. */
  readonly sizeBytes?: number | undefined;
  /**
   * Called as bytes are sent, in the async context of this call. Starts at 0 again when the PUT has to be repeated. What
   * it throws changes nothing.
   */
  readonly onProgress?: ((progress: UploadProgress) => unknown) | undefined;
  /** `character`: also refuse an image whose header says that it is less than 300 px wide. */
  readonly purpose?: 'character' | undefined;
  /** Whether a file over the documented limits is refused before the first call. @default the client's (true) */
  readonly preflight?: boolean | undefined;
}

/** What `uploads.upload` takes beside the source. */
export interface UploadOptions extends FileOptions, Omit<RequestOptions, 'preflight'> {}

/** What `uploads.put` takes beside the source. */
export type PutOptions = Pick<FileOptions, 'sizeBytes' | 'onProgress'> &
  Omit<RequestOptions, 'idempotencyKey' | 'preflight'>;

const CALL_FIELDS = {
  signal: option.abortSignal,
  timeoutMs: option.milliseconds,
  maxRetries: option.count,
  headers: option.headers,
  // Checked with the file, because the code of its error is the service's.
  sizeBytes: option.anything,
  onProgress: option.callback,
} as const;

export const PUT_OPTIONS = z.strictObject(CALL_FIELDS);

export const UPLOAD_OPTIONS = z.strictObject({
  ...CALL_FIELDS,
  idempotencyKey: option.anything,
  filename: option.must<string>('a string', (value) => typeof value === 'string'),
  mimeType: option.must<string>('a string', (value) => typeof value === 'string'),
  uploadType: option.must<string>('a string', (value) => typeof value === 'string'),
  purpose: option.oneOf('character'),
  preflight: option.flag,
});
