import { reasonOf } from '../../runtime/callbacks.js';
import type { FileSpec } from '../media/index.js';
import { Refusal, type RefusalDetails } from '../service/request.js';
import { hashOf } from '../world/random.js';
import type { StoredJob } from '../world/state.js';
import type { World } from '../world/world.js';

/** What an error answer is made of. */
export interface ErrorAnswer extends RefusalDetails {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

/** A success: the documented envelope. */
export function succeed(data: Record<string, unknown>, headers: Record<string, string> = {}): Response {
  return Response.json({ success: true, data }, { headers });
}

/** An error answer. The document does not show its form. */
export function errorResponse({ status, code, message, data, retryAfterS }: ErrorAnswer): Response {
  const headers = retryAfterS === undefined ? {} : { 'retry-after': String(retryAfterS) };
  return Response.json({ success: false, error: { code, message }, ...(data && { data }) }, { status, headers });
}

/** The answer to whatever was thrown: a refusal as it is, anything else as `internal_error`. */
export function answerTo(error: unknown): { response: Response; code: string } {
  const isRefusal = error instanceof Refusal;
  const code = isRefusal ? error.code : 'internal_error';
  const message = isRefusal ? error.message : `The sandbox failed: ${reasonOf(error)}`;
  const details = isRefusal ? error.details : {};
  const status = isRefusal ? error.status : 500;
  return { response: errorResponse({ status, code, message, ...details }), code };
}

/** A file to be served, whole or in part. */
export interface ServedFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly contentType: string;
  /** Strong, with its quotes: other content has another one, also after a reset that repeats the ids. */
  readonly etag: string;
}

/** The file of a completed job. */
export function servedFile({ renderFile }: World, job: StoredJob): ServedFile {
  const spec: FileSpec = { ...job.media, label: job.modelId, prompt: job.prompt };
  const etag = `"${job.id}-${hashOf(JSON.stringify(spec)).toString(36)}"`;
  return { ...renderFile(spec), etag };
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
  // A range is for GET only, and only while the file is the one that the caller has begun.
  const isSame = (request.headers.get('if-range') ?? file.etag) === file.etag;
  const range = request.method === 'GET' && isSame ? request.headers.get('range') : null;
  const part = range === null ? undefined : parseRange(range, bytes.length);
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

/** The first byte and the one after the last; undefined for a header to be ignored, such as one with several ranges. */
function parseRange(header: string, size: number): [number, number] | 'unsatisfiable' | undefined {
  const match = /^bytes=(\d+)-(\d*)$/.exec(header.trim());
  if (match === null) return undefined;
  const [, from, last] = match.map(Number) as [number, number, number];
  if (match[2] === '') return from >= size ? 'unsatisfiable' : [from, size];
  if (last < from) return undefined;
  return from >= size ? 'unsatisfiable' : [from, Math.min(last + 1, size)];
}
