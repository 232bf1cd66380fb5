import {
  AuthenticationError,
  InsufficientBalanceError,
  PermissionDeniedError,
  ServerError,
  UploadError,
} from '../../errors/index.js';
import { isUnsent } from '../unsent.js';

/** Whether every other row would fail in the same way: a wrong key, no balance, a service that is away. */
export function isSystemic(error: unknown): boolean {
  const isAccount = [AuthenticationError, PermissionDeniedError, InsufficientBalanceError].some((type) =>
    type.isInstance(error),
  );
  if (UploadError.isInstance(error)) return isSystemic(error.cause);
  return isAccount || isUnsent(error) || (ServerError.isInstance(error) && error.code === 'dispatch_disabled');
}
