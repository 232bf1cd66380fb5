import { DownloadError } from '../errors/index.js';
import { mediaTypeEssence } from '../schemas/media-type.js';

/** How many of a file's first bytes tell media from a page or JSON. */
export const SNIFFED_BYTES = 512;

const NOT_MEDIA = /^(text\/html|application\/xhtml\+xml|(application|text)\/xml|application\/(.+\+)?json|text\/json)$/;
const HTML_START = /^<(!doctype html|html|head|body)[\s>]/i;
/** An image in SVG is XML, too. */
const XML = /^<\?xml/i;
const SVG = /<svg[\s>]/i;
const JSON_TEXT = /^(\{\s*("|\}|$)|\[\s*[{"\]])/;

/**
 * Throws a DownloadError for a page, JSON or XML that stands where a finished file should: an error that was answered with 200,
 * or the sign-in page of a proxy. `first` are the first bytes, where the answer begins with them.
 */
export function refuseNonMedia(jobId: string, contentType: string | undefined, first: Uint8Array | undefined): void {
  const start = new TextDecoder().decode(first?.subarray(0, SNIFFED_BYTES)).trimStart();
  const type = mediaTypeEssence(contentType ?? '');
  const isPage = HTML_START.test(withoutPrologue(start));
  const isXml = XML.test(start) && !SVG.test(start);
  if (!NOT_MEDIA.test(type) && !isPage && !isXml && !JSON_TEXT.test(start)) return;
  const what = isPage || type.includes('html') ? 'an HTML page' : isXml || type.endsWith('/xml') ? 'XML' : 'JSON';
  const code = /"(?:code|error)"\s*:\s*"([\w.-]{1,80})"|<Code>([\w.-]{1,80})/.exec(start)?.slice(1).find(Boolean);
  const shown = code === undefined ? '' : ` (${code})`;
  const message = `The service answered with ${what} instead of the file of job ${jobId}${shown}.`;
  throw new DownloadError(message, { jobId, code: 'not_media' });
}

/** A document from its first element on: comments and the XML declaration may stand before a page. */
function withoutPrologue(text: string): string {
  let rest = text;
  for (;;) {
    const end = rest.startsWith('<!--') ? '-->' : rest.startsWith('<?xml') ? '>' : undefined;
    const at = end === undefined ? -1 : rest.indexOf(end, end === '-->' ? 4 : 0);
    if (end === undefined || at < 0) return rest;
    rest = rest.slice(at + end.length).trimStart();
  }
}
