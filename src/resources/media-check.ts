import { DownloadError } from '../errors/index.js';
import { mediaTypeEssence } from '../schemas/media-type.js';

/** How many of a file's first bytes tell media from a page or JSON. */
export const SNIFFED_BYTES = 512;

const NOT_MEDIA = /^(text\/html|application\/xhtml\+xml|(application|text)\/xml|application\/(.+\+)?json|text\/json)$/;
/** Comments may stand before a page. */
const PAGE = /^(<!--[\s\S]*?-->\s*|<\?xml[^>]*>\s*)*<(!doctype html|html|head|body)[\s>]/i;
/** An image in SVG is XML, too. */
const XML = /^<\?xml(?![\s\S]*<svg[\s>])/i;
const JSON_TEXT = /^(\{\s*("|\}|$)|\[\s*[{"\]])/;

/**
 * Throws a DownloadError for a page, JSON or XML that stands where a finished file should: an error that was answered with 200,
 * or the sign-in page of a proxy. `first` are the first bytes, where the answer begins with them.
 */
export function refuseNonMedia(jobId: string, contentType: string | undefined, first: Uint8Array | undefined): void {
  const start = new TextDecoder().decode(first?.subarray(0, SNIFFED_BYTES)).trimStart();
  const type = mediaTypeEssence(contentType ?? '');
  const isPage = PAGE.test(start);
  const isXml = XML.test(start);
  if (!NOT_MEDIA.test(type) && !isPage && !isXml && !JSON_TEXT.test(start)) return;
  const what = isPage || type.includes('html') ? 'an HTML page' : isXml || type.endsWith('/xml') ? 'XML' : 'JSON';
  const code = /"(?:code|error)"\s*:\s*"([\w.-]{1,80})"|<Code>([\w.-]{1,80})/.exec(start)?.slice(1).find(Boolean);
  const shown = code === undefined ? '' : ` (${code})`;
  const message = `The service answered with ${what} instead of the file of job ${jobId}${shown}.`;
  throw new DownloadError(message, { jobId, code: 'not_media' });
}
