export {
  APIError,
  AuthenticationError,
  BadRequestError,
  ConflictError,
  documentedStatus,
  InsufficientBalanceError,
  NotFoundError,
  PayloadTooLargeError,
  PermissionDeniedError,
  RateLimitError,
  ServerError,
  UnprocessableEntityError,
} from './api-error.js';
export { ConnectionError, PreflightError, ResponseError, TimeoutError } from './client-errors.js';
export type { JobErrorCode, Recovery, RequestErrorCode } from './codes.js';
export {
  DownloadError,
  type DownloadErrorCode,
  StorageError,
  UploadError,
} from './file-errors.js';
export { GenError } from './gen-error.js';
export { JobBlockedError, JobCanceledError, JobError, JobFailedError, WaitTimeoutError } from './job-errors.js';
export type { HttpAnswer } from './to-http.js';
export { toHttp } from './to-http.js';
export { WebhookVerificationError } from './webhook-error.js';
