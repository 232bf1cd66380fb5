// Reads the bodies of answers, and makes the errors of those that cannot be used.
import { type APIError, type CallDetails, ResponseError } from '../errors/index.js';
import { readText } from './body.js';
import { decodeError, requestIdOf } from './decode-error.js';
import { type Attempt, type Context, networkFailure } from './exchange.js';

/** Of a refusal as much is read as its message needs. */
const MOST_ERROR_BYTES = 64 * 1024;

/** An answer that was read. */
export interface Answered {
  readonly response: Response;
  readonly text: string;
  readonly attempt: Attempt;
}

/** The body, read whole within the attempt's deadline. Throws the APIError of a refusal. */
export async function readAnswer({ config }: Pick<Context, 'config'>, response: Response, attempt: Attempt) {
  const maxBytes = response.ok ? config.maxResponseBytes : MOST_ERROR_BYTES;
  const read = attempt.deadline.race(readText(response, maxBytes));
  if (response.ok) return read.catch(networkFailure);
  // The status alone says that it is refused: a refusal whose body is cut or stalled is not a failure to be retried.
  const { text } = await read.catch((error: unknown) => {
    if (attempt.call.signal?.aborted) throw error;
    return { text: '' };
  });
  throw refusal({ config }, { response, text, attempt });
}

/** The APIError of a refusal. */
export function refusal({ config }: Pick<Context, 'config'>, { response, text, attempt }: Answered): APIError {
  const { status, statusText, headers } = response;
  const { call, number: attempts, secret } = attempt;
  const { method, url, idempotencyKey } = call;
  const now = config.clock.now();
  return decodeError({ status, statusText, headers, text }, { method, url, idempotencyKey, attempts, secret, now });
}

/** The error for an answer that is not JSON. */
export function notJson({ response, text, attempt }: Answered): ResponseError {
  const { method, url } = attempt.call;
  const type = response.headers.get('content-type') ?? 'no content type';
  const what = text === '' ? 'an empty body' : `a body that is not JSON (${type}, ${text.length} characters)`;
  return new ResponseError(
    `${method} ${url}: the service answered ${response.status} with ${what}`,
    detailsOf(attempt),
  );
}

/** The error for an answer that was not read to its end. */
export function tooLarge({ response, attempt }: Answered, maxBytes: number): ResponseError {
  const { method, url } = attempt.call;
  const message = `${method} ${url}: the ${response.status} response is larger than ${maxBytes} bytes (maxResponseBytes)`;
  return new ResponseError(message, detailsOf(attempt));
}

function detailsOf({ call, number: attempts }: Attempt): CallDetails {
  const { method, url, idempotencyKey } = call;
  return { method, url, idempotencyKey, attempts };
}

/** What is told beside the data of an answer. */
export function metaOf({ response, attempt }: Omit<Answered, 'text'>) {
  const { call, number: attempts } = attempt;
  return { requestId: requestIdOf(response.headers), attempts, idempotencyKey: call.idempotencyKey };
}
