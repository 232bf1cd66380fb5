import { HttpResponse, http } from 'msw';
import { setupServer } from 'msw/node';
import { afterEach, expect, it } from 'vitest';
import { sandboxHandlers } from '../../src/sandbox/msw.js';

const service = {
  baseUrl: 'https://sandbox.test/prefix',
  fetch: async (request: Request) => {
    if (request.url.endsWith('/reset')) throw new TypeError('reset');
    if (request.url.endsWith('/cut')) return new Response(failing(), { headers: { 'content-length': '9' } });
    return Response.json({ url: request.url, method: request.method, body: await request.text() }, { status: 202 });
  },
};
const server = setupServer(...sandboxHandlers(service));
afterEach(() => server.close());

it('answers every method below the base URL and leaves all else to the other handlers', async () => {
  server.listen({ onUnhandledFrame: 'error' });
  const answer = await fetch(`${service.baseUrl}/v1/videos?a=1`, { method: 'POST', body: 'hi' });
  expect(answer.status).toBe(202);
  expect(await answer.json()).toEqual({ url: `${service.baseUrl}/v1/videos?a=1`, method: 'POST', body: 'hi' });
  expect((await fetch(service.baseUrl, { method: 'DELETE' })).status).toBe(202);
  server.use(http.get('https://other.test/', () => new HttpResponse('other')));
  expect(await (await fetch('https://other.test/')).text()).toBe('other');
  server.use(http.get('https://sandbox.test/prefixed', () => new HttpResponse('not below')));
  expect(await (await fetch('https://sandbox.test/prefixed')).text()).toBe('not below');
});

it('can be overridden for one call and reset again', async () => {
  server.listen({ onUnhandledFrame: 'error' });
  server.use(http.get(`${service.baseUrl}/v1/models`, () => new HttpResponse(null, { status: 418 }), { once: true }));
  expect((await fetch(`${service.baseUrl}/v1/models`)).status).toBe(418);
  server.resetHandlers();
  expect((await fetch(`${service.baseUrl}/v1/models`)).status).toBe(202);
});

it('shows a reset and a cut body as network failures', async () => {
  server.listen({ onUnhandledFrame: 'error' });
  await expect(fetch(`${service.baseUrl}/reset`)).rejects.toThrow(TypeError);
  await expect(fetch(`${service.baseUrl}/cut`).then((answer) => answer.text())).rejects.toThrow(TypeError);
});

function failing(): ReadableStream {
  let pulls = 0;
  return new ReadableStream({
    pull(controller) {
      if (pulls++ === 0) controller.enqueue(new TextEncoder().encode('hello'));
      else controller.error(new Error('cut'));
    },
  });
}
