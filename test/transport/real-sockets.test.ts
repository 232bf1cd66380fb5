// Real socket errors: a budget keeps its reservation only if the create may have been sent.
import { spawn } from 'node:child_process';
import dns from 'node:dns';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { ProxyAgent, fetch as undiciFetch } from 'undici';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type ClientOptions, ConnectionError, createBudget, GenClient } from '../../src/index.js';
import { freshKey, rejection } from './support.js';

const cleanups: (() => void)[] = [];
afterEach(() => {
  vi.restoreAllMocks();
  for (const close of cleanups.splice(0)) close();
});

/** Listens on loopback until the test ends, and returns the port. */
async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

const tcp = (onSocket: (socket: Socket) => void) =>
  listen(
    createTcpServer((socket) => {
      socket.on('error', () => {});
      onSocket(socket);
    }),
  );

/** Runs a failing create. Returns its error and the tokens still reserved. */
async function runFailingCreate(baseUrl: string, options: ClientOptions = {}) {
  const budget = createBudget({ maxTokens: 100, scope: freshKey(), unknownPrice: () => 10 });
  const client = new GenClient({ apiKey: freshKey(), baseUrl, maxRetries: 0, timeoutMs: 20_000, ...options });
  const error = await rejection(client.videos.create({ prompt: 'a fox' }, { budget }));
  expect(error).toBeInstanceOf(ConnectionError);
  const { reservedTokens } = await budget.usage();
  return { message: String(error), reservedTokens };
}

describe('a create that was never sent reserves nothing', () => {
  it('if the TLS handshake fails', async () => {
    const port = await tcp((socket) => socket.once('data', () => socket.destroy()));
    expect(await runFailingCreate(`https://127.0.0.1:${port}`)).toMatchObject({ reservedTokens: 0 });
  });

  it('if the https: port serves plain HTTP', async () => {
    const port = await listen(createServer((_request, response) => response.end()));
    expect(await runFailingCreate(`https://127.0.0.1:${port}`)).toMatchObject({ reservedTokens: 0 });
  });

  it.each([407, 403])('if a proxy responds to CONNECT with %i', async (status) => {
    const proxy = createServer();
    proxy.on('connect', (_request, socket) => socket.end(`HTTP/1.1 ${status} No\r\nContent-Length: 0\r\n\r\n`));
    const dispatcher = new ProxyAgent({ uri: `http://127.0.0.1:${await listen(proxy)}`, proxyTunnel: true });
    cleanups.push(() => void dispatcher.close());
    const fetch = (url: string, init: RequestInit) =>
      undiciFetch(url, { ...init, dispatcher } as never) as Promise<never>;
    const failed = await runFailingCreate('https://api.example.test', { fetch });
    expect(failed).toMatchObject({ reservedTokens: 0, message: expect.stringContaining(`(${status})`) });
  });

  it('if nothing listens on the port', async () => {
    const server = createTcpServer();
    const port = await listen(server);
    server.close();
    expect(await runFailingCreate(`http://127.0.0.1:${port}`)).toMatchObject({ reservedTokens: 0 });
  });

  it("if the host doesn't resolve", async () => {
    expect(await runFailingCreate('http://gen-client.invalid')).toMatchObject({ reservedTokens: 0 });
  });

  it("if no address of the host responds, and the message lists each one's reason", async () => {
    const server = createTcpServer();
    const port = await listen(server);
    server.close();
    const addresses = [
      { address: '127.0.0.1', family: 4 },
      { address: '::1', family: 6 },
    ];
    // The signature of `lookup` depends on its options.
    vi.spyOn(dns, 'lookup').mockImplementation(((
      _host: string,
      _options: object,
      callback: (...found: unknown[]) => void,
    ) => process.nextTick(() => callback(null, addresses))) as never);
    const { message, reservedTokens } = await runFailingCreate(`http://api.example.test:${port}`);
    expect(reservedTokens).toBe(0);
    expect(message).toMatch(/127\.0\.0\.1:\d+; .*::1/);
  });
});

describe('a create that may have arrived retains its reservation', () => {
  it('if the connection is reset after the request', async () => {
    const port = await tcp((socket) => socket.once('data', () => socket.resetAndDestroy()));
    expect(await runFailingCreate(`http://127.0.0.1:${port}`)).toMatchObject({ reservedTokens: 10 });
  });

  it('if the connection is reset in the handshake, which looks the same', async () => {
    const port = await tcp((socket) => socket.once('data', () => socket.resetAndDestroy()));
    expect(await runFailingCreate(`https://127.0.0.1:${port}`)).toMatchObject({ reservedTokens: 10 });
  });

  it('if the server is killed after it has read the request', async () => {
    const program = `require('node:http').createServer((q) => q.on('data', () => process.kill(process.pid, 'SIGKILL')))
      .listen(0, '127.0.0.1', function () { console.log(this.address().port) })`;
    const server = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
    cleanups.push(() => server.kill('SIGKILL'));
    const [port] = await once(server.stdout, 'data');
    expect(await runFailingCreate(`http://127.0.0.1:${Number(port)}`)).toMatchObject({ reservedTokens: 10 });
  });

  it('if the network route fails during a live connection', async () => {
    const reset = Object.assign(new Error('read EHOSTUNREACH'), { code: 'EHOSTUNREACH', syscall: 'read', errno: -113 });
    const fetch = () => Promise.reject(new TypeError('fetch failed', { cause: reset }));
    expect(await runFailingCreate('https://api.example.test', { fetch })).toMatchObject({ reservedTokens: 10 });
  });
});
