// Range headers with a single byte range (RFC 9110, 14.1.2). Other forms are ignored, so they request the entire file.

const BYTES = /^bytes=(\d*)-(\d*)$/;

/** The first and the last byte of a range. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** Returns the Range header if it requests a single byte range, otherwise undefined. */
export function singleRange(header: string | null): string | undefined {
  const range = header?.trim() ?? '';
  const [, first = '', last = ''] = BYTES.exec(range) ?? [];
  if (first === '' && last === '') return undefined;
  return first !== '' && last !== '' && Number(last) < Number(first) ? undefined : range;
}

/** Returns the bytes that a Range header selects. Undefined for the entire file. */
export function rangeIn(header: string | null | undefined, size: number): ByteRange | 'unsatisfiable' | undefined {
  const range = singleRange(header ?? null);
  if (range === undefined) return undefined;
  const [, first = '', last = ''] = BYTES.exec(range) ?? [];
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size - 1 : Math.min(Number(last), size - 1);
  return start <= end ? { start, end } : 'unsatisfiable';
}
