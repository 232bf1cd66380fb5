// The sandbox's server in Node. For Bun and Deno, see test/runtimes.
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { expect, it } from 'vitest';
import { GenError } from '../../src/errors/index.js';
import { serve as serveOn } from '../../src/sandbox/http/serve.js';
import { ConnectionDropped, createSandbox } from '../../src/sandbox/index.js';
import { deferred } from '../support/deferred.js';

const serve = (fetch: (request: Request) => Response | Promise<Response>, options: { port: number; host?: string }) =>
  serveOn(fetch, { host: '127.0.0.1', ...options });

it('the server responds, drops connections, survives an error, reports a port in use, and drains on close', async () => {
  const [slowStarted, slowEnds] = [deferred(), deferred()];
  const response = async (request: Request) => {
    const { pathname } = new URL(request.url);
    if (pathname === '/reset') throw new ConnectionDropped();
    if (pathname === '/bug') throw new TypeError('a mistake');
    if (pathname === '/slow') {
      slowStarted.resolve();
      await slowEnds.promise;
    }
    return new Response(await request.text(), { status: 201 });
  };
  const { url, close } = await serve(response, { port: 0 });
  const echo = await fetch(`${url}/echo?a=1`, { method: 'POST', body: 'hi' });
  expect([echo.status, await echo.text()]).toEqual([201, 'hi']);
  await expect(fetch(`${url}/reset`)).rejects.toThrow(TypeError);
  const bug = { error: { code: 'internal_error', message: 'a mistake' } };
  expect(await (await fetch(`${url}/bug`)).json()).toEqual(bug);
  const { port } = new URL(url);
  const inUse = new GenError(`Port ${port} on 127.0.0.1 is in use. Pass another port, or 0 for any free port.`);
  await expect(serve(response, { port: Number(port) })).rejects.toThrow(inUse);
  const slow = fetch(`${url}/slow`, { method: 'POST', body: 'drained' });
  await slowStarted.promise;
  const startMs = performance.now();
  const closed = close();
  slowEnds.resolve();
  expect(await (await slow).text()).toBe('drained');
  await closed;
  expect(performance.now() - startMs).toBeLessThan(1_900);
  await expect(fetch(url)).rejects.toThrow(TypeError);
});

it('sends a truncated body up to its end, even if the process pauses', async () => {
  const pausingBody = () => {
    let pulls = 0;
    return new ReadableStream({
      pull(controller) {
        if (pulls++ === 0) return controller.enqueue(new TextEncoder().encode('hello'));
        setImmediate(() => {
          const until = performance.now() + 30;
          while (performance.now() < until);
        });
        controller.error(new TypeError('broken'));
      },
    });
  };
  const server = await serve(() => new Response(pausingBody(), { headers: { 'content-length': '50' } }), { port: 0 });
  const responses = [];
  for (let round = 0; round < 5; round++) responses.push(await exchange(Number(new URL(server.url).port)));
  const expected = /^HTTP\/1\.1 200 OK\r\n.*content-length: 50\r\n.*\r\n\r\nhello$/is;
  expect(responses.map((raw) => expected.test(raw))).toEqual(Array(5).fill(true));
  await server.close();
});

it('listens only on loopback by default', async () => {
  const networkHost = Object.values(networkInterfaces())
    .flat()
    .find((address) => address?.family === 'IPv4' && !address.internal)?.address;
  const otherHost = networkHost ?? '127.0.0.2';
  const server = await serve(() => new Response('in'), { port: 0 });
  const port = Number(new URL(server.url).port);
  await expect(exchange(port, otherHost)).rejects.toThrow(/ECONNREFUSED/);
  expect(await exchange(port)).toMatch(/in$/);
  await server.close();
  const onAllAddresses = await serve(() => new Response('in'), { port: 0, host: '0.0.0.0' });
  expect(await exchange(Number(new URL(onAllAddresses.url).port), otherHost)).toMatch(/in$/);
  await onAllAddresses.close();
});

it.each([-1, 65_536, 1.5, Number.NaN])('rejects port %s', async (port) => {
  await expect(createSandbox().listen({ port })).rejects.toThrow(
    new GenError(`port must be a whole number from 0 to 65535, not ${port}.`),
  );
});

it('rejects an unknown option', async () => {
  const listen = createSandbox().listen({ prot: 0 } as object);
  await expect(listen).rejects.toThrow(new GenError('listen has no option "prot". Did you mean "port"?'));
});

it("returns the base URL with the sandbox's path prefix", async () => {
  const server = await createSandbox({ baseUrl: 'https://gen.example/api/' }).listen();
  expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/api$/);
  expect((await fetch(`${server.url}/v1/models`)).status).toBe(200);
  await server.close();
});

it('formats an IPv6 host for a URL', async () => {
  const server = await serve(() => new Response('six'), { port: 0, host: '::1' });
  expect(server.url).toMatch(/^http:\/\/\[::1\]:\d+$/);
  expect(await (await fetch(server.url)).text()).toBe('six');
  await server.close();
});

/** Sends one GET over plain TCP, and returns everything received. */
function exchange(port: number, host = '127.0.0.1'): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = '';
    const socket = connect(port, host, () => socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'));
    socket.on('data', (bytes) => {
      received += bytes;
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(received));
  });
}
