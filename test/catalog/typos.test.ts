// What plain JavaScript, or a body that came as JSON, gets wrong without a compiler: nothing of it is paid for.
import { describe, expect, test } from 'vitest';
import { createGen } from '../../src/adapters/ai-sdk/index.js';
import { createGenQueue, createGenWorker } from '../../src/adapters/bullmq/index.js';
import {
  cloudflareEngine,
  createActivities,
  generate,
  inngestEngine,
  workflowEngine,
} from '../../src/adapters/durable/index.js';
import { saveOutput, toNodeHandler } from '../../src/adapters/node/index.js';
import { redisStore } from '../../src/adapters/redis/index.js';
import { copyOutput, createOutputHandler, r2, s3 } from '../../src/adapters/storage/index.js';
import { GenClient, GenError, verifyWebhook } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { createWebhookHandler, signWebhook } from '../../src/webhooks/index.js';
import { rejection } from '../transport/support.js';

/** Any function, called as JavaScript does. */
type Loose = (...args: unknown[]) => unknown;
const loosely = (given: unknown, method?: string): Loose => {
  const call = method === undefined ? given : Reflect.get(Object(given), method);
  return (...args) => Reflect.apply(call as Loose, given, args);
};

/** An engine of durable runs that throws what a run fails with. */
const engine = {
  call: async () => null,
  wait: async () => false,
  fail: ({ message }: { readonly message: string }): never => {
    throw new GenError(message);
  },
};

describe('an option that does not exist is refused by name, with the nearest one that does', () => {
  const client = new GenClient({
    webhookSecret: 'whsec_1',
    apiKey: 'sk-test-typos-typos',
    baseUrl: 'https://service.test',
    fetch: () => Promise.reject(new Error('no call')),
  });
  const job = { id: 'job_1', status: 'completed', providerOutputUrl: 'https://service.test/v1/jobs/job_1/output' };
  const event = { object: 'event', id: 'evt_1', type: 'job.completed', created: '', data: { job } };
  const secret = 'whsec_1';
  const bucket = { put() {}, head() {}, get() {} };
  const nowhere = { port: 1, lazyConnect: true, maxRetriesPerRequest: 0 };
  const redis = { eval() {}, evalsha() {}, defineCommand() {}, call() {}, on() {} };
  const doors: [string, () => unknown, typo: string, meant: string][] = [
    ['GenClient', () => new GenClient({ baseURL: 'https://x' } as never), 'baseURL', 'baseUrl'],
    ['withOptions', () => client.withOptions({ maxRetrys: 1 } as never), 'maxRetrys', 'maxRetries'],
    ['hooks', () => new GenClient({ hooks: { onRequests() {} } as never }), 'hooks.onRequests', 'hooks.onRequest'],
    ['videos.create', () => loosely(client.videos, 'create')({ prompt: 'x' }, { timeout: 5 }), 'timeout', 'timeoutMs'],
    [
      'images.create',
      () => loosely(client.images, 'create')({ prompt: 'x' }, { idempotency_key: 'k' }),
      'idempotency_key',
      'idempotencyKey',
    ],
    [
      'characters.register',
      () => loosely(client.characters, 'register')({ name: 'x', upload_id: 'u' }, { onProgress() {} }),
      'onProgress',
      'onUploadProgress',
    ],
    [
      'createAndWait',
      () =>
        loosely(client.videoEdits, 'createAndWait')(
          { model: 'svc-video-pro', prompt: 'x', video: 'https://a.test/a.mp4' },
          { onUpdated() {} },
        ),
      'onUpdated',
      'onUpdate',
    ],
    ['waitForJob', () => loosely(client, 'waitForJob')('job_1', { timeout: 5 }), 'timeout', 'timeoutMs'],
    [
      'waitForJobs',
      () => client.waitForJobs(['job_1'], { pollInterval: 5 } as never).next(),
      'pollInterval',
      'pollIntervalMs',
    ],
    ['jobs.get', () => loosely(client.jobs, 'get')('job_1', { singal: 1 }), 'singal', 'signal'],
    ['jobs.output', () => loosely(client.jobs, 'output')('job_1', { resumes: true }), 'resumes', 'resume'],
    ['models.list', () => loosely(client.models, 'list')({ timeoutms: 1 }), 'timeoutms', 'timeoutMs'],
    [
      'request',
      () => loosely(client, 'request')({ method: 'GET', path: '/v1/x' }, { header: {} }),
      'header',
      'headers',
    ],
    [
      'the request itself',
      () => loosely(client, 'request')({ method: 'POST', path: '/v1/x', json: {} }),
      'json',
      'body',
    ],
    [
      'uploads.upload',
      () => loosely(client.uploads, 'upload')(new Blob(['x']), { fileName: 'x' }),
      'fileName',
      'filename',
    ],
    [
      'uploads.put',
      () => loosely(client.uploads, 'put')({}, new Blob(['x']), { size: 1, sizeByte: 1 }),
      'size',
      'sizeBytes',
    ],
    [
      'verifyWebhook',
      () => loosely(verifyWebhook)({ body: '', headers: {} }, { secret, tolerance: 1 }),
      'tolerance',
      'toleranceSeconds',
    ],
    [
      'client.verifyWebhook',
      () => loosely(client, 'verifyWebhook')({ body: '', headers: {} }, { secrets: secret }),
      'secrets',
      'secret',
    ],
    ['signWebhook', () => loosely(signWebhook)(event, { secret, timestmp: 1 }), 'timestmp', 'timestamp'],
    ['createWebhookHandler', () => loosely(createWebhookHandler)({ secret, onEror() {} }), 'onEror', 'onError'],
    [
      'on',
      () => loosely(createWebhookHandler)({ secret, on: { 'job.complete': () => {} } }),
      'job.complete',
      'job.completed',
    ],
    ['redisStore', () => loosely(redisStore)(redis, { prefx: 'x' }), 'prefx', 'prefix'],
    ['saveOutput', () => loosely(saveOutput)(client, job, 'x.mp4', { overwite: true }), 'overwite', 'overwrite'],
    ['toNodeHandler', () => loosely(toNodeHandler)(() => new Response(), { maxBodyByte: 1 }), 'maxBodyByte', ''],
    [
      'copyOutput',
      () => loosely(copyOutput)(client, job, r2(bucket as never, 'k'), { overwite: true }),
      'overwite',
      'overwrite',
    ],
    ['s3', () => loosely(s3)({ bucket: 'b', key: 'k', regoin: 'eu' }), 'regoin', 'region'],
    [
      'createOutputHandler',
      () => loosely(createOutputHandler)({ client, authorise: () => true }),
      'authorise',
      'authorize',
    ],
    ['createSandbox', () => loosely(createSandbox)({ jobDuration: 3 }), 'jobDuration', 'jobDurationMs'],
    ['createGenQueue', () => loosely(createGenQueue)(nowhere, { onErorr() {} }), 'onErorr', 'onError'],
    [
      'createGenWorker',
      () => loosely(createGenWorker)(nowhere, client, { onComplete() {} }),
      'onComplete',
      'onCompleted',
    ],
    ['createGen', () => loosely(createGen)({ apikey: 'x' }), 'apikey', 'apiKey'],
    [
      'generate',
      () => loosely(generate)(engine, { call: 'videos', params: {}, key: 'k', timeout: 1 }),
      'timeout',
      'timeoutMs',
    ],
    ['createActivities', () => loosely(createActivities)(client, { destinaton: () => 1 }), 'destinaton', 'destination'],
    [
      'cloudflareEngine',
      () => loosely(cloudflareEngine)({}, {}, { NonRetriableError: Error }),
      'NonRetriableError',
      'NonRetryableError',
    ],
    [
      'inngestEngine',
      () => loosely(inngestEngine)({}, {}, { NonRetriableError: Error, events: 'x' }),
      'events',
      'event',
    ],
    ['workflowEngine', () => loosely(workflowEngine)({}, { hooks: 1, FatalError: Error }), 'hooks', 'hook'],
  ];
  test.each(doors)('%s', async (_, act, typo, meant) => {
    const error = await rejection((async () => act())());
    expect(error).toBeInstanceOf(Error);
    expect(String(error)).toContain(`"${typo}"`);
    expect(String(error)).toContain(meant);
    expect(GenError.isInstance(error)).toBe(true);
  });
});
