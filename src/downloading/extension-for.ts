import { extensionsOf } from '../schemas/media-type.js';

/**
 * The file extension for a content type, with its dot: `.mp4` for `video/mp4; codecs=avc1`. An unknown type gives an
 * empty string. Made for naming a downloaded file (spec: GET /v1/jobs/{job_id}/output).
 */
export function extensionFor(contentType: string | null | undefined): string {
  const extension = extensionsOf(contentType ?? '')[0];
  return extension === undefined ? '' : `.${extension}`;
}
