import { getEventListeners } from 'node:events';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { type ClientOptions, createBudget, GenClient, memoryStore, TimeoutError } from '../../src/index.js';
import { fakeTimers } from '../support/fake-timers.js';
import { PATIENCE_MS } from '../support/patience.js';
import { quiet } from '../support/quiet.js';
import {
  countedSignal,
  created,
  freshKey,
  json,
  never,
  PROMPT,
  rawServer,
  rejection,
  stubbed,
  wire,
} from './support.js';

beforeAll(quiet);

const stalledBody = () =>
  new Response(
    new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode('{"success":')) }),
  );

describe('deadlines and aborts', () => {
  fakeTimers();

  const stalls: readonly [string, () => Response | Promise<Response>, ClientOptions][] = [
    ['a fetch that never responds and ignores its signal', never, {}],
    ['a body that never ends', stalledBody, {}],
    ['a key function that never resolves', () => json(created()), { apiKey: () => new Promise(() => {}) }],
  ];

  it.each(stalls)('the deadline rejects %s with a TimeoutError', async (_, step, options) => {
    const { client } = stubbed(step, { maxRetries: 0, timeoutMs: 5_000, ...options });
    const outcome = rejection(client.images.create(PROMPT));
    await vi.advanceTimersByTimeAsync(4_990);
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(20);
    expect(await outcome).toBeInstanceOf(TimeoutError);
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each(stalls)('an abort rejects %s immediately with its reason', async (_, step, options) => {
    const { client } = stubbed(step, options);
    const { controller, signal, listeners } = countedSignal();
    const reason = new Error('the user left');
    const outcome = rejection(client.videos.create(PROMPT, { signal }));
    await vi.advanceTimersByTimeAsync(50);
    expect(listeners()).toBeGreaterThan(0);
    controller.abort(reason);
    expect(await outcome).toBe(reason);
    expect(listeners()).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });

  const file = () => new Blob(['a fox'], { type: 'image/png' });
  type AbortableCall = (client: GenClient, signal: AbortSignal) => Promise<unknown>;
  it.each<[string, ClientOptions, AbortableCall]>([
    ['a create with a key', {}, ({ images }, signal) => images.create(PROMPT, { signal, idempotencyKey: 'order-1' })],
    ['a create with a store', { store: memoryStore() }, ({ images }, signal) => images.create(PROMPT, { signal })],
    [
      'a create with a budget',
      { budget: createBudget({ per: 'total', maxTokens: 100 }) },
      ({ images }, signal) => images.create(PROMPT, { signal }),
    ],
    [
      'a create with a file',
      {},
      ({ videos }, signal) => videos.create({ ...PROMPT, first_frame_upload_id: file() }, { signal }),
    ],
    ['uploads.upload', {}, ({ uploads }, signal) => uploads.upload(file(), { signal })],
    ['createAndWait', {}, ({ videos }, signal) => videos.createAndWait(PROMPT, { signal, idempotencyKey: 'order-2' })],
    ['waitForJob', {}, (client, signal) => client.waitForJob('job_1', { signal })],
  ])("an abort doesn't wait for the key function of %s", async (_, options, call) => {
    const { client } = stubbed(() => json(created()), { apiKey: () => new Promise(() => {}), ...options });
    const { controller, signal, listeners } = countedSignal();
    const outcome = rejection(call(client, signal));
    await vi.advanceTimersByTimeAsync(50);
    controller.abort(new Error('the user left'));
    await vi.advanceTimersByTimeAsync(10);
    expect(await Promise.race([outcome, 'pending'])).toBe(signal.reason);
    expect(listeners()).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('an abort whose reason has a details field rejects an upload with that reason', async () => {
    const reason = { details: 'client went away' };
    const { client } = stubbed(never);
    const { controller, signal } = countedSignal();
    const upload = rejection(client.uploads.upload(file(), { signal }));
    await vi.advanceTimersByTimeAsync(10);
    controller.abort(reason);
    expect(await upload).toBe(reason);
  });

  it('an abort rejects the call immediately between two attempts', async () => {
    const { client, requests } = stubbed(() => json({}, { status: 500 }));
    const { controller, signal, listeners } = countedSignal();
    const outcome = rejection(client.videos.create(PROMPT, { signal }));
    await vi.advanceTimersByTimeAsync(50);
    controller.abort();
    expect(await outcome).toBe(signal.reason);
    expect(requests).toHaveLength(1);
    expect(listeners()).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('an abort rejects the call immediately during the wait after a 429', async () => {
    const { client } = stubbed(() => json({}, { status: 429, headers: { 'retry-after': '60' } }));
    for (const path of ['/v1/videos', '/v1/images']) {
      const { controller, signal, listeners } = countedSignal();
      const outcome = rejection(client.request({ method: 'POST', path, body: PROMPT }, { signal }));
      await vi.advanceTimersByTimeAsync(50);
      controller.abort(undefined);
      expect(await outcome).toBe(signal.reason);
      expect(listeners()).toBe(0);
    }
    expect(vi.getTimerCount()).toBe(0);
  });

  it('a call with an aborted signal sends nothing', async () => {
    const { client, requests } = stubbed(() => json(created()));
    expect(await rejection(client.videos.create(PROMPT, { signal: AbortSignal.abort('no') }))).toBe('no');
    expect(requests).toHaveLength(0);
  });

  it('a response that arrives after the deadline is discarded with its body', async () => {
    const cancel = vi.fn();
    const response = () => new Response(new ReadableStream({ cancel }));
    const lateResponse = () => new Promise<Response>((resolve) => setTimeout(() => resolve(response()), 200));
    const { client } = stubbed(lateResponse, { maxRetries: 0, timeoutMs: 100 });
    const outcome = rejection(client.images.create(PROMPT));
    await vi.advanceTimersByTimeAsync(150);
    expect(await outcome).toBeInstanceOf(TimeoutError);
    await vi.advanceTimersByTimeAsync(100);
    expect(cancel).toHaveBeenCalledTimes(1);
  });

  it('neither success nor failure leaves a timer or a listener', async () => {
    const steps = [() => json(created()), () => json({}, { status: 400 }), () => Promise.reject(new Error('lost'))];
    const { client } = stubbed(steps, { maxRetries: 1 });
    const { signal, listeners } = countedSignal();
    await client.images.create(PROMPT, { signal });
    await rejection(client.images.create(PROMPT, { signal }));
    const lost = rejection(client.images.create(PROMPT, { signal }));
    await vi.advanceTimersByTimeAsync(10_000);
    await lost;
    expect(listeners()).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('each attempt gets the full timeout', async () => {
    const slow = () => new Promise<Response>((resolve) => setTimeout(() => resolve(json({}, { status: 500 })), 900));
    const { client, requests } = stubbed([slow, slow, slow, () => json(created())], { timeoutMs: 1_000 });
    const create = client.images.create(PROMPT);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(await create).toMatchObject({ job: { id: 'job_1' } });
    expect(requests).toHaveLength(4);
  });
});

describe('on a real connection', () => {
  it('a stalled body times out, its connection is closed, and the retry succeeds', async () => {
    const server = await rawServer((socket, _request, number) => {
      const response = wire(200, created());
      if (number === 1) socket.write(response.slice(0, -10));
      else socket.write(response);
    });
    const client = new GenClient({ apiKey: freshKey(), baseUrl: server.url, timeoutMs: 500 });
    const { signal } = new AbortController();
    const { attempts } = await client.videos.create(PROMPT, { signal }).withResponse();
    expect(attempts).toBe(2);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    await vi.waitFor(() => expect(server.openConnections()).toBe(1), PATIENCE_MS);
    await server.close();
  });
});
