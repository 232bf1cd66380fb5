// The proxy and the webhook handler, mounted in every framework as the guides show, and the errors of incorrect mounts. For
// Bun, Deno, and Workers, see test/runtimes. For body parsers, see test/field/webhook-bodies.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import express from 'express';
import { createGenProxy, type DefaultInput } from 'gen-client/proxy';
import { createSandbox } from 'gen-client/sandbox';
import { Hono } from 'hono';
import { handle } from 'hono/aws-lambda';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { toNodeHandler } from '../../src/adapters/node/index.js';
import { createWebhookHandler, signWebhook } from '../../src/webhooks/index.js';
import { ROOT } from '../support/build.js';
import {
  type App,
  inExpress,
  inFastify,
  inHono,
  inLambda,
  inNest,
  inPagesRouter,
  inProcess,
  type Send,
} from './apps.js';
import { event, SECRET } from './deliver.js';
import { listen } from './node-server.js';
import { whyNoNest } from './run-nest.js';

const consoleError = vi.fn();
const listener = vi.fn();
beforeEach(() => void vi.spyOn(console, 'error').mockImplementation(consoleError));
afterEach(() => {
  vi.restoreAllMocks();
  consoleError.mockReset();
  listener.mockReset();
});

const handler = createWebhookHandler({ secret: SECRET, on: { '*': (event) => listener(event.id) } });
const proxy = createGenProxy({
  client: createSandbox().client(),
  secret: 'a secret of the app that has more than 32 characters',
  authorize: () => ({ id: 'ann' }),
  create: { videos: (input: DefaultInput) => ({ prompt: input.prompt }) },
  upload: () => true,
});

const isProxyPath = (url = '') => new URL(url, 'https://app.test').pathname.startsWith('/api/gen');
const mountInHono = (app: Hono) => {
  app.all('/api/gen/:verb', (c) => proxy(c.req.raw));
  app.post('/webhooks', (c) => handler(c.req.raw));
};
const onLambda = () => {
  const app = new Hono();
  mountInHono(app);
  return handle(app) as (event: never) => Promise<unknown>;
};

/** The code of the rows in the guides' tables, except those in `IN_RUNTIMES`. */
const MOUNTS: Record<string, App> = {
  'Next.js, App Router': inProcess((request) => (isProxyPath(request.url) ? proxy(request) : handler(request, {}))),
  'Next.js, Pages Router': inPagesRouter(({ url }) => toNodeHandler(isProxyPath(url) ? proxy : handler)),
  Hono: inHono(mountInHono),
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
  'SvelteKit, Astro, React Router': inProcess((request) => {
    const ALL = isProxyPath(request.url)
      ? ({ request }: { request: Request }) => proxy(request)
      : ({ request }: { request: Request }) => handler(request);
    return ALL({ request });
  }),
  'AWS Lambda, REST API (v1)': inLambda('v1', onLambda()),
  'AWS Lambda, HTTP API or function URL (v2)': inLambda('v2', onLambda()),
};

let eventCount = 0;
/** Sends a signed event. Returns the response's status and text. */
async function deliver({ send }: { readonly send: Send }, secret = SECRET): Promise<readonly [number, string]> {
  eventCount += 1;
  const { body, headers } = await signWebhook({ ...event, id: `evt_${eventCount}`, note: 'Füchse 🦊' }, { secret });
  const response = await send('/webhooks', { method: 'POST', body, headers });
  return [response.status, await response.text()];
}

const PAGE = { 'x-gen-page': '1', 'sec-fetch-site': 'same-origin' };
const JSON_PAGE = { ...PAGE, 'content-type': 'application/json' };

const isSkipped = (name: string) => name === 'Nest' && whyNoNest() !== undefined;
describe.each(Object.entries(MOUNTS).filter(([name]) => !isSkipped(name)))('%s', (_, startApp) => {
  test('handles a signed event, and rejects a forged one', async () => {
    await using app = await startApp();
    expect(await deliver(app)).toEqual([200, '']);
    expect(listener).toHaveBeenCalledExactlyOnceWith(`evt_${eventCount}`);
    expect(await deliver(app, 'whsec_forger')).toEqual([400, 'signature_mismatch']);
    expect(consoleError).not.toHaveBeenCalled();
  });

  test("creates a page's job, and relays its upload", async () => {
    await using app = await startApp();
    const post = (verb: string, body: object) =>
      app.send(`/api/gen/${verb}`, { method: 'POST', headers: JSON_PAGE, body: JSON.stringify(body) });
    const key = 'b5f1c0de-0000-4000-8000-000000000001';
    expect((await post('videos', { key, input: { prompt: 'a fox' } })).status).toBe(200);
    const { put } = (await (await post('upload', { name: 'a.png', type: 'image/png', size: 10 })).json()) as {
      put: string;
    };
    const headers = { ...PAGE, 'x-gen-ticket': put, 'content-type': 'image/png' };
    expect((await app.send('/api/gen/bytes', { method: 'POST', headers, body: '0123456789' })).status).toBe(200);
    expect(consoleError).not.toHaveBeenCalled();
  });
});

/** Frameworks whose rows run in test/runtimes, with the built package. */
const IN_RUNTIMES = ['Workers', 'Bun', 'Deno'];
test.each(['browser', 'webhooks'])('docs/%s.md has a row for each framework', (guide) => {
  const text = readFileSync(join(ROOT, `docs/${guide}.md`), 'utf8');
  const [, table = ''] = /\| framework \|[^\n]*\n\|[- |]+\n((?:\|.*\n)+)/.exec(text) ?? [];
  const rows = table
    .trim()
    .split('\n')
    .map((row) => row.split('|')[1]?.trim());
  // Both kinds of Lambda events share a row.
  const frameworks = Object.keys(MOUNTS).map((name) => name.replace(/^AWS Lambda, .*/, 'AWS Lambda'));
  expect(rows).toEqual([...new Set(frameworks), ...IN_RUNTIMES]);
});

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
    "the Pages Router's body parser",
    inPagesRouter(() => toNodeHandler(handler), { isParsed: true }),
    'Pages Router: export const config = { api: { bodyParser: false } }',
  ],
  [
    'c.req.json() in Hono',
    inHono((app) => app.post('/webhooks', (c) => c.req.json().then(() => handler(c.req.raw)))),
    'was already read: verify first',
  ],
])('behind %s, the log states the fix, and the response does not', async (_, startApp, fix) => {
  await using app = await startApp();
  expect(await deliver(app)).toEqual([500, 'body_unavailable']);
  const message = expect.stringContaining(fix);
  expect(consoleError).toHaveBeenCalledExactlyOnceWith(
    expect.objectContaining({ reason: 'body_unavailable', message }),
  );
  expect(listener).not.toHaveBeenCalled();
});

test('a handler mounted with `use` receives the entire URL, and Express handles its errors', async () => {
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
