import { GenError } from '../errors/gen-error.js';
import { isFields } from '../schemas/envelope.js';
import { noSuchOption } from '../schemas/nearest.js';
import { mustBe } from '../schemas/show.js';

/** What an option must be, in words and as a check. */
export type Rule = readonly [what: string, fits: (value: unknown) => boolean];

/**
 * Throws a GenError for an option that does not exist and for a value that an option cannot have. The words are those of
 * `src/options.ts`, without zod: a receiver on the edge loads this with every cold start.
 */
export function checkRules(owner: string, rules: Readonly<Record<string, Rule>>, given: unknown = {}): void {
  if (!isFields(given)) throw new GenError(mustBe('options', 'an object', given));
  for (const [name, value] of Object.entries(given)) {
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined;
    if (rule === undefined) throw new GenError(noSuchOption(owner, name, Object.keys(rules)));
    const [what, fits] = rule;
    if (value !== undefined && !fits(value)) throw new GenError(mustBe(name, what, value));
  }
}

/** Checked elsewhere, without showing it. */
export const SECRET: Rule = ['a signing secret', () => true];
/** A function. */
export const CALLBACK: Rule = ['a function', (value) => typeof value === 'function'];
/** A number above 0 that is not `Infinity`. */
export const aboveZero = (what: string): Rule => [
  what,
  (value) => typeof value === 'number' && value > 0 && value < Number.POSITIVE_INFINITY,
];
/** A whole number above 0, or `Infinity`. */
export const wholeAboveZero = (what: string): Rule => [
  what,
  (value) => value === Number.POSITIVE_INFINITY || (Number.isInteger(value) && Number(value) > 0),
];
/** One of some strings. */
export const oneOfRule = (...allowed: readonly string[]): Rule => [
  `one of ${allowed.map((value) => JSON.stringify(value)).join(', ')}`,
  (value) => allowed.some((one) => one === value),
];
/** An object with these methods. */
export const methodsRule = (...names: readonly string[]): Rule => [
  `an object with the ${names.length > 1 ? 'methods' : 'method'} ${names.join(', ')}`,
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    names.every((name) => typeof Reflect.get(value, name) === 'function'),
];
