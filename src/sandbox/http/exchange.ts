import type { Context } from 'hono';
import type { RateLimitName } from '../../rules/limits.js';
import { readUpTo } from '../../runtime/bytes.js';
import { reasonOf } from '../../runtime/callbacks.js';
import { dimensionsFor, renderMedia } from '../media/index.js';
import { authenticate, type Caller, countRequest } from '../service/accounts.js';
import { Refusal, type RefusalDetails, type RequestFields, readFields } from '../service/request.js';
import { MAX_BODY_BYTES, type Scope } from '../world/assumptions.js';
import { hashOf } from '../world/random.js';
import type { StoredJob } from '../world/state.js';
import type { ServedFile, World } from '../world/world.js';

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

export function envOf(context: Context): RequestEnv {
  return context.env;
}

/** The fields of a POST's JSON body. Throws `invalid_request` for what is not a JSON object. */
export function fieldsIn(context: Context): RequestFields {
  return readFields(envOf(context).body);
}

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
  // Each kind has keys of its own.
  kind: 'job' | 'character' | 'upload',
  { account, known, create }: { account: string; known: ReadonlyMap<string, T>; create: (fields: RequestFields) => T },
): { item: T; headers: Record<string, string> } {
  const fields = fieldsIn(context);
  const key = context.req.header('idempotency-key')?.trim() || fields.text('idempotency_key');
  const name = `${account} ${kind} ${key}`;
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

export function succeed(data: Record<string, unknown>, headers: Record<string, string> = {}): Response {
  return Response.json({ success: true, data }, { headers });
}

/** An error answer. The document does not show its form. */
export function errorResponse(
  status: number,
  code: string,
  message: string,
  { data, retryAfterS }: RefusalDetails = {},
): Response {
  const headers = retryAfterS === undefined ? {} : { 'retry-after': String(retryAfterS) };
  return Response.json({ success: false, error: { code, message }, ...(data && { data }) }, { status, headers });
}

/** The answer to whatever was thrown: a refusal as it is, anything else as `internal_error`. */
export function answerTo(error: unknown): { response: Response; code: string } {
  const isRefusal = error instanceof Refusal;
  const code = isRefusal ? error.code : 'internal_error';
  const message = isRefusal ? error.message : `The sandbox failed: ${reasonOf(error)}`;
  return {
    response: errorResponse(isRefusal ? error.status : 500, code, message, isRefusal ? error.details : {}),
    code,
  };
}

/** The file of a job, made when it is first asked for. */
export function servedFile({ files }: World, job: StoredJob): ServedFile {
  const known = files.get(job);
  if (known) return known;
  const spec = { ...job.media, ...dimensionsFor(job.media), label: job.modelId, prompt: job.prompt };
  const contentType = spec.kind === 'image' ? 'image/png' : 'video/mp4';
  const etag = `"${job.id}-${hashOf(JSON.stringify(spec)).toString(36)}"`;
  const file: ServedFile = { bytes: renderMedia(spec), contentType, etag };
  files.set(job, file);
  return file;
}

/** Answers GET and HEAD for a file: 200, 206 or 416, by Range and If-Range (RFC 9110). */
export function serveFile(request: Request, file: ServedFile): Response {
  const { bytes } = file;
  const headers = new Headers({
    'content-type': file.contentType,
    'accept-ranges': 'bytes',
    etag: file.etag,
    'cache-control': 'private, no-store',
  });
  // A range counts only for GET, and only while the file is the one that the client started with.
  const isSame = (request.headers.get('if-range') ?? file.etag) === file.etag;
  const part = request.method === 'GET' && isSame ? rangeOf(request.headers.get('range'), bytes.length) : undefined;
  if (part === 'unsatisfiable') {
    headers.set('content-range', `bytes */${bytes.length}`);
    headers.delete('content-type');
    return new Response(null, { status: 416, headers });
  }
  const [from, to] = part ?? [0, bytes.length];
  headers.set('content-length', String(to - from));
  if (part) headers.set('content-range', `bytes ${from}-${to - 1}/${bytes.length}`);
  const body = request.method === 'HEAD' ? null : bytes.subarray(from, to);
  return new Response(body, { status: part ? 206 : 200, headers });
}

/** The start and end of a single range, such as `bytes=0-99`, `bytes=100-`, or `bytes=-3`. Any other form is ignored. */
function rangeOf(
  range: string | null,
  size: number,
): readonly [from: number, to: number] | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/.exec(range?.trim() ?? '') ?? [];
  if (first === '' && last === '') return undefined;
  if (first === '') return Number(last) === 0 ? 'unsatisfiable' : [Math.max(0, size - Number(last)), size];
  if (last !== '' && Number(last) < Number(first)) return undefined;
  if (Number(first) >= size) return 'unsatisfiable';
  return [Number(first), last === '' ? size : Math.min(Number(last) + 1, size)];
}
