import { isObject } from '../schemas/envelope.js';
import type { Recovery } from './codes.js';

/** Identifies this package's errors across all of its copies in the process, ESM and CommonJS. */
const FAMILY = Symbol.for('gen-client.error-family');

/** Constructor details of an error: its required and its optional fields. */
export type Details<E, Must extends keyof E, May extends keyof E = never> = Pick<E, Must> &
  Partial<Pick<E, May>> & { readonly cause?: unknown };

/** Base class of every error of this package. An abort rejects with the signal's own reason instead. */
export class GenError extends Error {
  // A getter, because the CommonJS build renames classes that have a static field, and Node prints that name.
  /** Class hierarchy, so that {@link GenError.isInstance} needs no shared class object. */
  protected static get family(): string {
    return 'GenError';
  }

  /** How to recover, as a value to switch on. @default 'fix_setup' */
  readonly recovery: Recovery;

  /** Idempotency key of the failed create. Calling again with it never creates a second job. */
  declare readonly idempotencyKey?: string | undefined;

  /** IDs of the uploads of a failed create that may have created a job. If a job exists, it can still use them. */
  declare uploadIds?: readonly string[];

  /** All other details become fields. */
  constructor(message: string, details: { readonly cause?: unknown; readonly recovery?: Recovery } = {}) {
    const { cause, recovery = 'fix_setup', ...fields } = details;
    super(message, cause === undefined ? undefined : { cause });
    Object.assign(this, fields);
    this.recovery = recovery;
    const family = new.target.family;
    Object.defineProperty(this, 'name', {
      value: family.split('/').at(-1),
      configurable: true,
      writable: true,
    });
    Object.defineProperty(this, FAMILY, { value: family });
  }

  /**
   * Returns true if `value` is an error of this class or a subclass, from any copy of the package.
   *
   * @example
   * const job = await client.videos.createAndWait({ prompt: 'a fox at dawn' }).catch((error) => {
   *   if (JobFailedError.isInstance(error)) return error.job;
   *   throw error;
   * });
   */
  static isInstance<Class extends typeof GenError>(this: Class, value: unknown): value is InstanceType<Class> {
    if (!isObject(value) || !(FAMILY in value)) return false;
    // biome-ignore lint/complexity/noThisInStatic: each class checks its own family.
    return `${value[FAMILY]}/`.startsWith(`${this.family}/`);
  }

  /** Returns the error as plain data for logs, without secrets and the stack. */
  toJSON(): Record<string, unknown> {
    const { name, message, cause } = this;
    const json: Record<string, unknown> = { name, message };
    Object.assign(json, this);
    if (cause instanceof Error) json.cause = { name: cause.name, message: cause.message };
    return json;
  }
}

/** Sets the idempotency key of a create on its error, unless the error has one. */
export function withKey<T>(error: T, idempotencyKey: string | undefined): T {
  if (idempotencyKey !== undefined && GenError.isInstance(error) && error.idempotencyKey === undefined) {
    const value = idempotencyKey;
    Object.defineProperty(error, 'idempotencyKey', { value, enumerable: true, configurable: true, writable: true });
  }
  return error;
}

/** Appends advice to an error's message. */
export function withAdvice<E extends Error>(error: E, advice: string): E {
  if (advice === '') return error;
  const message = `${error.message} ${advice}`;
  return Object.assign(error, { message, stack: error.stack?.replace(error.message, () => message) });
}

/** An earlier attempt of the call may have reached the service. */
const MAY_HAVE_ARRIVED = Symbol.for('gen-client.may-have-arrived');
/** A proxy returned a page instead of the service's response. */
const IS_PAGE = Symbol.for('gen-client.is-page');
/** The cause may be temporary, although the error is `fix_setup`: a key function failed. */
const MAY_PASS = Symbol.for('gen-client.may-pass');

const mark = (error: Error, symbol: symbol): void => {
  Object.defineProperty(error, symbol, { value: true, configurable: true });
};

/** Marks the error of a call if one of its attempts may have reached the service. */
export const markArrived = (error: Error): void => mark(error, MAY_HAVE_ARRIVED);

/** Returns true if an earlier attempt may have reached the service, so that the call's outcome is unknown. */
export const mayHaveArrived = (error: Error): boolean => MAY_HAVE_ARRIVED in error;

/** Marks an error whose response was a page, for example from a proxy. */
export const markPage = (error: Error): void => mark(error, IS_PAGE);

export const isPage = (error: Error): boolean => IS_PAGE in error;

export const markPassing = (error: Error): void => mark(error, MAY_PASS);

/** Returns true if the cause may be temporary, so that a retry can succeed. */
export const isPassing = (error: Error): boolean => MAY_PASS in error;

/**
 * Starts an error's stack at the caller of `inner`, so that the user's line is among V8's ten frames. After an `await`,
 * V8 follows the callers' `await`s. If nothing awaits the promise, the stack doesn't change.
 */
export function seenFromCallerOf<T>(error: T, inner: (...args: never[]) => unknown): T {
  return seenFrom(error, callSite(inner));
}

/** Awaits `work`. The stack of its error starts at the line that awaits this promise. */
export async function atCaller<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw seenFromCallerOf(error, atCaller);
  }
}

export interface CallSite {
  readonly stack?: string;
}

/** Captures the caller of `inner`, for a promise that V8 can't follow because it has handlers already. */
export function callSite(inner: (...args: never[]) => unknown): CallSite {
  const site: CallSite = {};
  Error.captureStackTrace?.(site, inner);
  return site;
}

/** Starts an error's stack at the call site. */
export function seenFrom<T>(error: T, { stack }: CallSite): T {
  if (GenError.isInstance(error)) {
    const frames = stack?.slice(stack.indexOf('\n')) ?? '';
    if (/\n {4}at /.test(frames)) error.stack = `${error.name}: ${error.message}${frames}`;
  }
  return error;
}
