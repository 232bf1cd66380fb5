/** What is known of an answer beside its data. */
export interface ResponseMeta {
  readonly response: Response;
  readonly requestId?: string | undefined;
  readonly attempts: number;
  readonly idempotencyKey?: string | undefined;
}

/** A Promise of the data, which also gives the answer it came with. */
export interface RequestPromise<T> extends Promise<T> {
  /** The data with its answer. Beside them stand the service's request id, the number of attempts and the idempotency key. */
  withResponse(): Promise<ResponseMeta & { readonly data: T }>;
  /** The plain answer, its body readable. */
  asResponse(): Promise<Response>;
}

/** An answer, of which each part is made only when asked for. */
export interface Answer<T> {
  meta(): Omit<ResponseMeta, 'response'>;
  /** A Response whose body can be read. */
  response(): Response;
  /** The decoded data; throws a ResponseError for a missing essential. */
  data(): T | Promise<T>;
}

/**
 * Adds the two other ways to read an answer to the promise of its data. Whoever takes one of them need not look after the
 * promise itself: it raises no unhandled rejection then.
 */
export function requestPromise<T>(answer: Promise<Answer<T>>): RequestPromise<T> {
  const data = answer.then((it) => it.data());
  const handled = () => {
    data.catch(() => {});
  };
  return Object.assign(data, {
    withResponse: async () => {
      handled();
      const { meta, response } = await answer;
      return { ...meta(), data: await data, response: response() };
    },
    asResponse: async () => {
      handled();
      return (await answer).response();
    },
  });
}
