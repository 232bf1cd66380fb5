import * as z from 'zod/mini';

/** The arguments of `durableObjectShared`. */
export const ARGUMENTS = z.strictObject({
  namespace: z.custom<object>(
    (value) => typeof value === 'object' && value !== null && 'idFromName' in value && 'get' in value,
    'the binding of a Durable Object, such as env.ACCOUNT',
  ),
  name: z.string('a non-empty string').check(z.minLength(1, 'a non-empty string')),
});
