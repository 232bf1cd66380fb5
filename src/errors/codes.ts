/** How to recover from an error, as a value to switch on. */
export type Recovery =
  /** Call again with the same idempotency key. */
  | 'retry'
  /** Call again later. After a failed job, use a new idempotency key. */
  | 'retry_later'
  /** Wait `retryAfterMs`, then call again. */
  | 'wait_and_retry'
  /** Call again with a new idempotency key. */
  | 'retry_with_new_key'
  /** Change the params. */
  | 'change_request'
  /** Use another file or upload. */
  | 'change_reference'
  /** Add tokens to the account, or raise the budget. */
  | 'top_up'
  /** Use a valid API key with the scope that the call needs. */
  | 'fix_credentials'
  /** Change an option, the configuration, or this machine. */
  | 'fix_setup'
  /** The job continues: wait for it again. */
  | 'wait_again'
  /** Only the service's support can help. */
  | 'contact_support'
  /** The error can't be resolved automatically. */
  | 'none';

/** Request errors: HTTP status and recovery. */
export const REQUEST_ERRORS = {
  invalid_api_key: [401, 'fix_credentials'],
  insufficient_balance: [402, 'top_up'],
  account_not_active: [403, 'contact_support'],
  scope_missing: [403, 'fix_credentials'],
  job_not_found: [404, 'change_request'],
  character_not_found: [404, 'change_request'],
  upload_not_found: [404, 'change_reference'],
  reference_upload_not_found: [404, 'change_reference'],
  video_edit_source_not_found: [404, 'change_reference'],
  upload_in_use: [409, 'retry_later'],
  character_pending: [409, 'wait_and_retry'],
  upload_too_large: [413, 'change_reference'],
  character_registration_failed: [422, 'change_reference'],
  rate_limited: [429, 'wait_and_retry'],
  prompt_required: [400, 'change_request'],
  prompt_too_long: [400, 'change_request'],
  model_not_found: [400, 'change_request'],
  duration_not_supported: [400, 'change_request'],
  aspect_ratio_not_supported: [400, 'change_request'],
  resolution_not_supported: [400, 'change_request'],
  reference_combination_not_supported: [400, 'change_request'],
  character_prompt_unsafe: [400, 'change_request'],
  person_match_prompt_unsafe: [400, 'change_request'],
  upload_invalid: [400, 'change_request'],
  video_edit_model_not_supported: [400, 'change_request'],
  video_edit_source_required: [400, 'change_request'],
  voice_required: [400, 'change_request'],
  internal_error: [500, 'retry'],
  dispatch_disabled: [503, 'retry_later'],
} as const satisfies Readonly<Record<string, readonly [status: number, recovery: Recovery]>>;

/** Job errors and their recovery. */
export const JOB_ERRORS = {
  reference_rejected: 'change_reference',
  reference_asset_pending: 'wait_and_retry',
  reference_asset_failed: 'change_reference',
  generation_rejected: 'change_request',
  generation_timeout: 'retry_with_new_key',
  generation_unavailable: 'retry_later',
  generation_failed: 'retry_with_new_key',
} as const satisfies Readonly<Record<string, Recovery>>;

/** Returns a table's own row, because the service can send any code, including `toString`. */
export function rowOf<T>(table: Readonly<Record<string, T>>, code: string): T | undefined {
  return Object.hasOwn(table, code) ? table[code] : undefined;
}

/** A code of a rejected request. Can be any string, because the service can add codes. */
export type RequestErrorCode = keyof typeof REQUEST_ERRORS | (string & {});
/** The `errorCode` of a failed job. Can be any string, because the service can add codes. */
export type JobErrorCode = keyof typeof JOB_ERRORS | (string & {});
