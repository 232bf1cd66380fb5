import { AwsV4Signer } from 'aws4fetch';
import { systemClock } from '../clock.js';
import { isNode } from '../config.js';
import { GenError, StorageError } from '../errors/index.js';
import { isRedirectFailure } from '../transport/redirect.js';
import { isCredentials, type S3Options } from './s3-options.js';
import { RepeatRequest } from './store-failure.js';

/** A request without a body. */
export interface S3Request {
  readonly method: 'GET' | 'HEAD';
  readonly headers: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/** A put of known length. */
export interface S3Put {
  readonly headers: Readonly<Record<string, string>>;
  readonly sizeBytes: number;
  readonly signal: AbortSignal;
}

const DEFAULT_REGION = 'us-east-1';
/** Bytes of an error's body that are read. */
const MOST_ERROR_BYTES = 16_384;
const EXPIRED = /^(ExpiredToken|ExpiredTokenException|TokenRefreshRequired)$/;
const HINTS: Readonly<Record<string, string>> = {
  SignatureDoesNotMatch: ' Check secretAccessKey.',
  InvalidAccessKeyId: ' Check accessKeyId.',
  RequestTimeTooSkewed: ' Set the clock of this machine.',
};

/**
 * Sends signed requests for one object. It remembers what the store has told: where the object really is, and what time it
 * is there.
 */
export class S3Sender {
  readonly #options: S3Options;
  readonly #keys = new Map<string, ArrayBuffer>();
  #url: string;
  #isMoved = false;
  #isRenewed = false;
  /** How far the store's clock is ahead of this one, in milliseconds. */
  #aheadMs: number | undefined;
  /** Whether the next put must show where it is redirected to, at the price of a copy in memory. */
  #showsRedirect = false;

  constructor(options: S3Options) {
    this.#options = options;
    this.#url = urlOf(options);
  }

  /** Sends a request without a body; a temporary redirect is followed once. */
  async ask({ method, headers, signal }: S3Request): Promise<Response> {
    const init = { method, redirect: 'manual', signal: signal ?? null } as const;
    const response = await this.#send(headers, init);
    return this.#followed(response) ? this.#send(headers, init) : response;
  }

  /** Puts the object. Throws a RepeatRequest where a new body is to be sent to the place, or in the way, that the store told. */
  async put(
    body: ReadableStream<Uint8Array<ArrayBuffer>> | Blob,
    { headers, sizeBytes, signal }: S3Put,
  ): Promise<Response> {
    // Node copies a streamed body that could be redirected in memory.
    const isStrict = isNode() && !this.#showsRedirect;
    const init = { method: 'PUT', body, duplex: 'half', signal, redirect: isStrict ? 'error' : 'manual' } as const;
    const length: Record<string, string> = body instanceof Blob ? {} : { 'content-length': `${sizeBytes}` };
    this.#showsRedirect = false;
    const response = await this.#send(headers, init, length).catch((error: unknown) => {
      if (!isRedirectFailure(error)) throw error;
      this.#showsRedirect = true;
      throw this.#repeat('redirects the put');
    });
    if (this.#followed(response)) throw this.#repeat('redirects the put', response.status);
    if (!response.ok) await this.refuse(response);
    await response.body?.cancel();
    return response;
  }

  /**
   * Throws what the store's answer says. Resolves where there is no object, and where it `mayBeDenied`: credentials that may
   * only write learn nothing else.
   */
  async refuse(response: Response, { mayBeDenied = false } = {}): Promise<void> {
    const { status, headers } = response;
    const text = await firstText(response);
    const field = (name: string) => new RegExp(`<${name}>([^<]*)`).exec(text)?.[1];
    const code = field('Code') ?? `http_${status}`;
    if ((status === 404 && code !== 'NoSuchBucket') || (mayBeDenied && code === 'AccessDenied')) return;
    const storeTime = Date.parse(headers.get('date') ?? '');
    if (code === 'RequestTimeTooSkewed' && this.#aheadMs === undefined && !Number.isNaN(storeTime)) {
      this.#aheadMs = storeTime - systemClock.now();
      throw this.#repeat('has another time', status);
    }
    if (EXPIRED.test(code) && !this.#isRenewed && typeof this.#options.credentials === 'function') {
      this.#isRenewed = true;
      throw this.#repeat('refuses an expired session', status);
    }
    const region = field('Region') ?? headers.get('x-amz-bucket-region') ?? undefined;
    const isElsewhere = region !== undefined && region !== (this.#options.region ?? DEFAULT_REGION);
    const hint = isElsewhere ? ` Pass region: "${region}".` : (HINTS[code] ?? '');
    throw this.#error(code, `answers ${code}: ${field('Message') ?? `HTTP status ${status}`}${hint}`, { status });
  }

  async #send(
    headers: Readonly<Record<string, string>>,
    init: RequestInit,
    unsigned: Readonly<Record<string, string>> = {},
  ): Promise<Response> {
    const { region = DEFAULT_REGION, fetch = globalThis.fetch } = this.#options;
    const time = new Date(systemClock.now() + (this.#aheadMs ?? 0)).toISOString();
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
      datetime: time.replace(/[:-]|\.\d{3}/g, ''),
    });
    const signed = await signer.sign();
    for (const [name, value] of Object.entries(unsigned)) signed.headers.set(name, value);
    // With a condition, Node's fetch adds "Cache-Control: no-cache", which the store would keep with the object.
    const asIs = isNode() && !('__nextPatched' in fetch) ? ({ cache: 'force-cache' } as const) : {};
    try {
      return await fetch(signed.url.href, { ...init, ...asIs, headers: signed.headers });
    } catch (cause) {
      init.signal?.throwIfAborted();
      if (isRedirectFailure(cause)) throw cause;
      throw this.#error('unreachable', 'did not answer: the connection failed', { cause });
    }
  }

  async #credentials() {
    const { credentials } = this.#options;
    const given = typeof credentials === 'function' ? await credentials() : credentials;
    if (isCredentials(given)) return given;
    throw new GenError('The function credentials must give an object with accessKeyId and secretAccessKey.');
  }

  /** Notes where the store sends a request to; false for an answer that is not a temporary redirect. */
  #followed(response: Response): boolean {
    const { status, type, headers } = response;
    if (status !== 307 && status !== 308 && type !== 'opaqueredirect') return false;
    response.body?.cancel().catch(() => undefined);
    const location = headers.get('location') ?? '';
    const to = URL.canParse(location, this.#url) ? new URL(location, this.#url) : undefined;
    const isDowngrade = this.#url.startsWith('https:') && to?.protocol !== 'https:';
    if (this.#isMoved || to === undefined || isDowngrade) {
      const why = this.#isMoved ? 'a second time' : 'to a place that is not told or not encrypted';
      throw this.#error('redirected', `redirects the request ${why}`, { status });
    }
    this.#url = to.href;
    this.#isMoved = true;
    return true;
  }

  #repeat(what: string, status?: number): RepeatRequest {
    return new RepeatRequest(`The store "s3" ${what}.`, { code: 'redirected', status, store: 's3' });
  }

  #error(code: string, what: string, details: { readonly status?: number; readonly cause?: unknown }): StorageError {
    const { bucket, key } = this.#options;
    return new StorageError(`The store "s3" ${what} (${bucket}/${key}).`, { code, store: 's3', ...details });
  }
}

/** AWS by the bucket's own name where it can be one of a host, any other store by path. */
function urlOf({ endpoint, region = DEFAULT_REGION, bucket, key }: S3Options): string {
  const path = key.split('/').map(encodeURIComponent).join('/');
  if (endpoint !== undefined) return `${String(endpoint).replace(/\/+$/, '')}/${bucket}/${path}`;
  const host = `s3.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`;
  return bucket.includes('.') ? `https://${host}/${bucket}/${path}` : `https://${bucket}.${host}/${path}`;
}

async function firstText({ body }: Response): Promise<string> {
  const reader = body?.getReader();
  const decoder = new TextDecoder();
  let text = '';
  while (reader !== undefined && text.length < MOST_ERROR_BYTES) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
  }
  reader?.cancel().catch(() => undefined);
  return text;
}
