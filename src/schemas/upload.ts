import type { UploadType } from './media-type.js';

/** An upload (spec: Upload). Unknown fields pass through untouched. */
export interface Upload {
  /** @remarks The upload's id, to be passed wherever a `*_upload_id` is taken. */
  upload_id: string;
  file_name?: string;
  mime_type?: string;
  /** @remarks Its size in bytes. */
  file_size?: number;
  /** Only VIDEO can be edited. */
  upload_type?: UploadType;
  [field: string]: unknown;
}

/** An upload without its bytes (spec: Uploads, step 1). */
export interface CreatedUpload extends Upload {
  /** @remarks Where the bytes are PUT. Expires. */
  direct_upload_url: string;
  /** @remarks The headers that go with the PUT, exactly. */
  headers: Record<string, string>;
}

/** Step 1's body (spec: Uploads). All four are required. */
export interface CreateUploadParams {
  /** The file's name. */
  file_name: string;
  /** `video/mp4`, say. */
  mime_type: string;
  /** In bytes. */
  file_size: number;
  /** Sets the size limit (and what it may be used for). */
  upload_type: UploadType;
}

/** What the SDK relies on in the answer to step 1. */
export const CREATED_UPLOAD_ESSENTIALS = ['upload_id', 'direct_upload_url'] as const;
