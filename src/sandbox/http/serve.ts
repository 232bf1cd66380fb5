// Imported only by `listen`, so that the sandbox itself needs no Node API.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import * as z from 'zod/mini';
import { GenError } from '../../errors/index.js';
import { checkOptions, text } from '../../rules/options.js';
import { reasonOf } from '../../runtime/callbacks.js';
import { systemClock } from '../../runtime/clock.js';
import { type ChecksOf, integerBetween } from '../world/options.js';
import { ConnectionDropped } from './network.js';

type Fetch = (request: Request) => Response | Promise<Response>;

/** Milliseconds that `close` waits for requests in flight. */
const DRAIN_MS = 2000;
/** Interval at which `close` closes idle connections. */
const DRAIN_CHECK_MS = 20;
/** Interval at which a failed body checks whether the response headers were sent. */
const HEADERS_CHECK_MS = 1;
/** Keeps the adapter from sending a response. */
const ALREADY_SENT = { headers: { 'x-hono-already-sent': '1' } };

/**
 * Serves a fetch function on Node, Bun, or Deno through `node:http`, the only API that can reset a socket. A
 * `ConnectionDropped` from `fetch` resets the connection, and a failing body closes it. Throws a GenError if it can't
 * listen on the port.
 */
export async function serve(fetch: Fetch, options: ListenOptions = {}, prefix = ''): Promise<Listening> {
  checkOptions('listen', serveSchema, options);
  const { port = 0, host = '127.0.0.1' } = options;
  const respond = async (request: Request, call: { incoming: unknown; outgoing: unknown }) => {
    const { socket } = call.incoming as IncomingMessage;
    try {
      return closeOnFailure(await fetch(request), socket, call.outgoing as ServerResponse);
    } catch (error) {
      if (!(error instanceof ConnectionDropped)) {
        return Response.json({ error: { code: 'internal_error', message: reasonOf(error) } }, { status: 500 });
      }
      // Some runtimes' node:http doesn't implement the reset.
      (socket.resetAndDestroy ?? socket.destroy).call(socket);
      return new Response(null, ALREADY_SENT);
    }
  };
  const server = createServer(getRequestListener(respond, { overrideGlobalObjects: false }));
  // Longer than clients keep connections alive, so that none is closed while a request is being sent.
  server.keepAliveTimeout = 65_000;
  await listenOn(server, port, host);
  const address = server.address();
  const boundPort = typeof address === 'object' && address ? address.port : port;
  return { url: `http://${urlHost(host)}:${boundPort}${prefix}`, close: () => closeServer(server) };
}

function listenOn(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const message =
        cause.code === 'EADDRINUSE'
          ? `Port ${port} on ${host} is in use. Pass another port, or 0 for any free port.`
          : `Cannot listen on ${host}:${port}: ${cause.message}`;
      reject(new GenError(message, { cause }));
    });
    server.listen(port, host, resolve);
  });
}

/** Wraps the response, so that a failing body closes the socket after the earlier bytes were sent. */
function closeOnFailure(response: Response, socket: Socket, outgoing: ServerResponse): Response {
  const reader = response.body?.getReader();
  if (!reader) return response;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch {
        // The adapter sends the headers and the earlier bytes only while a read is pending.
        while (!outgoing.headersSent && !socket.destroyed) {
          await new Promise<void>((resolve) => systemClock.after(HEADERS_CHECK_MS, resolve));
        }
        socket.destroySoon();
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(body, response);
}

function closeServer(server: Server): Promise<void> {
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

/** Options for `listen`. */
export interface ListenOptions {
  /** Port, or 0 for any free port. @default 0 */
  readonly port?: number | undefined;
  /** Address to listen on. Other machines can connect unless it is a loopback address. @default '127.0.0.1' */
  readonly host?: string | undefined;
}

/** A running server of a sandbox. */
export interface Listening {
  /** Base URL for clients. */
  readonly url: string;
  /** Stops accepting connections, waits up to two seconds for requests in flight, and resolves when the port is free. */
  close(): Promise<void>;
}

const serveSchema = z.strictObject({
  port: integerBetween('a whole number from 0 to 65535', 0, 65_535),
  host: text,
} satisfies ChecksOf<ListenOptions>);
