/** Marks an error of this family across every copy of the package in the process, ESM and CommonJS alike. */
const FAMILY = Symbol.for('gen-client.error-family');

/** The root of all errors here; an abort rejects with its own reason (the signal's, which is not of this family). */
export class GenError extends Error {
  /** The line of descent, so that {@link GenError.isInstance} needs no shared class object. */
  protected static readonly family: string = 'GenError';

  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super(message, 'cause' in options && options.cause !== undefined ? { cause: options.cause } : undefined);
    const family = new.target.family;
    Object.defineProperty(this, 'name', {
      value: family.slice(family.lastIndexOf('/') + 1),
      configurable: true,
      writable: true,
    });
    Object.defineProperty(this, FAMILY, { value: family });
  }

  /** Like `instanceof`, across copies of the package. */
  static isInstance<T extends typeof GenError>(this: T, value: unknown): value is InstanceType<T> {
    if (typeof value !== 'object' || value === null || !(FAMILY in value)) return false;
    // biome-ignore lint/complexity/noThisInStatic: each class asks for its own family.
    return `${value[FAMILY]}/`.startsWith(`${this.family}/`);
  }

  /** As plain data for a log (no secret, no stack). */
  toJSON(): Record<string, unknown> {
    const { name, message, cause } = this;
    const plain: Record<string, unknown> = { name, message };
    Object.assign(plain, this);
    if (cause instanceof Error) plain.cause = { name: cause.name, message: cause.message };
    return plain;
  }
}
