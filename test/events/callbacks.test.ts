import { AsyncLocalStorage } from 'node:async_hooks';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createGenQueue, createGenWorker } from '../../src/adapters/bullmq/index.js';
import { saveOutput } from '../../src/adapters/node/index.js';
import { redisStore } from '../../src/adapters/redis/index.js';
import { copyOutput } from '../../src/adapters/storage/index.js';
import { type ClientOptions, GenClient, memoryStore } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { HOOKS } from '../../src/transport/events.js';
import { createWebhookHandler, signWebhook } from '../../src/webhooks/index.js';
import { completedEvent } from '../support/completed-event.js';
import { freshKey } from '../transport/support.js';

const PROMPT = { prompt: 'a fox at dawn' };
const TENANTS = ['A', 'B', 'C'];
const PNG = new Uint8Array(5_000);
PNG.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const storage = new AsyncLocalStorage<string>();

/** Records which function was called, and in which context. */
function recordCalls() {
  const calls: string[] = [];
  return {
    calls,
    record: (name: string) => () => void calls.push(`${name} in ${storage.getStore()}`),
    contexts: (name: string) => new Set(calls.filter((line) => line.startsWith(`${name} in`))),
  };
}

/** Makes a call for each callback. */
async function makeEveryCall(client: GenClient, callback: (name: string) => () => unknown): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'gen-client-callbacks-'));
  const options = { onCreated: callback('onCreated'), onUpdate: callback('onUpdate') };
  const job = await client.videos.createAndWait(PROMPT, options);
  await client.uploads.upload(new Blob([PNG], { type: 'image/png' }), { onProgress: callback('upload onProgress') });
  await saveOutput(client, job, `${folder}/`, { onProgress: callback('save onProgress') });
  const put = async (body: ReadableStream<Uint8Array>) => void (await new Response(body).arrayBuffer());
  await copyOutput(client, job, { put }, { onProgress: callback('copy onProgress') });
  rmSync(folder, { recursive: true });
}

const CALLBACKS = ['onCreated', 'onUpdate', 'upload onProgress', 'save onProgress', 'copy onProgress'];
/** The hooks of a call. */
const CALL_HOOKS = HOOKS.filter((name) => name !== 'onJob');

const unhandled = vi.fn();
beforeEach(() => {
  unhandled.mockClear();
  process.on('unhandledRejection', unhandled);
});
afterEach(async () => {
  await new Promise(setImmediate);
  process.off('unhandledRejection', unhandled);
  expect(unhandled).not.toHaveBeenCalled();
});

describe("a caller's function", () => {
  it("runs in its caller's async context, even among concurrent callers", async () => {
    const client = createSandbox().client();
    const { record, contexts } = recordCalls();
    await Promise.all(
      TENANTS.map((tenant) =>
        storage.run(tenant, () => makeEveryCall(client, (name) => record(`${name} of ${tenant}`))),
      ),
    );
    for (const name of CALLBACKS)
      for (const tenant of TENANTS)
        expect(contexts(`${name} of ${tenant}`)).toEqual(new Set([`${name} of ${tenant} in ${tenant}`]));
  });

  it.each<[string, () => unknown]>([
    ['rejects', () => Promise.reject(new Error('the database is down'))],
    [
      'throws',
      () => {
        throw new Error('the progress bar is closed');
      },
    ],
    [
      "throws a value that can't be converted to a string",
      () => {
        throw Object.create(null);
      },
    ],
  ])('that %s has no effect', async (_, fail) => {
    const callback = (name: string) => (name === 'onCreated' ? () => {} : fail);
    const hooks = Object.fromEntries(CALL_HOOKS.map((name) => [name, fail]));
    const logger = { error: fail, warn: fail, info: fail, debug: fail };
    const sandbox = createSandbox();
    sandbox.faults.add({ status: 500, times: 1 });
    await makeEveryCall(sandbox.client({ hooks, logger, logLevel: 'debug' }), callback);
  });
});

describe('a hook', () => {
  const limits = { 'videos.create': { limit: 1, windowMs: 20 } };

  it.each<[string, ClientOptions]>([
    ['in this process', { limits }],
    ['in a shared store', { store: memoryStore(), limits }],
  ])('of calls queued for one limit %s runs in the async context of its call', async (_, limitOptions) => {
    const sandbox = createSandbox({ limits: 'off' });
    const { record, contexts, calls } = recordCalls();
    sandbox.faults.add({ match: { path: '/v1/videos' }, status: 500, times: 2 });
    await Promise.all(
      TENANTS.map((tenant) => {
        const hooks = Object.fromEntries(CALL_HOOKS.map((name) => [name, record(`${name} of ${tenant}`)]));
        const log = () => record(`log of ${tenant}`)();
        const logger = { error: log, warn: log, info: log, debug: log };
        const options: ClientOptions = { ...limitOptions, hooks, logger, logLevel: 'debug', apiKey: sandbox.apiKey };
        const client = new GenClient({ baseUrl: sandbox.baseUrl, fetch: sandbox.fetch, ...options });
        return storage.run(tenant, () => client.videos.create(PROMPT));
      }),
    );
    expect(calls.filter((line) => line.startsWith('onWait')).length).toBeGreaterThan(1);
    const silent = CALL_HOOKS.filter((name) => !calls.some((line) => line.startsWith(`${name} of`)));
    expect(silent, 'hooks that this test never causes').toEqual([]);
    for (const tenant of TENANTS) {
      for (const name of [...CALL_HOOKS, 'log'])
        for (const line of contexts(`${name} of ${tenant}`)) expect(line).toBe(`${name} of ${tenant} in ${tenant}`);
    }
  });
});

describe('an onError callback', () => {
  const onError = vi.fn(() => Promise.reject(new Error('the alarm failed')));
  beforeEach(() => void onError.mockClear());

  it("that rejects in a queue or its worker doesn't end the process", async () => {
    // Nothing listens on this port, so the engine reports errors from the beginning.
    const connection = { host: '127.0.0.1', port: 9, retryStrategy: () => null };
    const client = new GenClient({ apiKey: freshKey(), baseUrl: 'https://service.test' });
    const queue = createGenQueue(connection, { onError });
    const { worker } = createGenWorker(connection, client, { onError });
    queue.queue.emit('error', new Error('connection lost'));
    worker.emit('error', new Error('connection lost'));
    expect(onError.mock.calls.length).toBeGreaterThanOrEqual(2);
    await Promise.allSettled([queue.queue.disconnect(), worker.disconnect()]);
  });

  it('that rejects in a Redis store has no effect', async () => {
    const fail = () => Promise.reject(new Error('connection lost'));
    const store = redisStore({ evalsha: fail, eval: fail }, { onError });
    await expect(store.read('group', ['key'])).rejects.toThrow('connection lost');
    expect(onError).toHaveBeenCalledOnce();
  });

  it('that rejects in a webhook handler has no effect, even if the listener also rejects', async () => {
    const secret = 'whsec_test';
    const handler = createWebhookHandler({ secret, onError, on: { '*': () => onError() } });
    const { body, headers } = await signWebhook(completedEvent('job_1', 'https://service.test'), { secret });
    const response = await handler(new Request('https://me.test', { method: 'POST', body, headers }));
    // The service retries the event.
    expect(response.status).toBe(500);
    await expect.poll(() => onError.mock.calls.length).toBe(2);
  });
});
