// Runs as it is on Node, Bun and Deno, and prints what it saw as one line of JSON.

import { ConnectionDropped } from '../../src/sandbox/http/network.js';
import { serve } from '../../src/sandbox/http/serve.js';
import { cutBody } from './cut-body.js';

let slowBegan = () => {};
let endSlow = () => {};

const server = await serve(answer, { port: 0, host: '127.0.0.1' });
const seen: Record<string, unknown> = { host: new URL(server.url).hostname };
seen.echo = await attempt(async () => {
  const response = await fetch(`${server.url}/echo?a=1`, { method: 'POST', body: 'hi', headers: { 'x-asked': 'yes' } });
  return [response.status, response.headers.get('x-asked'), await response.text()];
});
seen.reset = await attempt(async () => (await fetch(`${server.url}/reset`)).status);
seen.cutHead = await attempt(async () => (await fetch(`${server.url}/cut`)).headers.get('content-length'));
seen.cutBody = await attempt(async () => (await fetch(`${server.url}/cut`)).text());
seen.bug = await attempt(async () => (await fetch(`${server.url}/bug`)).json());
seen.after = await attempt(async () => (await fetch(`${server.url}/fine`)).status);
seen.taken = await attempt(() => serve(answer, { port: Number(new URL(server.url).port), host: '127.0.0.1' }));
const began = new Promise<void>((resolve) => {
  slowBegan = resolve;
});
const slow = attempt(async () => (await fetch(`${server.url}/slow`)).text());
await began;
const start = performance.now();
const closed = server.close();
endSlow();
await closed;
seen.drained = await slow;
seen.closedMs = Math.round(performance.now() - start);
seen.closed = await attempt(async () => (await fetch(`${server.url}/fine`)).status);
process.stdout.write(`${JSON.stringify(seen)}\n`);

async function answer(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  if (pathname === '/reset') throw new ConnectionDropped();
  if (pathname === '/bug') throw new TypeError('a mistake');
  if (pathname === '/cut') return new Response(cutBody('{"a":'), { headers: { 'content-length': '100' } });
  if (pathname === '/slow') {
    const ended = new Promise<void>((resolve) => {
      endSlow = resolve;
    });
    slowBegan();
    await ended;
    return new Response('drained');
  }
  return new Response(await request.text(), {
    status: 201,
    headers: { 'x-asked': request.headers.get('x-asked') ?? '' },
  });
}

async function attempt(work: () => Promise<unknown>): Promise<unknown> {
  try {
    return await work();
  } catch (error) {
    return { threw: error instanceof Error ? `${error.name}: ${error.message}` : String(error) };
  }
}
