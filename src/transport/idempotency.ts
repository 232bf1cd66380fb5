import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { GenError } from '../errors/index.js';
import { LONGEST_KEY } from '../rules/run-state.js';
import { type Random, systemRandom } from '../runtime/clock.js';
import { keepLast } from '../runtime/keep-last.js';
import { isFields } from '../schemas/envelope.js';
import { show } from '../schemas/show.js';
import type { DecodeContext } from './transport.js';

/** So many characters of the parts are readable in a key; the rest of them is in its hash. */
const LONGEST_READABLE = 128;
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
    `${option === undefined ? 'idempotency_key' : 'idempotencyKey'} must be a string of 1 to ${LONGEST_KEY} printable ASCII characters, not ${show(given)}. idempotencyKeyFrom() makes one from your own ids.`,
  );
}

/**
 * Makes a stable idempotency key from your own ids. The same parts give the same key in every process and version, and
 * other parts give another key: `('ab', 'c')` differs from `('a', 'bc')`, and `1` from `'1'`. A key has at most 255
 * characters. Throws a GenError without parts, and for a part that is neither a string nor a finite number.
 *
 * @example
 * const key = idempotencyKeyFrom('order', 42, 'intro-video');
 * await client.videos.createAndWait({ prompt: 'a fox at dawn' }, { idempotencyKey: key });
 */
export function idempotencyKeyFrom(...parts: readonly (string | number)[]): string {
  if (parts.length === 0) throw new GenError('idempotencyKeyFrom needs at least one part, for example an order id.');
  const exact = JSON.stringify(parts.map(checkPart));
  const readable = parts.join('-').replace(/[^\w.-]+/g, '_');
  return `${readable.slice(0, LONGEST_READABLE)}-${bytesToHex(sha256(utf8ToBytes(exact)))}`;
}

/** Longest key that surely has room for a suffix. */
const EXTENSIBLE_KEY = 200;

/** What stands for a key in the keys derived from it where the key itself is too long: a fingerprint of it. */
export function shortenKey(key: string): string {
  return typeof key === 'string' && key.length > EXTENSIBLE_KEY ? idempotencyKeyFrom(key) : key;
}

function checkPart(part: unknown): string | number {
  if (typeof part === 'string' || (typeof part === 'number' && Number.isFinite(part))) return part;
  throw new GenError(`idempotencyKeyFrom takes strings and finite numbers, not ${show(part)}.`);
}

/** A digest of the params. Left out are the key, and upload ids: a file that is uploaded again has another one. */
export function digestOf(name: string, params: object): string | undefined {
  const sorted = (_name: string, value: unknown) => {
    if (!isFields(value)) return value;
    const counted = Object.entries(value).filter(([field]) => !/upload_id|^idempotency_key$/.test(field));
    return Object.fromEntries(counted.sort(([a], [b]) => (a < b ? -1 : 1)));
  };
  try {
    return bytesToHex(sha256(utf8ToBytes(name + JSON.stringify(params, sorted))));
  } catch {
    return undefined; // The call refuses what cannot be written as JSON, with an error that says so.
  }
}

const KEPT_KEYS = 1000;
const REUSED = 'idempotency_key_reused: the first call with this key had other params';

/**
 * Remembers what a key made a job of, for the account and in this process. Warns where that was something else: the service
 * answers a key that it knows with the first job, whatever the params, so a key that is reused by mistake would go unnoticed.
 */
export function reuseWarnings({ idempotencyKey, account }: DecodeContext, digest: string): string[] {
  const keys = account?.()?.shared('create keys', () => new Map<string, string>());
  if (keys === undefined || idempotencyKey === undefined) return [];
  const first = keys.get(idempotencyKey) ?? digest;
  keepLast(keys, idempotencyKey, first, KEPT_KEYS);
  return first === digest ? [] : [REUSED];
}
