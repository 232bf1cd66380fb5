import { StorageError } from '../../errors/index.js';
import { reasonOf } from '../../runtime/callbacks.js';
import { scrubber, scrubCause } from '../../runtime/scrub.js';
import { isFields } from '../../schemas/envelope.js';

/** Metadata of a stored object. */
export interface StoredObject {
  /** Size in bytes. */
  readonly sizeBytes: number;
  /** Media type. */
  readonly contentType?: string | undefined;
  /** Entity tag. */
  readonly etag?: string | undefined;
  /** Custom metadata. `gen-job` is the ID of the file's job. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

/** Options for `put`. */
export interface PutObjectOptions {
  /** Media type of the file. */
  readonly contentType: string;
  /** Exact size of the body in bytes. */
  readonly sizeBytes: number;
  /** Metadata to store with the object. A repeated copy identifies the object by `gen-job`. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Aborts when the copy is aborted or the attempt times out. */
  readonly signal: AbortSignal;
  /** If true, replaces an existing object. Otherwise, `put` must fail with status 412 if one exists. */
  readonly overwrite: boolean;
}

/** Options for `get`. */
export interface GetOptions {
  /** Request method. `HEAD` returns only headers. */
  readonly method: 'GET' | 'HEAD';
  /** Range header with a single byte range. */
  readonly range?: string | undefined;
  /** If-Range header. */
  readonly ifRange?: string | undefined;
  /** Aborts when the page disconnects. */
  readonly signal: AbortSignal;
}

/**
 * Target of a copy: one object in a store. `s3()` and `r2()` return one. For any other store, implement `put`.
 *
 * @example
 * const destination: OutputDestination = {
 *   put: async (body, { contentType, signal }) => {
 *     await put(`videos/${job.id}.mp4`, body, { access: 'public', contentType, abortSignal: signal });
 *   },
 * };
 */
export interface OutputDestination {
  /** Name for error messages. @default 'custom' */
  readonly store?: string | undefined;
  /** Returns the object's metadata, or undefined if it doesn't exist. Without `head`, every copy transfers the bytes. */
  readonly head?: ((options: { readonly signal: AbortSignal }) => Promise<StoredObject | undefined>) | undefined;
  /**
   * Stores the complete body as one object, or nothing. If it throws, it is retried with a new body, unless the error's
   * `status` (or `statusCode`) shows that the store rejected the request.
   */
  readonly put: (
    body: ReadableStream<Uint8Array<ArrayBuffer>>,
    options: PutObjectOptions,
    // biome-ignore lint/suspicious/noConfusingVoidType: a put may return nothing.
  ) => Promise<{ readonly etag?: string | undefined } | void>;
}

/** An object that `createOutputHandler({ source })` can serve. */
export interface OutputSource {
  /** Returns the response to a GET or HEAD, or undefined if the object doesn't exist. */
  readonly get: (options: GetOptions) => Promise<Response | undefined>;
}

/** Metadata name for the job's ID. */
export const JOB_METADATA = 'gen-job';

/** Returns the ID of an object's job. Ignores case, because stores change the case of metadata names. */
export function objectJob({ metadata }: StoredObject): string | undefined {
  return Object.entries(metadata ?? {}).find(([name]) => name.toLowerCase() === JOB_METADATA)?.[1];
}

/** Thrown by a put that must be repeated immediately with a new body, for example after a redirect. Doesn't count as a retry. */
export class RepeatRequest extends StorageError {}

/** Thrown by a put if the response doesn't prove that the object is stored. The copy checks with a HEAD. */
export class UnconfirmedPut extends StorageError {}

export function asStorageError(thrown: unknown, store: string, action: string): StorageError {
  if (StorageError.isInstance(thrown)) return thrown;
  const fields = isFields(thrown) ? thrown : {};
  const status = statusOf(fields);
  const code = typeof fields.code === 'string' ? fields.code : status === undefined ? 'put_failed' : `http_${status}`;
  return new StorageError(`The store "${store}" failed ${action}: ${reasonOf(thrown)}`, {
    code,
    status,
    store,
    cause: scrubCause(thrown, scrubber(undefined)),
  });
}

/** Returns an error's HTTP status. Each store's SDK names it differently. */
function statusOf(error: Readonly<Record<string, unknown>>): number | undefined {
  const metadata = isFields(error.$metadata) ? error.$metadata.httpStatusCode : undefined;
  const response = isFields(error.response) ? error.response.status : undefined;
  const status = [error.statusCode, error.status, metadata, response].find(
    (value) => value !== undefined && /^[1-5]\d\d$/.test(String(value)),
  );
  return status === undefined ? undefined : Number(status);
}
