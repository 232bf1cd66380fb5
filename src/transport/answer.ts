// Reads the responses of a call, and makes the errors of those that cannot be used.
import { type APIError, ResponseError } from '../errors/index.js';
import { isFields, unwrap } from '../schemas/envelope.js';
import { tokensIn } from '../schemas/job.js';
import { readText, streamed, withText } from './body.js';
import { type Attempt, type Call, detailsOf, type ToldResponse } from './call.js';
import { decodeError, parseJson, requestIdOf } from './decode-error.js';
import { connectionError, networkFailure } from './http.js';
import type { Answer } from './request-promise.js';
import type { JsonRequest } from './transport.js';

/** Of a refusal as much is read as its message needs. */
const MOST_ERROR_BYTES = 64 * 1024;

/** A response that was read. */
interface Read {
  readonly response: Response;
  readonly text: string;
}

/** The answer of a call, from the response to one attempt. Throws the APIError of a refusal. */
export async function readAnswer<T>(call: Call<T>, attempt: Attempt, response: Response): Promise<Answer<T>> {
  const { kind, turn, idempotencyKey } = call;
  const meta = { requestId: requestIdOf(response.headers), attempts: turn.number, idempotencyKey };
  if (kind.type === 'json') {
    const { text, decoded } = await readJson(call, kind.request, attempt, response);
    return { ...meta, response, text, decoded };
  }
  if (kind.type === 'stream') {
    const watched = await readStream(attempt, response);
    return { ...meta, response: watched, decoded: { data: kind.read(watched) } };
  }
  const { text } = await readWhole(attempt, response);
  attempt.deadline.end();
  const whole = withText(response, text);
  return { ...meta, response: whole, decoded: { data: kind.read(whole) } };
}

async function readJson<T>(call: Call<T>, request: JsonRequest<T>, attempt: Attempt, response: Response) {
  const { text, whole } = await readWhole(attempt, response).catch((error: unknown) => {
    // The attempt before has done it, and its response was lost.
    if (call.turn.failures > 0 && response.status === request.statusWhenDone) return { text: '', whole: true };
    throw error;
  });
  attempt.deadline.end();
  const value = whole ? parseJson(text) : undefined;
  if (attempt.told) tellSize(attempt.told, text, value);
  if (whole && value === undefined && (text !== '' || request.creates)) throw notJson(call, { response, text });
  if (isFields(value) && value.success === false) throw apiRefusal(attempt, { response, text });
  try {
    if (!whole) throw answerTooLarge(call, response);
    return {
      text,
      decoded: {
        data: request.decode(value, {
          method: call.method,
          path: call.path,
          idempotencyKey: call.idempotencyKey,
          attempts: call.turn.number,
          account: call.core.credentials.account,
        }),
      },
    };
  } catch (failure) {
    // The response is there and can be had as it is; another attempt would not change it.
    return { text, decoded: { failure } };
  }
}

/** The body under a deadline of its own between two chunks. */
async function readStream(attempt: Attempt, response: Response): Promise<Response> {
  const { call, deadline, secret } = attempt;
  if (!response.ok) await readWhole(attempt, response);
  deadline.pause();
  const broken = (cause: unknown) => connectionError(cause, call, secret);
  return streamed(response, { deadline, idleMs: call.timeoutMs, broken });
}

/** The body, read whole within the attempt's deadline. Throws the APIError of a refusal. */
async function readWhole(attempt: Attempt, response: Response) {
  const { call, deadline } = attempt;
  const { maxResponseBytes } = call.core.config;
  const read = deadline.race(readText(response, response.ok ? maxResponseBytes : MOST_ERROR_BYTES));
  if (response.ok) return read.catch(networkFailure);
  // The status alone says that it is refused: a refusal whose body is cut or stalled is not a failure to be retried.
  const { text } = await read.catch((error: unknown) => {
    if (call.signal?.aborted) throw error;
    return { text: '' };
  });
  throw apiRefusal(attempt, { response, text });
}

/** The APIError of a refusal. */
function apiRefusal({ call, secret }: Attempt, { response, text }: Read): APIError {
  const { status, statusText, headers } = response;
  const now = call.core.config.clock.wall.now();
  return decodeError({ status, statusText, headers, text }, { ...detailsOf(call), secret, now });
}

/** The error for an answer that is not JSON. */
function notJson(call: Call<unknown>, { response, text }: Read): ResponseError {
  const type = response.headers.get('content-type') ?? 'no content type';
  const what = text === '' ? 'an empty body' : `a body that is not JSON (${type}, ${text.length} characters)`;
  const message = `${call.method} ${call.url}: the service answered ${response.status} with ${what}`;
  return new ResponseError(message, detailsOf(call));
}

/** The error for an answer that was not read to its end. */
function answerTooLarge(call: Call<unknown>, response: Response): ResponseError {
  const { maxResponseBytes } = call.core.config;
  const message = `${call.method} ${call.url}: the ${response.status} response is larger than ${maxResponseBytes} bytes (maxResponseBytes)`;
  return new ResponseError(message, detailsOf(call));
}

/** What the hooks are told of a response. */
function tellSize(told: ToldResponse, text: string, value: unknown): void {
  told.receivedBytes = new TextEncoder().encode(text).length;
  const data = unwrap(value);
  if (isFields(data)) told.quotedTokens = tokensIn(data.quoted_token_cost);
}
