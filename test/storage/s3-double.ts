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

/** A fault of the next request with a method. */
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
  /** Called after the entire body has arrived, before the object is stored. */
  readonly before?: () => void;
}

/** A received request. */
export interface S3Seen {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  bytes: number;
}

const TAKEN: S3Error = { status: 412, code: 'PreconditionFailed' };

export class S3Double {
  account: Account = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };
  region = 'eu-central-1';
  bucket = 'media';
  /** If true, closes the connection of a rejected request before its body has arrived. */
  isAbrupt = false;
  readonly objects = new Map<string, S3Object>();
  readonly seen: S3Seen[] = [];
  readonly faults: S3Fault[] = [];
  endpoint = '';
  #server: Server | undefined;
  readonly #sockets = new Set<Socket>();

  static async start(): Promise<S3Double> {
    const it = new S3Double();
    const server = createServer((request, response) => {
      it.#handle(request, response).catch(() => response.destroy());
    });
    server.on('connection', (socket) => {
      it.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => it.#sockets.delete(socket));
    });
    it.#server = server;
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    it.endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return it;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((done) => this.#server?.close(done));
  }

  /** Returns the options with which `s3()` reaches an object. */
  at(key: string) {
    return { endpoint: this.endpoint, region: this.region, bucket: this.bucket, key, credentials: this.account };
  }

  /** Returns the requests with a method. */
  sent(method: string): S3Seen[] {
    return this.seen.filter((one) => one.method === method);
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    const [path = ''] = (request.url ?? '').split('?');
    const seen: S3Seen = { method: request.method ?? '', path: request.url ?? '', headers: request.headers, bytes: 0 };
    this.seen.push(seen);
    const isConditional = request.headers['if-none-match'] !== undefined;
    const at = this.faults.findIndex(
      ({ method, conditional }) => method === seen.method && (conditional !== true || isConditional),
    );
    const fault = this.faults[at];
    if (fault && fault.always !== true) this.faults.splice(at, 1);
    if (fault?.redirect) {
      const { status, location } = fault.redirect;
      return this.#refuse(request, response, { status, code: 'TemporaryRedirect' }, { location });
    }
    const bad = verifySignature(request, { account: this.account, region: this.region });
    if (bad) return this.#refuse(request, response, bad);
    const [, bucket, ...rest] = path.split('/');
    const key = rest.map(decodeURIComponent).join('/');
    if (bucket !== this.bucket) return this.#refuse(request, response, { status: 404, code: 'NoSuchBucket' });
    if (fault?.status !== undefined)
      return this.#refuse(request, response, { status: fault.status, code: fault.code ?? 'SlowDown' });
    if (seen.method === 'PUT') return this.#put(request, response, { key, seen, fault });
    return this.#get(request, response, { key, fault });
  }

  async #put(
    request: IncomingMessage,
    response: ServerResponse,
    { key, seen, fault }: { key: string; seen: S3Seen; fault: S3Fault | undefined },
  ) {
    const { headers } = request;
    const length = Number(headers['content-length'] ?? Number.NaN);
    if (Number.isNaN(length)) return this.#refuse(request, response, { status: 411, code: 'MissingContentLength' });
    const isTaken = () => headers['if-none-match'] === '*' && this.objects.has(key);
    if (isTaken()) return this.#refuse(request, response, TAKEN);
    const matched = this.objects.get(key)?.etag;
    if (headers['if-match'] !== undefined && headers['if-match'] !== matched)
      return this.#refuse(request, response, matched === undefined ? { status: 404, code: 'NoSuchKey' } : TAKEN);
    const bytes = await this.#receive(request, seen, fault);
    if (bytes === undefined) return;
    if (bytes.length !== length) return request.socket.destroy();
    const hash = headers['x-amz-content-sha256'];
    if (hash !== 'UNSIGNED-PAYLOAD' && hash !== createHash('sha256').update(bytes).digest('hex')) {
      return this.#refuse(request, response, { status: 400, code: 'XAmzContentSHA256Mismatch' });
    }
    fault?.before?.();
    // Another request may have stored it meanwhile.
    if (isTaken()) return this.#refuse(request, response, TAKEN);
    if (fault?.response && !fault.response.isStored) return sendResponse(response, fault.response);
    const etag = `"${createHash('md5').update(bytes).digest('hex')}"`;
    const kept = Object.entries(headers).filter(
      ([name]) => name.startsWith('x-amz-meta-') || ['cache-control', 'content-disposition'].includes(name),
    );
    this.objects.set(key, {
      bytes,
      etag,
      contentType: headers['content-type'] ?? 'binary/octet-stream',
      modified: new Date(),
      headers: Object.fromEntries(kept.map(([name, value]) => [name, String(value)])),
    });
    if (fault?.commitThenDrop) return request.socket.destroy();
    if (fault?.response) return sendResponse(response, fault.response);
    response.writeHead(200, { etag }).end();
  }

  #receive(request: IncomingMessage, seen: S3Seen, fault: S3Fault | undefined): Promise<Buffer | undefined> {
    const chunks: Buffer[] = [];
    return new Promise((resolve) => {
      request.on('data', (chunk: Buffer) => {
        seen.bytes += chunk.length;
        chunks.push(chunk);
        if (fault?.resetAfter !== undefined && seen.bytes >= fault.resetAfter) request.socket.destroy();
        if (fault?.stallAfter !== undefined && seen.bytes >= fault.stallAfter) request.pause();
      });
      request.on('end', () => resolve(Buffer.concat(chunks)));
      request.on('error', () => resolve(undefined));
      request.on('close', () => resolve(undefined));
      if (fault?.resetAfter === 0) request.socket.destroy();
    });
  }

  #get(
    request: IncomingMessage,
    response: ServerResponse,
    { key, fault }: { key: string; fault: S3Fault | undefined },
  ) {
    const object = this.objects.get(key);
    if (fault?.resetAfter !== undefined) return request.socket.destroy();
    if (object === undefined) return this.#refuse(request, response, { status: 404, code: 'NoSuchKey' });
    const { bytes, etag, contentType, modified, headers } = object;
    const condition = request.headers['if-range'];
    const isSame = condition === undefined || condition === etag;
    const [, first, last] = (isSame && /^bytes=(\d*)-(\d*)$/.exec(request.headers.range ?? '')) || [];
    const hasRange = first !== undefined && `${first}${last}` !== '';
    const start = first === '' ? Math.max(0, bytes.length - Number(last)) : Number(first ?? 0);
    const end = first === '' || !last ? bytes.length - 1 : Math.min(Number(last), bytes.length - 1);
    if (hasRange && start >= bytes.length)
      return this.#refuse(
        request,
        response,
        { status: 416, code: 'InvalidRange' },
        { 'content-range': `bytes */${bytes.length}` },
      );
    response.writeHead(hasRange ? 206 : 200, {
      ...headers,
      etag,
      'content-type': contentType,
      'last-modified': modified.toUTCString(),
      'accept-ranges': 'bytes',
      'content-length': hasRange ? end - start + 1 : bytes.length,
      ...(hasRange && { 'content-range': `bytes ${start}-${end}/${bytes.length}` }),
    });
    response.end(
      request.method === 'HEAD' ? undefined : bytes.subarray(hasRange ? start : 0, (hasRange ? end : bytes.length) + 1),
    );
  }

  #refuse(
    request: IncomingMessage,
    response: ServerResponse,
    { status, code, message = 'No.', region }: S3Error,
    headers: Record<string, string> = {},
  ): void {
    const place = region === undefined ? '' : `<Region>${region}</Region>`;
    const body = `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>${message}</Message>${place}<RequestId>4442587FB7D0A2F9</RequestId></Error>`;
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
