// Imported only when a port is asked for, so that the sandbox itself needs no Node API.
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { systemClock } from '../../clock.js';
import { GenError } from '../../errors/index.js';
import { ConnectionDropped } from '../world/faults.js';

/** Where to listen. */
export interface ServeOptions {
  /** 0 takes any free port. */
  readonly port: number;
  /** Loopback unless told. @default 127.0.0.1 */
  readonly host?: string | undefined;
}

/** A server that listens. */
export interface Served {
  /** Base URL for a client. */
  readonly url: string;
  /** Takes no new calls, lets those under way end for two seconds, and resolves when the port is free again. */
  close(): Promise<void>;
}

type Fetch = (request: Request) => Response | Promise<Response>;

const DEFAULT_HOST = '127.0.0.1';
/** How long calls under way may take once `close` was called. */
const DRAIN_MS = 2000;
/** How often connections that fell idle meanwhile are closed. */
const DRAIN_CHECK_MS = 20;
/** How long the part of a body before a cut has to leave. */
const FLUSH_MS = 10;
/** Tells the adapter that the answer, or rather the lack of one, has been dealt with. */
const ANSWERED = { headers: { 'x-hono-already-sent': '1' } };

/**
 * Puts a fetch function behind a port, on Node, Bun and Deno alike: one server, because only `node:http` lets a fault
 * reset the socket. A `ConnectionDropped` from `fetch` resets the connection; a body that errors cuts it short.
 * @throws GenError when the port is taken, not allowed, or out of range
 */
export async function serve(fetch: Fetch, { port, host = DEFAULT_HOST }: ServeOptions): Promise<Served> {
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new GenError(`port must be a whole number from 0 to 65535, not ${port}.`);
  }
  const answer = async (request: Request, call: { incoming: unknown }) => {
    const { socket } = call.incoming as IncomingMessage;
    try {
      return cuttable(await fetch(request), socket);
    } catch (error) {
      if (!(error instanceof ConnectionDropped)) return failed(error);
      reset(socket);
      return new Response(null, ANSWERED);
    }
  };
  const server = createServer(getRequestListener(answer, { overrideGlobalObjects: false }));
  // Longer than any pool keeps a connection, so that none is closed under a call that is just being sent on it.
  server.keepAliveTimeout = 65_000;
  await listening(server, port, host);
  const address = server.address();
  const bound = typeof address === 'object' && address ? address.port : port;
  return { url: `http://${urlHost(host)}:${bound}`, close: () => drained(server) };
}

function listening(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => reject(listenError(cause, port, host)));
    server.listen(port, host, resolve);
  });
}

function listenError(cause: NodeJS.ErrnoException, port: number, host: string): GenError {
  const reasons: Readonly<Record<string, string>> = {
    EADDRINUSE: `Port ${port} on ${host} is in use. Choose another; port 0 takes any free one.`,
    EACCES: `Port ${port} on ${host} is not allowed for this user. Choose one above 1023.`,
    EADDRNOTAVAIL: `${host} is not an address of this machine.`,
    ENOTFOUND: `The host ${host} is unknown.`,
  };
  return new GenError(reasons[cause.code ?? ''] ?? `Cannot listen on ${host}:${port}: ${cause.message}`, { cause });
}

/** The same answer, except that a body which errors closes the socket: what was sent until then arrives, the rest never. */
function cuttable(response: Response, socket: Socket): Response {
  const reader = response.body?.getReader();
  if (!reader) return response;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch {
        // The adapter sends the head only when a read keeps it waiting.
        await new Promise<void>((resolve) => systemClock.after(FLUSH_MS, resolve));
        socket.destroySoon();
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(body, response);
}

/** A mistake in the handler itself, told to whoever asked. */
function failed(error: unknown): Response {
  const message = error instanceof Error ? error.message : String(error);
  return Response.json({ error: { code: 'internal_error', message } }, { status: 500 });
}

function reset(socket: Socket): void {
  // Runtimes that only imitate node:http may lack the reset.
  if (typeof socket.resetAndDestroy === 'function') socket.resetAndDestroy();
  else socket.destroy();
}

function drained(server: Server): Promise<void> {
  return new Promise((resolve) => {
    let cancel = () => {};
    const check = (leftMs: number) => {
      if (leftMs <= 0) return server.closeAllConnections();
      server.closeIdleConnections();
      cancel = systemClock.after(DRAIN_CHECK_MS, () => check(leftMs - DRAIN_CHECK_MS));
    };
    server.close(() => {
      cancel();
      resolve();
    });
    check(DRAIN_MS);
  });
}

function urlHost(host: string): string {
  const name = host === '0.0.0.0' || host === '::' ? 'localhost' : host;
  return name.includes(':') ? `[${name}]` : name;
}
