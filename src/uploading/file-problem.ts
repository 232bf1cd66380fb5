/** What is known of a problem: `code` and `param` where the file was refused before any call, else the step that failed. */
export interface ProblemDetails {
  readonly code?: string;
  readonly param?: string;
  readonly step?: 'prepare' | 'create' | 'put' | 'complete';
  readonly uploadId?: string | undefined;
  readonly left?: 'nothing' | 'upload' | 'unknown';
  readonly cause?: unknown;
}

/**
 * Why a file could not be uploaded. The client makes the public error of it: were the error classes named here, every
 * bundle would hold them in a file of their own beside the client's, whether it uploads or not.
 */
export class FileProblem extends Error {
  readonly details: ProblemDetails;

  constructor(message: string, details: ProblemDetails) {
    super(message);
    this.details = details;
  }
}
