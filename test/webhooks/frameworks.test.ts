// toNodeHandler in Express and Fastify, with and without the body parsers that people have there. Nest is in receivers.test.ts.
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

const receive = toNodeHandler(createWebhookHandler({ secret: SECRET, on: { '*': (event) => handled(event.id) } }));
let sent = 0;

type App = () => Promise<{ readonly url: string } & AsyncDisposable>;

/** An Express app whose handler stands behind a parser. */
const inExpress =
  (...parsers: express.RequestHandler[]): App =>
  () => {
    const app = express();
    for (const parser of parsers) app.use(parser);
    app.post('/webhooks', receive);
    app.use(express.json());
    return listen(app);
  };

/** A Fastify app. */
const inFastify =
  (prepare: (app: FastifyInstance) => unknown): App =>
  async () => {
    const app = fastify();
    prepare(app);
    await app.listen({ port: 0, host: '127.0.0.1' });
    const { port } = app.server.address() as AddressInfo;
    return { url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: () => app.close() };
  };

/** Posts a signed event to a server; what was answered. */
async function post(url: string, secret = SECRET): Promise<[number, string]> {
  sent += 1;
  const { body, headers } = await signWebhook({ ...event, id: `evt_${sent}`, note: 'Füchse 🦊' }, { secret });
  const answer = await fetch(`${url}/webhooks`, { method: 'POST', body, headers });
  return [answer.status, await answer.text()];
}

const keepsBytes = express.json({
  verify: (request, _response, bytes) => {
    Object.assign(request, { rawBody: bytes });
  },
});

test.each<[string, App]>([
  ['in Express, mounted before express.json()', inExpress()],
  ['behind express.raw()', inExpress(express.raw({ type: '*/*' }))],
  ['behind express.text()', inExpress(express.text({ type: '*/*' }))],
  ['behind an express.json() of other types', inExpress(express.json({ type: 'application/vnd.other+json' }))],
  ['behind an express.json() that keeps the bytes', inExpress(keepsBytes)],
  [
    'in Fastify with a buffer parser',
    inFastify((app) => {
      app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
      app.post('/webhooks', receive);
    }),
  ],
  [
    'in Fastify, given request.raw and reply.raw',
    inFastify((app) => {
      app.addContentTypeParser('application/json', (_request, _payload, done) => done(null));
      app.post('/webhooks', (request, reply) => {
        reply.hijack();
        receive(request.raw, reply.raw);
      });
    }),
  ],
])('%s, a handler takes a good event and refuses a forged one', async (_, app) => {
  await using served = await app();
  expect(await post(served.url)).toEqual([200, '']);
  expect(handled).toHaveBeenCalledExactlyOnceWith(`evt_${sent}`);
  expect(await post(served.url, 'whsec_forger')).toEqual([400, 'signature_mismatch']);
  expect(printed).not.toHaveBeenCalled();
});

test.each<[string, App]>([
  ['express.json()', inExpress(express.json())],
  ["Fastify's own JSON parser", inFastify((app) => app.post('/webhooks', receive))],
])('behind %s it says in the log, and not to the sender, where the raw bytes are', async (_, app) => {
  await using served = await app();
  expect(await post(served.url)).toEqual([500, 'body_unavailable']);
  expect(printed).toHaveBeenCalledExactlyOnceWith(
    expect.objectContaining({
      reason: 'body_unavailable',
      message: expect.stringMatching(/express\.json\(\).*request\.rawBody.*Nest.*rawBody: true.*Fastify.*parseAs/),
    }),
  );
  // A stranger is refused by the header, before anybody looks for a body.
  const { body, headers } = await signWebhook(event, { secret: SECRET, timestamp: 1_000_000_000 });
  expect((await fetch(`${served.url}/webhooks`, { method: 'POST', body, headers })).status).toBe(400);
  expect(printed).toHaveBeenCalledOnce();
  expect(handled).not.toHaveBeenCalled();
});

describe('in Express', () => {
  test('a handler that is mounted with use sees the whole URL, and what it throws is Express’s to answer', async () => {
    const app = express();
    const echo = toNodeHandler((request) => new Response(request.url));
    app.use('/outputs', echo);
    const broken = toNodeHandler(() => Promise.reject(new Error('broken')));
    app.get('/', broken);
    app.use((error: Error, _request: express.Request, response: express.Response, _next: express.NextFunction) => {
      response.status(418).send(error.message);
    });
    await using served = await listen(app);
    const url = `${served.url}/outputs/job_1?download`;
    expect(await (await fetch(url)).text()).toBe(url);
    const answer = await fetch(served.url);
    expect([answer.status, await answer.text()]).toEqual([418, 'broken']);
  });
});

describe('in Fastify', () => {
  test.each([undefined, 'application/json; charset=utf-8', 'application/cloudevents+json', 'text/plain'])(
    'the parser of the guide takes a webhook of the type %s',
    async (type) => {
      const echo = toNodeHandler(async (request) => new Response(await request.text()));
      const app = inFastify((app) =>
        app.register(async (routes) => {
          routes.removeAllContentTypeParsers();
          routes.addContentTypeParser('*', (_request, _payload, done) => done(null));
          routes.post('/webhooks', echo);
        }),
      );
      await using served = await app();
      // Bytes have no type of their own.
      const body = new TextEncoder().encode('{"signed": 1}');
      const headers = type === undefined ? undefined : { 'content-type': type };
      const answer = await fetch(`${served.url}/webhooks`, { method: 'POST', body, ...(headers && { headers }) });
      expect([answer.status, await answer.text()]).toEqual([200, '{"signed": 1}']);
    },
  );
});
