import type { UploadType } from './media-type.js';

/** An upload. Unknown fields pass through untouched. */
export interface Upload {
  /** The upload's id, to be passed wherever a `*_upload_id` is taken. */
  upload_id: string;
  /** The name it was uploaded under. */
  file_name?: string;
  /** Its media type. */
  mime_type?: string;
  /** Its size in bytes. */
  file_size?: number;
  /** VIDEO is the only kind accepted as an edit source. */
  upload_type?: UploadType;
}

/** An upload that waits for its bytes. */
export interface CreatedUpload extends Upload {
  /** Where the bytes are PUT. Expires. */
  direct_upload_url: string;
  /** The headers that go with the PUT, exactly. */
  headers: Record<string, string>;
}

/** Step 1's body. All four are required. */
export interface CreateUploadParams {
  /** File name. */
  file_name: string;
  /** Media type, for example `video/mp4`. */
  mime_type: string;
  /** Size in bytes. */
  file_size: number;
  /** Decides the size limit and what it may be used for. */
  upload_type: UploadType;
}

/**
 * Content that can be read again from its start: what `fromPath()` gives, and every Blob. Any object of this shape is
 * accepted, for example one that reads from a database.
 */
export interface RereadableSource {
  /** File name, where it has one. */
  readonly name?: string | undefined;
  /** Size in bytes. */
  readonly size: number;
  /** Media type, where it is known. */
  readonly type?: string | undefined;
  /** A fresh stream of the whole content at each call. */
  stream(): ReadableStream<Uint8Array>;
}

/** The path of what `fromPath()` gives, for those that have to write it down. */
export const FILE_PATH = Symbol.for('gen-client.path');

/**
 * What `uploads.upload` takes. Blobs, bytes, `fromPath()` and functions can be read again and are retried
 * as a whole. A Response, a stream and an async iterable can be read once. Pass `sizeBytes` where the source does not
 * tell its size.
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

/** An upload's id, or a file that is uploaded before the call is sent. */
export type UploadRef = string | UploadSource;
