/** Adds to a log, letting the oldest go once it is a tenth over its limit. */
export function keepLatest<T>(log: T[], entry: T, limit: number): void {
  log.push(entry);
  if (log.length > limit * 1.1 + 1) log.splice(0, log.length - limit);
}

const SECRET_HEADERS = /^(authorization|cookie|x-api-key|proxy-authorization|x-storage-token)$/i;
const SECRET_QUERY = /([?&](?:signature|token|key)=)[^&]*/gi;

/** A request's headers with keys cut out. */
export function redactHeaders(headers: Headers): Record<string, string> {
  const shown: Record<string, string> = {};
  headers.forEach((value, name) => {
    shown[name] = SECRET_HEADERS.test(name) ? value.replace(/^(Bearer +)?.*$/is, '$1[redacted]') : value;
  });
  return shown;
}

/** A query string with signatures cut out. */
export function redactQuery(query: string): string {
  return query.replace(SECRET_QUERY, '$1[redacted]');
}
