import { APIError, InsufficientBalanceError, JobError, type Recovery, WaitTimeoutError } from '../errors/index.js';
import { quote } from '../sandbox/control/curl.js';
import type { Session } from './session.js';
import { isUnsent } from './unsent.js';

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
export function adviceFor(error: unknown, session: Pick<Session, 'next' | 'isUnsent'> | undefined): string | undefined {
  // The job's own message says what to change.
  if (JobError.isInstance(error)) return error.job.finalTokenCost ? undefined : 'Nothing was charged.';
  if (session?.next) return `${session.next.what} with: ${session.next.command}`;
  if (InsufficientBalanceError.isInstance(error)) return error.topUpUrl ? `Top up at ${error.topUpUrl}` : undefined;
  if (WaitTimeoutError.isInstance(error))
    return `The job goes on. Wait for it with: gen-client wait ${quote(error.jobId)}`;
  if (session?.isUnsent && isUnsent(error)) return 'Nothing was sent. Check GEN_BASE_URL or --base-url.';
  if (mayHaveCreated(error)) {
    return `It is not known whether a job was made. Run the same command again with --idempotency-key ${quote(error.idempotencyKey)}: it takes up the same job and pays once.`;
  }
  return APIError.isInstance(error) ? ADVICE[error.recovery] : undefined;
}

/** A create without an answer that settles it. */
function mayHaveCreated(error: unknown): error is { idempotencyKey: string } {
  const isSettled = APIError.isInstance(error) && (error.status ?? 0) < 500;
  return !isSettled && error instanceof Error && 'idempotencyKey' in error && typeof error.idempotencyKey === 'string';
}
