// Tickets created by the server, and requests that the proxy holds until a job changes.
import { GenClient } from 'gen-client';
import { createSandbox } from 'gen-client/sandbox';
import { describe, expect, it } from 'vitest';
import { CLOCK, clockOf } from '../../src/runtime/clock.js';
import { ANN, msUntil, openApp, watchFrom } from './support.js';

const MINUTE_MS = 60_000;

/** Opens an app with a job in flight and a manual clock. */
async function openWithJob(overrides: Parameters<typeof openApp>[0] = {}) {
  const app = openApp(overrides, { clock: 'manual', jobDurationMs: 5 * MINUTE_MS });
  const { job } = await app.client.videos.create({ prompt: 'a fox' });
  const polls = () => app.sandbox.requests.filter(({ method }) => method === 'GET').length;
  return { app, job, polls, ticket: await app.proxy.ticket(job, ANN) };
}

describe('a ticket created by the server', () => {
  it('lets only its user watch the job', async () => {
    const { app, ticket } = await openWithJob({ holdMs: 0 });
    expect(await app.post('watch', { ticket })).toMatchObject({
      status: 200,
      body: { phase: 'waiting', status: 'processing' },
    });
    expect(await app.post('watch', { ticket }, { user: 'ben' })).toMatchObject({
      status: 404,
      body: { code: 'not_found', message: 'This does not exist, or it has expired.' },
    });
  });

  it('requires a job and a user', async () => {
    const { app, job } = await openWithJob();
    await expect(app.proxy.ticket('', ANN)).rejects.toThrow('Pass a job or its ID.');
    for (const user of [undefined, {}, { id: '' }, { id: 7 }]) {
      await expect(app.proxy.ticket(job, user as never)).rejects.toThrow('proxy.ticket: user is missing. Pass { id }.');
    }
  });

  it.each(['60000', 0, Number.POSITIVE_INFINITY])(
    'is not created for a link if expiresInMs is %s',
    async (expiresInMs) => {
      const { app, job } = await openWithJob();
      const message = /^expiresInMs must be a finite number of milliseconds above 0, not /;
      await expect(app.proxy.link(job, { expiresInMs } as never)).rejects.toThrow(message);
    },
  );
});

describe('a request that watches a job', () => {
  it("is held for holdMs while the job isn't polled again", async () => {
    const { app, ticket } = await openWithJob({ holdMs: 3_000 });
    const first = app.post('watch', { ticket });
    await msUntil(app.sandbox, first);
    expect(await first).toMatchObject({ status: 200, body: { status: 'processing', phase: 'waiting' } });
    // At most one response per second, even if two replicas report different statuses in turn.
    expect((await first).body.againMs).toBeGreaterThan(500);
    const held = app.post('watch', { ticket, seen: 'processing' });
    const heldMs = await msUntil(app.sandbox, held);
    expect(heldMs).toBeGreaterThanOrEqual(3_000);
    expect(heldMs).toBeLessThan(8_000);
    expect((await held).body.status).toBe('processing');
  });

  it('returns immediately with holdMs: 0, and reports when to poll again until the job ends', async () => {
    const { app, ticket } = await openWithJob({ holdMs: 0 });
    const { body } = await app.post('watch', { ticket });
    expect(body.againMs).toBeGreaterThan(0);
    await app.sandbox.advance(6 * MINUTE_MS);
    const ended = await app.post('watch', { ticket, seen: 'processing' });
    expect(ended.body).toMatchObject({ phase: 'done', status: 'completed', progress: 1, etaMs: 0 });
    expect(ended.body.againMs).toBe(0);
  });

  it('ends when its page disconnects', async () => {
    const { app, ticket } = await openWithJob({ holdMs: MINUTE_MS });
    await msUntil(app.sandbox, app.post('watch', { ticket }));
    const { response, disconnect } = watchFrom(app, ticket);
    disconnect();
    expect((await response).status).toBe(200);
  });

  it('continues the polls of its job for at most a minute after it ends', async () => {
    const { app, ticket, polls } = await openWithJob({ holdMs: 20_000 });
    await msUntil(app.sandbox, app.post('watch', { ticket, seen: 'processing' }));
    await app.sandbox.advance(MINUTE_MS);
    const pollsBefore = polls();
    expect(pollsBefore).toBeGreaterThan(1);
    await app.sandbox.advance(2 * MINUTE_MS);
    expect(polls()).toBe(pollsBefore);
  });
});

describe('a request that watches a job on Workers', () => {
  /** Opens an app with the clock of Workers, where each request has a separate wait. */
  async function openOnWorkers(holdMs: number) {
    const sandbox = createSandbox({ clock: 'manual', jobDurationMs: 5 * MINUTE_MS });
    const { apiKey, baseUrl, fetch } = sandbox;
    const manual = clockOf(sandbox.client());
    const clock = {
      now: () => manual.now(),
      after: (...timer: Parameters<typeof manual.after>) => manual.after(...timer),
      perRequest: true,
    };
    const client = new GenClient({ apiKey, baseUrl, fetch, ...{ [CLOCK]: clock } });
    const app = openApp({ client, holdMs } as never);
    const { job } = await client.videos.create({ prompt: 'a fox' });
    return { app, sandbox, job, ticket: await app.proxy.ticket(job, ANN) };
  }

  it("returns the first status that the page hasn't seen", async () => {
    const { app, sandbox, ticket } = await openOnWorkers(20_000);
    const response = app.post('watch', { ticket });
    await msUntil(sandbox, response);
    expect(await response).toMatchObject({ status: 200, body: { status: 'processing', phase: 'waiting' } });
  });

  it('returns the same state after holdMs without a change', async () => {
    const { app, sandbox, ticket } = await openOnWorkers(20_000);
    const response = app.post('watch', { ticket, seen: 'processing' });
    const heldMs = await msUntil(sandbox, response);
    expect(heldMs).toBeGreaterThanOrEqual(20_000);
    expect(heldMs).toBeLessThan(40_000);
    expect(await response).toMatchObject({ status: 200, body: { status: 'processing', phase: 'waiting' } });
  });

  it('returns after the first poll with holdMs: 0, even without a change', async () => {
    const { app, sandbox, ticket } = await openOnWorkers(0);
    const response = app.post('watch', { ticket, seen: 'processing' });
    expect(await msUntil(sandbox, response)).toBeLessThan(1_000);
    expect(await response).toMatchObject({ status: 200, body: { status: 'processing', againMs: 5_000 } });
  });

  it('ends without an error when its page disconnects before the first poll', async () => {
    const { app, ticket } = await openOnWorkers(20_000);
    const { response, disconnect } = watchFrom(app, ticket);
    disconnect();
    expect({ status: (await response).status, errors: app.errors }).toEqual({ status: 200, errors: [] });
  });

  it('returns the outcome of the job', async () => {
    const { app, sandbox, ticket } = await openOnWorkers(8 * MINUTE_MS);
    const response = app.post('watch', { ticket, seen: 'processing' });
    expect(await msUntil(sandbox, response)).toBeGreaterThanOrEqual(4 * MINUTE_MS);
    expect(await response).toMatchObject({
      status: 200,
      body: { status: 'completed', phase: 'done', progress: 1, etaMs: 0 },
    });
  });
});

describe("a watch while the service doesn't respond", () => {
  it.each([[undefined], ['processing'], [7]])(
    'reports no change after ten seconds to a page that has seen %j',
    async (seen) => {
      const sandbox = createSandbox({ clock: 'manual' });
      const { apiKey, baseUrl } = sandbox;
      const fetch = () => new Promise<Response>(() => {});
      const client = new GenClient({ apiKey, baseUrl, fetch, ...{ [CLOCK]: clockOf(sandbox.client()) } });
      const app = openApp({ client, holdMs: 0 } as never);
      const ticket = await app.proxy.ticket('job_1', ANN);
      const response = app.post('watch', { ticket, seen });
      expect(await msUntil(sandbox, response)).toBeGreaterThanOrEqual(10_000);
      expect(await response).toMatchObject({ status: 200, body: { againMs: 5_000 } });
    },
  );
});

describe("the target of an upload's bytes", () => {
  /** Opens an app whose service returns this target. */
  function openWith(direct_upload_url: string, headers: Record<string, string>) {
    const sandbox = createSandbox();
    const client = new GenClient({
      apiKey: sandbox.apiKey,
      baseUrl: sandbox.baseUrl,
      fetch: async () => Response.json({ success: true, data: { upload_id: 'upl_1', direct_upload_url, headers } }),
    });
    return openApp({ client } as never);
  }

  it.each<[string, string, Record<string, string>, boolean]>([
    ['a storage URL is sent to the page', 'https://storage.test/upl_1?sig=x', { 'x-part': '1' }, true],
    ['a storage URL without a scheme is sent as an absolute URL', '//storage.test/upl_1', {}, true],
    ["the service's origin isn't sent", createSandbox().baseUrl, {}, false],
    ["a path on the service isn't sent", '/v1/uploads/upl_1/content', {}, false],
    [
      "a storage URL that needs a credential isn't sent",
      'https://storage.test/upl_1',
      { Authorization: 'Bearer x' },
      false,
    ],
    ["a storage URL that needs a key isn't sent", 'https://storage.test/upl_1', { 'X-Api-Key': 'x' }, false],
  ])('%s', async (_, url, headers, isSent) => {
    const { body } = await openWith(url, headers).post('upload', { type: 'image/png', size: 10 });
    expect(body).toEqual({
      put: expect.any(String),
      ...(isSent && { direct: { url: new URL(url, createSandbox().baseUrl).href, headers } }),
    });
  });
});
