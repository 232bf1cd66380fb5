import type { State } from '../world/store.js';
import type { Fields } from './fields.js';

/** What a key was used to make: each kind has its own keys. */
export type MadeKind = 'job' | 'character' | 'upload';

/** A create's key within its account; no name where the caller sent none. */
export interface IdempotencySlot {
  readonly kind: MadeKind;
  readonly name: string | undefined;
}

/** The slot of a create: the header's key, else the body's (spec: Authentication, rule 6). */
export function slotOf(
  fields: Fields,
  header: string | undefined,
  { account, kind }: { account: string; kind: MadeKind },
): IdempotencySlot {
  const key = header ?? fields.text('idempotency_key');
  return { kind, name: key ? `${account} ${kind} ${key}` : undefined };
}

/** The id of what this key made before, whatever the body was then. Refusals leave nothing, and so does what was deleted. */
export function madeBefore(state: State, { kind, name }: IdempotencySlot): string | undefined {
  const id = name === undefined ? undefined : state.idempotency.get(name);
  const made = { job: state.jobs, character: state.characters, upload: state.uploads }[kind];
  return id !== undefined && made.has(id) ? id : undefined;
}

/** Remembers what the key made. */
export function remember({ idempotency }: State, { name }: IdempotencySlot, id: string): void {
  if (name !== undefined) idempotency.set(name, id);
}
