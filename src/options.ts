// Checks the options of every door: closed, and with one wording for whatever cannot be right.
import * as z from 'zod/mini';
import { GenError } from './errors/gen-error.js';
import { noSuchOption } from './schemas/nearest.js';
import { mustBe } from './schemas/show.js';

/**
 * Options as a schema: `z.strictObject` whose checks carry as their message what the option must be, for example
 * `a whole number, 0 or more`. The functions below make such checks.
 */
export type OptionsSchema = z.ZodMiniObject<z.core.$ZodShape, z.core.$strict>;

/**
 * Throws a {@link GenError} for an option that does not exist, naming the nearest one that does, and for a value that an
 * option cannot have. `owner` is who takes the options: `GenClient`, `videos.create`. `within` is the option that holds
 * these, where they are nested: `limits` makes an error name `limits.windowMs`.
 */
export function checkOptions(
  owner: string,
  schema: OptionsSchema,
  given: unknown,
  options: { readonly within?: string } = {},
): void {
  const { error } = schema.safeParse(given ?? {});
  // A misspelt name first: what it was meant for is missing because of it.
  const issue = error?.issues.find(({ code }) => code === 'unrecognized_keys') ?? error?.issues[0];
  if (issue === undefined) return;
  const prefix = options.within === undefined ? '' : `${options.within}.`;
  if (issue.code === 'unrecognized_keys') {
    const known = Object.keys(schema.shape).map((name) => prefix + name);
    throw unknownOption(owner, prefix + (issue.keys[0] ?? ''), known);
  }
  const name = issue.path.length === 0 ? (options.within ?? 'options') : prefix + issue.path.join('.');
  throw new GenError(mustBe(name, issue.message, valueAt(given, issue.path)));
}

/** The error for an option that does not exist. */
export function unknownOption(owner: string, name: string, known: readonly string[]): GenError {
  return new GenError(noSuchOption(owner, name, known));
}

function valueAt(given: unknown, path: readonly PropertyKey[]): unknown {
  let value = given;
  for (const key of path) value = typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
  return value;
}

/** An option that may be left out, or undefined. */
export const optional = <T extends z.core.$ZodType>(check: T) => z.optional(check);

/** A value that `fits`; `what` says in words what it must be. */
export const must = <T>(what: string, fits: (value: unknown) => boolean) => z.optional(z.custom<T>(fits, what));

/** Milliseconds above 0; `Infinity` for no limit. */
export const milliseconds = must<number>(
  'a number of milliseconds above 0',
  (value) => typeof value === 'number' && value > 0,
);

/** Milliseconds, 0 or more. */
export const millisecondsOrZero = must<number>(
  'a number of milliseconds, 0 or more',
  (value) => typeof value === 'number' && value >= 0,
);

/** A count: a whole number, 0 or more, or `Infinity`. */
export const count = must<number>(
  'a whole number, 0 or more',
  (value) => typeof value === 'number' && value >= 0 && (Number.isInteger(value) || value === Number.POSITIVE_INFINITY),
);

/** A number of bytes above 0. */
export const bytes = must<number>(
  'a whole number of bytes above 0',
  (value) => typeof value === 'number' && value > 0 && (Number.isInteger(value) || value === Number.POSITIVE_INFINITY),
);

/** true or false. */
export const flag = z.optional(z.boolean('true or false'));

/** A text with something in it. */
export const text = z.optional(z.string('a non-empty string').check(z.minLength(1, 'a non-empty string')));

/** A function. */
export const callback = must<(...args: never[]) => unknown>('a function', (value) => typeof value === 'function');

/** An AbortSignal, of whichever realm. */
export const abortSignal = must<AbortSignal>('an AbortSignal', (value) => hasMethods(value, ['addEventListener']));

/** An object that is not looked into. */
export const anObject = must<object>('an object', (value) => typeof value === 'object' && value !== null);

/** One of some strings. */
export const oneOf = <const T extends readonly string[]>(...allowed: T) =>
  z.optional(z.enum(allowed, `one of ${allowed.map((value) => JSON.stringify(value)).join(', ')}`));

/** An object with these methods. */
export const methods = <T>(...names: readonly string[]) =>
  must<T>(`an object with the ${names.length > 1 ? 'methods' : 'method'} ${names.join(', ')}`, (value) =>
    hasMethods(value, names),
  );

function hasMethods(value: unknown, names: readonly string[]): boolean {
  const isObject = (typeof value === 'object' && value !== null) || typeof value === 'function';
  return isObject && names.every((name) => typeof Reflect.get(value, name) === 'function');
}

/** An option that is checked elsewhere. */
export const anything = z.optional(z.unknown());
