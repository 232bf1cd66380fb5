export type { APIErrorDetails } from './api-error.js';
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
export type { CallDetails } from './client-errors.js';
export { ConnectionError, PreflightError, ResponseError, TimeoutError } from './client-errors.js';
export type { JobErrorCode, Recovery, RequestErrorCode } from './codes.js';
export type { DownloadErrorCode } from './file-errors.js';
export { DownloadError, UploadError } from './file-errors.js';
export { GenError } from './gen-error.js';
export { JobBlockedError, JobCanceledError, JobError, JobFailedError } from './job-error.js';
export type { StorageErrorCode } from './storage-error.js';
export { StorageError } from './storage-error.js';
export type { HttpAnswer, HttpStatus } from './to-http.js';
export { toHttp } from './to-http.js';
export { WaitTimeoutError } from './wait-timeout-error.js';
export type { WebhookRefusal } from './webhook-error.js';
export { WebhookVerificationError } from './webhook-error.js';
