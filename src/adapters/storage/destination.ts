import { StorageError } from '../../errors/index.js';
import { reasonOf } from '../../runtime/callbacks.js';
import { scrubber, scrubCause } from '../../runtime/scrub.js';
import { isFields } from '../../schemas/envelope.js';

/** What a store tells of an object. */
export interface StoredObject {
  /** Its size in bytes. */
  readonly sizeBytes: number;
  /** Its media type. */
  readonly contentType?: string | undefined;
  /** Its entity tag. */
  readonly etag?: string | undefined;
  /** What was stored beside it. `gen-job` is the id of the job whose file it is. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

/** How an object is put. */
export interface PutObjectOptions {
  /** Media type of the file. */
  readonly contentType: string;
  /** Its size in bytes: exactly so many come. */
  readonly sizeBytes: number;
  /** To be stored beside the object: `gen-job`, by which a repeated copy knows it again. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Aborts when the copy ends or the attempt has to be given up. */
  readonly signal: AbortSignal;
  /** Whether an object that is there may be replaced. Otherwise the put must fail with status 412. */
  readonly overwrite: boolean;
}

/** What is asked of a stored object. */
export interface GetOptions {
  /** `HEAD` for what is known of the object, without its bytes. */
  readonly method: 'GET' | 'HEAD';
  /** The Range header: one range of bytes. */
  readonly range?: string | undefined;
  /** The If-Range header. */
  readonly ifRange?: string | undefined;
  /** Aborts when the page has gone away. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Where a file is copied to: one object of a store. `s3()` and `r2()` make them; for any other store write one.
 *
 * @example
 * const destination: OutputDestination = {
 *   put: async (body, { contentType, signal }) => {
 *     await put(`videos/${job.id}.mp4`, body, { access: 'public', contentType, abortSignal: signal });
 *   },
 * };
 */
export interface OutputDestination {
  /** A name for error messages. @default 'custom' */
  readonly store?: string | undefined;
  /** What is there, undefined where nothing is. Without it every copy moves the bytes. */
  readonly head?: ((options: { readonly signal: AbortSignal }) => Promise<StoredObject | undefined>) | undefined;
  /**
   * Stores the whole body as one object, or nothing. It must not resolve before the object is stored. What it throws is
   * repeated with a new body, unless its `status` (or `statusCode`) says that the request itself is refused.
   */
  readonly put: (
    body: ReadableStream<Uint8Array<ArrayBuffer>>,
    options: PutObjectOptions,
    // biome-ignore lint/suspicious/noConfusingVoidType: a put that has nothing to tell needs no return.
  ) => Promise<{ readonly etag?: string | undefined } | void>;
}

/** An object that can be served, as `createOutputHandler({ source })` takes it. */
export interface OutputSource {
  /** The object as the answer to a GET or HEAD; undefined where nothing is. */
  readonly get: (options: GetOptions) => Promise<Response | undefined>;
}

/** The name of the metadata that says whose file an object is. */
export const JOB_METADATA = 'gen-job';

/** The job whose file an object is. Stores write the names of metadata in whichever case they like. */
export function objectJob({ metadata }: StoredObject): string | undefined {
  return Object.entries(metadata ?? {}).find(([name]) => name.toLowerCase() === JOB_METADATA)?.[1];
}

/** Thrown by a put that is to be repeated at once with a new body: the store has moved. It is not counted as a retry. */
export class RepeatRequest extends StorageError {}

/** Thrown by a put whose answer does not prove that the object is stored. One look at the object decides. */
export class UnconfirmedPut extends StorageError {}

export function asStorageError(thrown: unknown, store: string, doing: string): StorageError {
  if (StorageError.isInstance(thrown)) return thrown;
  const fields = isFields(thrown) ? thrown : {};
  const status = statusOf(fields);
  const code = typeof fields.code === 'string' ? fields.code : status === undefined ? 'put_failed' : `http_${status}`;
  return new StorageError(`The store "${store}" failed ${doing}: ${reasonOf(thrown)}`, {
    code,
    status,
    store,
    cause: scrubCause(thrown, scrubber(undefined)),
  });
}

/** The HTTP status of an error, in the words of the SDKs of several stores. */
function statusOf(error: Readonly<Record<string, unknown>>): number | undefined {
  const metadata = isFields(error.$metadata) ? error.$metadata.httpStatusCode : undefined;
  const response = isFields(error.response) ? error.response.status : undefined;
  const found = [error.statusCode, error.status, metadata, response].find(
    (value) => value !== undefined && /^[1-5]\d\d$/.test(String(value)),
  );
  return found === undefined ? undefined : Number(found);
}
