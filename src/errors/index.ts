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
export {
  ConnectionError,
  JobBlockedError,
  JobCanceledError,
  JobError,
  JobFailedError,
  PreflightError,
  ResponseError,
  TimeoutError,
  WaitTimeoutError,
} from './client-errors.js';
export type { JobErrorCode, Recovery, RequestErrorCode } from './codes.js';
export {
  DownloadError,
  type DownloadErrorCode,
  StorageError,
  UploadError,
} from './file-errors.js';
export { GenError } from './gen-error.js';
export type { HttpAnswer } from './to-http.js';
export { toHttp } from './to-http.js';
export { WebhookVerificationError } from './webhook-error.js';
