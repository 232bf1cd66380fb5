import * as z from 'zod/mini';
import { GenError } from '../errors/index.js';
import { checkOptions, methods } from '../options.js';

/** What is read of an object in R2. */
export interface R2ObjectLike {
  /** Its size in bytes. */
  readonly size: number;
  /** Its entity tag, in quotes. */
  readonly httpEtag: string;
  /** When it was stored. */
  readonly uploaded: Date;
  /** The headers that it is served with. */
  readonly httpMetadata?: { readonly contentType?: string | undefined } | undefined;
  /** What was noted beside it: the job, and the digest of the file. */
  readonly customMetadata?: Readonly<Record<string, string>> | undefined;
}

/** What is used of a bucket binding of Cloudflare Workers. `env.BUCKET` has it. */
export interface R2BucketLike {
  /** Tells of an object without its bytes. */
  head(key: string): Promise<R2ObjectLike | null>;
  /** Opens an object, or a range of it. */
  get(key: string, options?: object): Promise<R2ObjectLike | null>;
  /** Stores an object. */
  put(key: string, value: never, options?: object): Promise<R2ObjectLike | null>;
}

const R2_ARGUMENTS = z.strictObject({
  bucket: methods<R2BucketLike>('head', 'get', 'put'),
  key: z.string('a non-empty string').check(z.minLength(1, 'a non-empty string')),
});

/** Checks what `r2` is called with. */
export function checkR2Arguments(bucket: unknown, key: unknown): void {
  // A binding that wrangler's configuration does not have is undefined.
  if (bucket === undefined)
    throw new GenError('r2(bucket, key): bucket is undefined. Bind it in wrangler.jsonc: r2_buckets.');
  checkOptions('r2(bucket, key)', R2_ARGUMENTS, { bucket, key });
}
