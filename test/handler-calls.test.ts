// The handlers of this package, called as frameworks call theirs.
import { createGenProxy } from 'gen-client/proxy';
import { createSandbox } from 'gen-client/sandbox';
import { createOutputHandler } from 'gen-client/storage';
import { createWebhookHandler } from 'gen-client/webhooks';
import { describe, expect, it } from 'vitest';

const client = createSandbox().client();
const secret = 'a secret of the app that has more than 32 characters';
type Handler = (request: Request) => Promise<Response>;

describe.each<[string, (onError: (error: unknown) => void) => Handler]>([
  ['The webhook handler', (onError) => createWebhookHandler({ secret, on: {}, onError })],
  ['The output handler', (onError) => createOutputHandler({ client, authorize: () => true, onError })],
  ['The proxy', (onError) => createGenProxy({ client, secret, authorize: () => null, create: {}, onError })],
])('%s', (name, make) => {
  const request = new Request('https://app.test/api');

  it.each<[string, unknown, string]>([
    [
      '{ request }, as SvelteKit, Astro and React Router call it',
      { request, params: {} },
      'In SvelteKit, Astro and React Router, export ({ request }) => handler(request).',
    ],
    [
      'a request of node:http',
      { method: 'POST', url: '/api', headers: { host: 'app.test' } },
      'In node:http, Express, Nest or Fastify, use toNodeHandler(handler) from gen-client/node.',
    ],
    ['nothing', undefined, 'In node:http, Express, Nest or Fastify, use toNodeHandler(handler) from gen-client/node.'],
  ])('called with %s answers 500 and says how to call it', async (_, given, fix) => {
    const errors: unknown[] = [];
    const answer = await make((error) => errors.push(error))(given as Request);
    expect(answer.status).toBe(500);
    expect(await answer.text()).toContain(`${name} takes a web Request. ${fix}`);
    expect(errors).toMatchObject([{ name: 'GenError', message: `${name} takes a web Request. ${fix}` }]);
  });
});
