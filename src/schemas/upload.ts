import type { UploadType } from './media-type.js';

/** An upload (spec: Upload). Unknown fields pass through untouched. */
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
  [field: string]: unknown;
}

/** An upload that waits for its bytes (spec: Uploads, step 1). */
export interface CreatedUpload extends Upload {
  /** Where the bytes are PUT. Expires. */
  direct_upload_url: string;
  /** The headers that go with the PUT, exactly. */
  headers: Record<string, string>;
}

/** Step 1's body (spec: Uploads). All four are required. */
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

/** What the SDK relies on in the answer to step 1. */
export const CREATED_UPLOAD_ESSENTIALS = ['upload_id', 'direct_upload_url'] as const;
