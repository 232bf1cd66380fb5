import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { GenClient, NotFoundError, ResponseError } from '../../src/index.js';
import { DOCUMENTED_LIMITS } from '../../src/rules/limits.js';
import { pass } from '../support/pass.js';
import { created, freshKey, httpServer, json, rejection, stubbed } from './support.js';

const PROMPT = { prompt: 'a fox at dawn' };
const limited = (retryAfter: string) => () =>
  json({ error: 'rate_limited' }, { status: 429, headers: { 'retry-after': retryAfter } });

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('a rate limit', () => {
  it('ends a call that aborts in the same tick in which it gets its slot', async () => {
    const limits = { 'videos.create': { limit: 2, windowMs: 1_000 } };
    const controller = new AbortController();
    const enough = new Error('one is enough');
    let sent = 0;
    const onRequest = () => {
      sent += 1;
      if (sent === 3) controller.abort(enough);
    };
    const { client } = stubbed(() => json(created()), {
      limits,
      hooks: { onRequest },
    });
    await Promise.all([client.videos.create(PROMPT), client.videos.create(PROMPT)]);
    const second = rejection(client.videos.create(PROMPT, { signal: controller.signal }));
    const first = client.videos.create(PROMPT);
    await vi.advanceTimersByTimeAsync(5_000);
    await first;
    expect(await second).toBe(enough);
  });

  it('recovers the slots of calls whose key function threw', async () => {
    const { limit } = DOCUMENTED_LIMITS['videos.create'];
    let isAway = true;
    const key = freshKey();
    const apiKey = () => {
      if (isAway) throw new Error('the vault is unavailable');
      return key;
    };
    const { client } = stubbed(() => json(created()), { apiKey, maxRetries: 0 });
    for (let call = 0; call < limit - 1; call++) await rejection(client.videos.create(PROMPT));
    isAway = false;
    await Promise.all(Array.from({ length: limit }, () => client.videos.create(PROMPT)));
    expect(client.limits()['videos.create']).toMatchObject({ free: 0, queued: 0 });
  });

  it('recovers the slots of calls that the service rejected with a 429', async () => {
    const times: number[] = [];
    const { client } = stubbed(() => {
      const now = Date.now();
      const inWindow = times.filter((time) => time > now - 4_000);
      if (inWindow.length >= 5) return limited(String(Math.ceil(((inWindow[0] ?? now) + 4_000 - now) / 1_000)))();
      times.push(now);
      return json(created());
    });
    const start = Date.now();
    let left = 18;
    const all = Array.from({ length: 18 }, () =>
      client.videos.create(PROMPT).then(() => {
        left -= 1;
      }),
    );
    while (left > 0) await vi.advanceTimersByTimeAsync(500);
    await Promise.all(all);
    // 18 creates at 5 per 4 s take at least 12 s. A defect once made it 69.5 s.
    expect(Date.now() - start).toBeLessThan(30_000);
  });

  it('serves 10,000 queued calls with one signal without a search per call', async () => {
    vi.useRealTimers();
    const limits = { 'videos.create': { limit: 1, windowMs: 1 } };
    const { signal } = new AbortController();
    const added = vi.spyOn(signal, 'addEventListener');
    const { client } = stubbed(() => json(created()), { limits });
    const calls = Array.from({ length: 200 }, () => client.videos.create(PROMPT, { signal }));
    await new Promise(setImmediate);
    const listeners = added.mock.calls.length;
    await Promise.all(calls);
    // One for the queue, plus those of the requests in flight.
    expect(listeners).toBeLessThan(5);
  });
});

describe('a response that never ends', () => {
  it('is canceled at the size limit, and not retried', async () => {
    vi.useRealTimers();
    const endlessResponse = gzipSync(Buffer.alloc(64 * 1024 * 1024, ' '));
    let requested = 0;
    const server = await httpServer((_request, response) => {
      requested += 1;
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(endlessResponse);
    });
    const client = new GenClient({ apiKey: freshKey(), baseUrl: server.url });
    const error = await rejection(client.jobs.get('job_1'));
    expect(error).toBeInstanceOf(ResponseError);
    expect(String(error)).toContain('larger than 16777216 bytes');
    expect(requested).toBe(1);
    await server.close();
  });

  it('with an error status is read only as far as its message needs', async () => {
    let pulled = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        pulled += 1;
        controller.enqueue(new TextEncoder().encode('x'.repeat(16_384)));
      },
    });
    const { client } = stubbed(() => new Response(endless, { status: 400 }), { maxRetries: 0 });
    const error = await rejection(client.images.create(PROMPT));
    expect(error).toMatchObject({ status: 400 });
    expect(pulled).toBeLessThan(10);
    expect(String(error).length).toBeLessThan(500);
  });
});

describe('a deletion whose response was lost', () => {
  it('succeeds, even though its retry finds nothing', async () => {
    const gone = () => json({ error: 'upload_not_found' }, { status: 404 });
    const { client } = stubbed([() => Promise.reject(new Error('reset')), gone]);
    await expect(pass(client.uploads.delete('upl_1'))).resolves.toEqual({});
    const other = stubbed([() => Promise.reject(new Error('reset')), gone]);
    await expect(pass(other.client.characters.delete('ann'))).resolves.toEqual({});
  });

  it('rejects with NotFoundError on the first attempt and after a 429', async () => {
    const gone = () => json({ error: 'upload_not_found' }, { status: 404 });
    expect(await rejection(stubbed(gone).client.uploads.delete('upl_1'))).toBeInstanceOf(NotFoundError);
    const waited = stubbed([limited('1'), gone]).client.uploads.delete('upl_1');
    expect(await rejection(pass(waited))).toBeInstanceOf(NotFoundError);
  });
});

it('an abort whose reason has a details field rejects an upload with that reason', async () => {
  const reason = { details: 'client went away' };
  const { client } = stubbed(() => new Promise<Response>(() => {}));
  const controller = new AbortController();
  const upload = rejection(
    client.uploads.upload(new Blob(['x'], { type: 'image/png' }), { signal: controller.signal }),
  );
  await vi.advanceTimersByTimeAsync(10);
  controller.abort(reason);
  expect(await upload).toBe(reason);
});
