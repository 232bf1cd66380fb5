import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GenError } from '../../errors/gen-error.js';
import { withParsedBody } from '../../runtime/parsed-body.js';
import { invalidValueMessage } from '../../schemas/format-value.js';

/** A handler of web requests, such as the result of `createWebhookHandler` or `createOutputHandler`. */
export type WebHandler = (request: Request) => Response | Promise<Response>;

/** A request of node:http, Express, Nest, or Fastify. */
export type NodeRequest = (IncomingMessage | { readonly raw: IncomingMessage }) & {
  /** Body from a body parser. */
  readonly body?: unknown;
  /** Raw bytes of the body. Nest sets them with `{ rawBody: true }`. */
  readonly rawBody?: unknown;
};

/** A response of node:http, Express, or Nest, or a Fastify reply. */
export type NodeResponse = ServerResponse | { readonly raw: ServerResponse; hijack(): unknown };

/** Request handler of node:http, Express, Nest, and Fastify. */
export type NodeHandler = (request: NodeRequest, response: NodeResponse, next?: (error?: unknown) => void) => void;

/**
 * Serves a web handler under node:http, Express, Nest, or Fastify. The request's `signal` aborts when the client
 * disconnects. Mount a webhook handler before `express.json()`, or set `request.rawBody`, because it needs the raw
 * bytes.
 *
 * @example
 * app.post('/webhooks', toNodeHandler(createWebhookHandler({ secret, on })));
 * app.use(express.json());
 */
export function toNodeHandler(handler: WebHandler): NodeHandler {
  if (typeof handler !== 'function')
    throw new GenError(invalidValueMessage('handler', 'a function that accepts a Request', handler));
  return async (nodeRequest, response, next) => {
    const incoming = 'raw' in nodeRequest ? nodeRequest.raw : nodeRequest;
    const outgoing = 'raw' in response ? response.raw : response;
    // Fastify ignores a hijacked reply.
    if ('hijack' in response) response.hijack();
    const disconnected = closeSignal(outgoing);
    let result: Response;
    try {
      const request = webRequest(incoming, nodeRequest, disconnected);
      result = request === undefined ? new Response(null, { status: 400 }) : checkedResponse(await handler(request));
    } catch (error) {
      if (next !== undefined) return next(error);
      result = new Response(null, { status: 500 });
    }
    await sendResponse(result, outgoing, { isHead: incoming.method === 'HEAD', disconnected }).catch(() =>
      outgoing.destroy(),
    );
  };
}

/** Returns a signal that aborts if the connection closes before the response is sent. */
function closeSignal(outgoing: ServerResponse): AbortSignal {
  const controller = new AbortController();
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) controller.abort(new GenError('The client closed the connection.'));
  });
  return controller.signal;
}

/** Converts the request, or returns undefined if it isn't a valid web request. */
function webRequest(incoming: IncomingMessage, nodeRequest: NodeRequest, signal: AbortSignal): Request | undefined {
  const { method = 'GET' } = incoming;
  try {
    const request = new Request(incomingUrl(incoming), {
      method,
      headers: incomingHeaders(incoming),
      body: method === 'GET' || method === 'HEAD' ? null : incomingBody(incoming, nodeRequest),
      duplex: 'half',
      signal,
    } as RequestInit);
    return isParsed(incoming, nodeRequest) ? withParsedBody(request, nodeRequest.body) : request;
  } catch {
    return undefined;
  }
}

/** Returns the complete URL of the request. Express and others remove the mount path from `url`. */
function incomingUrl(incoming: IncomingMessage & { readonly originalUrl?: string }): string {
  const target = incoming.originalUrl ?? incoming.url ?? '/';
  const scheme = 'encrypted' in incoming.socket ? 'https' : 'http';
  const { origin } = new URL(`${scheme}://${incoming.headers.host ?? incoming.headers[':authority'] ?? 'localhost'}`);
  return target.startsWith('/') ? origin + target : new URL(target, origin).href;
}

function incomingHeaders({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = rawHeaders.slice(at, at + 2);
    // HTTP/2 pseudo-headers, such as ":path", aren't headers.
    if (!name.startsWith(':')) headers.append(name, value);
  }
  return headers;
}

/** Returns the raw body: the bytes that a parser stored, or the unread stream. */
function incomingBody(
  incoming: IncomingMessage,
  nodeRequest: NodeRequest,
): string | Uint8Array<ArrayBuffer> | ReadableStream {
  for (const raw of [nodeRequest.rawBody, nodeRequest.body]) {
    if (typeof raw === 'string') return raw;
    if (raw instanceof Uint8Array) return raw as Uint8Array<ArrayBuffer>;
  }
  return incoming.readableDidRead ? consumedBody() : unreadBody(incoming);
}

function isParsed({ readableDidRead }: IncomingMessage, { body }: NodeRequest): boolean {
  return readableDidRead && typeof body === 'object' && body !== null && !(body instanceof Uint8Array);
}

/** Returns a body that reads the request on demand. */
function unreadBody(incoming: IncomingMessage): ReadableStream {
  let chunks: AsyncIterator<Uint8Array> | undefined;
  return new ReadableStream(
    {
      async pull(controller) {
        chunks ??= incoming.iterator({ destroyOnReturn: false });
        const { done, value } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await chunks?.return?.();
        // Drain the rest, so that the client reads the response and the connection can be reused.
        incoming.resume();
      },
    },
    { highWaterMark: 0 },
  );
}

/** Returns a body that throws when read. Most handlers don't read a body that a parser has consumed. */
function consumedBody(): ReadableStream {
  return new ReadableStream(
    {
      pull() {
        throw new GenError(
          'A body parser read the raw bytes. Express: mount the handler before express.json(), or retain them with express.json({ verify: (request, _, bytes) => { request.rawBody = bytes; } }). Nest: NestFactory.create(AppModule, { rawBody: true }). Fastify: a content type parser with parseAs: "buffer". Next.js Pages Router: export const config = { api: { bodyParser: false } }.',
        );
      },
    },
    { highWaterMark: 0 },
  );
}

/** Returns the response. Throws if it isn't a Response (of any realm) with an unread body. */
function checkedResponse(result: Response): Response {
  const isResponse = typeof result?.status === 'number' && typeof result.headers?.getSetCookie === 'function';
  if (isResponse && !result.bodyUsed && !result.body?.locked) return result;
  throw new GenError(invalidValueMessage("The handler's return value", 'a Response whose body was not read', result));
}

interface SendOptions {
  readonly isHead: boolean;
  /** Aborts when the client disconnects. */
  readonly disconnected: AbortSignal;
}

async function sendResponse(
  result: Response,
  outgoing: ServerResponse,
  { isHead, disconnected }: SendOptions,
): Promise<void> {
  if (outgoing.destroyed) return result.body?.cancel();
  outgoing.statusCode = result.status;
  if (result.statusText) outgoing.statusMessage = result.statusText;
  for (const [name, value] of result.headers) if (name !== 'set-cookie') outgoing.setHeader(name, value);
  const cookies = result.headers.getSetCookie();
  if (cookies.length > 0) outgoing.appendHeader('set-cookie', cookies);
  if (result.body !== null && !isHead) return pipeBody(result.body, outgoing, disconnected);
  outgoing.end();
  await result.body?.cancel();
}

async function pipeBody(
  body: ReadableStream<Uint8Array>,
  outgoing: ServerResponse,
  disconnected: AbortSignal,
): Promise<void> {
  // Throw if the body doesn't match its Content-Length. Otherwise, the client would keep waiting.
  outgoing.strictContentLength = true;
  outgoing.flushHeaders();
  const reader = body.getReader();
  disconnected.addEventListener('abort', () => reader.cancel(disconnected.reason).catch(() => {}));
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    // Wait until the buffer drains or the client disconnects.
    if (!outgoing.write(next.value)) await once(outgoing, 'drain', { signal: disconnected }).catch(() => {});
  }
  if (!outgoing.destroyed) outgoing.end();
}
