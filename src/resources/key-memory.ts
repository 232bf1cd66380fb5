// What the caller's own idempotency keys were first used for. The service answers a key that it knows with the first job,
// whatever the params: a key that is reused by mistake would go unnoticed.
import { keepLast } from '../runtime/keep-last.js';
import type { DecodeContext } from '../transport/transport.js';

const KEPT_KEYS = 1000;
const REUSED = 'idempotency_key_reused: the first call with this key had other params';

/** Remembers what a key made a job of, for the account and in this process. Warns where that was something else. */
export function reuseWarnings({ idempotencyKey, account }: DecodeContext, digest: string): string[] {
  const keys = account?.()?.shared('create keys', () => new Map<string, string>());
  if (keys === undefined || idempotencyKey === undefined) return [];
  const first = keys.get(idempotencyKey) ?? digest;
  keepLast(keys, idempotencyKey, first, KEPT_KEYS);
  return first === digest ? [] : [REUSED];
}
