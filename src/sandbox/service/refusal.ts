import { REQUEST_ERRORS } from '../../errors/codes.js';
import { OWN_CODES } from '../world/choices.js';

/** The codes of refusals: the documented ones, and the sandbox's own where the document names none. */
export type RefusalCode = keyof typeof REQUEST_ERRORS | keyof typeof OWN_CODES;

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
    this.status = statusOfCode(code);
    this.details = details;
  }
}

/** The documented code of a status; the sandbox's own where the document has none. */
export function codeForStatus(status: number): RefusalCode {
  if (status >= 500) return status === 503 ? 'dispatch_disabled' : 'internal_error';
  const found = Object.entries(REQUEST_ERRORS).find(([, [known]]) => known === status)?.[0];
  return isCode(found) ? found : 'invalid_request';
}

function statusOfCode(code: RefusalCode): number {
  const [, own] = Object.entries(OWN_CODES).find(([name]) => name === code) ?? [];
  const [, documented] = Object.entries(REQUEST_ERRORS).find(([name]) => name === code) ?? [];
  return own ?? documented?.[0] ?? 400;
}

function isCode(name: string | undefined): name is keyof typeof REQUEST_ERRORS {
  return name !== undefined && Object.hasOwn(REQUEST_ERRORS, name);
}
