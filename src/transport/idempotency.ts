import { GenError } from '../errors/index.js';
import { MAX_KEY_LENGTH } from '../rules/run-state.js';
import { type Random, systemRandom } from '../runtime/clock.js';
import { sha256Of } from '../runtime/sha256.js';
import { isFields, isObject, isText } from '../schemas/envelope.js';
import { formatValue } from '../schemas/format-value.js';

/** Maximum length of a key's readable part. The hash covers the rest. */
const MAX_READABLE = 128;
const HEADER_VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

/**
 * Returns a call's key: the option, the body's `idempotency_key`, or a new UUID, in this order. Throws a GenError for
 * an invalid key, because a repeated call without the key would create and charge a second job.
 */
export function idempotencyKeyOf(option: unknown, body: unknown, random: Random = systemRandom): string {
  const bodyKey = isObject(body) && 'idempotency_key' in body ? body.idempotency_key : undefined;
  const key = option === undefined ? bodyKey : option;
  if (key === undefined) return random.uuid();
  if (typeof key === 'string' && key.length <= MAX_KEY_LENGTH && HEADER_VALUE.test(key)) return key;
  throw new GenError(
    `${option === undefined ? 'idempotency_key' : 'idempotencyKey'} must be a string of 1 to ${MAX_KEY_LENGTH} printable ASCII characters, not ${formatValue(key)}. Create one from your own IDs with idempotencyKeyFrom().`,
  );
}

/**
 * Builds a stable idempotency key of at most 255 characters from your own IDs. The same parts produce the same key in every
 * process and version, and different parts produce different keys: `('ab', 'c')` and `('a', 'bc')` differ. Throws a GenError
 * without parts, or for a part that is neither a non-empty string nor a finite number.
 *
 * @example
 * const key = idempotencyKeyFrom('order', 42, 'intro-video');
 * await client.videos.createAndWait({ prompt: 'a fox at dawn' }, { idempotencyKey: key });
 */
export function idempotencyKeyFrom(...parts: readonly (string | number)[]): string {
  if (parts.length === 0) throw new GenError('idempotencyKeyFrom: parts are missing. Pass your own IDs.');
  const exactParts = JSON.stringify(parts.map(checkPart));
  const readablePart = parts.join('-').replace(/[^\w.-]+/g, '_');
  return `${readablePart.slice(0, MAX_READABLE)}-${sha256Of(exactParts)}`;
}

/** Maximum length of a key to which a suffix can be added. */
const MAX_EXTENSIBLE_KEY = 200;

/** Returns the prefix for keys derived from a key: the key, or its fingerprint if it's too long. */
export function shortenKey(key: string): string {
  return typeof key === 'string' && key.length > MAX_EXTENSIBLE_KEY ? idempotencyKeyFrom(key) : key;
}

/** Returns a short fingerprint of a string. */
export function digestOfKey(value: string): string {
  return sha256Of(value).slice(0, 16);
}

function checkPart(part: unknown): string | number {
  if (isText(part) || (typeof part === 'number' && Number.isFinite(part))) return part;
  throw new GenError(
    `idempotencyKeyFrom: each part must be a non-empty string or a finite number, not ${formatValue(part)}. Pass your own IDs.`,
  );
}

/**
 * Option of a create that the proxy sends: the page's input. The idempotency key identifies the input instead of the params,
 * which can differ between versions of an app.
 */
export const PAGE_INPUT: unique symbol = Symbol.for('gen-client.page-input');

/** Returns a digest of the params, without those that can change when a call is repeated: upload IDs and webhook URLs. */
export function digestOf(name: string, params: object): string | undefined {
  const sortFields = (_name: string, value: unknown) => {
    if (!isFields(value)) return value;
    const stable = Object.entries(value).filter(
      ([field]) => !/upload_id|^(idempotency_key|webhook_url|callback_url)$/.test(field),
    );
    return Object.fromEntries(stable.sort(([a], [b]) => (a < b ? -1 : 1)));
  };
  try {
    return digestOfKey(name + JSON.stringify(params, sortFields));
  } catch {
    return undefined; // The call throws a better error.
  }
}
