import { extensionsOf } from '../schemas/media-type.js';

/**
 * A content type's file extension, with its dot; empty if unknown. `.mp4` for `video/mp4; codecs=avc1`: made for naming
 * a downloaded file (spec: GET /v1/jobs/{job_id}/output).
 */
export function extensionFor(contentType: string | null | undefined): string {
  const extension = extensionsOf(contentType ?? '')[0];
  return extension === undefined ? '' : `.${extension}`;
}
