import { APIError } from './api-error.js';
import {
  ConnectionError,
  JobError,
  PreflightError,
  ResponseError,
  TimeoutError,
  WaitTimeoutError,
} from './client-errors.js';
import { DownloadError, StorageError, UploadError } from './file-errors.js';
import { GenError } from './gen-error.js';
import { WebhookVerificationError } from './webhook-error.js';

/** Response for your app's user. */
export interface HttpAnswer {
  /** HTTP status. */
  readonly status: HttpStatus;
  /** Error code that your frontend can switch on. */
  readonly code: string;
  /** Error message, without secrets or internal URLs. */
  readonly message: string;
  /**
   * Cause of the error: the `caller` who sent the request, your `app` (a key, an option, the balance), or the `service`.
   * Log errors that the caller didn't cause, because the user's message omits details.
   */
  readonly fault: 'caller' | 'app' | 'service';
}

/** Statuses that {@link toHttp} returns. */
export type HttpStatus = 400 | 402 | 404 | 409 | 413 | 422 | 429 | 500 | 502 | 504;

/** Statuses of the service's rejections that the response repeats unchanged. */
const UNCHANGED_STATUSES = [400, 402, 404, 409, 413, 422, 429] as const;

/** Replacements for messages that address the developer or may contain an internal URL. */
const PLAIN_MESSAGES: Readonly<Record<number, string>> = {
  402: 'The budget for generation is used up.',
  404: 'This does not exist.',
  409: 'This is in use. Try again later.',
  413: 'The file is too large.',
  429: 'Too many requests. Try again later.',
  500: 'Something went wrong.',
  502: 'The generation service is not available. Try again later.',
  504: 'The request timed out. Try again later.',
};
/** Statuses for which the plain message is always used, because the error's own message addresses the developer. */
const ALWAYS_PLAIN: readonly number[] = [402, 429, 500, 502, 504];

/**
 * Converts an error to a response for your own user:
 *
 * - 400 for their input; 402, 404, 409, 413, 422, and 429 unchanged; 402 for a budget;
 * - 422 for a job that failed because of their prompt or file;
 * - 502 for other failed jobs, the service, your storage, and your own API key;
 * - 504 for timeouts;
 * - 500 for an invalid option or configuration, and for errors of other packages.
 *
 * Frameworks such as Express would respond with `error.status`, the status of the service's response, for example 401 if
 * your own key is invalid. Respond with this status instead, and log errors whose `fault` isn't `caller`.
 *
 * @example
 * app.use((error, request, response, next) => {
 *   if (!GenError.isInstance(error)) return next(error);
 *   const { status, code, message, fault } = toHttp(error);
 *   if (fault !== 'caller') console.error(error);
 *   response.status(status).json({ code, message });
 * });
 */
export function toHttp(error: unknown): HttpAnswer {
  const [status, code, fault] = httpOutcome(error);
  return { status, code, message: publicMessage(error, status), fault };
}

type HttpOutcome = readonly [status: HttpStatus, code: string, fault: HttpAnswer['fault']];

function httpOutcome(error: unknown): HttpOutcome {
  if (PreflightError.isInstance(error)) return [400, error.code, 'caller'];
  if (APIError.isInstance(error)) return rejectionOutcome(error);
  if (JobError.isInstance(error)) {
    const code = error.code ?? `job_${error.job.status}`;
    return error.recovery.startsWith('change_') ? [422, code, 'caller'] : [502, code, 'service'];
  }
  if (TimeoutError.isInstance(error) || WaitTimeoutError.isInstance(error)) return [504, 'timeout', 'service'];
  if (ConnectionError.isInstance(error) || ResponseError.isInstance(error)) return [502, 'service_error', 'service'];
  if (UploadError.isInstance(error)) {
    return GenError.isInstance(error.cause) ? httpOutcome(error.cause) : [400, 'upload_invalid', 'caller'];
  }
  if (DownloadError.isInstance(error)) return downloadOutcome(error);
  if (StorageError.isInstance(error)) return [502, 'storage_error', 'app'];
  if (WebhookVerificationError.isInstance(error)) return webhookOutcome(error);
  if (GenError.isInstance(error) && 'code' in error && error.code === 'budget_exceeded')
    return [402, error.code, 'caller'];
  return [500, 'internal_error', 'app'];
}

const DOWNLOAD_OUTCOMES: Readonly<Record<string, readonly [HttpStatus, HttpAnswer['fault']]>> = {
  job_not_finished: [409, 'caller'],
  output_expired: [404, 'caller'],
  file_exists: [500, 'app'],
  cannot_write: [500, 'app'],
};

function downloadOutcome({ code }: DownloadError): HttpOutcome {
  const [status, fault] = DOWNLOAD_OUTCOMES[code] ?? [502, 'service'];
  return [status, code, fault];
}

function rejectionOutcome({ status, code }: APIError): HttpOutcome {
  const unchanged = UNCHANGED_STATUSES.find((candidate) => candidate === status);
  if (unchanged === 402) return [unchanged, code, 'app'];
  if (unchanged !== undefined) return [unchanged, code, unchanged === 429 ? 'service' : 'caller'];
  // 401 and 403 are about the app's key, not its user.
  return status >= 500 ? [502, code, 'service'] : [502, 'service_error', 'app'];
}

function webhookOutcome({ reason, recovery }: WebhookVerificationError): HttpOutcome {
  // This is the receiver's own mistake, not the sender's.
  if (recovery === 'fix_setup') return [500, 'internal_error', 'app'];
  return [reason === 'body_too_large' ? 413 : 400, reason, 'caller'];
}

function publicMessage(error: unknown, status: HttpStatus): string {
  const plain = PLAIN_MESSAGES[status] ?? 'The request is invalid.';
  if (JobError.isInstance(error) && status === 502) return 'The generation failed. Try again later.';
  if (ALWAYS_PLAIN.includes(status) || !GenError.isInstance(error)) return plain;
  const { message } = UploadError.isInstance(error) && GenError.isInstance(error.cause) ? error.cause : error;
  return /:\/\//.test(message) ? plain : message;
}
