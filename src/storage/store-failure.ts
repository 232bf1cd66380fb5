import { reasonOf } from '../callbacks.js';
import { GenError, StorageError } from '../errors/index.js';
import { isFields } from '../schemas/envelope.js';

/** Statuses of a request that may succeed when it is repeated. */
const PASSING = [408, 409, 425, 429];
/** Statuses that say: another was faster, or an object is there. */
const TAKEN = [409, 412];

/**
 * Thrown by a request that is to be repeated at once, a put with a new body: the store has moved, or the signature was made
 * with an old session or a wrong clock. It is not counted as a retry.
 */
export class RepeatRequest extends StorageError {}

/** Whatever a store threw, as a StorageError. */
export function asStorageError(thrown: unknown, store: string, doing: string): StorageError {
  if (StorageError.isInstance(thrown)) return thrown;
  const fields = isFields(thrown) ? thrown : {};
  const status = statusOf(fields);
  const code = typeof fields.code === 'string' ? fields.code : status === undefined ? 'put_failed' : `http_${status}`;
  return new StorageError(`The store "${store}" failed ${doing}: ${reasonOf(thrown)}`, {
    code,
    status,
    store,
    cause: thrown,
  });
}

/** Whether a failed request may succeed when it is repeated: not when the store says that the request itself is wrong. */
export function isPassing(error: StorageError): boolean {
  const { status, code, cause } = error;
  if (GenError.isInstance(cause) && !StorageError.isInstance(cause)) return false;
  return status === undefined || status >= 500 || PASSING.includes(status) || code === 'RequestTimeout';
}

/** Whether an error says that an object is there already. */
export function isTaken(error: StorageError): boolean {
  return error.status !== undefined && TAKEN.includes(error.status);
}

/** Whether the object may be there all the same: the answer was lost, or the store failed after it had all bytes. */
export function mayHaveStored({ code, status = 0 }: StorageError): boolean {
  return code === 'unreachable' || code === 'timeout' || status >= 500;
}

/** The HTTP status of an error, in the words of the SDKs of several stores. */
function statusOf(error: Readonly<Record<string, unknown>>): number | undefined {
  const metadata = isFields(error.$metadata) ? error.$metadata.httpStatusCode : undefined;
  const response = isFields(error.response) ? error.response.status : undefined;
  const found = [error.statusCode, error.status, metadata, response].find(
    (value) => value !== undefined && /^[1-5]\d\d$/.test(String(value)),
  );
  return found === undefined ? undefined : Number(found);
}
