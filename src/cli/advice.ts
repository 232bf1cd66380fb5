import { APIError, InsufficientBalanceError, JobError, type Recovery, WaitTimeoutError } from '../errors/index.js';
import { quote } from '../sandbox/curl.js';

/** What to do, in words for a person. */
const ADVICE: Readonly<Partial<Record<Recovery, string>>> = {
  retry: 'Run the same command again.',
  retry_later: 'Try again later.',
  wait_and_retry: 'Wait a moment, then run the same command again.',
  retry_with_new_key: 'Run the command again without --idempotency-key, or with another one.',
  change_reference: 'Use another file.',
  fix_credentials: 'Check GEN_API_KEY and the scopes of the key.',
  contact_support: "Contact the service's support.",
};

/** What to do about an error, where something can be done. */
export function adviceFor(error: unknown): string | undefined {
  if (InsufficientBalanceError.isInstance(error)) return error.topUpUrl ? `Top up at ${error.topUpUrl}` : undefined;
  if (WaitTimeoutError.isInstance(error))
    return `The job goes on. Wait for it with: gen-client wait ${quote(error.jobId)}`;
  // The job's own message says what to change.
  if (JobError.isInstance(error)) return error.job.finalTokenCost ? undefined : 'Nothing was charged.';
  if (!APIError.isInstance(error)) return undefined;
  const again = error.idempotencyKey ? ` Its key was --idempotency-key ${quote(error.idempotencyKey)}.` : '';
  const advice = ADVICE[error.recovery];
  return advice === undefined ? undefined : `${advice}${error.recovery === 'retry' ? again : ''}`;
}
