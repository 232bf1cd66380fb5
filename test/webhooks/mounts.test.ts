// The proxy and the webhook handler in every framework, as the guides mount them, and what a wrong mount says. Bun, Deno, and
// Workers run in test/runtimes.
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { serve } from '@hono/node-server';
import express from 'express';
import fastify, { type FastifyInstance } from 'fastify';
import { createGenProxy, type DefaultInput } from 'gen-client/proxy';
import { createSandbox } from 'gen-client/sandbox';
import { Hono } from 'hono';
import { handle } from 'hono/aws-lambda';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { toNodeHandler } from '../../src/adapters/node/index.js';
import { createWebhookHandler, signWebhook } from '../../src/webhooks/index.js';
import { ROOT } from '../support/build.js';
import { event, SECRET } from './deliver.js';
import { listen } from './node-server.js';
import { whyNoNest } from './run-nest.js';

const printed = vi.fn();
const handled = vi.fn();
beforeEach(() => void vi.spyOn(console, 'error').mockImplementation(printed));
afterEach(() => {
  vi.restoreAllMocks();
  printed.mockReset();
  handled.mockReset();
});

const handler = createWebhookHandler({ secret: SECRET, on: { '*': (event) => handled(event.id) } });
const proxy = createGenProxy({
  client: createSandbox().client(),
  secret: 'a secret of the app that has more than 32 characters',
  authorize: () => ({ id: 'ann' }),
  create: { videos: (input: DefaultInput) => ({ prompt: input.prompt }) },
  upload: () => true,
});

/** Sends a request to the app. */
type Send = (path: string, init: RequestInit & { readonly headers: Record<string, string> }) => Promise<Response>;
type App = () => Promise<{ readonly send: Send } & AsyncDisposable>;

const toUrl =
  (url: string): Send =>
  (path, init) =>
    fetch(url + path, init);

const inExpress =
  (prepare: (app: express.Express) => unknown): App =>
  async () => {
    const app = express();
    prepare(app);
    const served = await listen(app);
    return { send: toUrl(served.url), [Symbol.asyncDispose]: () => served[Symbol.asyncDispose]() };
  };

const inFastify =
  (prepare: (app: FastifyInstance) => unknown): App =>
  async () => {
    const app = fastify();
    prepare(app);
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    return { send: toUrl(url), [Symbol.asyncDispose]: () => app.close() };
  };

/** Nest without decorators, which esbuild does not compile here. */
const inNest =
  (mount: (app: { use(path: string, handler: unknown): void }) => unknown): App =>
  async () => {
    const at = (name: string) => pathToFileURL(join(ROOT, `test/receivers/node_modules/@nestjs/${name}/index.js`)).href;
    const { Module } = await import(at('common'));
    const { NestFactory } = await import(at('core'));
    class AppModule {}
    Module({})(AppModule);
    const app = await NestFactory.create(AppModule, { logger: false });
    mount(app);
    await app.listen(0, '127.0.0.1');
    return { send: toUrl(await app.getUrl()), [Symbol.asyncDispose]: () => app.close() };
  };

const inHono =
  (prepare: (app: Hono) => unknown): App =>
  async () => {
    const app = new Hono();
    prepare(app);
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1', overrideGlobalObjects: false });
    await new Promise((ready) => server.once('listening', ready));
    const { port } = server.address() as AddressInfo;
    const close = async () => void server.close();
    return { send: toUrl(`http://127.0.0.1:${port}`), [Symbol.asyncDispose]: close };
  };

/** A framework that calls an exported function with a web Request, or with an object that contains it. */
const inProcess =
  (route: (request: Request, verb: string) => Response | Promise<Response>): App =>
  async () => ({
    send: async (path, init) => {
      const request = new Request(`https://app.test${path}`, init);
      return route(request, path.startsWith('/api/gen') ? 'proxy' : 'webhook');
    },
    [Symbol.asyncDispose]: async () => {},
  });

interface LambdaResult {
  readonly statusCode: number;
  readonly body: string;
  readonly isBase64Encoded?: boolean;
}

/** API Gateway, which sends events of one version. */
const inLambda =
  (version: 'v1' | 'v2', lambda: (event: never) => Promise<unknown>): App =>
  async () => ({
    send: async (path, { method = 'GET', headers, body }) => {
      const content = { headers, body: Buffer.from(String(body)).toString('base64'), isBase64Encoded: true };
      const requestContext = { domainName: 'app.test', http: { method, path }, httpMethod: method };
      const event =
        version === 'v1'
          ? { ...content, path, httpMethod: method, requestContext, multiValueHeaders: {}, queryStringParameters: null }
          : { ...content, version: '2.0', rawPath: path, rawQueryString: '', requestContext };
      const result = (await lambda(event as never)) as LambdaResult;
      return new Response(Buffer.from(result.body, result.isBase64Encoded ? 'base64' : 'utf8'), {
        status: result.statusCode,
      });
    },
    [Symbol.asyncDispose]: async () => {},
  });

const mountedInHono = (app: Hono) => {
  app.all('/api/gen/:verb', (c) => proxy(c.req.raw));
  app.post('/webhooks', (c) => handler(c.req.raw));
};
const onLambda = () => {
  const app = new Hono();
  mountedInHono(app);
  return handle(app) as (event: never) => Promise<unknown>;
};

/** The rows of the guides' tables, with their lines. */
const MOUNTS: Record<string, App> = {
  'Next.js, App Router': inProcess((request, route) => (route === 'proxy' ? proxy(request) : handler(request, {}))),
  'Next.js, Pages Router': async () => {
    // What Next.js calls for `bodyParser: false`.
    const api = { proxy: toNodeHandler(proxy), webhook: toNodeHandler(handler) };
    const served = await listen((request, response) => {
      (request.url?.startsWith('/api/gen') ? api.proxy : api.webhook)(Object.assign(request, { query: {} }), response);
    });
    return { send: toUrl(served.url), [Symbol.asyncDispose]: () => served[Symbol.asyncDispose]() };
  },
  Hono: inHono(mountedInHono),
  Express: inExpress((app) => {
    app.post('/webhooks', toNodeHandler(handler));
    app.use(express.json());
    app.use('/api/gen', toNodeHandler(proxy));
  }),
  Nest: inNest((app) => {
    app.use('/webhooks', toNodeHandler(handler));
    app.use('/api/gen', toNodeHandler(proxy));
  }),
  Fastify: inFastify((app) => {
    app.register(async (routes) => {
      routes.removeAllContentTypeParsers();
      routes.addContentTypeParser('*', (_request, _body, done) => done(null));
      routes.all('/api/gen/:verb', toNodeHandler(proxy));
      routes.post('/webhooks', toNodeHandler(handler));
    });
  }),
  'SvelteKit, Astro, React Router': inProcess((request, route) => {
    const ALL = {
      proxy: ({ request }: { request: Request }) => proxy(request),
      webhook: ({ request }: { request: Request }) => handler(request),
    };
    return ALL[route as keyof typeof ALL]({ request });
  }),
  'AWS Lambda, REST API (v1)': inLambda('v1', onLambda()),
  'AWS Lambda, HTTP API or function URL (v2)': inLambda('v2', onLambda()),
};

let sent = 0;
/** The status and the text of the response to a signed event. */
async function deliver({ send }: { readonly send: Send }, secret = SECRET): Promise<readonly [number, string]> {
  sent += 1;
  const { body, headers } = await signWebhook({ ...event, id: `evt_${sent}`, note: 'Füchse 🦊' }, { secret });
  const response = await send('/webhooks', { method: 'POST', body, headers });
  return [response.status, await response.text()];
}

const PAGE = { 'x-gen-page': '1', 'sec-fetch-site': 'same-origin' };
const JSON_PAGE = { ...PAGE, 'content-type': 'application/json' };

const skipped = (name: string) => name === 'Nest' && whyNoNest() !== undefined;
describe.each(Object.entries(MOUNTS).filter(([name]) => !skipped(name)))('%s', (_, open) => {
  test('handles a signed event, and rejects a forged one', async () => {
    await using app = await open();
    expect(await deliver(app)).toEqual([200, '']);
    expect(handled).toHaveBeenCalledExactlyOnceWith(`evt_${sent}`);
    expect(await deliver(app, 'whsec_forger')).toEqual([400, 'signature_mismatch']);
    expect(printed).not.toHaveBeenCalled();
  });

  test('creates a job of a page, and relays its upload', async () => {
    await using app = await open();
    const post = (verb: string, body: object) =>
      app.send(`/api/gen/${verb}`, { method: 'POST', headers: JSON_PAGE, body: JSON.stringify(body) });
    const key = 'b5f1c0de-0000-4000-8000-000000000001';
    expect((await post('videos', { key, input: { prompt: 'a fox' } })).status).toBe(200);
    const { put } = (await (await post('upload', { name: 'a.png', type: 'image/png', size: 10 })).json()) as {
      put: string;
    };
    const headers = { ...PAGE, 'x-gen-ticket': put, 'content-type': 'image/png' };
    expect((await app.send('/api/gen/bytes', { method: 'POST', headers, body: '0123456789' })).status).toBe(200);
    expect(printed).not.toHaveBeenCalled();
  });
});

/** Frameworks whose rows run in test/runtimes, with the built package. */
const IN_RUNTIMES = ['Workers', 'Bun', 'Deno'];
test.each(['browser', 'webhooks'])('docs/%s.md has a row for each of them', (guide) => {
  const text = readFileSync(join(ROOT, `docs/${guide}.md`), 'utf8');
  const [, table = ''] = /\| framework \|[^\n]*\n\|[- |]+\n((?:\|.*\n)+)/.exec(text) ?? [];
  const rows = table
    .trim()
    .split('\n')
    .map((row) => row.split('|')[1]?.trim());
  expect(rows).toEqual([...Object.keys(MOUNTS), ...IN_RUNTIMES]);
});

const keepsBytes = express.json({
  verify: (request, _response, bytes) => {
    Object.assign(request, { rawBody: bytes });
  },
});

test.each<[string, App]>([
  [
    'express.raw()',
    inExpress((app) => app.use(express.raw({ type: '*/*' })).post('/webhooks', toNodeHandler(handler))),
  ],
  [
    'express.text()',
    inExpress((app) => app.use(express.text({ type: '*/*' })).post('/webhooks', toNodeHandler(handler))),
  ],
  [
    'an express.json() that keeps the bytes',
    inExpress((app) => app.use(keepsBytes).post('/webhooks', toNodeHandler(handler))),
  ],
  [
    'a Fastify parser of buffers',
    inFastify((app) => {
      app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
      app.post('/webhooks', toNodeHandler(handler));
    }),
  ],
])('behind %s a signed event is handled', async (_, open) => {
  await using app = await open();
  expect(await deliver(app)).toEqual([200, '']);
  expect(handled).toHaveBeenCalledOnce();
});

/** Next.js reads and parses the body of an API route before it calls it. */
const inPagesRouter: App = async () => {
  const served = await listen(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    toNodeHandler(handler)(Object.assign(request, { body: JSON.parse(Buffer.concat(chunks).toString()) }), response);
  });
  return { send: toUrl(served.url), [Symbol.asyncDispose]: () => served[Symbol.asyncDispose]() };
};

test.each<[string, App, string]>([
  [
    'express.json()',
    inExpress((app) => app.use(express.json()).post('/webhooks', toNodeHandler(handler))),
    'Express: mount the handler before express.json(), or retain them',
  ],
  [
    "Fastify's own JSON parser",
    inFastify((app) => app.post('/webhooks', toNodeHandler(handler))),
    'Fastify: a content type parser with parseAs: "buffer"',
  ],
  [
    'the body parser of the Pages Router',
    inPagesRouter,
    'Pages Router: export const config = { api: { bodyParser: false } }',
  ],
  [
    'c.req.json() in Hono',
    inHono((app) => app.post('/webhooks', (c) => c.req.json().then(() => handler(c.req.raw)))),
    'was read before: verify first',
  ],
])('behind %s the log, and not the response, names the fix', async (_, open, fix) => {
  await using app = await open();
  expect(await deliver(app)).toEqual([500, 'body_unavailable']);
  const message = expect.stringContaining(fix);
  expect(printed).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ reason: 'body_unavailable', message }));
  expect(handled).not.toHaveBeenCalled();
});

test('a handler that is mounted with use sees the entire URL, and Express responds to what it throws', async () => {
  const app = express();
  const url = toNodeHandler((request) => new Response(request.url));
  app.use('/outputs', url);
  app.get(
    '/',
    toNodeHandler(() => Promise.reject(new Error('broken'))),
  );
  app.use((error: Error, _request: express.Request, response: express.Response, _next: express.NextFunction) => {
    response.status(418).send(error.message);
  });
  await using served = await listen(app);
  const output = `${served.url}/outputs/job_1?download`;
  expect(await (await fetch(output)).text()).toBe(output);
  const response = await fetch(served.url);
  expect([response.status, await response.text()]).toEqual([418, 'broken']);
});
