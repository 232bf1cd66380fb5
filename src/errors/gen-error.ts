import type { Recovery } from './codes.js';

/** Marks an error of this family across every copy of the package in the process, ESM and CommonJS alike. */
const FAMILY = Symbol.for('gen-client.error-family');

/** The root of every error that this package throws. An abort is not one of them: it rejects with the signal's own reason. */
export class GenError extends Error {
  // A getter, because the CommonJS build renames a class that has a static field, and the name is what Node prints.
  /** The line of descent, so that {@link GenError.isInstance} needs no shared class object. */
  protected static get family(): string {
    return 'GenError';
  }

  /** What to do about it. An option, a key or the configuration is wrong where no subclass says otherwise. */
  readonly recovery: Recovery;

  /** The key of the create that failed. Calling again with it never makes a second job. */
  declare readonly idempotencyKey?: string | undefined;

  /** After a failed create that may have made a job: the uploads of its files, which that job may use. */
  declare uploadIds?: readonly string[];

  constructor(message: string, options: { readonly cause?: unknown; readonly recovery?: Recovery } = {}) {
    super(message, 'cause' in options && options.cause !== undefined ? { cause: options.cause } : undefined);
    this.recovery = options.recovery ?? 'fix_setup';
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

/** Notes the key of the create in its error, unless the error names one. */
export function withKey<T>(error: T, idempotencyKey: string | undefined): T {
  if (idempotencyKey !== undefined && GenError.isInstance(error) && error.idempotencyKey === undefined) {
    const value = idempotencyKey;
    Object.defineProperty(error, 'idempotencyKey', { value, enumerable: true, configurable: true, writable: true });
  }
  return error;
}
