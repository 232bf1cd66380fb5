import { extensionFor } from '../resources/output.js';
import { mediaTypeEssence } from '../schemas/media-type.js';
import { safeFileName } from '../uploading/file-name.js';

/** How a file is shown to a page. */
export interface Showing {
  /** The name under which it is saved, without what is unsafe. */
  readonly name: string;
  /** Whether it is saved and not shown. */
  readonly isSaved: boolean;
  readonly cacheControl: string;
}

/** The headers of a file that a page sees. All others stay here. */
const SHOWN = ['content-length', 'content-range', 'etag', 'last-modified', 'accept-ranges'];
/** What a browser may show: nothing in which a script can run. */
const SHOWABLE = /^(video|audio)\/[\w.+-]+$|^image\/(?!svg)[\w.+-]+$/;
const WORDS: Readonly<Record<number, string>> = {
  404: 'Not found.',
  405: 'Method not allowed.',
  409: 'Not finished yet.',
  410: 'No longer available.',
  416: 'Range not satisfiable.',
};

/** The answer to the page: the file or a part of it, or 304 where the page has it already. */
export function fileResponse(request: Request, found: Response, { name, isSaved, cacheControl }: Showing): Response {
  const type = mediaTypeEssence(found.headers.get('content-type') ?? '');
  const isShowable = SHOWABLE.test(type);
  const headers = new Headers({ 'cache-control': cacheControl, 'x-content-type-options': 'nosniff' });
  for (const header of SHOWN) {
    const value = found.headers.get(header);
    if (value !== null) headers.set(header, value);
  }
  if (isKnown(request, headers)) {
    found.body?.cancel().catch(() => undefined);
    headers.delete('content-length');
    headers.delete('content-range');
    return new Response(null, { status: 304, headers });
  }
  const status = found.status === 206 && request.headers.has('range') ? 206 : 200;
  if (status === 206) headers.set('accept-ranges', 'bytes');
  else headers.delete('content-range');
  headers.set('content-type', isShowable ? (found.headers.get('content-type') ?? type) : 'application/octet-stream');
  headers.set('content-disposition', disposition(isSaved || !isShowable, `${safeFileName(name, type)}`, type));
  return new Response(request.method === 'HEAD' ? null : found.body, { status, headers });
}

/** An answer without a file. */
export function plainResponse(status: number, headers: Readonly<Record<string, string>> = {}): Response {
  const text = WORDS[status] ?? 'The file cannot be read at the moment.';
  return new Response(text, {
    status,
    headers: {
      'content-type': 'text/plain; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      ...headers,
    },
  });
}

/** Whether the page has the file already, by If-None-Match or else If-Modified-Since (RFC 9110, 13.2.2). */
function isKnown({ headers: asked }: Request, headers: Headers): boolean {
  const tags = asked.get('if-none-match');
  if (tags !== null) {
    const plain = (tag: string) => tag.trim().replace(/^W\//, '');
    const own = headers.get('etag');
    return tags.trim() === '*' || (own !== null && tags.split(',').some((tag) => plain(tag) === plain(own)));
  }
  const since = Date.parse(asked.get('if-modified-since') ?? '');
  return Date.parse(headers.get('last-modified') ?? '') <= since;
}

function disposition(isSaved: boolean, safeName: string, type: string): string {
  const name = /\.\w+$/.test(safeName) ? safeName : safeName + extensionFor(type);
  const ascii = name.replace(/[^\x20-\x7e]/g, '_');
  const kind = isSaved ? 'attachment' : 'inline';
  const other = ascii === name ? '' : `; filename*=UTF-8''${encodeURIComponent(name)}`;
  return `${kind}; filename="${ascii}"${other}`;
}
