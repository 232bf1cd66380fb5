/** What is known of an answer beside its data. */
export interface ResponseMeta {
  readonly response: Response;
  readonly requestId?: string | undefined;
  readonly attempts: number;
  readonly idempotencyKey?: string | undefined;
}

/** A Promise of the data, which also gives the answer it came with. */
export interface RequestPromise<T> extends Promise<T> {
  /** The data with the answer it came in, the service's request id, the number of attempts and the idempotency key. */
  withResponse(): Promise<ResponseMeta & { readonly data: T }>;
  /** The plain answer, its body readable. */
  asResponse(): Promise<Response>;
}
