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

/** An answer whose parts are made when they are asked for. */
export interface Answer<T> {
  readonly meta: Omit<ResponseMeta, 'response'>;
  /** A Response whose body can be read. */
  response(): Response;
  /** The decoded data. Throws a ResponseError where something essential is missing. */
  data(): T;
}

/**
 * Adds the two other ways to read an answer to the promise of its data. A caller who takes one of them does not have to
 * handle the promise itself: it causes no unhandled rejection then.
 */
export function requestPromise<T>(answer: Promise<Answer<T>>): RequestPromise<T> {
  const data = dataOf(answer);
  const handled = () => {
    data.catch(() => {});
  };
  return Object.assign(data, {
    withResponse: async () => {
      handled();
      const { meta, response } = await answer;
      return { ...meta, data: await data, response: response() };
    },
    asResponse: async () => {
      handled();
      return (await answer).response();
    },
  });
}

// Awaited and not chained, because the stack of an error follows an `await` up to the caller's line.
async function dataOf<T>(answer: Promise<Answer<T>>): Promise<T> {
  return (await answer).data();
}
