/** Formats a value for a message: short, on one line, without calling its methods. */
export function formatValue(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') return String(value);
  if (value === undefined || value === null) return String(value);
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** Formats a value that may be a secret, for example a key that was passed instead of an options object. */
export function formatKind(value: unknown): string {
  return typeof value === 'string' && value !== '' ? 'a string' : formatValue(value);
}

/** Builds the message for an invalid value. `expected` describes a valid value. Shows strings only if `showsText` is true. */
export function invalidValueMessage(name: string, expected: string, value: unknown, showsText = false): string {
  return `${name} must be ${expected}, not ${showsText ? formatValue(value) : formatKind(value)}.`;
}

/** Builds the message for options that are not an object. `example` is the name of an option. */
export function invalidOptionsMessage(owner: string, example: string | undefined, value: unknown): string {
  return invalidValueMessage(
    `${owner}: options`,
    example === undefined ? 'an object' : `an object such as { ${example} }`,
    value,
  );
}
