import { extensionFor } from '../../downloading/output.js';
import { isPart } from '../../rules/files.js';
import { isEncoded } from '../../runtime/bytes.js';
import { mediaTypeEssence, safeContentType, safeFileName } from '../../schemas/media-type.js';

/** Headers that are forwarded to the page. */
const FORWARDED_HEADERS = ['content-length', 'content-range', 'etag', 'last-modified', 'accept-ranges'];
const BYTE_HEADERS: readonly string[] = ['content-length', 'content-range', 'accept-ranges'];
/**
 * Keeps scripts from running even if the browser sniffs another type. Without `allow-same-origin`, the browser's player
 * couldn't play a video that is opened by its link.
 */
const SECURITY_HEADERS = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': 'sandbox allow-same-origin',
} as const;
/** Maximum size of a file that is buffered on Bun, because Bun.serve sends streams without a Content-Length. */
const MAX_BUFFERED_BYTES = 16 * 1024 * 1024;
const STATUS_MESSAGES: Readonly<Record<number, string>> = {
  404: 'Not found.',
  405: 'Method not allowed.',
  409: 'Not finished yet.',
  410: 'No longer available.',
  416: 'Range not satisfiable.',
};

export async function fileResponse(
  request: Request,
  file: Response,
  {
    jobId,
    contentType,
    isDownload,
  }: { readonly jobId: string; readonly contentType: string; readonly isDownload: boolean },
): Promise<Response> {
  const type = mediaTypeEssence(contentType);
  const safeType = safeContentType(contentType);
  const isPartial = isPart(file.status);
  const headers = new Headers({ 'cache-control': 'private, no-cache', ...SECURITY_HEADERS });
  // Byte lengths and ranges refer to the encoded bytes.
  for (const header of isEncoded(file.headers)
    ? FORWARDED_HEADERS.filter((header) => !BYTE_HEADERS.includes(header))
    : FORWARDED_HEADERS) {
    const value = file.headers.get(header);
    if (value !== null) headers.set(header, value);
  }
  if (isUnchanged(request, headers)) {
    file.body?.cancel().catch(() => undefined);
    for (const header of BYTE_HEADERS) headers.delete(header);
    return new Response(null, { status: 304, headers });
  }
  if (isPartial) headers.set('accept-ranges', 'bytes');
  else headers.delete('content-range');
  headers.set('content-type', safeType ?? 'application/octet-stream');
  headers.set('content-disposition', disposition(isDownload || safeType === undefined, jobId, type));
  const body =
    request.method === 'HEAD' ? null : await fileBody(file, Number(headers.get('content-length') ?? Number.NaN));
  return new Response(body, { status: isPartial ? 206 : 200, headers });
}

async function fileBody({ body }: Response, sizeBytes: number): Promise<BodyInit | null> {
  const isBuffered = 'Bun' in globalThis && sizeBytes <= MAX_BUFFERED_BYTES;
  return isBuffered ? new Response(body).arrayBuffer() : body;
}

export function plainResponse(status: number, headers: Readonly<Record<string, string>> = {}, hint = ''): Response {
  const text = (STATUS_MESSAGES[status] ?? 'The file is temporarily unavailable.') + hint;
  return new Response(text, {
    status,
    headers: {
      'content-type': 'text/plain; charset=utf-8',
      'cache-control': 'no-store',
      ...SECURITY_HEADERS,
      ...headers,
    },
  });
}

/** Returns true if the page already has the file (RFC 9110, 13.2.2). If-None-Match takes precedence. */
function isUnchanged({ headers: requestHeaders }: Request, headers: Headers): boolean {
  const tags = requestHeaders.get('if-none-match');
  if (tags !== null) {
    const etag = headers.get('etag')?.replace(/^W\//, '');
    // A tag can contain a comma.
    const listedTags = tags.match(/"[^"]*"/g) ?? [];
    return tags.trim() === '*' || listedTags.some((tag) => tag === etag);
  }
  const since = Date.parse(requestHeaders.get('if-modified-since') ?? '');
  return Date.parse(headers.get('last-modified') ?? '') <= since;
}

function disposition(isDownload: boolean, jobId: string, type: string): string {
  const name = safeFileName(jobId, type).replace(/[^\x20-\x7e]/g, '_');
  return `${isDownload ? 'attachment' : 'inline'}; filename="${name}${/\.\w+$/.test(name) ? '' : extensionFor(type)}"`;
}
