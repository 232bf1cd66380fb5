import { seenFromCallerOf } from '../errors/gen-error.js';
import { withText } from './body.js';

/** An answer beside its data. */
export interface ResponseMeta {
  /** The HTTP response. Its body can be read. */
  readonly response: Response;
  /** The service's id for the request, where it sent one. */
  readonly requestId?: string | undefined;
  /** How many times the request was sent. */
  readonly attempts: number;
  /** The Idempotency-Key that was sent with a create. */
  readonly idempotencyKey?: string | undefined;
}

/** A Promise of the data, with two more ways to get the answer. */
export interface RequestPromise<T> extends Promise<T> {
  /** The data together with the response, the service's request id, the number of attempts and the idempotency key. */
  withResponse(): Promise<ResponseMeta & { readonly data: T }>;
  /** The plain response, whose body can be read. */
  asResponse(): Promise<Response>;
}

/**
 * What a call returns: a {@link RequestPromise}. In a test, a function that returns a plain Promise may stand in for the
 * call, because a fake has no response to give. `Call` is any type parameter of the method. The compiler resolves the
 * condition to a RequestPromise for each call. Where it compares a function with the method, `Call` is still open, and
 * of the two types only the Promise is compared.
 */
export type CallResult<T, Call> = [[Call] extends [never] ? 'open' : never] extends [never]
  ? RequestPromise<T>
  : Promise<T>;

/** The data of an answer, or why it has none. The response is there in both cases. */
export type Decoded<T> = { readonly data: T } | { readonly failure: unknown };

/** What a call came to. */
export interface Answer<T> extends Omit<ResponseMeta, 'response'> {
  readonly response: Response;
  /** The body, where it was read: the response is made again from it for a caller who asks for the response. */
  readonly text?: string;
  readonly decoded: Decoded<T>;
}

/**
 * Adds the two other ways to read an answer to the promise of its data. A caller who takes one of them does not have to
 * handle the promise itself: it causes no unhandled rejection then.
 */
export function requestPromise<T>(answer: Promise<Answer<T>>): RequestPromise<T> {
  const data = answeredData(answer);
  const handled = () => {
    data.catch(() => {});
  };
  return Object.assign(data, {
    withResponse: async () => {
      handled();
      return withResponse(answer);
    },
    asResponse: async () => {
      handled();
      return asResponse(answer);
    },
  });
}

async function answeredData<T>(answer: Promise<Answer<T>>): Promise<T> {
  try {
    return dataIn(await answer);
  } catch (error) {
    throw seenFromCallerOf(error, answeredData);
  }
}

async function withResponse<T>(answer: Promise<Answer<T>>): Promise<ResponseMeta & { readonly data: T }> {
  try {
    const { decoded: _, text: __, ...meta } = await answer;
    return { ...meta, data: dataIn(await answer), response: answeredResponse(await answer) };
  } catch (error) {
    throw seenFromCallerOf(error, withResponse);
  }
}

async function asResponse(answer: Promise<Answer<unknown>>): Promise<Response> {
  try {
    return answeredResponse(await answer);
  } catch (error) {
    throw seenFromCallerOf(error, asResponse);
  }
}

function dataIn<T>({ decoded }: Answer<T>): T {
  if ('failure' in decoded) throw decoded.failure;
  return decoded.data;
}

function answeredResponse({ response, text }: Answer<unknown>): Response {
  return text === undefined ? response : withText(response, text);
}
