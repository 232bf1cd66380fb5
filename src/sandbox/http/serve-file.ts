import type { ServedFile } from '../service/view-job.js';

/** Answers GET and HEAD for a file: 200, 206, 304 or 416, by Range, If-Range and If-None-Match (RFC 9110). */
export function serveFile(request: Request, file: ServedFile): Response {
  const { bytes } = file;
  const headers = new Headers({
    'content-type': file.contentType,
    'accept-ranges': 'bytes',
    etag: file.etag,
    'last-modified': new Date(file.modifiedAt).toUTCString(),
    'cache-control': 'private, no-store',
  });
  const known = request.headers.get('if-none-match');
  if (known !== null && listsEtag(known, file.etag)) return new Response(null, { status: 304, headers });
  // A range is for GET only, and only while the file is the one that the caller has begun.
  const range = request.method === 'GET' && isSameFile(request, file) ? request.headers.get('range') : null;
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
  const match = /^bytes=(\d*)-(\d*)$/.exec(header.trim());
  const [, first = '', last = ''] = match ?? [];
  if (first === '' && last === '') return undefined;
  if (first === '') return Number(last) === 0 ? 'unsatisfiable' : [Math.max(0, size - Number(last)), size];
  const from = Number(first);
  if (last !== '' && Number(last) < from) return undefined;
  return from >= size ? 'unsatisfiable' : [from, last === '' ? size : Math.min(Number(last) + 1, size)];
}

function isSameFile(request: Request, file: ServedFile): boolean {
  const condition = request.headers.get('if-range');
  if (condition === null || condition === file.etag) return true;
  return condition === new Date(file.modifiedAt).toUTCString();
}

function listsEtag(header: string, etag: string): boolean {
  return header.split(',').some((one) => one.trim() === '*' || one.trim().replace(/^W\//, '') === etag);
}
