// The errors of queued calls: those of other code, of a budget, and those that come out of a record.
import { BudgetExceededError } from '../errors/budget-error.js';
import { GenError } from '../errors/index.js';
import type { GenErrorJson } from '../rules/fate.js';
import { reasonOf } from '../runtime/callbacks.js';
import type { Clock } from '../runtime/clock.js';
import type { GenJobData } from './job-data.js';

/** Whatever was thrown, as an error of this package. */
export function asGenError(reason: unknown): GenError {
  return GenError.isInstance(reason) ? reason : new GenError(reasonOf(reason), { cause: reason, recovery: 'retry' });
}

/** Milliseconds until the budget that refused the create begins its next period. */
export function untilReset(clock: Clock, error: unknown): number | undefined {
  if (!BudgetExceededError.isInstance(error) || error.resetsAt === null) return undefined;
  return Math.max(1, Date.parse(error.resetsAt) - clock.now());
}

/** The error with which a call has failed, out of its record. */
export function storedError({ failure = {} }: GenJobData): GenError {
  return revived({ ...failure, name: String(failure.name), message: String(failure.message) });
}

/** An error whose call was made before the sleep, in this process or another. */
export function revived({ name, message, ...fields }: GenErrorJson): GenError {
  return Object.assign(new GenError(message), { name, ...fields });
}
