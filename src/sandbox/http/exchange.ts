import type { Context } from 'hono';
import type { RateLimitName } from '../../rules/limits.js';
import { rangeIn } from '../../runtime/byte-range.js';
import { readUpTo } from '../../runtime/bytes.js';
import { reasonOf } from '../../runtime/callbacks.js';
import { dimensionsFor, renderMedia } from '../media/index.js';
import { authenticate, type Caller, countRequest } from '../service/accounts.js';
import { type ErrorDetails, type RequestFields, readFields, ServiceError } from '../service/request.js';
import { MAX_BODY_BYTES, type Scope } from '../world/assumptions.js';
import { hashOf } from '../world/random.js';
import type { RequestRecord, StoredJob } from '../world/state.js';
import type { ServedFile, World } from '../world/world.js';

export type MutableRecord = { -readonly [K in keyof RequestRecord]: RequestRecord[K] };

export interface RequestEnv {
  /** Body of a POST as text. Empty for other methods. */
  readonly body: string;
  /** True if the caller uses the sandbox's clock. */
  readonly onSandboxClock: boolean;
  /** Called when a chunk of the body arrives. */
  readonly onChunk: () => void;
  /** Entry in the log. */
  readonly record: MutableRecord;
}

export function envOf(context: Context): RequestEnv {
  return context.env;
}

/** Returns the fields of a JSON body. Throws `invalid_request` if it isn't a JSON object. */
export function fieldsIn(context: Context): RequestFields {
  return readFields(envOf(context).body);
}

export interface Access {
  readonly scope?: Scope;
  /** Documented rate limit of the call. */
  readonly limit?: RateLimitName;
}

/** Checks a caller's key, account, and scope, then counts the request against the account's rate limit. */
export function admit(world: World, context: Context, { scope, limit }: Access): Caller {
  const { isManual, speed } = world.settings;
  const caller = {
    account: authenticate(world, context.req.header('authorization'), scope),
    baseUrl: new URL(context.req.url).origin + prefixOf(world.settings.baseUrl),
    speed: isManual || envOf(context).onSandboxClock ? 1 : speed,
  };
  if (limit !== undefined) countRequest(world, caller, limit);
  return caller;
}

/**
 * Creates one item per idempotency key. A repeated key returns the first item, even with a different body (documentation:
 * Authentication, rule 6). An error doesn't use up the key, and deleting the item frees it.
 */
export function createOnce<T extends { readonly id: string }>(
  { state }: World,
  context: Context,
  // Each kind has its own keys.
  kind: 'job' | 'character' | 'upload',
  { account, items, create }: { account: string; items: ReadonlyMap<string, T>; create: (fields: RequestFields) => T },
): { item: T; headers: Record<string, string> } {
  const fields = fieldsIn(context);
  const key = context.req.header('idempotency-key')?.trim() || fields.text('idempotency_key');
  const name = `${account} ${kind} ${key}`;
  // No await in this function, so concurrent requests can't both create an item.
  const existingItem = key ? items.get(state.idempotency.get(name) ?? '') : undefined;
  if (existingItem !== undefined) return { item: existingItem, headers: { 'idempotency-replayed': 'true' } };
  const item = create(fields);
  if (key) state.idempotency.set(name, item.id);
  return { item, headers: {} };
}

/** Returns the path prefix of a base URL, without a trailing slash. */
export function prefixOf(baseUrl: string): string {
  return new URL(baseUrl).pathname.replace(/\/$/, '');
}

/** Reads the body of a POST for both the log and the route. Stops and returns an error if it is too large. */
export async function readPostBody(request: Request): Promise<string | ServiceError> {
  if (request.method !== 'POST') return '';
  const { bytes, end } = await readUpTo(request.body, MAX_BODY_BYTES);
  if (end === 'complete') return new TextDecoder().decode(bytes);
  return new ServiceError(
    'request_too_large',
    `The body is larger than ${MAX_BODY_BYTES} bytes. Send files as uploads.`,
  );
}

export function succeed(data: Record<string, unknown>, headers: Record<string, string> = {}): Response {
  return Response.json({ success: true, data }, { headers });
}

/** Builds an error response. Its format isn't documented. */
export function errorResponse(
  status: number,
  code: string,
  message: string,
  { data, retryAfterS }: ErrorDetails = {},
): Response {
  const headers = retryAfterS === undefined ? {} : { 'retry-after': String(retryAfterS) };
  return Response.json({ success: false, error: { code, message }, ...(data && { data }) }, { status, headers });
}

/** Builds and logs an error's response. Any error other than a {@link ServiceError} is an `internal_error`. */
export function failRequest(record: MutableRecord, error: unknown): Response {
  const { status, code, message, details } =
    error instanceof ServiceError
      ? error
      : new ServiceError('internal_error', `The sandbox failed: ${reasonOf(error)}`);
  record.code = code;
  return errorResponse(status, code, message, details);
}

/** Returns a job's file. Renders it on the first call. */
export function servedFile({ files }: World, job: StoredJob): ServedFile {
  const cachedFile = files.get(job);
  if (cachedFile) return cachedFile;
  const spec = { ...job.media, ...dimensionsFor(job.media), label: job.modelId, prompt: job.prompt };
  const contentType = spec.kind === 'image' ? 'image/png' : 'video/mp4';
  const etag = `"${job.id}-${hashOf(JSON.stringify(spec)).toString(36)}"`;
  const file: ServedFile = { bytes: renderMedia(spec), contentType, etag };
  files.set(job, file);
  return file;
}

/** Responds to GET and HEAD for a file with 200, 206, or 416, according to Range and If-Range (RFC 9110). */
export function serveFile(request: Request, file: ServedFile): Response {
  const { bytes } = file;
  const headers = new Headers({
    'content-type': file.contentType,
    'accept-ranges': 'bytes',
    etag: file.etag,
    'cache-control': 'private, no-store',
  });
  // Ranges apply only to GET, and only to the version that the client has already started to download.
  const isSameVersion = (request.headers.get('if-range') ?? file.etag) === file.etag;
  const part =
    request.method === 'GET' && isSameVersion ? rangeIn(request.headers.get('range'), bytes.length) : undefined;
  if (part === 'unsatisfiable') {
    headers.set('content-range', `bytes */${bytes.length}`);
    headers.delete('content-type');
    return new Response(null, { status: 416, headers });
  }
  const { start, end } = part ?? { start: 0, end: bytes.length - 1 };
  headers.set('content-length', String(end - start + 1));
  if (part) headers.set('content-range', `bytes ${start}-${end}/${bytes.length}`);
  const body = request.method === 'HEAD' ? null : bytes.subarray(start, end + 1);
  return new Response(body, { status: part ? 206 : 200, headers });
}
