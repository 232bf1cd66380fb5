// The control surface has no key, so that any tool can use it. What keeps strangers out is that it answers only to names
// that cannot be an attacker's, and does nothing on the word of another site's page.

/** Names of this machine or of a private network; no public domain can be among them. */
const PRIVATE_SUFFIXES = ['localhost', 'local', 'internal', 'test', 'example', 'invalid', 'home.arpa'];
const READING = ['GET', 'HEAD'];

/**
 * Why a request to the control surface is refused, or undefined. A page of another site that makes its own host name
 * point here (DNS rebinding) is known by that name; one that posts here (CSRF) by the Origin its browser sends along.
 */
export function refusalOf(request: Request, configuredHost: string): string | undefined {
  const url = new URL(request.url);
  if (!isPrivate(url.hostname) && url.hostname !== configuredHost) {
    return `The control surface does not answer to the name "${url.hostname}". Use localhost, an IP address or the sandbox's baseUrl.`;
  }
  if (READING.includes(request.method)) return undefined;
  const origin = request.headers.get('origin');
  const site = request.headers.get('sec-fetch-site');
  const isForeign = origin !== null && origin !== url.origin;
  if (!isForeign && (site === null || site === 'same-origin' || site === 'none')) return undefined;
  return "A page of another site may not control the sandbox. Use the sandbox's own page, or a program.";
}

function isPrivate(hostname: string): boolean {
  const isAddress = /^[\d.]+$/.test(hostname) || hostname.startsWith('[');
  const isBare = !hostname.includes('.');
  return isAddress || isBare || PRIVATE_SUFFIXES.some((suffix) => hostname.endsWith(`.${suffix}`));
}
