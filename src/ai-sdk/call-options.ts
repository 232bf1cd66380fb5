import { GenError } from '../errors/index.js';

/** Settings under `providerOptions.gen`: how to wait, the caller's key, and any field of the service's own. */
export interface GenProviderOptions {
  /** One job at most is made under it; several outputs get keys derived from it. */
  readonly idempotencyKey?: string;
  /** Milliseconds between two reads of the job. @default the client's own schedule */
  readonly pollIntervalMs?: number;
  /** Milliseconds to wait for the job at most. @default 1_800_000 (30 min) */
  readonly waitTimeoutMs?: number;
  /** Fields of the service, sent as given. `resolution`, `character_ids`, `camera_fixed`, … (spec: POST /v1/videos). */
  readonly [field: string]: unknown;
}

/** The call's own settings apart from the fields that go to the service. */
export interface ReadProviderOptions {
  readonly idempotencyKey: string | undefined;
  readonly wait: { readonly pollIntervalMs?: number; readonly timeoutMs?: number };
  readonly fields: Record<string, unknown>;
}

/** Reads `providerOptions.gen`, with an error that names the option for what cannot be meant. */
export function readProviderOptions(providerOptions: Readonly<Record<string, unknown>>): ReadProviderOptions {
  const given = providerOptions.gen ?? {};
  if (typeof given !== 'object' || Array.isArray(given)) throw new GenError('providerOptions.gen must be an object.');
  const { idempotencyKey, pollIntervalMs, waitTimeoutMs, ...fields } = given as GenProviderOptions;
  if (idempotencyKey !== undefined && (typeof idempotencyKey !== 'string' || idempotencyKey === '')) {
    throw new GenError('providerOptions.gen.idempotencyKey must be a non-empty string.');
  }
  return {
    idempotencyKey: idempotencyKey ?? stringField(fields, 'idempotency_key'),
    wait: {
      ...(pollIntervalMs !== undefined && { pollIntervalMs }),
      ...(waitTimeoutMs !== undefined && { timeoutMs: waitTimeoutMs }),
    },
    fields: withoutKey(fields),
  };
}

function stringField(fields: Record<string, unknown>, name: string): string | undefined {
  const value = fields[name];
  return typeof value === 'string' ? value : undefined;
}

/** Every output has a key of its own, so the body must not carry one for all. */
function withoutKey(fields: Record<string, unknown>): Record<string, unknown> {
  const { idempotency_key: _, ...rest } = fields;
  return rest;
}
