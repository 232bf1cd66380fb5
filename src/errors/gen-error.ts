/** Marks an error of this family across every copy of the package in the process, ESM and CommonJS alike. */
const FAMILY = Symbol.for('gen-client.error-family');

/** The root of every error that this package throws. An abort is not one of them: it rejects with the signal's own reason. */
export class GenError extends Error {
  // A getter, because the CommonJS build renames a class that has a static field, and the name is what Node prints.
  /** The line of descent, so that {@link GenError.isInstance} needs no shared class object. */
  protected static get family(): string {
    return 'GenError';
  }

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

  /** Whether `value` is an error of this class or below, whichever copy of the package made it. */
  static isInstance<T extends typeof GenError>(this: T, value: unknown): value is InstanceType<T> {
    if (typeof value !== 'object' || value === null || !(FAMILY in value)) return false;
    // biome-ignore lint/complexity/noThisInStatic: each class asks for its own family.
    return `${value[FAMILY]}/`.startsWith(`${this.family}/`);
  }

  /** The error as plain data, fit for a log: no secret, no stack. */
  toJSON(): Record<string, unknown> {
    const { name, message, cause } = this;
    const plain: Record<string, unknown> = { name, message };
    Object.assign(plain, this);
    if (cause instanceof Error) plain.cause = { name: cause.name, message: cause.message };
    return plain;
  }
}
