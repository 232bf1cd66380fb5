import * as z from 'zod/mini';
import { LIMITS } from '../limits/limiter-options.js';
import * as option from '../options.js';

const ACCOUNT = z.strictObject({
  namespace: z.custom<object>(
    (value) => typeof value === 'object' && value !== null && 'idFromName' in value && 'get' in value,
    'the binding of a Durable Object, such as env.ACCOUNT',
  ),
  name: z.string('a non-empty string').check(z.minLength(1, 'a non-empty string')),
});

/** Checks which object is asked. Throws a GenError that says what to pass. */
export function checkAccount(owner: string, namespace: unknown, name: unknown): void {
  option.checkOptions(`${owner}(namespace, name)`, ACCOUNT, { namespace, name });
}

/** The options of `durableObjectLimiter`. */
export const LIMITER_OPTIONS = z.strictObject({
  limits: LIMITS,
  onUnavailable: option.oneOf('local', 'throw'),
  timeoutMs: option.milliseconds,
  onError: option.callback,
});
