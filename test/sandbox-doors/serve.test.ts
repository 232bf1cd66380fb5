import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GenError } from '../../src/errors/index.js';
import { serve as serveOn } from '../../src/sandbox/http/serve.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { cutBody } from './cut-body.js';
import { realTool } from './real-tools.js';

const folder = await mkdtemp(join(tmpdir(), 'gen-serve-'));
const script = join(folder, 'scenario.mjs');
beforeAll(() =>
  build({
    entryPoints: [new URL('serve-scenario.ts', import.meta.url).pathname],
    bundle: true,
    platform: 'node',
    format: 'esm',
    outfile: script,
  }),
);
afterAll(() => rm(folder, { recursive: true, force: true }));

const serve = (fetch: (request: Request) => Response, options: { port: number; host?: string }) =>
  serveOn(fetch, { host: '127.0.0.1', ...options });

const runtimes = { node: process.execPath, bun: realTool('bun'), deno: realTool('deno') };

describe.each(Object.entries(runtimes))('a served sandbox on %s', (name, command) => {
  it.skipIf(!command)('answers, resets, cuts, says that a port is taken, and drains on close', async () => {
    const args = name === 'deno' ? ['run', '-A', script] : [script];
    const { stdout, stderr } = await promisify(execFile)(command ?? '', args, { timeout: 15_000 });
    expect(stderr).toBe('');
    const seen = JSON.parse(stdout);
    const failure = { threw: expect.stringMatching(/^(TypeError|Error)/) };
    expect(seen).toMatchObject({
      host: '127.0.0.1',
      echo: [201, 'yes', 'hi'],
      reset: failure,
      cutHead: '100',
      cutBody: failure,
      bug: { error: { code: 'internal_error', message: 'a mistake' } },
      after: 201,
      taken: { threw: expect.stringMatching(/^GenError: Port \d+ on 127\.0\.0\.1 is in use\. Choose another/) },
      drained: 'drained',
      closed: failure,
    });
    expect(seen.closedMs).toBeLessThan(1900);
  });
});

it('a cut lets the head and the bytes before it arrive, and nothing after', async () => {
  const server = await serve(() => new Response(cutBody('hello'), { headers: { 'content-length': '50' } }), {
    port: 0,
  });
  const raw = await exchange(Number(new URL(server.url).port));
  expect(raw).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(raw).toMatch(/content-length: 50/i);
  expect(raw.endsWith('\r\n\r\nhello')).toBe(true);
  await server.close();
});

it('a cut lets them arrive when the process pauses just then', async () => {
  const pausing = () => {
    let pulls = 0;
    return new ReadableStream({
      pull(controller) {
        if (pulls++ === 0) return controller.enqueue(new TextEncoder().encode('hello'));
        setImmediate(() => {
          const until = performance.now() + 30;
          while (performance.now() < until);
        });
        controller.error(new TypeError('cut'));
      },
    });
  };
  const server = await serve(() => new Response(pausing(), { headers: { 'content-length': '50' } }), { port: 0 });
  const seen = [];
  for (let round = 0; round < 5; round++) seen.push(await exchange(Number(new URL(server.url).port)));
  expect(seen.map((raw) => /^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\nhello$/.test(raw))).toEqual(Array(5).fill(true));
  await server.close();
});

it('listens on loopback alone unless told otherwise', async () => {
  const outside = Object.values(networkInterfaces())
    .flat()
    .find((address) => address?.family === 'IPv4' && !address.internal)?.address;
  // A machine without a network has this one all the same.
  const elsewhere = outside ?? '127.0.0.2';
  const server = await serve(() => new Response('in'), { port: 0 });
  const port = Number(new URL(server.url).port);
  await expect(exchange(port, elsewhere)).rejects.toThrow(/ECONNREFUSED/);
  expect(await exchange(port)).toMatch(/in$/);
  await server.close();
  const open = await serve(() => new Response('in'), { port: 0, host: '0.0.0.0' });
  expect(await exchange(Number(new URL(open.url).port), elsewhere)).toMatch(/in$/);
  await open.close();
});

it.each([-1, 65_536, 1.5, Number.NaN])('refuses port %s by name', async (port) => {
  await expect(createSandbox().listen({ port })).rejects.toThrow(
    new GenError(`port must be a whole number from 0 to 65535, not ${port}.`),
  );
});

it('refuses an option that does not exist', async () => {
  const listen = createSandbox().listen({ prot: 0 } as object);
  await expect(listen).rejects.toThrow(new GenError('listen has no option "prot". Did you mean "port"?'));
});

it('tells the base URL with the path prefix of the sandbox', async () => {
  const server = await createSandbox({ baseUrl: 'https://gen.example/api/' }).listen();
  expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/api$/);
  expect((await fetch(`${server.url}/v1/models`)).status).toBe(200);
  await server.close();
});

it('writes an IPv6 host as a URL needs it', async () => {
  const server = await serve(() => new Response('six'), { port: 0, host: '::1' });
  expect(server.url).toMatch(/^http:\/\/\[::1\]:\d+$/);
  expect(await (await fetch(server.url)).text()).toBe('six');
  await server.close();
});

/** What a plain TCP client gets to see of one GET. */
function exchange(port: number, host = '127.0.0.1'): Promise<string> {
  return new Promise((resolve, reject) => {
    let seen = '';
    const socket = connect(port, host, () => socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'));
    socket.on('data', (bytes) => {
      seen += bytes;
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(seen));
  });
}
