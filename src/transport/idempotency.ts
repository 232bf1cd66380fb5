import { GenError } from '../errors/index.js';
import { sha256 } from './sha256.js';

/** Longest key that is sent; a service may refuse or cut a longer one. */
const LONGEST_KEY = 255;
/** Parts up to this length are readable in the key; longer ones are there as their fingerprint. */
const LONGEST_READABLE = 128;

/**
 * The key of one logical call: the option, else the body's own `idempotency_key` (spec: Authentication 6), else a fresh
 * UUID. Throws a GenError for a key that a header cannot carry.
 */
export function idempotencyKeyOf(option: string | undefined, body: unknown): string {
  const own = typeof body === 'object' && body !== null && 'idempotency_key' in body ? body.idempotency_key : undefined;
  const key = option ?? own ?? crypto.randomUUID();
  if (typeof key === 'string' && key.length <= LONGEST_KEY && /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(key)) {
    return key;
  }
  throw new GenError(`idempotencyKey must be 1 to ${LONGEST_KEY} printable ASCII characters: see idempotencyKeyFrom.`);
}

/**
 * A stable idempotency key from your own ids. The same parts give the same key in every process and version, other parts
 * another key. Where one part ends and the next begins counts: `('ab', 'c')` is not `('a', 'bc')`, and `1` is not `'1'`.
 * At most 255 characters, safe in a header. Throws a GenError without parts, or for a part that is neither text nor a finite number.
 *
 * @example idempotencyKeyFrom('order', 42, 'intro-video')
 */
export function idempotencyKeyFrom(...parts: readonly (string | number)[]): string {
  if (parts.length === 0) throw new GenError('idempotencyKeyFrom needs at least one part, for example an order id.');
  const exact = JSON.stringify(parts.map(checkPart));
  const readable = parts.join('-').replace(/[^\w.-]+/g, '_');
  return `${readable.slice(0, LONGEST_READABLE)}-${sha256(exact)}`;
}

function checkPart(part: unknown): string | number {
  if (typeof part === 'string' || (typeof part === 'number' && Number.isFinite(part))) return part;
  throw new GenError(`idempotencyKeyFrom takes strings and finite numbers, not ${String(part)}.`);
}
