import { GenError, StorageError } from '../../errors/index.js';
import { checkOptions, methods, optionsOf, required } from '../../rules/options.js';
import { rangeIn } from '../../runtime/byte-range.js';
import { withKnownLength } from '../../runtime/bytes.js';
import { isText } from '../../schemas/envelope.js';
import type { OutputDestination, OutputSource, StoredObject } from './destination.js';

/** The fields of an R2 object that `r2` reads. */
export interface R2ObjectLike {
  /** Size in bytes. */
  readonly size: number;
  /** Entity tag, in quotes. */
  readonly httpEtag: string;
  /** Time of the upload. */
  readonly uploaded: Date;
  /** Headers of the object. */
  readonly httpMetadata?: { readonly contentType?: string | undefined } | undefined;
  /** Custom metadata, such as the job ID. */
  readonly customMetadata?: Readonly<Record<string, string>> | undefined;
}

/** Methods of a bucket binding (`env.BUCKET`) that `r2` uses. */
export interface R2BucketLike {
  /** Returns an object's metadata. */
  head(key: string): Promise<R2ObjectLike | null>;
  /** Opens an object, or a range of it. */
  get(key: string, options?: object): Promise<R2ObjectLike | null>;
  /** Stores an object. */
  put(key: string, value: never, options?: object): Promise<R2ObjectLike | null>;
}

const R2_ARGUMENTS = optionsOf({
  bucket: methods('head', 'get', 'put'),
  key: required('a non-empty string', isText),
});

function checkR2Arguments(bucket: unknown, key: unknown): void {
  // A binding that is missing from wrangler's configuration is undefined.
  if (bucket === undefined)
    throw new GenError('r2(bucket, key): bucket is undefined. Bind it in wrangler.jsonc: r2_buckets.');
  checkOptions('r2(bucket, key)', R2_ARGUMENTS, { bucket, key });
}

/**
 * Returns an object in Cloudflare R2, accessed through a Worker's binding. Outside a Worker, use `s3()` with R2's
 * endpoint.
 *
 * @example
 * await copyOutput(client, job, r2(env.BUCKET, `videos/${job.id}.mp4`));
 */
export function r2(bucket: R2BucketLike, key: string): OutputDestination & OutputSource {
  checkR2Arguments(bucket, key);
  return {
    store: 'r2',
    async head() {
      const object = await bucket.head(key);
      return object ? storedObject(object) : undefined;
    },
    async put(body, { contentType, sizeBytes, metadata, overwrite }) {
      const value = withKnownLength(body, sizeBytes);
      const object = await bucket.put(key, value as never, {
        httpMetadata: { contentType },
        customMetadata: metadata,
        ...(!overwrite && { onlyIf: { etagDoesNotMatch: '*' } }),
      });
      if (object) return { etag: object.httpEtag };
      throw new StorageError('The store "r2" already contains an object at this key.', {
        code: 'object_exists',
        status: 412,
        store: 'r2',
      });
    },
    async get({ method, range, ifRange }) {
      const object = await bucket.head(key);
      if (object === null) return undefined;
      const isSame = ifRange === undefined || ifRange === object.httpEtag || ifRange === object.uploaded.toUTCString();
      const part = method === 'GET' && isSame ? rangeIn(range, object.size) : undefined;
      const headers = objectHeaders(object);
      if (part === 'unsatisfiable') {
        headers.set('content-range', `bytes */${object.size}`);
        return new Response(null, { status: 416, headers });
      }
      const { start, end } = part ?? { start: 0, end: object.size - 1 };
      headers.set('content-length', `${end - start + 1}`);
      if (part) headers.set('content-range', `bytes ${start}-${end}/${object.size}`);
      if (method === 'HEAD') return new Response(null, { headers });
      const content = await bucket.get(key, {
        ...(part && { range: { offset: start, length: end - start + 1 } }),
        onlyIf: { etagMatches: object.httpEtag.replaceAll('"', '') },
      });
      // Without a body, the object has changed since the HEAD.
      const body = content && 'body' in content ? content.body : undefined;
      if (!(body instanceof ReadableStream)) return undefined;
      return new Response(body, { status: part ? 206 : 200, headers });
    },
  };
}

function storedObject({ size, httpEtag, httpMetadata, customMetadata }: R2ObjectLike): StoredObject {
  return { sizeBytes: size, contentType: httpMetadata?.contentType, etag: httpEtag, metadata: customMetadata };
}

function objectHeaders({ httpEtag, uploaded, httpMetadata }: R2ObjectLike): Headers {
  return new Headers({
    'accept-ranges': 'bytes',
    'content-type': httpMetadata?.contentType ?? 'application/octet-stream',
    etag: httpEtag,
    'last-modified': uploaded.toUTCString(),
  });
}
