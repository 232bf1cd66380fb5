/** Where step 1's headers may stand: the spec says "headers to use" and shows no name. */
const HEADER_FIELDS = ['headers', 'upload_headers', 'direct_upload_headers', 'required_headers'];

/** The headers of step 1's answer as a plain record, also where it lists them as pairs or as name and value. */
export function uploadHeaders(upload: Readonly<Record<string, unknown>>): Record<string, string> {
  const found = HEADER_FIELDS.map((name) => upload[name]).find((value) => typeof value === 'object' && value !== null);
  const pairs = Array.isArray(found) ? found.map(pairOf) : Object.entries(found ?? {});
  return Object.fromEntries(pairs.map(([name, value]) => [name, String(value)]));
}

function pairOf(item: unknown): [string, unknown] {
  if (Array.isArray(item)) return [String(item[0]), item[1]];
  const { name, key, value }: Record<string, unknown> = Object(item);
  return [String(name ?? key), value];
}
