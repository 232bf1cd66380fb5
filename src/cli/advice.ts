import {
  APIError,
  ConnectionError,
  GenError,
  InsufficientBalanceError,
  JobError,
  type Recovery,
  WaitTimeoutError,
} from '../errors/index.js';
import { fateOf, mayHaveCreated } from '../rules/fate.js';
import { quote } from '../runtime/shell.js';
import type { Session } from './session.js';

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
  if (session?.isUnsent && ConnectionError.isInstance(error) && fateOf(error) === 'unsent')
    return 'Nothing was sent. Check GEN_BASE_URL or --base-url.';
  const key = GenError.isInstance(error) && 'idempotencyKey' in error ? error.idempotencyKey : undefined;
  if (typeof key === 'string' && mayHaveCreated(error)) {
    return `It is not known whether a job was made. Run the same command again with --idempotency-key ${quote(key)}: it takes up the same job and pays once.`;
  }
  return APIError.isInstance(error) ? ADVICE[error.recovery] : undefined;
}
