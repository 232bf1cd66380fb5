import { REQUEST_ERRORS } from '../../errors/codes.js';
import { isFields } from '../../schemas/envelope.js';
import { show } from '../../schemas/show.js';
import { OWN_CODES } from '../world/choices.js';

/** The codes of refusals: the documented ones, and the sandbox's own where the document names none. */
export type RefusalCode = keyof typeof REQUEST_ERRORS | keyof typeof OWN_CODES;

const DOCUMENTED_CODES = Object.entries(REQUEST_ERRORS).map(([code, [status]]) => [code, status] as const);
const STATUSES: Readonly<Record<string, number>> = { ...Object.fromEntries(DOCUMENTED_CODES), ...OWN_CODES };

/** What an error answer carries beside code and message. */
export interface RefusalDetails {
  /** The `data` of the body. */
  readonly data?: Readonly<Record<string, unknown>> | undefined;
  /** Retry-After, in seconds. */
  readonly retryAfterS?: number | undefined;
}

/** A request that is refused. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: RefusalCode;
  readonly status: number;
  readonly details: RefusalDetails;

  constructor(code: RefusalCode, message: string, details: RefusalDetails = {}) {
    super(message);
    this.code = code;
    this.status = STATUSES[code] ?? 400;
    this.details = details;
  }
}

/** The documented code of a status; the sandbox's own where the document has none. */
export function codeForStatus(status: number): string {
  if (status >= 500) return status === 503 ? 'dispatch_disabled' : 'internal_error';
  return DOCUMENTED_CODES.find(([, known]) => known === status)?.[0] ?? 'invalid_request';
}

/** A JSON body, read field by field. A field of the wrong type is refused with `invalid_request`. */
export class RequestFields {
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(values: Readonly<Record<string, unknown>>) {
    this.#values = values;
  }

  /** The value as it came; undefined for null. */
  raw(name: string): unknown {
    return this.#values[name] ?? undefined;
  }

  /** The first of the names that is given: not missing and not an empty list. */
  given(names: readonly string[]): string | undefined {
    return names.find((name) => {
      const value = this.raw(name);
      return value !== undefined && !(Array.isArray(value) && value.length === 0);
    });
  }

  /** The first of the names that is given, as text. */
  text(...names: readonly string[]): string | undefined {
    for (const name of names) {
      const value = this.raw(name);
      if (value === undefined) continue;
      if (typeof value !== 'string') throw wrongType(name, 'a string', value);
      return value;
    }
    return undefined;
  }

  /** A list of texts, empty when missing. */
  texts(name: string): string[] {
    return this.list(name).map((value) => {
      if (typeof value !== 'string') throw wrongType(name, 'a list of strings', value);
      return value;
    });
  }

  /** A list, empty when missing. */
  list(name: string): readonly unknown[] {
    const value = this.raw(name);
    if (value === undefined) return [];
    if (!Array.isArray(value)) throw wrongType(name, 'a list', value);
    return value;
  }

  /** A field that is true or false, or missing. */
  flag(name: string): boolean | undefined {
    const value = this.raw(name);
    if (value !== undefined && typeof value !== 'boolean') throw wrongType(name, 'true or false', value);
    return value;
  }
}

/** The fields of an item in a list. What is not an object is refused. */
export function itemFields(list: string, item: unknown): RequestFields {
  if (!isFields(item)) throw wrongType(list, 'a list of objects', item);
  return new RequestFields(item);
}

/** The fields of a JSON body. An empty body has none; what is not a JSON object is refused. */
export function readFields(text: string): RequestFields {
  try {
    const value: unknown = JSON.parse(text.trim() || '{}');
    if (isFields(value)) return new RequestFields(value);
  } catch {}
  throw new Refusal('invalid_request', 'The body must be a JSON object.');
}

function wrongType(name: string, wanted: string, value: unknown): Refusal {
  return new Refusal('invalid_request', `${name} must be ${wanted}, not ${show(value)}.`);
}
