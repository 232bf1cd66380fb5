// A strict S3 fake over node:http. It stores only complete objects, and checks every signature.
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type Account, type S3Error, verifySignature } from './sigv4.js';

export interface S3Object {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly contentType: string;
  readonly modified: Date;
  readonly headers: Readonly<Record<string, string>>;
}

/** A fault for the next request with its method. */
export interface S3Fault {
  readonly method: 'PUT' | 'HEAD' | 'GET';
  /** If true, applies to every request with the method. */
  readonly always?: boolean;
  /** If true, applies only to conditional puts. */
  readonly conditional?: boolean;
  /** Responds with this after receiving the body. Stores the object if `isStored`. */
  readonly response?: {
    readonly status: number;
    readonly body?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly isStored?: boolean;
  };
  /** Rejects the request with this status. */
  readonly status?: number;
  readonly code?: string;
  /** Closes the connection after this many bytes of the body. */
  readonly resetAfter?: number;
  /** Stores the object, then closes the connection without a response. */
  readonly commitThenDrop?: boolean;
  /** Stops reading after this many bytes, and never responds. */
  readonly stallAfter?: number;
  /** Responds with a redirect. */
  readonly redirect?: { readonly status: number; readonly location: string };
  /** Called after the body has arrived, before the object is stored. */
  readonly beforeStore?: () => void;
}

/** A received request. */
export interface S3Request {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  bytes: number;
}

const CONFLICT: S3Error = { status: 412, code: 'PreconditionFailed' };
const ACCOUNT: Account = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };

/** A request with its response and fault. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly received: S3Request;
  readonly fault: S3Fault | undefined;
  readonly key: string;
}

export class S3Double {
  account = ACCOUNT;
  region = 'eu-central-1';
  bucket = 'media';
  /** If true, closes the connection of a rejected request before its body has arrived. */
  isAbrupt = false;
  readonly objects = new Map<string, S3Object>();
  readonly requests: S3Request[] = [];
  readonly faults: S3Fault[] = [];
  endpoint = '';
  #server: Server | undefined;
  readonly #sockets = new Set<Socket>();

  static async start(): Promise<S3Double> {
    const store = new S3Double();
    await store.open();
    return store;
  }

  /** Starts the server, without objects, requests, or faults. */
  async open(): Promise<void> {
    this.account = ACCOUNT;
    this.isAbrupt = false;
    this.objects.clear();
    this.requests.length = this.faults.length = 0;
    const server = createServer((request, response) => {
      this.#handle(request, response).catch(() => response.destroy());
    });
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    this.#server = server;
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    this.endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((done) => this.#server?.close(done));
  }

  /** Returns the options of `s3()` for an object. */
  at(key: string) {
    return { endpoint: this.endpoint, region: this.region, bucket: this.bucket, key, credentials: this.account };
  }

  /** Returns the requests with a method. */
  sent(method: string): S3Request[] {
    return this.requests.filter((request) => request.method === method);
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    const { method = '', url: path = '', headers } = request;
    const received: S3Request = { method, path, headers, bytes: 0 };
    this.requests.push(received);
    const isConditional = headers['if-none-match'] !== undefined;
    const index = this.faults.findIndex(
      (candidate) => candidate.method === method && (!candidate.conditional || isConditional),
    );
    const fault = this.faults[index];
    if (fault && fault.always !== true) this.faults.splice(index, 1);
    const [, bucket, ...rest] = path.replace(/\?.*/, '').split('/');
    const exchange = { request, response, received, fault, key: rest.map(decodeURIComponent).join('/') };
    if (fault?.redirect) {
      const { status, location } = fault.redirect;
      return this.#reject(exchange, { status, code: 'TemporaryRedirect' }, { location });
    }
    const error = verifySignature(request, { account: this.account, region: this.region });
    if (error) return this.#reject(exchange, error);
    if (bucket !== this.bucket) return this.#reject(exchange, { status: 404, code: 'NoSuchBucket' });
    if (fault?.status !== undefined)
      return this.#reject(exchange, { status: fault.status, code: fault.code ?? 'SlowDown' });
    return method === 'PUT' ? this.#put(exchange) : this.#get(exchange);
  }

  async #put(exchange: Exchange): Promise<unknown> {
    const { request, response, key, fault } = exchange;
    const { headers } = request;
    const length = Number(headers['content-length'] ?? Number.NaN);
    if (Number.isNaN(length)) return this.#reject(exchange, { status: 411, code: 'MissingContentLength' });
    const isConflict = () => headers['if-none-match'] === '*' && this.objects.has(key);
    if (isConflict()) return this.#reject(exchange, CONFLICT);
    const bytes = await this.#receive(exchange);
    if (bytes === undefined) return;
    if (bytes.length !== length) return request.socket.destroy();
    const hash = headers['x-amz-content-sha256'];
    if (hash !== 'UNSIGNED-PAYLOAD' && hash !== createHash('sha256').update(bytes).digest('hex'))
      return this.#reject(exchange, { status: 400, code: 'XAmzContentSHA256Mismatch' });
    fault?.beforeStore?.();
    // Another request may have stored an object during the body.
    if (isConflict()) return this.#reject(exchange, CONFLICT);
    if (fault?.response && !fault.response.isStored) return sendResponse(response, fault.response);
    const etag = `"${createHash('md5').update(bytes).digest('hex')}"`;
    const storedHeaders = Object.entries(headers).filter(
      ([name]) => name.startsWith('x-amz-meta-') || ['cache-control', 'content-disposition'].includes(name),
    );
    this.objects.set(key, {
      bytes,
      etag,
      contentType: headers['content-type'] ?? 'binary/octet-stream',
      modified: new Date(),
      headers: Object.fromEntries(storedHeaders.map(([name, value]) => [name, String(value)])),
    });
    if (fault?.commitThenDrop) return request.socket.destroy();
    if (fault?.response) return sendResponse(response, fault.response);
    response.writeHead(200, { etag }).end();
  }

  #receive({ request, received, fault }: Exchange): Promise<Buffer | undefined> {
    const chunks: Buffer[] = [];
    return new Promise((resolve) => {
      request.on('data', (chunk: Buffer) => {
        received.bytes += chunk.length;
        chunks.push(chunk);
        if (fault?.resetAfter !== undefined && received.bytes >= fault.resetAfter) request.socket.destroy();
        if (fault?.stallAfter !== undefined && received.bytes >= fault.stallAfter) request.pause();
      });
      request.on('end', () => resolve(Buffer.concat(chunks)));
      request.on('error', () => resolve(undefined));
      request.on('close', () => resolve(undefined));
      if (fault?.resetAfter === 0) request.socket.destroy();
    });
  }

  #get(exchange: Exchange): unknown {
    const { request, response, key, fault } = exchange;
    const object = this.objects.get(key);
    if (fault?.resetAfter !== undefined) return request.socket.destroy();
    if (object === undefined) return this.#reject(exchange, { status: 404, code: 'NoSuchKey' });
    const { bytes, etag, contentType, modified, headers } = object;
    const isSame = [undefined, etag].includes(request.headers['if-range'] as string | undefined);
    const [, first, last] = (isSame && /^bytes=(\d*)-(\d*)$/.exec(request.headers.range ?? '')) || [];
    const hasRange = first !== undefined && `${first}${last}` !== '';
    const start = first === '' ? Math.max(0, bytes.length - Number(last)) : Number(first ?? 0);
    const end = first === '' || !last ? bytes.length - 1 : Math.min(Number(last), bytes.length - 1);
    if (hasRange && start >= bytes.length) {
      const size = { 'content-range': `bytes */${bytes.length}` };
      return this.#reject(exchange, { status: 416, code: 'InvalidRange' }, size);
    }
    response.writeHead(hasRange ? 206 : 200, {
      ...headers,
      etag,
      'content-type': contentType,
      'last-modified': modified.toUTCString(),
      'accept-ranges': 'bytes',
      'content-length': end - start + 1,
      ...(hasRange && { 'content-range': `bytes ${start}-${end}/${bytes.length}` }),
    });
    response.end(request.method === 'HEAD' ? undefined : bytes.subarray(start, end + 1));
  }

  #reject({ request, response }: Exchange, error: S3Error, headers: Record<string, string> = {}): void {
    const { status, code, message = 'No.', region } = error;
    const details = region === undefined ? '' : `<Region>${region}</Region>`;
    const body = `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>${message}</Message>${details}<RequestId>4442587FB7D0A2F9</RequestId></Error>`;
    response.writeHead(status, { 'content-type': 'application/xml', ...headers });
    // A HEAD response has no body.
    response.end(request.method === 'HEAD' ? undefined : body, () => {
      if (this.isAbrupt) request.socket.destroy();
      else request.resume();
    });
  }
}

function sendResponse(response: ServerResponse, { status, body, headers }: NonNullable<S3Fault['response']>): void {
  response.writeHead(status, headers).end(body);
}
