import type { Context } from 'hono';
import type { Lane } from '../../rules/limits.js';
import { authenticate, type Caller, countRequest } from '../service/accounts.js';
import { Refusal, type RequestFields, readFields } from '../service/request.js';
import type { UploadBody } from '../service/uploads.js';
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

/** The body of a PUT. */
export function uploadBody(context: Context): UploadBody {
  const length = context.req.header('content-length');
  const { body: stream } = context.req.raw;
  return { stream, length: length === undefined ? undefined : Number(length), onChunk: envOf(context).onChunk };
}

/** What an endpoint demands of its caller. */
export interface Access {
  readonly scope?: Scope;
  /** The documented limit that it counts against. */
  readonly lane?: Lane;
}

/** Admits a caller: key, account, scope, then the limit of the account. */
export function admit(world: World, context: Context, { scope, lane }: Access): Caller {
  const { isManual, speed } = world.settings;
  const caller = {
    account: authenticate(world, context.req.header('authorization'), scope),
    baseUrl: requestBaseUrl(context.req.url, world.settings.baseUrl),
    speed: isManual || envOf(context).onSandboxClock ? 1 : speed,
  };
  if (lane !== undefined) countRequest(world, caller, lane);
  return caller;
}

/** What a key was used for: each kind has its own keys. */
type CreatedKind = 'job' | 'character' | 'upload';

/** The header of an answer that repeats an earlier result. */
export function replayed(isReplay: boolean): Record<string, string> {
  return isReplay ? { 'idempotency-replayed': 'true' } : {};
}

/**
 * Creates something once for each key: a repeated key gives what the first call created, whatever its body says (spec:
 * Authentication, rule 6). A refusal uses up no key, and the key of something that was deleted is free again.
 */
export function createOnce(
  { state }: World,
  context: Context,
  { caller, kind, create }: { caller: Caller; kind: CreatedKind; create: (fields: RequestFields) => string },
): { id: string; isReplay: boolean } {
  const fields = fieldsIn(context);
  const key = context.req.header('idempotency-key')?.trim() || fields.text('idempotency_key');
  const name = key ? `${caller.account.id} ${kind} ${key}` : undefined;
  // Nothing here awaits, so two requests at once cannot both pass.
  const known = name === undefined ? undefined : state.idempotency.get(name);
  const created = { job: state.jobs, character: state.characters, upload: state.uploads }[kind];
  if (known !== undefined && created.has(known)) return { id: known, isReplay: true };
  const id = create(fields);
  if (name !== undefined) state.idempotency.set(name, id);
  return { id, isReplay: false };
}

/** The base URL by which a request came: its own origin, and the path prefix that the sandbox has. */
function requestBaseUrl(requestUrl: string, configured: string): string {
  return new URL(requestUrl).origin + prefixOf(configured);
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
  const length = request.headers.get('content-length');
  if (Number(length) > MAX_BODY_BYTES) return postTooLarge();
  // A server that knows the length reads the text without making a stream of it.
  if (length !== null) return request.text();
  if (request.body === null) return '';
  const decoder = new TextDecoder();
  const reader = request.body.getReader();
  let text = '';
  let size = 0;
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    size += read.value.length;
    if (size > MAX_BODY_BYTES) {
      reader.cancel().catch(() => {});
      return postTooLarge();
    }
    text += decoder.decode(read.value, { stream: true });
  }
  return text + decoder.decode();
}

function postTooLarge(): Refusal {
  return new Refusal('request_too_large', `The body is larger than ${MAX_BODY_BYTES} bytes. Send files as uploads.`);
}
