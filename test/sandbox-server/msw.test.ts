import { HttpResponse, http } from 'msw';
import { setupServer } from 'msw/node';
import { afterEach, expect, it } from 'vitest';
import { GenClient } from '../../src/client/client.js';
import { createSandbox, sandboxHandlers } from '../../src/sandbox/index.js';

/** Creates a body that fails after its first bytes. */
function failingBody() {
  return new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode('hello')),
    pull: (controller) => controller.error(new TypeError('broken')),
  });
}

const service = {
  baseUrl: 'https://sandbox.test/prefix',
  fetch: async (request: Request) => {
    if (request.url.endsWith('/reset')) throw new TypeError('reset');
    if (request.url.endsWith('/cut')) return new Response(failingBody(), { headers: { 'content-length': '9' } });
    return Response.json({ url: request.url, method: request.method, body: await request.text() }, { status: 202 });
  },
};
let server = setupServer(...sandboxHandlers(service));
afterEach(() => {
  server.close();
  server = setupServer(...sandboxHandlers(service));
});

it('the handlers handle every method under the base URL, and leave everything else to other handlers', async () => {
  server.listen({ onUnhandledFrame: 'error' });
  const response = await fetch(`${service.baseUrl}/v1/videos?a=1`, { method: 'POST', body: 'hi' });
  expect(response.status).toBe(202);
  expect(await response.json()).toEqual({ url: `${service.baseUrl}/v1/videos?a=1`, method: 'POST', body: 'hi' });
  expect((await fetch(service.baseUrl, { method: 'DELETE' })).status).toBe(202);
  server.use(http.get('https://other.test/', () => new HttpResponse('other')));
  expect(await (await fetch('https://other.test/')).text()).toBe('other');
  server.use(http.get('https://sandbox.test/prefixed', () => new HttpResponse('not below')));
  expect(await (await fetch('https://sandbox.test/prefixed')).text()).toBe('not below');
});

it('the handlers can be overridden for one call, and restored', async () => {
  server.listen({ onUnhandledFrame: 'error' });
  server.use(http.get(`${service.baseUrl}/v1/models`, () => new HttpResponse(null, { status: 418 }), { once: true }));
  expect((await fetch(`${service.baseUrl}/v1/models`)).status).toBe(418);
  server.resetHandlers();
  expect((await fetch(`${service.baseUrl}/v1/models`)).status).toBe(202);
});

it('a reset and a truncated body are network errors', async () => {
  server.listen({ onUnhandledFrame: 'error' });
  await expect(fetch(`${service.baseUrl}/reset`)).rejects.toThrow(TypeError);
  await expect(fetch(`${service.baseUrl}/cut`).then((response) => response.text())).rejects.toThrow(TypeError);
});

it('the handlers serve the complete sandbox to an unmodified client, including faults', async () => {
  const sandbox = createSandbox({ clock: 'manual' });
  server = setupServer(...sandboxHandlers(sandbox));
  server.listen({ onUnhandledFrame: 'error' });
  const client = new GenClient({ apiKey: sandbox.apiKey, baseUrl: sandbox.baseUrl });
  sandbox.faults.add({ match: { path: '/v1/videos' }, commitThenDrop: true });
  const { job } = await client.videos.create({ prompt: 'a fox' });
  await sandbox.advance(60_000);
  const file = await (await client.jobs.output(job.id)).bytes();
  expect(new TextDecoder().decode(file.subarray(4, 8))).toBe('ftyp');
  const { upload_id } = await client.uploads.upload(new Blob(['png'], { type: 'image/png' }), { filename: 'a.png' });
  expect(upload_id).toMatch(/^upl_/);
  expect(sandbox.jobs).toHaveLength(1);
});
