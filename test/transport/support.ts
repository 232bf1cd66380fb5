import { getEventListeners } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { readConfig } from '../../src/client/config.js';
import { type ClientOptions, GenClient } from '../../src/index.js';
import { createTransport } from '../../src/transport/create-transport.js';

/** A request as a stub fetch or a raw server receives it. */
export interface ReceivedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export const PROMPT = { prompt: 'a fox at dawn' };
export const BASE_URL = 'https://service.test/prefix';

/** Test files in one process have separate copies of this module, but share accounts. */
const processState = globalThis as { testKeys?: number };

/** Returns a new API key for each client, so that tests don't share an account's limits. */
export function freshKey(): string {
  processState.testKeys = (processState.testKeys ?? 0) + 1;
  return `sk-test-${processState.testKeys}-${'q'.repeat(12)}`;
}

/** Returns the body of an accepted create. */
export function created(id = 'job_1'): string {
  const job = { id, status: 'processing', mediaType: 'video' };
  return JSON.stringify({ success: true, data: { job, quoted_token_cost: 4, balance_tokens: 96 } });
}

/** Returns a JSON response. */
export function json(body: unknown, init: ResponseInit = {}): Response {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return new Response(text, { ...init, headers: { 'content-type': 'application/json', ...init.headers } });
}

type Step = (received: ReceivedRequest, request: Request) => Response | Promise<Response>;

/** Creates a client whose fetch runs these steps in order. The last one repeats. */
export function stubbed(steps: Step | readonly Step[], options: ClientOptions = {}) {
  const list = typeof steps === 'function' ? [steps] : steps;
  const requests: ReceivedRequest[] = [];
  const stub = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init);
    const received = await readRequest(request);
    requests.push(received);
    const step = list[Math.min(requests.length, list.length) - 1];
    if (!step) throw new Error('no step');
    return step(received, request);
  };
  const client = new GenClient({ apiKey: freshKey(), baseUrl: BASE_URL, fetch: stub, ...options });
  return { client, requests };
}

/** Creates a transport with this fetch. */
export function stubbedTransport(fetch: ClientOptions['fetch'], options: ClientOptions = {}) {
  return createTransport(readConfig({ apiKey: freshKey(), baseUrl: BASE_URL, fetch, ...options }));
}

/** Reads a request for assertions. */
async function readRequest(request: Request): Promise<ReceivedRequest> {
  const { method, url, headers } = request;
  return { method, url, headers: Object.fromEntries(headers), body: await request.clone().text() };
}

/** A fetch that never responds and ignores its signal. */
export function never(): Promise<Response> {
  return new Promise(() => {});
}

/** Creates a signal that counts its listeners. */
export function countedSignal() {
  const controller = new AbortController();
  const { signal } = controller;
  return { controller, signal, listeners: () => getEventListeners(signal, 'abort').length };
}

/** Returns the error of a rejected promise. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => {
      throw new Error('the promise was not rejected');
    },
    (error: unknown) => error,
  );
}

interface Server {
  readonly url: string;
  close(): Promise<void>;
}

/** Starts an HTTP server on loopback. */
export async function httpServer(
  respond: (request: IncomingMessage, response: ServerResponse, body: string) => void,
): Promise<Server> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => respond(request, response, Buffer.concat(chunks).toString()));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Starts a TCP server that parses requests. The test writes the responses. */
export async function rawServer(
  onRequest: (socket: Socket, request: ReceivedRequest, number: number) => void,
): Promise<Server & { openConnections(): number }> {
  let number = 0;
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => {});
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      for (let parsed = parseRequest(text); parsed; parsed = parseRequest(text)) {
        text = parsed.rest;
        number += 1;
        onRequest(socket, parsed.request, number);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    openConnections: () => sockets.size,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** Returns the first request in the received data and the rest, or undefined if it is incomplete. */
export function parseRequest(text: string): { request: ReceivedRequest; rest: string } | undefined {
  const end = text.indexOf('\r\n\r\n');
  if (end === -1) return undefined;
  const [first = '', ...lines] = text.slice(0, end).split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const length = Number(headers['content-length'] ?? 0);
  const body = text.slice(end + 4, end + 4 + length);
  if (body.length < length) return undefined;
  const [method = '', url = ''] = first.split(' ');
  return { request: { method, url, headers, body }, rest: text.slice(end + 4 + length) };
}

/** Formats an HTTP/1.1 response. */
export function wire(status: number, body: string, headers: Readonly<Record<string, string>> = {}): string {
  const all = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)), ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  return `HTTP/1.1 ${status} Status\r\n${lines.join('\r\n')}\r\n\r\n${body}`;
}
