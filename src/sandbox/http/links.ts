/** Where a request finds the API: its own origin, and the path prefix the sandbox is mounted under. */
export function baseUrlOf(request: { url: string }, configured: string): string {
  const { origin } = new URL(request.url);
  const prefix = new URL(configured).pathname.replace(/\/$/, '');
  return `${origin}${prefix}`;
}

/**
 * The same sandbox under another origin, as object storage has one: `localhost` for a server on 127.0.0.1 and the
 * other way about, else a `storage.` host.
 */
export function storageUrlOf(baseUrl: string): string {
  const url = new URL(baseUrl);
  if (url.hostname === '127.0.0.1') url.hostname = 'localhost';
  else if (url.hostname === 'localhost') url.hostname = '127.0.0.1';
  else url.hostname = `storage.${url.hostname}`;
  return url.href.replace(/\/$/, '');
}

/** Whether a host can only be meant for this machine or this network, where http is nobody's loss. */
export function isPrivateHost(hostname: string): boolean {
  return (
    !hostname.includes('.') ||
    /^(127|10|192\.168|169\.254|172\.(1[6-9]|2\d|3[01]))\.[\d.]+$/.test(hostname) ||
    /\.(localhost|local|internal|test|invalid)$/.test(hostname)
  );
}
