import { AwsV4Signer } from 'aws4fetch';
import { GenError, StorageError } from '../../errors/index.js';
import { isRedirectFailure } from '../../rules/failure-kind.js';
import { isUnsatisfiable } from '../../rules/files.js';
import {
  callback,
  checkOptions,
  headers,
  optionsOf,
  required,
  requiredObject,
  secret,
  text,
} from '../../rules/options.js';
import { bodyOfLength, readUpTo } from '../../runtime/bytes.js';
import { isNode } from '../../runtime/platform.js';
import { isFields, isText } from '../../schemas/envelope.js';
import {
  type OutputDestination,
  type OutputSource,
  type PutObjectOptions,
  RepeatRequest,
  type StoredObject,
  UnconfirmedPut,
} from './destination.js';
import { isAbsent, isTemporaryRedirect, isUnknown, rejectsCondition, type StoreResponse } from './store-responses.js';

/** Credentials that sign requests to S3. */
export interface S3Credentials {
  /** Access key ID. */
  readonly accessKeyId: string;
  /** Secret access key. Never sent. */
  readonly secretAccessKey: string;
  /** Session token of temporary credentials. */
  readonly sessionToken?: string | undefined;
}

/** Options for `s3`. */
export interface S3Options {
  /** Bucket name. */
  readonly bucket: string;
  /** Object key. */
  readonly key: string;
  /**
   * URL of a store other than AWS, such as `https://<account>.r2.cloudflarestorage.com`, without the bucket.
   * @default the bucket's AWS endpoint
   */
  readonly endpoint?: string | URL | undefined;
  /** The bucket's region. @default 'us-east-1' */
  readonly region?: string | undefined;
  /** Credentials, or a function that returns them. Called before each request, so you can rotate keys. */
  readonly credentials: S3Credentials | (() => S3Credentials | Promise<S3Credentials>);
  /** Additional headers of the put, such as `cache-control` or `x-amz-storage-class`. @default none */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Custom `fetch`, called with a URL and options. @default globalThis.fetch */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
}

const METADATA = 'x-amz-meta-';

/**
 * Returns an object in an S3-compatible store, such as AWS, Cloudflare R2, MinIO, or Backblaze B2. Requests are signed with
 * Signature Version 4, which doesn't cover the file, so use https outside a private network.
 *
 * @example
 * s3({ region: 'eu-central-1', bucket: 'media', key: `videos/${job.id}.mp4`, credentials })
 */
export function s3(options: S3Options): OutputDestination & OutputSource {
  checkOptions('s3', S3_OPTIONS, options);
  rejectBucketInEndpoint(options);
  try {
    new Headers(options.headers);
  } catch {
    throw new GenError('s3: headers contains a name or a value that is invalid in HTTP.');
  }
  const sender = new S3Sender(options);
  return {
    store: 's3',
    async head({ signal }) {
      const response = await sender.head(signal);
      return response && objectOf(response);
    },
    async put(body, put) {
      const headers = {
        ...options.headers,
        'content-type': put.contentType,
        ...Object.fromEntries(Object.entries(put.metadata).map(([name, value]) => [`${METADATA}${name}`, value])),
      };
      return { etag: await sender.put(await bodyOfLength(body, put.sizeBytes), { ...put, headers }) };
    },
    async get({ method, range, ifRange, signal }) {
      const headers = { ...(range && { range }), ...(range && ifRange && { 'if-range': ifRange }) };
      const response = await sender.request(method, headers, signal);
      return response.ok || isUnsatisfiable(response.status) ? response : sender.throwUnlessAbsent(response);
    },
  };
}

function objectOf({ headers }: Response): StoredObject {
  const metadata: Record<string, string> = {};
  for (const [name, value] of headers) {
    if (name.startsWith(METADATA)) metadata[name.slice(METADATA.length)] = value;
  }
  return {
    sizeBytes: Number(headers.get('content-length') ?? Number.NaN),
    contentType: headers.get('content-type') ?? undefined,
    etag: headers.get('etag') ?? undefined,
    metadata,
  };
}

const DEFAULT_REGION = 'us-east-1';
const MAX_S3_ERROR_BYTES = 16_384;
/** Sends signed requests for one object. Stores the object's redirect, and which requests the credentials allow. */
class S3Sender {
  readonly #options: S3Options;
  readonly #keys = new Map<string, ArrayBuffer>();
  #url: string;
  #isMoved = false;
  /** If true, the next put must expose its redirect. On Node, this buffers the body in memory. */
  #exposesRedirect = false;
  /** If true, the credentials allow HEAD. */
  #allowsHead = true;
  /** If true, the store has rejected the condition of a put. */
  #lacksConditions = false;

  constructor(options: S3Options) {
    this.#options = options;
    this.#url = objectUrl(options);
  }

  /** Sends a request without a body. Follows one temporary redirect. */
  async request(
    method: 'GET' | 'HEAD',
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
  ): Promise<Response> {
    const init = { method, redirect: 'manual', signal: signal ?? null } as const;
    // An encoded response has a different length. With a range, the runtime sends this header itself.
    const unsignedHeaders: Record<string, string> = 'range' in headers ? {} : { 'accept-encoding': 'identity' };
    const response = await this.#send(headers, init, unsignedHeaders);
    return this.#followRedirect(response) ? this.#send(headers, init, unsignedHeaders) : response;
  }

  /** Returns the response to a HEAD, or undefined if the object doesn't exist or the credentials don't allow HEAD. */
  async head(signal: AbortSignal): Promise<Response | undefined> {
    const response = await this.request('HEAD', {}, signal);
    if (response.ok && response.headers.has('etag')) return response;
    if (response.ok) {
      const problem = 'is not an S3 store: its response to HEAD has no ETag. Check endpoint';
      throw this.#error('not_s3', problem, { status: response.status });
    }
    if (isAbsent({ status: response.status, code: '' })) return undefined;
    // A response to HEAD has no body, so get the error code with a GET of the first byte.
    const probe = await this.request('GET', { range: 'bytes=0-0' }, signal);
    if (probe.ok) {
      probe.body?.cancel().catch(() => undefined);
      return undefined;
    }
    const error = await parseError(probe);
    this.#allowsHead = !isUnknown(error);
    return isAbsent(error) || !this.#allowsHead ? undefined : this.#fail(probe, error);
  }

  /**
   * Puts the object and returns its entity tag. Throws a RepeatRequest if the put must be sent differently, and an
   * UnconfirmedPut if the response doesn't prove that the object is stored.
   */
  async put(
    body: ReadableStream<Uint8Array<ArrayBuffer>> | Blob,
    {
      headers,
      sizeBytes,
      signal,
      overwrite,
    }: PutObjectOptions & { readonly headers: Readonly<Record<string, string>> },
  ): Promise<string> {
    const isConditional = !overwrite && !this.#lacksConditions;
    // Node buffers a streamed body in memory if it follows redirects.
    const isStrict = isNode() && !this.#exposesRedirect;
    const init = { method: 'PUT', body, duplex: 'half', signal, redirect: isStrict ? 'error' : 'manual' } as const;
    const lengthHeaders: Record<string, string> = body instanceof Blob ? {} : { 'content-length': `${sizeBytes}` };
    this.#exposesRedirect = false;
    const conditionHeaders: Record<string, string> = isConditional ? { 'if-none-match': '*' } : {};
    const response = await this.#send({ ...headers, ...conditionHeaders }, init, lengthHeaders).catch(
      (error: unknown) => {
        if (!isRedirectFailure(error)) throw error;
        this.#exposesRedirect = true;
        throw this.#repeatRequest('redirects the put');
      },
    );
    if (this.#followRedirect(response)) throw this.#repeatRequest('redirects the put', response.status);
    const error = await parseError(response);
    if (isConditional && rejectsCondition(error)) return this.#withoutCondition(error);
    if (!response.ok && !isAbsent(error)) return this.#fail(response, error);
    const etag = response.headers.get('etag');
    if (response.ok && etag && error.text.trim() === '') return etag;
    const code = response.ok && error.code === `http_${response.status}` ? 'not_confirmed' : error.code;
    const problem = `${response.ok ? 'did not confirm the PUT' : `responded to the PUT with ${code}`}`;
    throw new UnconfirmedPut(this.#message(`${problem}${error.message ? `: ${error.message}` : ''}`), {
      code,
      store: 's3',
      status: response.ok ? undefined : response.status,
    });
  }

  /** Throws the response's error. Returns undefined if the object doesn't exist. */
  async throwUnlessAbsent(response: Response): Promise<undefined> {
    const error = await parseError(response);
    return isAbsent(error) ? undefined : this.#fail(response, error);
  }

  /** Throws a RepeatRequest if a HEAD can replace the condition of the put, and otherwise a StorageError. */
  #withoutCondition({ status }: S3Error): never {
    this.#lacksConditions = true;
    if (this.#allowsHead) throw this.#repeatRequest('does not support If-None-Match', status);
    throw this.#error(
      'cannot_check',
      'does not support If-None-Match, and the credentials cannot read the object. Allow them GetObject and ListBucket, or pass overwrite: true',
      { status },
    );
  }

  #fail({ headers }: Response, { status, code, message }: S3Error): never {
    const region = headers.get('x-amz-bucket-region');
    const hint = region && region !== this.#options.region ? ` Pass region: "${region}".` : '';
    throw this.#error(code, `responded with ${code}: ${message ?? `HTTP status ${status}`}${hint}`, { status });
  }

  async #send(
    headers: Readonly<Record<string, string>>,
    init: RequestInit,
    unsignedHeaders: Readonly<Record<string, string>> = {},
  ): Promise<Response> {
    const { region = DEFAULT_REGION, fetch = globalThis.fetch } = this.#options;
    const { accessKeyId, secretAccessKey, sessionToken } = await this.#credentials();
    const signer = new AwsV4Signer({
      method: init.method ?? 'GET',
      url: this.#url,
      headers,
      accessKeyId,
      secretAccessKey,
      ...(sessionToken !== undefined && { sessionToken }),
      service: 's3',
      region,
      cache: this.#keys,
    });
    const signed = await signer.sign();
    for (const [name, value] of Object.entries(unsignedHeaders)) signed.headers.set(name, value);
    // For a conditional request, Node's fetch adds "Cache-Control: no-cache", which the store would save with the object.
    const cacheInit = isNode() && !('__nextPatched' in fetch) ? ({ cache: 'force-cache' } as const) : {};
    try {
      return await fetch(signed.url.href, { ...init, ...cacheInit, headers: signed.headers });
    } catch (cause) {
      init.signal?.throwIfAborted();
      if (isRedirectFailure(cause)) throw cause;
      throw this.#error('unreachable', 'did not respond: the connection failed', { cause });
    }
  }

  async #credentials() {
    const { credentials } = this.#options;
    const value = typeof credentials === 'function' ? await credentials() : credentials;
    if (isCredentials(value)) return value;
    throw new GenError('s3: credentials must return an object with accessKeyId and secretAccessKey.');
  }

  /** Stores the target of a temporary redirect. Returns false for any other response. */
  #followRedirect(response: Response): boolean {
    const { status, type, headers } = response;
    if (!isTemporaryRedirect(status) && type !== 'opaqueredirect') return false;
    response.body?.cancel().catch(() => undefined);
    const location = headers.get('location') ?? '';
    const target = location !== '' && URL.canParse(location, this.#url) ? new URL(location, this.#url) : undefined;
    const isUnencrypted = this.#url.startsWith('https:') && target?.protocol !== 'https:';
    if (this.#isMoved || target === undefined || isUnencrypted) {
      const reason = this.#isMoved ? 'a second time' : 'to an address that is missing or not encrypted';
      throw this.#error('redirected', `redirects the request ${reason}`, { status });
    }
    this.#url = target.href;
    this.#isMoved = true;
    return true;
  }

  #repeatRequest(problem: string, status?: number): RepeatRequest {
    return new RepeatRequest(`The store "s3" ${problem}.`, { code: 'redirected', status, store: 's3' });
  }

  #error(code: string, problem: string, details: { readonly status?: number; readonly cause?: unknown }): StorageError {
    return new StorageError(this.#message(problem), { code, store: 's3', ...details });
  }

  #message(problem: string): string {
    const { bucket, key } = this.#options;
    return `The store "s3" ${problem} (${bucket}/${key}).`;
  }
}

/** Returns the object's URL. On AWS, the bucket is part of the host if its name allows it. On other stores, it is part of the path. */
function objectUrl({ endpoint, region = DEFAULT_REGION, bucket, key }: S3Options): string {
  const path = key.split('/').map(encodeURIComponent).join('/');
  if (endpoint !== undefined) return `${String(endpoint).replace(/(?<!\/)\/+$/, '')}/${bucket}/${path}`;
  const host = `s3.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`;
  return bucket.includes('.') ? `https://${host}/${bucket}/${path}` : `https://${bucket}.${host}/${path}`;
}

interface S3Error extends StoreResponse {
  readonly status: number;
  readonly text: string;
  readonly message: string | undefined;
}

async function parseError(response: Response): Promise<S3Error> {
  const { status } = response;
  const text = new TextDecoder().decode((await readUpTo(response.body, MAX_S3_ERROR_BYTES)).bytes);
  const field = (name: string) => new RegExp(`<${name}>([^<]*)`).exec(text)?.[1];
  return { status, text, code: field('Code') ?? `http_${status}`, message: field('Message') };
}

const S3_OPTIONS = optionsOf({
  bucket: required('the name of a bucket', (bucket) => isText(bucket) && !/[/\s?#]/.test(bucket)),
  key: required(
    'a non-empty string of valid Unicode, without "." or ".." in its path',
    (key) => isText(key) && !/(^|\/)\.{1,2}(\/|$)|\p{Surrogate}/u.test(key),
  ),
  endpoint: secret('an absolute http(s) URL without credentials, query, or hash', isEndpoint),
  region: text,
  credentials: requiredObject(
    'an object with accessKeyId and secretAccessKey, or a function that returns one',
    (value) => typeof value === 'function' || isCredentials(value),
  ),
  headers,
  fetch: callback,
});

/** Throws if the endpoint contains the bucket, as some consoles show it. The bucket would become part of the key. */
function rejectBucketInEndpoint({ endpoint, bucket }: S3Options): void {
  if (endpoint === undefined) return;
  const { host, pathname } = new URL(endpoint);
  const isHost = host.startsWith(`${bucket}.s3.`) || host.startsWith(`${bucket}.s3-`);
  // In a longer path, such as Supabase's "/storage/v1/s3", the name can be part of the store's path.
  if (!isHost && pathname.replace(/\/$/, '') !== `/${encodeURI(bucket)}`) return;
  const part = isHost ? `"${bucket}." at the beginning` : `"/${bucket}" at the end`;
  throw new GenError(`s3: endpoint contains the bucket "${bucket}", which is added automatically. Remove ${part}.`);
}

function isCredentials(value: unknown): value is S3Credentials {
  if (!isFields(value)) return false;
  const { accessKeyId, secretAccessKey, sessionToken } = value;
  return isText(accessKeyId) && isText(secretAccessKey) && (sessionToken === undefined || isText(sessionToken));
}

function isEndpoint(value: unknown): boolean {
  const url = URL.canParse(String(value)) ? new URL(String(value)) : undefined;
  return (
    url !== undefined && /^https?:$/.test(url.protocol) && url.username + url.password + url.search + url.hash === ''
  );
}
