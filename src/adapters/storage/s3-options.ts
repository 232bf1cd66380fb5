import { GenError } from '../../errors/index.js';
import { anObject, anything, callback, checkOptions, optionsOf, required, text } from '../../rules/options.js';
import { isText } from '../../schemas/envelope.js';

/** What a request to S3 is signed with. */
export interface S3Credentials {
  /** The access key id. */
  readonly accessKeyId: string;
  /** The secret access key. It signs, and is never sent. */
  readonly secretAccessKey: string;
  /** The session token of temporary credentials. */
  readonly sessionToken?: string | undefined;
}

/** Where an object is in a store that speaks S3. */
export interface S3Options {
  /** The bucket. */
  readonly bucket: string;
  /** The key of the object. */
  readonly key: string;
  /**
   * Address of a store that is not AWS, such as `https://<account>.r2.cloudflarestorage.com`. The bucket is then the first
   * part of the path. @default the bucket's own address at AWS
   */
  readonly endpoint?: string | URL | undefined;
  /** The bucket's region. @default 'us-east-1' */
  readonly region?: string | undefined;
  /** The credentials, or a function that gives them: it is asked for each request, so that a rotated key is picked up. */
  readonly credentials: S3Credentials | (() => S3Credentials | Promise<S3Credentials>);
  /** Further headers of the put, such as `cache-control` or `x-amz-storage-class`. @default none */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Called as `fetch(url, init)` in place of the runtime's own. @default globalThis.fetch */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
}

const S3_OPTIONS = optionsOf({
  bucket: required('the name of a bucket', (bucket) => isText(bucket) && !/[/\s?#]/.test(bucket)),
  key: required(
    'a non-empty string of whole characters, without "." and ".." in its path',
    (key) => isText(key) && !/(^|\/)\.{1,2}(\/|$)|\p{Surrogate}/u.test(key),
  ),
  endpoint: anything,
  region: text,
  credentials: anything,
  headers: anObject,
  fetch: callback,
});

/** Checks the options of `s3`. What may hold a secret is named and never shown. */
export function checkS3Options(options: S3Options): void {
  checkOptions('s3', S3_OPTIONS, options);
  const { credentials, endpoint, headers } = options;
  if (typeof credentials !== 'function' && !isCredentials(credentials)) {
    throw new GenError(
      'credentials must be an object with accessKeyId and secretAccessKey, or a function that gives one.',
    );
  }
  if (endpoint !== undefined && !isEndpoint(endpoint)) {
    throw new GenError('endpoint must be an absolute http(s) URL without credentials, query and hash.');
  }
  refuseBucketIn(options);
  try {
    new Headers(headers);
  } catch {
    throw new GenError('headers has a name or a value that HTTP does not allow.');
  }
}

/** Refuses an endpoint that names the bucket, as the consoles of some stores show it: the key would get the name, too. */
function refuseBucketIn({ endpoint, bucket }: S3Options): void {
  if (endpoint === undefined) return;
  const { host, pathname } = new URL(endpoint);
  const isHost = host.startsWith(`${bucket}.s3.`) || host.startsWith(`${bucket}.s3-`);
  // Behind a longer path the name may be the store's own, as in Supabase's "/storage/v1/s3".
  if (!isHost && pathname.replace(/\/$/, '') !== `/${encodeURI(bucket)}`) return;
  const part = isHost ? `"${bucket}." at the beginning` : `"/${bucket}" at the end`;
  throw new GenError(`endpoint contains the bucket "${bucket}", which is added by itself: leave ${part} off.`);
}

/** Whether a value is a pair of keys. */
export function isCredentials(value: unknown): value is S3Credentials {
  if (typeof value !== 'object' || value === null) return false;
  const { accessKeyId, secretAccessKey, sessionToken }: Partial<Record<keyof S3Credentials, unknown>> = value;
  return isText(accessKeyId) && isText(secretAccessKey) && (sessionToken === undefined || isText(sessionToken));
}

function isEndpoint(value: unknown): boolean {
  const url = URL.canParse(String(value)) ? new URL(String(value)) : undefined;
  return (
    url !== undefined && /^https?:$/.test(url.protocol) && url.username + url.password + url.search + url.hash === ''
  );
}
