import type { OutputInfo } from './output.js';

/** Reads what an answer's head says of the file. */
export function outputInfoOf(response: Response): OutputInfo {
  const { headers } = response;
  const get = (name: string) => headers.get(name) ?? undefined;
  return {
    contentType: get('content-type'),
    sizeBytes: sizeOf(headers),
    etag: get('etag'),
    lastModified: get('last-modified'),
    acceptsRanges: response.status === 206 || /\bbytes\b/i.test(get('accept-ranges') ?? ''),
    expiresAt: isoDate(get('expires')),
  };
}

/** The whole size: what a part is part of, else the length; unknown for an encoded answer, whose length is another one. */
function sizeOf(headers: Headers): number | undefined {
  const text = /\/(\d+)\s*$/.exec(headers.get('content-range') ?? '')?.[1] ?? headers.get('content-length') ?? '';
  const encoding = headers.get('content-encoding') ?? 'identity';
  return /^\d+$/.test(text) && encoding === 'identity' ? Number(text) : undefined;
}

function isoDate(text: string | undefined): string | undefined {
  const at = Date.parse(text ?? '');
  return Number.isNaN(at) ? undefined : new Date(at).toISOString();
}
