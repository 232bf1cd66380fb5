import type { Context } from 'hono';
import type { RateLimitName } from '../../rules/limits.js';
import { readUpTo } from '../../runtime/bytes.js';
import { authenticate, type Caller, countRequest } from '../service/accounts.js';
import { Refusal, type RequestFields, readFields } from '../service/request.js';
import { MAX_BODY_BYTES, type Scope } from '../world/choices.js';
import type { World } from '../world/world.js';

/** What a route gets beside the request. */
export interface RequestEnv {
  /** The body of a POST as text; empty for other methods. */
  readonly body: string;
  /** Whether the caller takes its time from the sandbox's clock. */
  readonly onSandboxClock: boolean;
  /** Called when a part of the body has come. */
  readonly onChunk: () => void;
  /** The code of a refusal, for the log. */
  code: string | null;
}

/** The environment of a request. */
export function envOf(context: Context): RequestEnv {
  return context.env;
}

/** The fields of a POST's JSON body. Throws `invalid_request` for what is not a JSON object. */
export function fieldsIn(context: Context): RequestFields {
  return readFields(envOf(context).body);
}

/** What an endpoint demands of its caller. */
export interface Access {
  readonly scope?: Scope;
  /** The documented limit that it counts against. */
  readonly limit?: RateLimitName;
}

/** Admits a caller: key, account, scope, then the limit of the account. */
export function admit(world: World, context: Context, { scope, limit }: Access): Caller {
  const { isManual, speed } = world.settings;
  const caller = {
    account: authenticate(world, context.req.header('authorization'), scope),
    // The origin by which the request came, and the path prefix that the sandbox has.
    baseUrl: new URL(context.req.url).origin + prefixOf(world.settings.baseUrl),
    speed: isManual || envOf(context).onSandboxClock ? 1 : speed,
  };
  if (limit !== undefined) countRequest(world, caller, limit);
  return caller;
}

/**
 * Creates something once for each key: a repeated key gives what the first call created, whatever its body says (spec:
 * Authentication, rule 6). A refusal uses up no key, and the key of something that was deleted is free again.
 */
export function createOnce<T extends { readonly id: string }>(
  { state }: World,
  context: Context,
  {
    caller,
    kind,
    known,
    create,
  }: {
    readonly caller: Caller;
    /** Each kind has keys of its own. */
    readonly kind: 'job' | 'character' | 'upload';
    readonly known: ReadonlyMap<string, T>;
    readonly create: (fields: RequestFields) => T;
  },
): { item: T; headers: Record<string, string> } {
  const fields = fieldsIn(context);
  const key = context.req.header('idempotency-key')?.trim() || fields.text('idempotency_key');
  const name = `${caller.account.id} ${kind} ${key}`;
  // Nothing here awaits, so two requests at once cannot both pass.
  const earlier = key ? known.get(state.idempotency.get(name) ?? '') : undefined;
  if (earlier !== undefined) return { item: earlier, headers: { 'idempotency-replayed': 'true' } };
  const item = create(fields);
  if (key) state.idempotency.set(name, item.id);
  return { item, headers: {} };
}

/** The path prefix of a base URL: empty, or a path without a slash at its end. */
export function prefixOf(baseUrl: string): string {
  return new URL(baseUrl).pathname.replace(/\/$/, '');
}

/**
 * The body of a POST, read once: routes get it as text, because a copy of the request would cost more than its answer. Gives a
 * refusal for a body that is too large, which is not read to its end.
 */
export async function readPostBody(request: Request): Promise<string | Refusal> {
  if (request.method !== 'POST') return '';
  const { bytes, end } = await readUpTo(request.body, MAX_BODY_BYTES);
  if (end === 'whole') return new TextDecoder().decode(bytes);
  return new Refusal('request_too_large', `The body is larger than ${MAX_BODY_BYTES} bytes. Send files as uploads.`);
}
