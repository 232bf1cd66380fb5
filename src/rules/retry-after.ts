/** The three date formats of RFC 9110, 5.6.7. */
const HTTP_DATES = [
  /^[a-z]{3}, (?<day>\d\d) (?<month>[a-z]{3}) (?<year>\d{4}) (?<time>\d\d:\d\d:\d\d) GMT$/i,
  /^[a-z]{6,9}, (?<day>\d\d)-(?<month>[a-z]{3})-(?<year>\d\d) (?<time>\d\d:\d\d:\d\d) GMT$/i,
  /^[a-z]{3} (?<month>[a-z]{3}) (?<day>[ \d]\d) (?<time>\d\d:\d\d:\d\d) (?<year>\d{4})$/i,
];

/** Parses an HTTP date (always GMT). Returns milliseconds since the epoch, or undefined if it's invalid. */
export function parseHttpDate(text: string, now: number): number | undefined {
  const parts = HTTP_DATES.map((form) => form.exec(text)?.groups).find((groups) => groups !== undefined);
  if (!parts) return undefined;
  const { day, month, year = '', time = '' } = parts;
  // Date.parse rejects leap seconds, and converts February 30 to March 2.
  const dateMs = Date.parse(`${day} ${month} ${fullYear(year, now)} ${time.replace(/60$/, '59')} GMT`);
  return new Date(dateMs).getUTCDate() === Number(day) ? dateMs + (time.endsWith('60') ? 1000 : 0) : undefined;
}

/** Returns a year of two or four digits. A two-digit year more than 50 years ahead is in the past (RFC 9110). */
function fullYear(digits: string, now: number): number {
  if (digits.length === 4) return Number(digits);
  const thisYear = new Date(now).getUTCFullYear();
  const year = thisYear - (thisYear % 100) + Number(digits);
  return year > thisYear + 50 ? year - 100 : year;
}

/**
 * Parses `Retry-After` headers (seconds or HTTP dates). Returns the longest wait in milliseconds, or undefined if none
 * is valid. A date is relative to the response's own `Date`, because the clocks may differ.
 */
export function readRetryAfter(headers: Headers, now: number): number | undefined {
  const sentMs = parseHttpDate(headers.get('date') ?? '', now) ?? now;
  const waits = valuesOf(headers.get('retry-after') ?? '').flatMap((value) => {
    const untilMs = parseHttpDate(value, now);
    return readSeconds(value) ?? (untilMs === undefined ? [] : Math.max(0, untilMs - sentMs));
  });
  return waits.length === 0 ? undefined : Math.max(...waits);
}

/** Splits repeated headers, which are joined with a comma and a space. A date contains a comma after its weekday. */
function valuesOf(header: string): string[] {
  const values: string[] = [];
  let weekday = '';
  for (const part of header.split(', ')) {
    const isWord = /^[a-z]+$/i.test(part);
    if (!isWord) values.push((weekday + part).trim());
    weekday = isWord ? `${part}, ` : '';
  }
  return values;
}

/** Converts seconds, as a number or digits, to milliseconds. Returns undefined for anything else. */
export function readSeconds(value: unknown): number | undefined {
  if (typeof value === 'string') return /^\d+(?:\.\d+)?$/.test(value) ? readSeconds(Number(value)) : undefined;
  return typeof value === 'number' && value >= 0 && Number.isFinite(value) ? Math.ceil(value * 1000) : undefined;
}
