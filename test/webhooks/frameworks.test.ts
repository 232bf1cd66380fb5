// toNodeHandler in Express, Fastify and Nest, with and without the body parsers that people have there.
import type { AddressInfo } from 'node:net';
import express from 'express';
import fastify, { type FastifyInstance } from 'fastify';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { toNodeHandler } from '../../src/adapters/node/index.js';
import { createWebhookHandler, signWebhook } from '../../src/webhooks/index.js';
import { event, SECRET } from './deliver.js';
import { listen } from './node-server.js';

const printed = vi.fn();
const handled = vi.fn();
beforeEach(() => {
  vi.spyOn(console, 'error').mockImplementation(printed);
});
afterEach(() => {
  vi.restoreAllMocks();
  printed.mockReset();
  handled.mockReset();
});

const receive = createWebhookHandler({ secret: SECRET, on: { '*': (event) => handled(event.id) } });
let sent = 0;

/** Posts a signed event to a server; what was answered. */
async function post(url: string, given: { readonly secret?: string } = {}): Promise<[number, string]> {
  sent += 1;
  const { secret = SECRET } = given;
  const { body, headers } = await signWebhook({ ...event, id: `evt_${sent}`, note: 'Füchse 🦊' }, { secret });
  const answer = await fetch(url, { method: 'POST', body, headers });
  return [answer.status, await answer.text()];
}

/** Has a server take a good event, and refuse a forged one. */
async function expectReceived(url: string): Promise<void> {
  expect(await post(url)).toEqual([200, '']);
  expect(handled).toHaveBeenCalledExactlyOnceWith(`evt_${sent}`);
  expect(await post(url, { secret: 'whsec_forger' })).toEqual([400, 'signature_mismatch']);
  expect(printed).not.toHaveBeenCalled();
}

/** Has a server say where the raw bytes are, in the log and not to the sender. */
async function expectExplained(url: string): Promise<void> {
  expect(await post(url)).toEqual([500, 'body_unavailable']);
  expect(printed).toHaveBeenCalledExactlyOnceWith(
    expect.objectContaining({
      reason: 'body_unavailable',
      message: expect.stringMatching(/express\.json\(\).*request\.rawBody.*Nest.*rawBody: true.*Fastify.*parseAs/),
    }),
  );
  // A stranger is refused by the header, before anybody looks for a body.
  const { body, headers } = await signWebhook(event, { secret: SECRET, timestamp: 1_000_000_000 });
  expect((await fetch(url, { method: 'POST', body, headers })).status).toBe(400);
  expect(printed).toHaveBeenCalledOnce();
  expect(handled).not.toHaveBeenCalled();
}

describe('in Express', () => {
  const serve = (app: express.Express) => listen(app);

  test('a handler that is mounted before express.json() takes webhooks', async () => {
    const app = express();
    app.post('/webhooks', toNodeHandler(receive));
    app.use(express.json());
    await using served = await serve(app);
    await expectReceived(`${served.url}/webhooks`);
  });

  test.each([
    ['express.raw()', express.raw({ type: '*/*' })],
    ['express.text()', express.text({ type: '*/*' })],
    ['express.json() of other types', express.json({ type: 'application/vnd.other+json' })],
    [
      'an express.json() that keeps the bytes',
      express.json({
        verify: (request, _response, bytes) => {
          Object.assign(request, { rawBody: bytes });
        },
      }),
    ],
  ])('one behind %s takes webhooks', async (_, parser) => {
    const app = express();
    app.use(parser);
    app.post('/webhooks', toNodeHandler(receive));
    await using served = await serve(app);
    await expectReceived(`${served.url}/webhooks`);
  });

  test('one behind express.json() names the fix', async () => {
    const app = express();
    app.use(express.json());
    app.post('/webhooks', toNodeHandler(receive));
    await using served = await serve(app);
    await expectExplained(`${served.url}/webhooks`);
  });

  test('one that is mounted with use sees the whole URL', async () => {
    const app = express();
    app.use(
      '/outputs',
      toNodeHandler((request) => new Response(request.url)),
    );
    await using served = await serve(app);
    expect(await (await fetch(`${served.url}/outputs/job_1?download`)).text()).toBe(
      `${served.url}/outputs/job_1?download`,
    );
  });

  test("what a handler throws is Express's to answer", async () => {
    const app = express();
    app.get(
      '/',
      toNodeHandler(() => Promise.reject(new Error('broken'))),
    );
    app.use((error: Error, _request: express.Request, response: express.Response, _next: express.NextFunction) => {
      response.status(418).send(error.message);
    });
    await using served = await serve(app);
    const answer = await fetch(served.url);
    expect([answer.status, await answer.text()]).toEqual([418, 'broken']);
  });

  test('a webhook handler without toNodeHandler answers, and says what is missing', async () => {
    const app = express();
    app.post('/webhooks', receive);
    await using served = await serve(app);
    expect(await post(`${served.url}/webhooks`)).toEqual([500, expect.stringContaining('toNodeHandler(handler)')]);
    expect(printed).toHaveBeenCalledOnce();
  });
});

describe('in Fastify', () => {
  async function serve(app: FastifyInstance) {
    await app.listen({ port: 0, host: '127.0.0.1' });
    const { port } = app.server.address() as AddressInfo;
    return { url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: () => app.close() };
  }

  test('a route with a buffer parser takes webhooks', async () => {
    const app = fastify();
    app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    app.post('/webhooks', toNodeHandler(receive));
    await using served = await serve(app);
    await expectReceived(`${served.url}/webhooks`);
  });

  test('a route whose parser leaves the body alone takes webhooks', async () => {
    const app = fastify();
    app.addContentTypeParser('application/json', (_request, _payload, done) => done(null));
    app.post('/webhooks', toNodeHandler(receive));
    await using served = await serve(app);
    await expectReceived(`${served.url}/webhooks`);
  });

  test.each([undefined, 'application/json; charset=utf-8', 'application/cloudevents+json', 'text/plain'])(
    'the parser of the guide takes a webhook of the type %s',
    async (type) => {
      const app = fastify();
      app.register(async (routes) => {
        routes.removeAllContentTypeParsers();
        routes.addContentTypeParser('*', (_request, _payload, done) => done(null));
        routes.post(
          '/webhooks',
          toNodeHandler(async (request) => new Response(await request.text())),
        );
      });
      await using served = await serve(app);
      // Bytes have no type of their own.
      const body = new TextEncoder().encode('{"signed": 1}');
      const headers = type === undefined ? undefined : { 'content-type': type };
      const answer = await fetch(`${served.url}/webhooks`, { method: 'POST', body, ...(headers && { headers }) });
      expect([answer.status, await answer.text()]).toEqual([200, '{"signed": 1}']);
    },
  );

  test('request.raw and reply.raw are taken, too', async () => {
    const app = fastify();
    app.addContentTypeParser('application/json', (_request, _payload, done) => done(null));
    const handler = toNodeHandler(receive);
    app.post('/webhooks', (request, reply) => {
      reply.hijack();
      handler(request.raw, reply.raw);
    });
    await using served = await serve(app);
    await expectReceived(`${served.url}/webhooks`);
  });

  test('a route with its own JSON parser names the fix', async () => {
    const app = fastify();
    app.post('/webhooks', toNodeHandler(receive));
    await using served = await serve(app);
    await expectExplained(`${served.url}/webhooks`);
  });

  test('files stream, and Fastify does not answer a second time', async () => {
    const logged: string[] = [];
    const app = fastify({ logger: { level: 'warn', stream: { write: (line: string) => logged.push(line) } } });
    app.get(
      '/file',
      toNodeHandler(() => new Response(new Blob(['x'.repeat(1_000_000)]).stream())),
    );
    await using served = await serve(app);
    expect(await (await fetch(`${served.url}/file`)).text()).toHaveLength(1_000_000);
    expect(logged).toEqual([]);
  });
});
