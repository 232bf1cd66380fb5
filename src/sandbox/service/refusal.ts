import { REQUEST_ERRORS } from '../../errors/codes.js';
import { errorBody, OWN_CODES } from '../world/choices.js';

/** Codes the sandbox refuses with: the document's, and its own where the document names none. */
export type RefusalCode = keyof typeof REQUEST_ERRORS | keyof typeof OWN_CODES;

/** What goes out beside code and message. */
export interface RefusalDetails {
  /** The body's `data`. */
  readonly data?: Readonly<Record<string, unknown>> | undefined;
  /** Retry-After, in seconds. */
  readonly retryAfterS?: number | undefined;
}

/** A request that is refused (spec: Request errors). Thrown by routes, answered in one place. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: RefusalCode;
  readonly status: number;
  readonly details: RefusalDetails;

  constructor(code: RefusalCode, message: string, details: RefusalDetails = {}) {
    super(message);
    this.code = code;
    this.status = code in OWN_CODES ? OWN_CODES[code as keyof typeof OWN_CODES] : statusOf(code);
    this.details = details;
  }
}

function statusOf(code: string): number {
  return Object.entries(REQUEST_ERRORS).find(([name]) => name === code)?.[1][0] ?? 400;
}

/** The documented code for a status that a fault rule asks for without naming one. */
export function codeForStatus(status: number): string {
  if (status >= 500) return status === 503 ? 'dispatch_disabled' : 'internal_error';
  return Object.entries(REQUEST_ERRORS).find(([, [known]]) => known === status)?.[0] ?? 'invalid_request';
}

/** What an error answer is made of. */
export interface ErrorAnswer extends RefusalDetails {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

/** An error answer, in the envelope of the sandbox's choice. */
export function errorResponse({ status, code, message, data, retryAfterS }: ErrorAnswer): Response {
  const headers = retryAfterS === undefined ? {} : { 'retry-after': String(retryAfterS) };
  return Response.json(errorBody(code, message, data), { status, headers });
}

/** The answer to whatever a route threw: a refusal as it stands, anything else as `internal_error`. */
export function answerTo(error: unknown): Response {
  if (error instanceof Refusal) {
    return errorResponse({ status: error.status, code: error.code, message: error.message, ...error.details });
  }
  const message = error instanceof Error ? `The sandbox failed: ${error.message}` : 'The sandbox failed.';
  return errorResponse({ status: 500, code: 'internal_error', message });
}
