/** Bytes of a file: the first and the last one. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** The Range header where it asks for one range of bytes. Anything else is to be ignored, so that the whole file comes. */
export function singleRange(header: string | null): string | undefined {
  const text = header?.trim() ?? '';
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/.exec(text) ?? [];
  if (first === '' && last === '') return undefined;
  return first !== '' && last !== '' && Number(last) < Number(first) ? undefined : text;
}

/** The bytes that a Range header means in a file of `size` bytes; undefined for the whole file. */
export function rangeIn(header: string | undefined, size: number): ByteRange | 'unsatisfiable' | undefined {
  const range = singleRange(header ?? null);
  if (range === undefined) return undefined;
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/.exec(range) ?? [];
  if (first === '') {
    const start = Math.max(0, size - Number(last));
    return start < size && Number(last) > 0 ? { start, end: size - 1 } : 'unsatisfiable';
  }
  const start = Number(first);
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1);
  return start < size ? { start, end } : 'unsatisfiable';
}
