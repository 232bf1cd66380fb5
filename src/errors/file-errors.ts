import { GenError } from './gen-error.js';

/** An upload step failed. The message names the step and what is left on the service. */
export class UploadError extends GenError {
  protected static override readonly family = 'GenError/UploadError';
  /** The step that failed (spec: Uploads). */
  readonly step: 'prepare' | 'create' | 'put' | 'complete';
  /** The upload's id, once the service had given one. */
  readonly uploadId: string | undefined;
  /** Whether something of the upload is still on the service. */
  readonly left: 'nothing' | 'upload' | 'unknown';

  constructor(
    message: string,
    details: {
      readonly step: UploadError['step'];
      readonly uploadId?: string | undefined;
      readonly left?: UploadError['left'];
      readonly cause?: unknown;
    },
  ) {
    super(message, details);
    this.step = details.step;
    this.uploadId = details.uploadId;
    this.left = details.left ?? 'nothing';
  }
}

/** A finished file could not be brought home whole. */
export class DownloadError extends GenError {
  protected static override readonly family = 'GenError/DownloadError';
  /** The job whose file it is. */
  readonly jobId: string;
  /** When the link expired (ISO 8601), where that is the reason. */
  readonly expiredAt: string | undefined;

  constructor(
    message: string,
    details: { readonly jobId: string; readonly expiredAt?: string | undefined; readonly cause?: unknown },
  ) {
    super(message, details);
    this.jobId = details.jobId;
    this.expiredAt = details.expiredAt;
  }
}
