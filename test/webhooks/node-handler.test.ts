import { createHash, randomBytes } from 'node:crypto';
import { Agent, get, request as nodeRequest } from 'node:http';
import { afterEach, describe, expect, expectTypeOf, test, vi } from 'vitest';
import { toNodeHandler } from '../../src/adapters/node/index.js';
import type { WebHandler } from '../../src/adapters/node/node-handler.js';
import { createWebhookHandler, signWebhook, type WebhookHandler } from '../../src/webhooks/index.js';
import { PATIENCE_MS } from '../support/patience.js';
import { event, SECRET } from './deliver.js';
import { listen, serveWeb } from './node-server.js';

const MEGABYTE = 1_048_576;

afterEach(() => vi.restoreAllMocks());

describe('the request', () => {
  test('has its method, full URL, headers, and body', async () => {
    await using served = await serveWeb(async (request) =>
      Response.json({
        method: request.method,
        url: request.url,
        header: request.headers.get('x-list'),
        body: await request.text(),
      }),
    );
    const url = `${served.url}/a%20b/c?d=1&d=2`;
    const sent = { method: 'PUT', body: 'Füchse 🦊' };
    const headers = new Headers({ 'x-list': 'one' });
    headers.append('x-list', 'two');
    expect(await (await fetch(url, { ...sent, headers })).json()).toEqual({ ...sent, url, header: 'one, two' });
  });

  test('matches the request line for any target and host', async () => {
    await using served = await serveWeb((request) => new Response(request.url));
    const request = (target: string, host: string) =>
      served.sendRaw(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    expect(await request('//evil.test/x', 'me.test')).toContain('\r\nhttp://me.test//evil.test/x\r\n');
    expect(await request('http://me.test/full?q', 'me.test')).toContain('\r\nhttp://me.test/full?q\r\n');
    expect(await request('/x', 'me.test/path?')).toContain('\r\nhttp://me.test/x\r\n');
    expect(await request('/x', 'no host')).toMatch(/^HTTP\/1\.1 400 /);
    expect(await served.sendRaw('GET /x HTTP/1.0\r\n\r\n')).toContain('http://localhost/x');
    expect(await served.sendRaw('TRACE /x HTTP/1.1\r\nHost: me.test\r\nConnection: close\r\n\r\n')).toMatch(
      /^HTTP\/1\.1 400 /,
    );
  });

  test.each<[string, WebHandler, number]>([
    ["isn't read unless the handler reads it", () => new Response('rejected', { status: 400 }), 400],
    [
      'is drained after the handler stops reading',
      createWebhookHandler({ secret: SECRET, maxBodyBytes: 1000, onError: () => {} }),
      413,
    ],
  ])('%s, and its connection is reused', async (_, handler, status) => {
    const didRead: boolean[] = [];
    const nodeHandler = toNodeHandler(handler);
    await using served = await listen((incoming, outgoing) => {
      outgoing.once('finish', () => didRead.push(incoming.readableDidRead));
      nodeHandler(incoming, outgoing);
    });
    const { headers } = await signWebhook(event, { secret: SECRET });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const post = () =>
      new Promise<[number | undefined, boolean]>((resolve, reject) => {
        const sent = nodeRequest(served.url, { method: 'POST', agent, headers }, (response) => {
          response.resume().on('end', () => resolve([response.statusCode, sent.reusedSocket]));
        });
        sent.on('error', reject).end(randomBytes(2 * MEGABYTE));
      });
    expect([await post(), await post()]).toEqual([
      [status, false],
      [status, true],
    ]);
    expect(didRead).toEqual(Array(2).fill(status === 413));
    agent.destroy();
  });

  test('arrives in full at a slow handler, even in many chunks', async () => {
    const hash = createHash('sha256');
    await using served = await serveWeb(async (request) => {
      for await (const chunk of request.body ?? []) {
        hash.update(chunk);
        await new Promise((resolve) => setImmediate(resolve));
      }
      return new Response('received');
    });
    const body = randomBytes(8 * MEGABYTE);
    expect(await (await fetch(served.url, { method: 'POST', body })).text()).toBe('received');
    expect(hash.digest('hex')).toBe(createHash('sha256').update(body).digest('hex'));
  });

  test('has a body that errors if the connection is lost', async () => {
    const onError = vi.fn();
    await using served = await serveWeb(async (request) => {
      sent.destroy();
      await request.text().catch(onError);
      return new Response();
    });
    const sent = nodeRequest(served.url, { method: 'POST', headers: { 'content-length': 100 } });
    sent.on('error', () => {}).write('half');
    await vi.waitFor(() => expect(onError).toHaveBeenCalledOnce(), PATIENCE_MS);
  });
});

describe('the response', () => {
  test('is sent with status, headers, cookies, and body', async () => {
    await using served = await serveWeb(() => {
      const headers = new Headers({ 'x-own': 'yes' });
      headers.append('set-cookie', 'a=1');
      headers.append('set-cookie', 'b=2; Expires=Wed, 21 Oct 2026 07:28:00 GMT');
      return new Response('created', { status: 201, statusText: 'Done', headers });
    });
    const response = await fetch(served.url);
    expect([response.status, response.statusText, response.headers.get('x-own')]).toEqual([201, 'Done', 'yes']);
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2; Expires=Wed, 21 Oct 2026 07:28:00 GMT']);
    expect(await response.text()).toBe('created');
  });

  test("to HEAD has GET's headers, and its body is canceled instead of sent", async () => {
    const cancel = vi.fn();
    const body = () => new ReadableStream({ cancel }, { highWaterMark: 0 });
    await using served = await serveWeb(() => new Response(body(), { headers: { 'content-length': '5000' } }));
    const response = await fetch(served.url, { method: 'HEAD' });
    expect([response.status, response.headers.get('content-length'), await response.text()]).toEqual([200, '5000', '']);
    await vi.waitFor(() => expect(cancel).toHaveBeenCalledOnce(), PATIENCE_MS);
  });

  test('of 100 MB is pulled only as fast as the client reads', async () => {
    const megabyte = randomBytes(MEGABYTE);
    let pulled = 0;
    const body = new ReadableStream(
      {
        pull(controller) {
          if (pulled === 100) return controller.close();
          pulled++;
          controller.enqueue(new Uint8Array(megabyte));
        },
      },
      { highWaterMark: 0 },
    );
    await using served = await serveWeb(() => new Response(body));
    const response = await new Promise<import('node:http').IncomingMessage>((resolve) => get(served.url, resolve));
    let lastPulled = -1;
    // The client reads nothing, so the transfer stops once both socket buffers are full.
    while (lastPulled !== pulled) {
      lastPulled = pulled;
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
    expect(pulled).toBeLessThan(20);
    const hash = createHash('sha256');
    let received = 0;
    for await (const chunk of response) {
      received += chunk.length;
      hash.update(chunk);
    }
    const expected = createHash('sha256');
    for (let at = 0; at < 100; at++) expected.update(megabyte);
    expect([received, hash.digest('hex')]).toEqual([100 * MEGABYTE, expected.digest('hex')]);
  });

  test('has headers that arrive before the first byte of a slow body', async () => {
    const { readable, writable } = new TransformStream();
    await using served = await serveWeb(() => new Response(readable));
    const response = await fetch(served.url);
    const writer = writable.getWriter();
    void writer.write(new TextEncoder().encode('data')).then(() => writer.close());
    expect(await response.text()).toBe('data');
  });

  test('destroys the socket if its body fails after the headers', async () => {
    const body = () =>
      new ReadableStream({
        pull(controller) {
          controller.enqueue(new Uint8Array(10));
          controller.error(new Error('source failed'));
        },
      });
    await using served = await serveWeb(() => new Response(body(), { headers: { 'content-length': '1000' } }));
    await expect(fetch(served.url).then((response) => response.arrayBuffer())).rejects.toThrow();
  });

  test.each([
    ['shorter', 5],
    ['longer', 15],
  ])("doesn't block the client if it is %s than its Content-Length", async (_, size) => {
    const body = () => new Response(new Uint8Array(size)).body;
    await using served = await serveWeb(() => new Response(body(), { headers: { 'content-length': '10' } }));
    await expect(fetch(served.url).then((response) => response.arrayBuffer())).rejects.toThrow();
  });
});

describe('a client that disconnects', () => {
  test('aborts the request while the handler runs', async () => {
    const aborted = vi.fn();
    const client = new AbortController();
    await using served = await serveWeb(
      ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            aborted(signal.reason.message);
            reject(signal.reason);
          });
          client.abort();
        }),
    );
    await expect(fetch(served.url, { signal: client.signal })).rejects.toThrow();
    await vi.waitFor(() => expect(aborted.mock.calls).toEqual([['The client closed the connection.']]), PATIENCE_MS);
  });

  test('cancels the response body', async () => {
    const cancel = vi.fn();
    const endless = () =>
      new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(65_536)), cancel });
    await using served = await serveWeb(() => new Response(endless()));
    const client = new AbortController();
    const response = await fetch(served.url, { signal: client.signal });
    await response.body?.getReader().read();
    client.abort();
    await vi.waitFor(() => expect(cancel).toHaveBeenCalledOnce(), PATIENCE_MS);
  });

  test('cancels the body of a response that the handler returns later', async () => {
    const cancel = vi.fn();
    await using served = await serveWeb(async ({ signal }) => {
      const isAborted = new Promise((resolve) => signal.addEventListener('abort', resolve));
      sent.destroy();
      await isAborted;
      return new Response(new ReadableStream({ cancel }, { highWaterMark: 0 }));
    });
    const sent = get(served.url).on('error', () => {});
    await vi.waitFor(() => expect(cancel).toHaveBeenCalledOnce(), PATIENCE_MS);
  });

  test("doesn't abort the request after the complete response", async () => {
    const aborted = vi.fn();
    await using served = await serveWeb((request) => {
      request.signal.addEventListener('abort', aborted);
      return new Response('complete');
    });
    expect(await (await fetch(served.url, { headers: { connection: 'close' } })).text()).toBe('complete');
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(aborted).not.toHaveBeenCalled();
  });
});

describe('a handler', () => {
  const failing: Record<string, WebHandler> = {
    'that throws': () => {
      throw new Error('broken');
    },
    'that rejects': () => Promise.reject(new Error('broken')),
    // @ts-expect-error: JavaScript callers may forget to return one.
    'that returns no Response': () => undefined,
    'that returns a Response with a used body': async () => {
      const used = new Response('used');
      await used.text();
      return used;
    },
    'that returns a Response with a locked body': async () => {
      const locked = new Response('locked');
      locked.body?.getReader();
      return locked;
    },
  };
  test.each(Object.entries(failing))('%s causes a 500, or passes its error to `next`', async (_, handler) => {
    await using served = await serveWeb(handler);
    const response = await fetch(served.url);
    expect([response.status, await response.text()]).toEqual([500, '']);
    const next = vi.fn();
    await using withNext = await listen((request, response) => {
      toNodeHandler(handler)(request, response, (error) => response.end(next(error)));
    });
    await fetch(withNext.url);
    expect(next).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ message: expect.stringMatching(/broken|must be a Response whose body was not read/) }),
    );
  });

  test.each([undefined, {}, 'handler'])('is rejected if it is %j', (invalid) => {
    const message = expect.stringContaining('handler must be a function that accepts a Request');
    // @ts-expect-error: JavaScript callers can pass anything.
    expect(() => toNodeHandler(invalid)).toThrow(expect.objectContaining({ name: 'GenError', message }));
  });

  test('can be any function from a Request to a Response, and the result fits each framework', () => {
    expectTypeOf<WebhookHandler>().toExtend<WebHandler>();
    expectTypeOf<(request: Request) => Promise<Response>>().toExtend<WebHandler>();
    expectTypeOf<ReturnType<typeof toNodeHandler>>().toExtend<import('node:http').RequestListener>();
    expectTypeOf<ReturnType<typeof toNodeHandler>>().toExtend<import('express').RequestHandler>();
    expectTypeOf<ReturnType<typeof toNodeHandler>>().toExtend<import('fastify').RouteHandlerMethod>();
  });
});
