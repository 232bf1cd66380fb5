import { GenError } from '../errors/index.js';
import { LONGEST_KEY } from '../rules/run-state.js';
import { type Random, systemRandom } from '../runtime/clock.js';
import { sha256Of } from '../runtime/sha256.js';
import { isFields, isText } from '../schemas/envelope.js';
import { show } from '../schemas/show.js';

/** So many characters of the parts are readable in a key; the rest of them is in its hash. */
const MAX_READABLE = 128;
const HEADER_VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

/**
 * The key of one logical call: the option, else the body's own `idempotency_key`, else a fresh
 * UUID. Throws a GenError for a key that a header cannot carry. A key of another type is refused and never left out,
 * because a rerun without it would create and charge a second job.
 */
export function idempotencyKeyOf(option: unknown, body: unknown, random: Random = systemRandom): string {
  const own = typeof body === 'object' && body !== null && 'idempotency_key' in body ? body.idempotency_key : undefined;
  const given = option === undefined ? own : option;
  if (given === undefined) return random.uuid();
  if (typeof given === 'string' && given.length <= LONGEST_KEY && HEADER_VALUE.test(given)) return given;
  throw new GenError(
    `${option === undefined ? 'idempotency_key' : 'idempotencyKey'} must be a string of 1 to ${LONGEST_KEY} printable ASCII characters, not ${show(given)}. idempotencyKeyFrom() creates one from your own IDs.`,
  );
}

/**
 * Makes a stable idempotency key from your own ids. The same parts give the same key in every process and version, and
 * other parts give another key: `('ab', 'c')` differs from `('a', 'bc')`, and `1` from `'1'`. A key has at most 255
 * characters. Throws a GenError without parts, and for a part that is neither a non-empty string nor a finite number.
 *
 * @example
 * const key = idempotencyKeyFrom('order', 42, 'intro-video');
 * await client.videos.createAndWait({ prompt: 'a fox at dawn' }, { idempotencyKey: key });
 */
export function idempotencyKeyFrom(...parts: readonly (string | number)[]): string {
  if (parts.length === 0) throw new GenError('idempotencyKeyFrom needs at least one part, for example an order ID.');
  const exact = JSON.stringify(parts.map(checkPart));
  const readable = parts.join('-').replace(/[^\w.-]+/g, '_');
  return `${readable.slice(0, MAX_READABLE)}-${sha256Of(exact)}`;
}

/** Longest key that surely has room for a suffix. */
const EXTENSIBLE_KEY = 200;

/** What stands for a key in the keys derived from it where the key itself is too long: a fingerprint of it. */
export function shortenKey(key: string): string {
  return typeof key === 'string' && key.length > EXTENSIBLE_KEY ? idempotencyKeyFrom(key) : key;
}

/** A short text in the place of a long one, where it only has to be told from others. */
export function digestOfKey(text: string): string {
  return sha256Of(text).slice(0, 16);
}

function checkPart(part: unknown): string | number {
  if (isText(part) || (typeof part === 'number' && Number.isFinite(part))) return part;
  throw new GenError(
    `idempotencyKeyFrom: each part must be a non-empty string or a finite number, not ${show(part)}. Pass your own IDs.`,
  );
}

/**
 * An option of a create, under which the proxy passes what its page has asked for. The key then stands for that, and not for
 * the params: an app may make other params of one ask from one version to the next.
 */
export const ASKED: unique symbol = Symbol.for('gen-client.asked');

/**
 * A digest of the params, without what may change when a call is repeated: upload IDs, and the URLs that the service notifies.
 */
export function digestOf(name: string, params: object): string | undefined {
  const sorted = (_name: string, value: unknown) => {
    if (!isFields(value)) return value;
    const counted = Object.entries(value).filter(
      ([field]) => !/upload_id|^(idempotency_key|webhook_url|callback_url)$/.test(field),
    );
    return Object.fromEntries(counted.sort(([a], [b]) => (a < b ? -1 : 1)));
  };
  try {
    return digestOfKey(name + JSON.stringify(params, sorted));
  } catch {
    return undefined; // The call refuses what cannot be written as JSON, with an error that says so.
  }
}
