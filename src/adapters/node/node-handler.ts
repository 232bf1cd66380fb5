import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GenError } from '../../errors/gen-error.js';
import { withParsedBody } from '../../runtime/parsed-body.js';
import { invalidValueMessage } from '../../schemas/format-value.js';

/** A handler of web requests, such as those of `createWebhookHandler` and `createOutputHandler`. */
export type WebHandler = (request: Request) => Response | Promise<Response>;

/** A request of node:http or Express, of Nest with its `rawBody`, or a Fastify request. */
export type NodeRequest = (IncomingMessage | { readonly raw: IncomingMessage }) & {
  /** Body from a body parser. Bytes and text are passed on. */
  readonly body?: unknown;
  /** Raw bytes of the body. Nest sets them with `{ rawBody: true }`. */
  readonly rawBody?: unknown;
};

/** A response of node:http, Express or Nest, or a Fastify reply. */
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
    throw new GenError(invalidValueMessage('handler', 'a function that takes a Request', handler));
  return async (given, response, next) => {
    const incoming = 'raw' in given ? given.raw : given;
    const outgoing = 'raw' in response ? response.raw : response;
    // Fastify ignores a hijacked reply.
    if ('hijack' in response) response.hijack();
    const left = closeSignal(outgoing);
    let answer: Response;
    try {
      const request = webRequest(incoming, given, left);
      answer = request === undefined ? new Response(null, { status: 400 }) : checkedResponse(await handler(request));
    } catch (error) {
      if (next !== undefined) return next(error);
      answer = new Response(null, { status: 500 });
    }
    await sendResponse(answer, outgoing, { isHead: incoming.method === 'HEAD', left }).catch(() => outgoing.destroy());
  };
}

/** Aborts if the connection closes before the response is sent. */
function closeSignal(outgoing: ServerResponse): AbortSignal {
  const controller = new AbortController();
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) controller.abort(new GenError('The client closed the connection.'));
  });
  return controller.signal;
}

/** Converts the request. Returns undefined for one that isn't a valid web request. */
function webRequest(incoming: IncomingMessage, given: NodeRequest, signal: AbortSignal): Request | undefined {
  const { method = 'GET' } = incoming;
  try {
    const request = new Request(incomingUrl(incoming), {
      method,
      headers: incomingHeaders(incoming),
      body: method === 'GET' || method === 'HEAD' ? null : incomingBody(incoming, given),
      duplex: 'half',
      signal,
    } as RequestInit);
    return isParsed(incoming, given) ? withParsedBody(request, given.body) : request;
  } catch {
    return undefined;
  }
}

/** Express and others remove the mount path from `url`. */
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
    // HTTP/2 has names such as ":path", which are not headers.
    if (!name.startsWith(':')) headers.append(name, value);
  }
  return headers;
}

/** Returns the raw body: the bytes that a parser stored, otherwise the unread stream. */
function incomingBody(
  incoming: IncomingMessage,
  given: NodeRequest,
): string | Uint8Array<ArrayBuffer> | ReadableStream {
  for (const kept of [given.rawBody, given.body]) {
    if (typeof kept === 'string') return kept;
    if (kept instanceof Uint8Array) return kept as Uint8Array<ArrayBuffer>;
  }
  return incoming.readableDidRead ? parsedBody() : unreadBody(incoming);
}

function isParsed({ readableDidRead }: IncomingMessage, { body }: NodeRequest): boolean {
  return readableDidRead && typeof body === 'object' && body !== null && !(body instanceof Uint8Array);
}

/** Reads only on demand. */
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
        // Drains the rest, so that the client reads the response and the connection can be reused.
        incoming.resume();
      },
    },
    { highWaterMark: 0 },
  );
}

/** Fails only when it is read, because most handlers don't read a body that a parser has already consumed. */
function parsedBody(): ReadableStream {
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

/** Returns the handler's result if it is a Response of any realm with an unread body. */
function checkedResponse(answer: Response): Response {
  const isResponse = typeof answer?.status === 'number' && typeof answer.headers?.getSetCookie === 'function';
  if (isResponse && !answer.bodyUsed && !answer.body?.locked) return answer;
  throw new GenError(invalidValueMessage('What the handler returns', 'a Response whose body was not read', answer));
}

interface Sending {
  readonly isHead: boolean;
  /** Aborts when the client disconnects. */
  readonly left: AbortSignal;
}

async function sendResponse(answer: Response, outgoing: ServerResponse, { isHead, left }: Sending): Promise<void> {
  if (outgoing.destroyed) return answer.body?.cancel();
  outgoing.statusCode = answer.status;
  if (answer.statusText) outgoing.statusMessage = answer.statusText;
  for (const [name, value] of answer.headers) if (name !== 'set-cookie') outgoing.setHeader(name, value);
  const cookies = answer.headers.getSetCookie();
  if (cookies.length > 0) outgoing.appendHeader('set-cookie', cookies);
  if (answer.body !== null && !isHead) return pipeBody(answer.body, outgoing, left);
  outgoing.end();
  await answer.body?.cancel();
}

async function pipeBody(body: ReadableStream<Uint8Array>, outgoing: ServerResponse, left: AbortSignal): Promise<void> {
  // A body that doesn't match its Content-Length throws instead of leaving the client waiting.
  outgoing.strictContentLength = true;
  outgoing.flushHeaders();
  const reader = body.getReader();
  left.addEventListener('abort', () => reader.cancel(left.reason).catch(() => {}));
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    // Waits for backpressure, or for the client to disconnect.
    if (!outgoing.write(next.value)) await once(outgoing, 'drain', { signal: left }).catch(() => {});
  }
  if (!outgoing.destroyed) outgoing.end();
}
