// The control surface has no key, so that any tool can use it. Two checks keep others out: it answers only to host names that no
// attacker can own, and it changes nothing for a page of another site.

/** Endings of names of this machine, of a private network or for tests. No public domain has them. */
const PRIVATE_SUFFIXES = ['localhost', 'local', 'internal', 'test', 'example', 'invalid', 'home.arpa'];
const READING = ['GET', 'HEAD'];

/**
 * Why a request to the control surface is refused, or undefined. A page that makes its own host name point here (DNS
 * rebinding) is known by that name. A page that posts here (CSRF) is known by the Origin that its browser sends.
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
