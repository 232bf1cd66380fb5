/**
 * Milliseconds of a Retry-After header: seconds, or an HTTP date. A date is read against the answer's own Date, since the
 * service's clock and this one may differ. Undefined for anything else.
 */
export function readRetryAfter(headers: Headers, now: number): number | undefined {
  const value = headers.get('retry-after')?.trim();
  if (!value) return undefined;
  const seconds = readSeconds(value);
  if (seconds !== undefined) return seconds;
  const until = /^[a-z]{3,9},? /i.test(value) ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(until)) return undefined;
  const sent = Date.parse(headers.get('date') ?? '');
  return Math.max(0, until - (Number.isNaN(sent) ? now : sent));
}

/** Milliseconds of a number of seconds, written as a number or as digits; undefined for anything else. */
export function readSeconds(value: unknown): number | undefined {
  if (typeof value === 'string') return /^\d+(?:\.\d+)?$/.test(value) ? readSeconds(Number(value)) : undefined;
  return typeof value === 'number' && value >= 0 && Number.isFinite(value) ? Math.ceil(value * 1000) : undefined;
}
