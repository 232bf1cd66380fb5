// Two real HTTP servers: the service, and object storage on another origin that is as strict as a real one.
// Imports only node:*, so that scripts for other runtimes can start it, too.
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

/** A received request. */
export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly at: 'service' | 'storage';
  /** Number of body bytes that arrived. */
  bytes: number;
  json?: Record<string, unknown>;
}

/** An upload's record. */
export interface StoredUpload {
  readonly id: string;
  readonly params: Record<string, unknown>;
  bytes: number;
  sha256?: string;
  completed: boolean;
}

/** A job's file and its faults. */
export interface StoredOutput {
  body: Uint8Array;
  contentType: string;
  etag?: string | undefined;
  /** For each GET in turn: the number of bytes sent before the connection is closed. */
  readonly cutAfter: number[];
  ranges: boolean;
  /** If true, sends no content-length. */
  chunked?: boolean;
  redirect: boolean;
  /** Responds to every request with this status. */
  rejection?: { readonly status: number; readonly body: unknown };
  /** Called at each GET before the response. */
  onGet?: (output: StoredOutput) => void;
  /** Sends this many bytes, then nothing more. */
  stallAfter?: number;
}

type Handler = (request: IncomingMessage, response: ServerResponse, received: ReceivedRequest) => unknown;

/** The two servers, with their objects and requests. */
export class LoopbackService {
  readonly requests: ReceivedRequest[] = [];
  readonly uploads = new Map<string, StoredUpload>();
  readonly outputs = new Map<string, StoredOutput>();
  readonly jobs = new Map<string, Record<string, unknown>>();
  /** Faults for the next requests of a step: a status to respond with, or `reset` after some bytes. */
  readonly faults: {
    readonly step: string;
    readonly status?: number;
    /** Storage's error code. @default 'Fault' */
    readonly code?: string;
    readonly body?: string;
    readonly resetAfter?: number;
  }[] = [];
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();
  #count = 0;
  baseUrl = '';
  storageUrl = '';

  static async start(): Promise<LoopbackService> {
    const service = new LoopbackService();
    await service.open();
    return service;
  }

  /** Starts the servers, without objects, requests, or faults. */
  async open(): Promise<void> {
    for (const records of [this.uploads, this.outputs, this.jobs]) records.clear();
    this.requests.length = this.faults.length = this.#count = 0;
    this.baseUrl = await this.#listen('service', (...exchange) => this.#service(...exchange));
    this.storageUrl = await this.#listen('storage', (...exchange) => this.#storage(...exchange));
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(this.#servers.splice(0).map((server) => new Promise((done) => server.close(done))));
  }

  /** The received requests, such as `POST /v1/uploads`. */
  get log(): string[] {
    return this.requests.map(({ method, path }) => `${method} ${path.split('?')[0]?.replace(/up_\d+/, ':id')}`);
  }

  /** The received GET requests for files. */
  get downloads(): ReceivedRequest[] {
    return this.requests.filter(({ method, path }) => method === 'GET' && /output/.test(path));
  }

  /** Adds a completed job with its file. */
  addOutput(id: string, output: Partial<StoredOutput> & { body: Uint8Array }): StoredOutput {
    const stored: StoredOutput = {
      contentType: 'video/mp4',
      etag: `"${hash(output.body)}"`,
      cutAfter: [],
      ranges: true,
      redirect: false,
      ...output,
    };
    this.outputs.set(id, stored);
    this.jobs.set(id, {
      id,
      status: 'completed',
      providerOutputUrl: `${this.baseUrl}/v1/jobs/${id}/output`,
      providerOutputExpiresAt: '2999-01-01T00:00:00.000Z',
    });
    return stored;
  }

  async #listen(at: ReceivedRequest['at'], handle: Handler): Promise<string> {
    const server = createServer((request, response) => {
      const { method = '', url: path = '', headers } = request;
      const received: ReceivedRequest = { at, method, path, headers, bytes: 0 };
      this.requests.push(received);
      Promise.resolve(handle(request, response, received)).catch((error: unknown) => response.destroy(error as Error));
    });
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    this.#servers.push(server);
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  #fault(step: string) {
    const at = this.faults.findIndex((fault) => fault.step === step);
    return at < 0 ? undefined : this.faults.splice(at, 1)[0];
  }

  async #service(request: IncomingMessage, response: ServerResponse, received: ReceivedRequest): Promise<unknown> {
    const { pathname } = new URL(received.path, this.baseUrl);
    if (request.headers.authorization === undefined) return send(response, 401, { error: { code: 'invalid_api_key' } });
    const [, job, isOutput] = /^\/v1\/jobs\/([^/]+)(\/output)?$/.exec(pathname) ?? [];
    if (job !== undefined && isOutput) return this.#output(job, request, response);
    if (job !== undefined)
      return send(response, this.jobs.has(job) ? 200 : 404, { success: true, data: { job: this.jobs.get(job) } });
    if (received.method === 'PUT') return this.#receive(request, response, received);
    const { text } = await read(request, received);
    received.json = text === '' ? {} : JSON.parse(text);
    const step = received.method === 'DELETE' ? 'delete' : pathname.endsWith('/complete') ? 'complete' : 'create';
    const fault = this.#fault(step);
    if (fault?.resetAfter !== undefined) return response.destroy();
    if (fault?.status !== undefined)
      return send(response, fault.status, fault.body ?? { error: { code: 'internal_error' } });
    if (step === 'create') return this.#create(received, response);
    const id = step === 'delete' ? pathname.split('/').at(-1) : received.json?.upload_id;
    const upload = this.uploads.get(String(id));
    if (upload === undefined)
      return send(response, 404, { error: { code: 'upload_not_found', message: 'No such upload.' } });
    if (step === 'delete') {
      this.uploads.delete(upload.id);
      return send(response, 200, { success: true, data: { deleted: true } });
    }
    upload.completed = true;
    send(response, 200, { success: true, data: { upload: { upload_id: upload.id, status: 'ready' } } });
  }

  #create(received: ReceivedRequest, response: ServerResponse): void {
    const params = received.json ?? {};
    this.#count += 1;
    const id = `up_${this.#count}`;
    this.uploads.set(id, { id, params, bytes: 0, completed: false });
    const direct_upload_url = `${this.storageUrl}/bucket/${id}?signature=${sign(id, params)}`;
    const headers = { 'Content-Type': params.mime_type, 'x-storage-meta-owner': 'workspace-1' };
    send(response, 200, { success: true, data: { upload_id: id, direct_upload_url, headers } });
  }

  async #storage(request: IncomingMessage, response: ServerResponse, received: ReceivedRequest): Promise<unknown> {
    if (request.headers.authorization !== undefined)
      return reject(response, 400, 'InvalidArgument', 'Only one auth mechanism allowed');
    const output = /^\/outputs\/([^?]+)/.exec(received.path)?.[1];
    if (output !== undefined) return this.#file(output, request, response);
    return this.#receive(request, response, received);
  }

  /** Accepts bytes like object storage: only with a known length and exactly the signed headers. */
  async #receive(request: IncomingMessage, response: ServerResponse, received: ReceivedRequest): Promise<unknown> {
    const url = new URL(received.path, this.storageUrl);
    const { headers } = request;
    const upload = this.uploads.get(url.searchParams.get('upload_id') ?? url.pathname.split('/').at(-1) ?? '');
    if (upload === undefined) return reject(response, 404, 'NoSuchKey', 'No such key');
    const fault = this.#fault('put');
    if (fault?.resetAfter !== undefined) return this.#reset(request, received, fault.resetAfter);
    if (received.at === 'storage') {
      if (headers['content-length'] === undefined)
        return reject(response, 411, 'MissingContentLength', 'You must provide the Content-Length');
      const isExact =
        headers['content-type'] === upload.params.mime_type && headers['x-storage-meta-owner'] === 'workspace-1';
      if (!isExact || url.searchParams.get('signature') !== sign(upload.id, upload.params)) {
        return reject(response, 403, 'SignatureDoesNotMatch', 'The request signature does not match');
      }
    }
    const { sha256, bytes } = await read(request, received);
    if (fault?.status !== undefined)
      return reject(response, fault.status, fault.code ?? 'Fault', fault.body ?? 'Injected');
    if (bytes !== upload.params.file_size) return reject(response, 400, 'EntityTooSmall', `${bytes} bytes arrived`);
    Object.assign(upload, { bytes, sha256 });
    response.writeHead(200, { etag: `"${sha256}"` }).end();
  }

  #reset(request: IncomingMessage, received: ReceivedRequest, after: number): Promise<void> {
    return new Promise((done) => {
      request.on('data', (chunk: Buffer) => {
        received.bytes += chunk.length;
        if (received.bytes >= after) request.destroy();
      });
      request.on('close', done);
      request.on('error', () => undefined);
      if (after === 0) request.destroy();
    });
  }

  #output(id: string, request: IncomingMessage, response: ServerResponse): unknown {
    const output = this.outputs.get(id);
    if (output?.redirect) return response.writeHead(302, { location: `${this.storageUrl}/outputs/${id}` }).end();
    this.#file(id, request, response);
  }

  #file(id: string, request: IncomingMessage, response: ServerResponse): unknown {
    const output = this.outputs.get(id);
    if (output === undefined) return send(response, 404, { error: { code: 'job_not_found' } });
    output.onGet?.(output);
    if (output.rejection !== undefined) return send(response, output.rejection.status, output.rejection.body);
    const { body, etag, contentType } = output;
    const isSame = [undefined, etag].includes(request.headers['if-range'] as string | undefined);
    const range = output.ranges && isSame ? /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') : null;
    const isPart = range !== null;
    const [from, to] = [Number(range?.[1] ?? 0), Number(range?.[2] || body.length - 1)];
    if (isPart && from >= body.length)
      return response.writeHead(416, { 'content-range': `bytes */${body.length}` }).end();
    response.writeHead(isPart ? 206 : 200, {
      'content-type': contentType,
      ...(etag !== undefined && { etag }),
      ...(output.ranges && { 'accept-ranges': 'bytes' }),
      ...(isPart && { 'content-range': `bytes ${from}-${to}/${body.length}` }),
      ...(!output.chunked && { 'content-length': to - from + 1 }),
    });
    if (request.method === 'HEAD') return response.end();
    const part = body.subarray(from, to + 1);
    const cut = output.cutAfter.shift();
    if (cut !== undefined) return response.write(part.subarray(0, cut), () => setImmediate(() => response.destroy()));
    if (output.stallAfter !== undefined) return response.write(part.subarray(0, output.stallAfter));
    response.end(part);
  }
}

/** SHA-256 of bytes, in hex. */
export function hash(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function sign(id: string, params: Record<string, unknown>): string {
  return hash(Buffer.from(`${id}:${params.mime_type}`)).slice(0, 16);
}

function send(response: ServerResponse, status: number, body: unknown): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json' }).end(text);
}

/** Sends an error as XML, like object storage. */
function reject(response: ServerResponse, status: number, code: string, message: string): void {
  response.writeHead(status, { 'content-type': 'application/xml', connection: 'close' });
  response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`);
}

async function read(
  request: IncomingMessage,
  received: ReceivedRequest,
): Promise<{ text: string; sha256: string; bytes: number }> {
  const digest = createHash('sha256');
  const start: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) {
    received.bytes += chunk.length;
    digest.update(chunk);
    if (received.bytes < 100_000) start.push(chunk);
  }
  return { text: Buffer.concat(start).toString(), sha256: digest.digest('hex'), bytes: received.bytes };
}
