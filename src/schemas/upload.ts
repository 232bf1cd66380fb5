import type { UploadType } from './media-type.js';

/** An upload. Includes undocumented fields that the service sends. */
export interface Upload {
  /** Upload ID, for any `*_upload_id` field. */
  upload_id: string;
  /** File name. */
  file_name?: string;
  /** Media type. */
  mime_type?: string;
  /** Size in bytes. */
  file_size?: number;
  /** Upload type. Only `VIDEO` can be the source of an edit. */
  upload_type?: UploadType;
}

/** An upload without its bytes. PUT them to `direct_upload_url`. */
export interface CreatedUpload extends Upload {
  /** URL for the PUT. Expires. */
  direct_upload_url: string;
  /** Headers to send with the PUT, unchanged. */
  headers: Record<string, string>;
}

/** Params of `uploads.create`. All are required. */
export interface CreateUploadParams {
  /** File name. */
  file_name: string;
  /** Media type, for example `video/mp4`. */
  mime_type: string;
  /** Size in bytes. */
  file_size: number;
  /** Upload type. Determines the size limit, and where the upload can be used. */
  upload_type: UploadType;
}

/**
 * Content that can be read several times: a Blob, the result of `fromPath()`, or your own object, for example one that
 * reads from a database.
 */
export interface RereadableSource {
  /** File name. */
  readonly name?: string | undefined;
  /** Size in bytes. */
  readonly size: number;
  /** Media type. */
  readonly type?: string | undefined;
  /** Returns a new stream of the entire content. */
  stream(): ReadableStream<Uint8Array>;
}

/** The property of a `fromPath()` result that contains its path, for code that must store the path. */
export const FILE_PATH = Symbol.for('gen-client.path');

/**
 * A file to upload. Blobs, bytes, `fromPath()`, and functions can be retried. A Response, a stream, and an async
 * iterable can be read only once, and need `sizeBytes` if they don't report their size.
 */
export type UploadSource =
  | Blob
  | RereadableSource
  | ArrayBuffer
  | ArrayBufferView
  | Response
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array>
  | (() => ReadableStream<Uint8Array> | AsyncIterable<Uint8Array> | Promise<ReadableStream<Uint8Array>>);

/** An upload ID, or a file that is uploaded before the call is sent. */
export type UploadRef = string | UploadSource;
