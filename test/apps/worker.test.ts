// The Worker in examples/apps, with an in-memory bucket.
import type { R2BucketLike } from 'gen-client/storage';
import { signWebhook } from 'gen-client/webhooks';
import { afterEach, expect, test } from 'vitest';
import { completedEvent } from '../support/completed-event.js';
import { serveApps, stopServing } from './service.js';

afterEach(stopServing);

/** Creates a bucket that counts its puts. */
function memoryBucket() {
  type Options = { httpMetadata?: { contentType?: string }; customMetadata?: Record<string, string> };
  const objects = new Map<string, { bytes: Uint8Array<ArrayBuffer>; options: Options }>();
  let puts = 0;
  const get = async (key: string) => {
    const object = objects.get(key);
    if (object === undefined) return null;
    const { bytes, options } = object;
    const body = new Blob([bytes]).stream();
    return { size: bytes.length, httpEtag: '"1"', uploaded: new Date(0), ...options, body };
  };
  const put = async (key: string, body: ReadableStream, options: Options = {}) => {
    puts++;
    objects.set(key, { bytes: new Uint8Array(await new Response(body).arrayBuffer()), options });
    return get(key);
  };
  const bucket: R2BucketLike = { head: get, get, put };
  return { bucket, puts: () => puts };
}

test('the example Worker creates a video, stores its file, serves it to its owner, and ignores a duplicate event', async () => {
  const sandbox = serveApps({ jobDurationMs: 0 });
  const { worker } = await import('../../examples/apps/worker.js');
  const { bucket, puts } = memoryBucket();
  const { apiKey: GEN_API_KEY, baseUrl: GEN_BASE_URL, webhookSecret: GEN_WEBHOOK_SECRET } = sandbox;
  const env = { GEN_API_KEY, GEN_BASE_URL, GEN_WEBHOOK_SECRET, VIDEOS: bucket };
  const send = (path: string, init: RequestInit) => worker.fetch(new Request(`https://app.test${path}`, init), env);
  const headers = { 'x-user': 'fox' };

  const created = await send('/', { method: 'POST', body: 'a fox', headers });
  const { video } = (await created.json()) as { video: string };
  const event = completedEvent(video.split('/').at(-1) ?? '', sandbox.baseUrl);
  const signed = await signWebhook(event, { secret: sandbox.webhookSecret });
  expect((await send('/webhook', { method: 'POST', ...signed })).ok).toBe(true);
  const requestsBefore = sandbox.requests.length;
  expect((await send('/webhook', { method: 'POST', ...signed })).ok).toBe(true);
  expect([sandbox.requests.length, puts()]).toEqual([requestsBefore, 1]);
  expect((await send(video, { headers })).status).toBe(200);
  expect((await send(video, {})).status).toBe(404);
});
