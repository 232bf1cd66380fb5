import type { Fields } from './fields.js';
import type { State } from './store.js';

/** What a key was used to make: each kind has its own keys. */
export type MadeKind = 'job' | 'character' | 'upload';

/** A create's key within its account; undefined where the caller sent none. */
export interface IdempotencySlot {
  readonly name: string | undefined;
}

/** The slot of a create: the header's key, else the body's (spec: Authentication, rule 6). */
export function slotOf(request: Request, fields: Fields, account: string, kind: MadeKind): IdempotencySlot {
  const key = request.headers.get('idempotency-key') ?? fields.text('idempotency_key');
  return { name: key ? `${account} ${kind} ${key}` : undefined };
}

/** The id of what this key made before, whatever the body was then. Refused creates leave nothing. */
export function madeBefore({ idempotency }: State, { name }: IdempotencySlot): string | undefined {
  return name === undefined ? undefined : idempotency.get(name);
}

/** Remembers what the key made. */
export function remember({ idempotency }: State, { name }: IdempotencySlot, id: string): void {
  if (name !== undefined) idempotency.set(name, id);
}
