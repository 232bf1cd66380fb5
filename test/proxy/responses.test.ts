// The proxy's responses, and the uploads that it deletes.
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import fastify from 'fastify';
import { createBudget, PreflightError } from 'gen-client';
import { toNodeHandler } from 'gen-client/node';
import { describe, expect, it, vi } from 'vitest';
import { PATIENCE_MS } from '../support/patience.js';
import { ANN, type App, completeUpload, INPUT, KEY, openApp, PAGE_HEADERS, sendBytes } from './support.js';

describe('a page that creates a video', () => {
  it('gets a ticket, follows the job to its end, and plays its file', async () => {
    const app = openApp();
    const created = await app.post('videos', { key: KEY, input: { prompt: 'a fox at dawn' } });
    expect(created.status).toBe(200);
    expect(created.headers.get('cache-control')).toBe('no-store');
    const { tokens } = created.body;
    expect(tokens).toBeGreaterThan(0);
    let response = created.body;
    while (response.phase === 'waiting') {
      expect(response.tokens).toBe(tokens);
      const next = await app.post('watch', { ticket: created.body.ticket, seen: response.status });
      expect(next.status).toBe(200);
      response = next.body;
    }
    expect(response).toMatchObject({ status: 'completed', progress: 1, tokens });
    const file = await app.send(String(response.url), { headers: { 'x-session': 'ann', range: 'bytes=0-99' } });
    expect(file.status).toBe(206);
    expect(file.headers.get('content-type')).toContain('video/mp4');
    expect(file.headers.get('referrer-policy')).toBe('no-referrer');
    expect((await file.arrayBuffer()).byteLength).toBe(100);
  });

  it('gets a link that opens without a session', async () => {
    const app = openApp();
    const job = await app.client.videos.createAndWait({ prompt: 'a fox' });
    const link = await app.proxy.link(job, { expiresInMs: 60_000 });
    expect((await app.send(link)).status).toBe(200);
  });
});

it('gets the reason for a failed generation', async () => {
  const app = openApp({}, { clock: 'manual' });
  const { job } = await app.client.videos.create(INPUT);
  app.sandbox.finish(job.id, { status: 'failed', errorCode: 'generation_rejected' });
  const { body } = await app.post('watch', { ticket: await app.proxy.ticket(job.id, ANN) });
  expect(body.error).toMatchObject({ message: expect.stringContaining('Change the prompt, references, or options.') });
});

it("doesn't poll a job whose ticket contains the outcome", async () => {
  const app = openApp({}, { clock: 'manual', jobDurationMs: 1 });
  const { job } = await app.client.images.create(INPUT);
  await app.sandbox.advance(60_000);
  const finished = await app.client.jobs.get(job.id);
  const requestsBefore = app.sandbox.requests.length;
  const tickets = await Promise.all(Array.from({ length: 100 }, () => app.proxy.ticket(finished, ANN)));
  for (let repeat = 0; repeat < 2; repeat++) {
    const { body } = await app.post('watch', { jobs: tickets.map((ticket) => ({ ticket })) });
    const jobs = body.jobs as { status: string; url: string }[];
    expect(new Set(jobs.map(({ status, url }) => `${status} ${typeof url}`))).toEqual(new Set(['completed string']));
  }
  expect(app.sandbox.requests).toHaveLength(requestsBefore);
});

it('rejects more than a hundred tickets, or none', async () => {
  const app = openApp();
  for (const jobs of [[], Array.from({ length: 101 }, () => ({})), 'all'])
    expect(await app.post('watch', { jobs })).toMatchObject({ status: 400, body: { code: 'invalid_watch' } });
});

describe('an error', () => {
  it.each<[string, object, object, string]>([
    ['a create function that throws', { create: { videos: () => JSON.parse('{') } }, {}, '500 internal_error false'],
    ['a rate limit', { limit: () => false }, {}, '429 rate_limited false'],
    ['an empty balance', {}, { balanceTokens: 0 }, '502 service_error false'],
    ['paused generation', {}, { dispatch: 'disabled' }, '502 dispatch_disabled false'],
    [
      'an app that rejects the create',
      {
        create: {
          videos: () => {
            throw new PreflightError('Your plan has no videos.', { code: 'plan_too_small', param: 'plan' });
          },
        },
      },
      {},
      '400 plan_too_small false',
    ],
  ])('from %s states that a retry is useless', async (_, options, sandboxOptions, expected) => {
    const app = openApp(options, sandboxOptions);
    const { status, body } = await app.post('videos', { key: KEY, input: INPUT });
    expect(`${status} ${body.code} ${body.retry}`).toBe(expected);
    expect(app.sandbox.jobs).toEqual([]);
  });

  it('from an unavailable service states that a retry may help', async () => {
    const app = openApp();
    const fetch = () => Promise.reject(new TypeError('fetch failed'));
    const client = app.client.withOptions({ maxRetries: 0, fetch });
    const { body } = await openApp({ client }).post('videos', { key: KEY, input: INPUT });
    expect(body).toMatchObject({ code: 'service_error', retry: true });
  });
});

it("logs the app's errors to the console if onError isn't set", async () => {
  const consoleError = vi.spyOn(console, 'error').mockImplementation(() => {});
  const error = new Error('a bug of the app');
  const authorize = () => {
    throw error;
  };
  await openApp({ authorize, onError: undefined }).post('videos', { key: KEY, input: INPUT });
  expect(consoleError.mock.calls).toEqual([[error]]);
  consoleError.mockRestore();
});

it("limits a user's abandoned uploads to 16 per minute without blocking others", async () => {
  const app = openApp();
  const file = { type: 'image/png', size: 10 };
  const statuses = await Promise.all(Array.from({ length: 130 }, async () => (await app.post('upload', file)).status));
  expect(statuses.filter((status) => status === 200)).toHaveLength(16);
  expect(app.sandbox.requests.filter(({ path }) => path === '/v1/uploads')).toHaveLength(16);
  expect((await app.post('upload', file, { user: 'ben' })).status).toBe(200);
});

it('recognizes a file without a type by its name', async () => {
  const app = openApp({ upload: () => true });
  const heic = { name: 'fox.HEIC', type: '', size: 10 };
  expect((await app.post('upload', heic)).status).toBe(200);
  const messageOf = async (file: object) => (await app.post('upload', file)).body.message;
  expect(await messageOf({ ...heic, size: 0 })).toBe('The file is empty. Choose another one.');
  expect(await messageOf({ ...heic, name: 'fox.txt' })).toBe(
    'The file is not an image, a video, or audio. Choose another one.',
  );
});

describe("the proxy deletes a page's upload", () => {
  const deletions = (app: App) =>
    app.sandbox.requests.filter(({ method }) => method === 'DELETE').map(({ path }) => path);
  const create = (app: App, ticket: string) =>
    app.post('videos', { key: KEY, input: { ...INPUT, first_frame_upload_id: ticket } });

  it('after its job has ended', async () => {
    const app = openApp();
    const { ticket, id } = await completeUpload(app);
    const { body } = await create(app, ticket);
    expect(deletions(app)).toEqual([]);
    for (let phase: unknown = body.phase, seen: unknown; phase === 'waiting'; ) {
      const response = await app.post('watch', { ticket: body.ticket, seen });
      ({ phase, status: seen } = response.body);
    }
    await vi.waitFor(() => expect(deletions(app)).toEqual([`/v1/uploads/${id}`]), PATIENCE_MS);
  });

  it('if the service rejects the create', async () => {
    const app = openApp();
    const { ticket, id } = await completeUpload(app);
    app.sandbox.dispatch = 'disabled';
    expect((await create(app, ticket)).status).toBe(502);
    await vi.waitFor(() => expect(deletions(app)).toEqual([`/v1/uploads/${id}`]), PATIENCE_MS);
  });

  it('if the page disconnects while sending the bytes', async () => {
    const app = openApp();
    const { body } = await app.post('upload', { name: 'a.png', type: 'image/png', size: 10 });
    const page = new AbortController();
    const stalledBody = new ReadableStream({ pull: () => new Promise(() => {}) });
    const response = sendBytes(app, String(body.put), stalledBody, { signal: page.signal });
    page.abort();
    expect((await response).status).toBe(499);
    await vi.waitFor(() => expect(deletions(app)).toHaveLength(1), PATIENCE_MS);
  });
});

it('shares an unscoped budget among all users, even if each request creates it', async () => {
  const app = openApp({ budget: () => createBudget({ maxTokens: 16, per: 86_400_123 }) });
  expect((await app.post('videos', { key: KEY, input: INPUT })).status).toBe(200);
  const other = await app.post('videos', { key: KEY, input: INPUT }, { user: 'ben' });
  expect(other).toMatchObject({ status: 402, body: { code: 'budget_exceeded' } });
});

describe('a JSON body parsed by a framework', () => {
  const { proxy } = openApp();
  const handler = toNodeHandler(proxy);
  const app = express();
  app.use(express.json());
  app.use('/api/gen', handler);

  async function statusAt(url: string, body: string): Promise<number> {
    return (await fetch(`${url}/api/gen/videos`, { method: 'POST', headers: PAGE_HEADERS, body })).status;
  }
  const bodies = [
    [JSON.stringify({ key: KEY, input: INPUT }), 200],
    ['{"key":"b5f1c0de-0000-4000-8000-000000000001","input":{"__proto__":{"model":"svc-video-pro"}}}', 400],
  ] as const;

  it.each(bodies)('passes the same checks as raw bytes in Express: %s', async (body, expected) => {
    const server = createServer(app as RequestListener);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    expect(await statusAt(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, body)).toBe(expected);
    server.close();
  });

  it('is accepted in Fastify', async () => {
    const server = fastify();
    server.all('/api/gen/:verb', handler);
    expect(await statusAt(await server.listen({ host: '127.0.0.1', port: 0 }), bodies[0][0])).toBe(200);
    await server.close();
  });
});
