import * as z from 'zod/mini';

/** What an answer is checked by. */
export type Schema<T> = z.ZodMiniType<T>;

/** A text that the SDK relies on: there, and not empty. */
export const essentialText = z.string().check(z.minLength(1));

/**
 * A documented field that the SDK does not rely on. It passes as it came, whatever it is: a job that was paid for must not
 * be lost because the service wrote a number as a string.
 */
export const passes = <T>() => z.exactOptional(z.custom<T>());
