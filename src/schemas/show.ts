/** A value as a message shows it: short, on one line, and never an error of its own. */
export function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') return String(value);
  if (value === undefined || value === null) return String(value);
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** The message for a value that an option cannot have. `what` says what it must be: `a whole number, 0 or more`. */
export function mustBe(name: string, what: string, value: unknown): string {
  return `${name} must be ${what}, not ${show(value)}.`;
}
