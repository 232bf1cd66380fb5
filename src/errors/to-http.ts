import { APIError } from './api-error.js';
import { ConnectionError, PreflightError, ResponseError, TimeoutError } from './client-errors.js';
import { DownloadError, UploadError } from './file-errors.js';
import { GenError } from './gen-error.js';
import { JobError } from './job-error.js';
import { StorageError } from './storage-error.js';
import { WaitTimeoutError } from './wait-timeout-error.js';
import { WebhookVerificationError } from './webhook-error.js';

/** What to answer the user of your own app with. */
export interface HttpAnswer {
  /** The HTTP status. */
  readonly status: number;
  /** What happened, as a value that your frontend can switch on. */
  readonly code: string;
  /** What happened, in words. It never holds a key, another secret or an internal URL. */
  readonly message: string;
}

/** Refusals that are about what your user sent, or about what they may do something about. */
const AS_THEY_ARE: readonly number[] = [400, 402, 404, 409, 413, 422, 429];

/** The receiver's own mistakes among the reasons to refuse a webhook. */
const OWN_MISTAKES: readonly string[] = ['secret_missing', 'options_invalid', 'body_unavailable', 'body_parsed'];

/** Said in place of messages that are written for the developer, or may name an internal URL. */
const WORDS: Readonly<Record<number, string>> = {
  402: 'The budget for generation is used up.',
  404: 'This does not exist.',
  409: 'This is in use. Try again later.',
  413: 'The file is too large.',
  429: 'Too many requests. Try again later.',
  500: 'Something went wrong.',
  502: 'The generation service is not available. Try again later.',
  504: 'This takes longer than expected. Try again later.',
};
/** Statuses whose messages are always these, because the error's own is for you. */
const ALWAYS: readonly number[] = [402, 429, 500, 502, 504];

/**
 * What to answer your own user with when a call has failed: 400 for their input, 402, 404, 409, 413, 422 and 429 as they
 * are, 402 for a budget, 422 for a job that failed by their prompt or file, 502 for other failed jobs, for the service and
 * for your own API key, 504 for time-outs, and 500 for errors that are not of this package.
 *
 * Frameworks such as Express answer with `error.status`, which is the status of the service's answer: 401 for a wrong key of
 * yours. Answer with this one.
 *
 * @example
 * app.use((error, request, response, next) => {
 *   const { status, code, message } = toHttp(error);
 *   response.status(status).json({ code, message });
 * });
 */
export function toHttp(error: unknown): HttpAnswer {
  const [status, code] = outcomeOf(error);
  return { status, code, message: messageOf(error, status) };
}

function outcomeOf(error: unknown): readonly [status: number, code: string] {
  if (PreflightError.isInstance(error)) return [error.status, error.code];
  if (APIError.isInstance(error)) return ofRefusal(error);
  if (JobError.isInstance(error)) {
    return [error.recovery.startsWith('change_') ? 422 : 502, error.code ?? `job_${error.job.status}`];
  }
  if (TimeoutError.isInstance(error) || WaitTimeoutError.isInstance(error)) return [504, 'timeout'];
  if (ConnectionError.isInstance(error) || ResponseError.isInstance(error)) return [502, 'service_error'];
  if (UploadError.isInstance(error)) {
    const { cause } = error;
    return GenError.isInstance(cause) ? outcomeOf(cause) : [400, 'upload_invalid'];
  }
  if (DownloadError.isInstance(error)) return [DOWNLOADS[error.code] ?? 502, error.code];
  if (StorageError.isInstance(error)) return [502, 'storage_error'];
  if (WebhookVerificationError.isInstance(error)) return ofWebhook(error);
  if (GenError.isInstance(error) && 'code' in error && error.code === 'budget_exceeded') return [402, error.code];
  return [500, 'internal_error'];
}

const DOWNLOADS: Readonly<Record<string, number>> = {
  job_not_finished: 409,
  output_expired: 404,
  file_exists: 500,
  cannot_write: 500,
};

function ofRefusal({ status, code }: APIError): readonly [status: number, code: string] {
  if (AS_THEY_ARE.includes(status)) return [status, code];
  // 401 and 403 are about the key of the app, and does not concern its user.
  return [502, status >= 500 ? code : 'service_error'];
}

function ofWebhook({ reason }: WebhookVerificationError): readonly [status: number, code: string] {
  if (OWN_MISTAKES.includes(reason)) return [500, 'internal_error'];
  return [reason === 'body_too_large' ? 413 : 400, reason];
}

function messageOf(error: unknown, status: number): string {
  const words = WORDS[status] ?? 'The request cannot be carried out.';
  if (JobError.isInstance(error) && status === 502) return 'The generation failed. Try again later.';
  if (ALWAYS.includes(status) || !GenError.isInstance(error)) return words;
  const { message } = UploadError.isInstance(error) && GenError.isInstance(error.cause) ? error.cause : error;
  return /:\/\//.test(message) ? words : message;
}
