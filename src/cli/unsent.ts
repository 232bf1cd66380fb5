import { ConnectionError } from '../errors/index.js';

/** What the runtime says of a connection that was never there. */
const UNSENT_CODES = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
];
const MOST_CAUSES = 6;

/** Whether a call failed before anything of it was sent, so that it cannot have made a job. */
export function isUnsent(error: unknown): boolean {
  if (!ConnectionError.isInstance(error)) return false;
  let cause: unknown = error;
  for (let depth = 0; cause instanceof Error && depth < MOST_CAUSES; depth++) {
    if ('code' in cause && UNSENT_CODES.includes(String(cause.code))) return true;
    if (cause.message === 'bad port') return true;
    cause = cause.cause;
  }
  return false;
}
