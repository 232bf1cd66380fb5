// This package's handlers, called incorrectly by frameworks. For correct mounts, see test/webhooks/mounts.test.ts.
import { createGenProxy } from 'gen-client/proxy';
import { createSandbox } from 'gen-client/sandbox';
import { createOutputHandler } from 'gen-client/storage';
import { createWebhookHandler } from 'gen-client/webhooks';
import { Context } from 'hono';
import { describe, expect, it } from 'vitest';

const client = createSandbox().client();
const secret = 'a secret of the app that has more than 32 characters';
const NODE_FIX =
  'In node:http, Express, Nest, Fastify, and the Pages Router of Next.js, use toNodeHandler(handler) from gen-client/node.';
const LAMBDA_FIX = 'On AWS Lambda, mount it in a Hono app, and export handle(app) from hono/aws-lambda.';
type Handler = (request: Request) => Promise<Response>;

describe.each<[string, (onError: (error: unknown) => void) => Handler]>([
  ['The webhook handler', (onError) => createWebhookHandler({ secret, on: {}, onError })],
  ['The output handler', (onError) => createOutputHandler({ client, authorize: () => true, onError })],
  ['The proxy', (onError) => createGenProxy({ client, secret, authorize: () => null, create: {}, onError })],
])('%s', (name, createHandler) => {
  const request = new Request('https://app.test/api');

  it.each<[string, unknown, string]>([
    [
      '{ request }, as in SvelteKit, Astro, and React Router',
      { request, params: {} },
      'In SvelteKit, Astro, and React Router, export ({ request }) => handler(request).',
    ],
    ["Hono's context", new Context(request), 'In Hono, call handler(c.req.raw).'],
    ['an API Gateway v1 event', { httpMethod: 'POST', headers: {}, body: '{}', requestContext: {} }, LAMBDA_FIX],
    ['an API Gateway v2 event', { version: '2.0', headers: {}, body: '{}', requestContext: {} }, LAMBDA_FIX],
    ['a node:http request', { method: 'POST', url: '/api', headers: { host: 'app.test' } }, NODE_FIX],
    ['undefined', undefined, NODE_FIX],
  ])('called with %s responds with 500 and says what to do', async (_, argument, fix) => {
    const errors: unknown[] = [];
    const response = await createHandler((error) => errors.push(error))(argument as Request);
    expect(response.status).toBe(500);
    expect(await response.text()).toContain(`${name} accepts a web Request. ${fix}`);
    expect(errors).toMatchObject([{ name: 'GenError', message: `${name} accepts a web Request. ${fix}` }]);
  });
});
