// Validates options. Unknown names are errors, and all messages have the same form. Uses only zod's core, because the
// schemas of zod and zod/mini include all parsers, which would add 1 kB to each client.
import * as z from 'zod/v4/core';
import { GenError } from '../errors/gen-error.js';
import type { Budget } from '../schemas/budget.js';
import { isFields, isObject, isText } from '../schemas/envelope.js';
import { formatKind, formatValue, invalidOptionsMessage } from '../schemas/format-value.js';
import { noSuchOption } from '../schemas/spelling.js';

/** Checks by option. The message of each check says what the option must be, for example `a whole number, 0 or more`. */
export type OptionChecks = Readonly<Record<string, z.$ZodType>>;

export type OptionsSchema = z.$ZodObject;

/** Creates a schema of options by name. Any other name is an error. `expected` describes the object in the message. */
export function optionsOf(shape: OptionChecks, expected?: string): OptionsSchema {
  const catchall = new z.$ZodNever({ type: 'never' });
  return new z.$ZodObject({ type: 'object', shape, catchall, ...messageOf(expected) });
}

/** Adds a check of options that depend on each other. If it fails, the message says that `option` must be `what`. */
export function refined(
  schema: OptionsSchema,
  isValid: (options: Readonly<Record<string, unknown>>) => boolean,
  { option, what: expected }: { readonly option: string; readonly what: string },
): OptionsSchema {
  const fn = (options: unknown) => isFields(options) && isValid(options);
  const check = new z.$ZodCustom({ type: 'custom', check: 'custom', fn, path: [option], ...messageOf(expected) });
  return new z.$ZodObject({ ...schema._zod.def, checks: [check] });
}

/**
 * Throws a {@link GenError} for an unknown option, with the nearest known one, and for an invalid value. `owner` is the
 * function that accepts the options, for example `GenClient`. The message identifies a nested option by its path:
 * `limits['videos.create'].windowMs`.
 */
export function checkOptions(owner: string, schema: OptionsSchema, options: unknown): void {
  if (options !== undefined && !isFields(options)) {
    throw new GenError(invalidOptionsMessage(owner, Object.keys(shapeAt(schema, []))[0], options));
  }
  const issues = issuesIn(schema, options ?? {}).map((issue) => innermostIssue(issue));
  // Unknown names first, because a misspelled option may also be reported as missing.
  const issue = issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0];
  if (issue === undefined) return;
  const path = pathOf(issue.path);
  if (issue.code !== 'unrecognized_keys') {
    const value = valueAt(options, issue.path);
    throw new GenError(
      `${path || 'options'} must be ${issue.message}${describeValue(issue, value)}.${fixOf(issue, value)}`,
    );
  }
  const fullName = (name: string) => pathOf([...issue.path, name]);
  const knownNames = Object.keys(shapeAt(schema, issue.path)).map(fullName);
  throw unknownOption(owner, fullName(issue.keys[0] ?? ''), knownNames);
}

/** Validates through Standard Schema, which returns zod's issues but, unlike `safeParse`, needs no error class. */
function issuesIn(schema: OptionsSchema, options: object): readonly z.$ZodIssue[] {
  const result = schema['~standard'].validate(options);
  if ('then' in result) {
    // A getter of the options threw, so zod validates again, asynchronously.
    result.catch(() => {});
    throw new GenError('options: a value threw when it was read. Pass plain values.');
  }
  return 'issues' in result ? (result.issues as readonly z.$ZodIssue[]) : [];
}

/**
 * Describes the value. Hides secrets, and strings that were passed instead of an object or a function, because they may
 * be API keys.
 */
function describeValue(issue: z.$ZodIssue, value: unknown): string {
  const { hides } = (issue.code === 'custom' && issue.params) || {};
  if (hides === 'everything') return '';
  return `, not ${hides === 'texts' || issue.code !== 'custom' ? formatKind(value) : formatValue(value)}`;
}

/** Returns the check's sentence about what to pass instead, if it has one. */
function fixOf(issue: z.$ZodIssue, value: unknown): string {
  const { fix } = (issue.code === 'custom' && issue.params) || {};
  const sentence: unknown = typeof fix === 'function' ? fix(value) : undefined;
  return isText(sentence) ? ` ${sentence}` : '';
}

function pathOf(path: readonly PropertyKey[]): string {
  const parts = path.map((key) => (String(key).includes('.') ? `['${String(key)}']` : `.${String(key)}`));
  return parts.join('').replace(/^\./, '');
}

/** Returns the issue inside the matching form of a union, or the union's own issue if no form matches. */
function innermostIssue(issue: z.$ZodIssue): z.$ZodIssue {
  if (issue.code !== 'invalid_union') return issue;
  const innerIssues = issue.errors.flat().map((inner) => innermostIssue(inner));
  const innerIssue =
    innerIssues.find(({ code }) => code === 'unrecognized_keys') ?? innerIssues.find(({ path }) => path.length > 0);
  return innerIssue === undefined ? issue : { ...innerIssue, path: [...issue.path, ...innerIssue.path] };
}

function shapeAt(schema: z.$ZodType, path: readonly PropertyKey[]): z.$ZodShape {
  const { def } = (schema as z.$ZodTypes)._zod;
  const [first, ...rest] = path;
  if (def.type === 'optional') return shapeAt(def.innerType, path);
  if (def.type === 'union') {
    return def.options.map((form) => shapeAt(form, path)).find((shape) => Object.keys(shape).length > 0) ?? {};
  }
  if (def.type === 'array') return shapeAt(def.element, rest);
  if (def.type !== 'object') return {};
  const next = first === undefined ? undefined : def.shape[String(first)];
  if (first === undefined) return def.shape;
  return next === undefined ? {} : shapeAt(next, rest);
}

export function unknownOption(owner: string, name: string, known: readonly string[]): GenError {
  return new GenError(noSuchOption(owner, name, known));
}

function valueAt(given: unknown, path: readonly PropertyKey[]): unknown {
  let value = given;
  for (const key of path) value = isObject(value) ? Reflect.get(value, key) : undefined;
  return value;
}

/** Details for the message about an invalid value. */
interface Hints {
  readonly hides?: 'texts' | 'everything';
  /** Returns a sentence that says what to pass instead, or false for none. */
  readonly fix?: (value: unknown) => string | false;
}

function messageOf(what: string | undefined): { readonly error?: () => string } {
  return what === undefined ? {} : { error: () => what };
}

/** An option that may be missing or undefined. */
export const optional = (innerType: z.$ZodType) => new z.$ZodOptional({ type: 'optional', innerType });

/** A required value. `expected` describes a valid one for the message. */
export const required = (expected: string, fits: (value: unknown) => boolean, hints: Hints = {}) =>
  new z.$ZodCustom({
    type: 'custom',
    check: 'custom',
    fn: fits,
    abort: true,
    params: { ...hints },
    ...messageOf(expected),
  });

/** A required object or function. A string may be an API key that was passed by mistake, so messages never show it. */
export const requiredObject = (expected: string, fits: (value: unknown) => boolean) =>
  required(expected, fits, { hides: 'texts' });

export const must = (expected: string, fits: (value: unknown) => boolean) => optional(required(expected, fits));

export const MILLISECONDS = 'a number of milliseconds above 0';

/** Milliseconds above 0, or `Infinity` for no limit. */
export const milliseconds = must(MILLISECONDS, (value) => typeof value === 'number' && value > 0);

export const finiteMilliseconds = must(MILLISECONDS, (value) => Number.isFinite(value) && Number(value) > 0);

export const timeoutOrFalse = must(
  'a number of milliseconds above 0, or false for no limit',
  (value) => value === false || (typeof value === 'number' && value > 0),
);

export const millisecondsOrZero = must(
  'a number of milliseconds, 0 or more',
  (value) => typeof value === 'number' && value >= 0,
);

/** A whole number, 0 or more, or `Infinity`. */
export const count = must(
  'a whole number, 0 or more',
  (value) => typeof value === 'number' && value >= 0 && (Number.isInteger(value) || value === Number.POSITIVE_INFINITY),
);

export const flag = must('true or false', (value) => typeof value === 'boolean');

export const text = must('a non-empty string', isText);

/** An optional secret. Messages never show it. */
export const secret = (expected: string, fits: (value: unknown) => boolean) =>
  optional(required(expected, fits, { hides: 'everything' }));

export const requiredCallback = requiredObject('a function', (value) => typeof value === 'function');

export const callback = optional(requiredCallback);

export const abortSignal = optional(
  requiredObject('an AbortSignal', (value) => hasMethods(value, ['addEventListener'])),
);

/** One of several forms. `expected` describes all of them for the message. */
export const either = (expected: string, ...options: readonly z.$ZodType[]) =>
  optional(new z.$ZodUnion({ type: 'union', options, ...messageOf(expected) }));

export const anObject = optional(requiredObject('an object', isObject));

/** Headers by name. A Headers object or a list has no enumerable fields, so its headers would not be sent. */
export const headers = optional(
  requiredObject("an object such as { 'x-team': 'film' }", (value) => isObject(value) && !(Symbol.iterator in value)),
);

export const oneOf = (...allowed: readonly string[]) =>
  must(`one of ${allowed.map((value) => JSON.stringify(value)).join(', ')}`, (value) =>
    allowed.some((it) => it === value),
  );

export const requiredMethods = (...names: readonly string[]) =>
  requiredObject(withMethods(names), (value) => hasMethods(value, names));

export const methods = (...names: readonly string[]) => optional(requiredMethods(...names));

/** The property of stores and budgets that contains the ledger. The same in all copies of the package. */
export const LEDGER: unique symbol = Symbol.for('gen-client.ledger');

/** The property of stores that contains shared rate limits and notifications. The same in all copies of the package. */
export const SHARING: unique symbol = Symbol.for('gen-client.sharing');

const isStore = (value: unknown) => isObject(value) && LEDGER in value && SHARING in value;
const isBudget = (value: unknown) => isObject(value) && LEDGER in value && !(SHARING in value);

export const store = optional(
  required('the result of fileStore(path), redisStore(redis), or createStore({ read, write })', isStore, {
    hides: 'texts',
    fix: (value) => isBudget(value) && 'Pass the budget as budget.',
  }),
);

/** If a number is passed as a budget, the message suggests a budget with that many tokens. */
export const budget = optional(
  required('the result of createBudget({ maxTokens })', isBudget, {
    hides: 'texts',
    fix: (value) =>
      isStore(value)
        ? 'Pass the store as store.'
        : typeof value === 'number' && `Pass createBudget({ maxTokens: ${value} }).`,
  }),
);

function withMethods(names: readonly string[]): string {
  return `an object with the ${names.length > 1 ? 'methods' : 'method'} ${names.join(', ')}`;
}

function hasMethods(value: unknown, names: readonly string[]): boolean {
  if (!isObject(value) && typeof value !== 'function') return false;
  return names.every((name) => typeof Reflect.get(value, name) === 'function');
}

/** An option that is validated elsewhere. */
export const anything = must('anything', () => true);

/** Options for every call, passed as its last argument. */
export interface RequestOptions {
  /** Aborts the call, which rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Timeout of one attempt in milliseconds, from connecting to the end of the JSON body. @default the client's setting (60_000)
   */
  readonly timeoutMs?: number | undefined;
  /** Maximum retries. Waiting out a 429 doesn't count. @default the client's setting (3) */
  readonly maxRetries?: number | undefined;
  /** Idempotency key of a create. The service creates at most one job per key. @default a new UUID for each call */
  readonly idempotencyKey?: string | undefined;
  /** Additional headers. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * If true, validates the params before sending the request, and throws for an undocumented field.
   * @default the client's setting (true)
   */
  readonly preflight?: boolean | undefined;
  /** Undocumented fields to add to the request body. They can't override params. @default none */
  readonly extraBody?: Readonly<Record<string, unknown>> | undefined;
  /** Budget of this create, in addition to the client's. Calls that create no job cost nothing. */
  readonly budget?: Budget | undefined;
}

/** Checks of {@link RequestOptions}. */
export const REQUEST_CHECKS = {
  signal: abortSignal,
  timeoutMs: milliseconds,
  maxRetries: count,
  // Validated together with the key in the body.
  idempotencyKey: anything,
  headers,
  extraBody: anObject,
  preflight: flag,
  budget,
};

export const REQUEST_OPTIONS = optionsOf(REQUEST_CHECKS);

/** Schema of the options of `jobs.output`. The range is validated with its header. */
export const OUTPUT_OPTIONS = optionsOf({ ...REQUEST_CHECKS, range: anything, ifRange: text, resume: flag });
