// Invalid arguments in plain JavaScript: no request is sent, and no message contains a secret.
import { describe, expect, it } from 'vitest';
import { createGen } from '../../src/adapters/ai-sdk/index.js';
import { createGenQueue, createGenWorker } from '../../src/adapters/bullmq/index.js';
import * as durable from '../../src/adapters/durable/index.js';
import { fromPath, saveOutput, toNodeHandler } from '../../src/adapters/node/index.js';
import { createGenProxy } from '../../src/adapters/proxy/index.js';
import { redisStore } from '../../src/adapters/redis/index.js';
import { copyOutput, createOutputHandler, r2, s3 } from '../../src/adapters/storage/index.js';
import { createBudget, GenClient, GenError, verifyWebhook } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { createWebhookHandler, signWebhook } from '../../src/webhooks/index.js';
import { json, rejection, stubbed } from '../transport/support.js';

const KEY = 'sk_live_51H8abcdefghijk';
const { client, requests } = stubbed(() => json({}), { webhookSecret: 'whsec_1' });
const job = { id: 'job_1', status: 'completed', providerOutputUrl: 'https://service.test/v1/jobs/job_1/output' };
const prompt = 'a fox';
const edit = { model: 'svc-video-pro', prompt, video: 'https://a.test/a.mp4' } as const;
const blob = new Blob(['x']);
const upload = { upload_id: 'upl_1', direct_upload_url: 'https://storage.test/put', headers: {} };
const webhook = { body: '', headers: {} };
const unreachable = { port: 1, lazyConnect: true, maxRetriesPerRequest: 0 };
const redis = { eval() {}, evalsha() {}, defineCommand() {}, call() {}, on() {} } as never;
const target = r2({ put() {}, head() {}, get() {} } as never, 'k');
/** A durable engine that throws a run's error. */
const engine: durable.DurableEngine = {
  call: async () => null,
  wait: async () => false,
  fail: ({ message }): never => {
    throw new GenError(message);
  },
};
const run = { call: 'videos', params: {}, key: 'k' } as const;

/** Every function with options, a misspelled option, and the intended option. */
const CALLS: readonly (readonly [string, (options: never) => unknown, typo: string, intended: string])[] = [
  ['GenClient', (options) => new GenClient(options), 'baseURL', 'baseUrl'],
  ['withOptions', (options) => client.withOptions(options), 'maxRetrys', 'maxRetries'],
  ['hooks', (hooks) => new GenClient({ hooks }), 'onRequests', 'hooks.onRequest'],
  ['createBudget', (options) => createBudget(options), 'maxToken', 'maxTokens'],
  ['videos.create', (options) => client.videos.create({ prompt }, options), 'timeout', 'timeoutMs'],
  ['images.create', (options) => client.images.create({ prompt }, options), 'idempotency_key', 'idempotencyKey'],
  [
    'register',
    (options) => client.characters.register({ name: 'x', upload_id: 'u' }, options),
    'onProgress',
    'onUpload',
  ],
  ['createAndWait', (options) => client.videoEdits.createAndWait(edit, options), 'onUpdated', 'onUpdate'],
  ['waitForJob', (options) => client.waitForJob('job_1', options), 'timeout', 'timeoutMs'],
  ['waitForJobs', (options) => client.waitForJobs(['job_1'], options).next(), 'pollInterval', 'pollIntervalMs'],
  ['watchJob', (options) => client.watchJob('job_1', options).next(), 'polIntervalMs', 'pollIntervalMs'],
  ['jobs.get', (options) => client.jobs.get('job_1', options), 'singal', 'signal'],
  ['jobs.output', (options) => client.jobs.output('job_1', options), 'resumes', 'resume'],
  ['models.list', (options) => client.models.list(options), 'timeoutms', 'timeoutMs'],
  ['request', (options) => client.request(options), 'json', 'body'],
  ["request's options", (options) => client.request({ method: 'GET', path: '/v1/x' }, options), 'header', 'headers'],
  ['uploads.upload', (options) => client.uploads.upload(blob, options), 'fileName', 'filename'],
  ['uploads.put', (options) => client.uploads.put(upload, blob, options), 'size', 'sizeBytes'],
  ['verifyWebhook', (options) => verifyWebhook(webhook, options), 'tolerance', 'toleranceSeconds'],
  ['client.verifyWebhook', (options) => client.verifyWebhook(webhook, options), 'secrets', 'secret'],
  ['signWebhook', (options) => signWebhook({}, options), 'timestmp', 'timestamp'],
  ['createWebhookHandler', (options) => createWebhookHandler(options), 'onEror', 'onError'],
  ['on', (on) => createWebhookHandler({ secret: 'whsec_1', on }), 'job.complete', 'job.completed'],
  ['redisStore', (options) => redisStore(redis, options), 'prefx', 'prefix'],
  ['saveOutput', (options) => saveOutput(client, job, 'x.mp4', options), 'overwite', 'overwrite'],
  ['copyOutput', (options) => copyOutput(client, job, target, options), 'overwite', 'overwrite'],
  ['s3', (options) => s3(options), 'regoin', 'region'],
  ['createOutputHandler', (options) => createOutputHandler(options), 'authorise', 'authorize'],
  ['createGenProxy', (options) => createGenProxy(options), 'autorize', 'authorize'],
  ['createSandbox', (options) => createSandbox(options), 'jobDuration', 'jobDurationMs'],
  ['createGenQueue', (options) => createGenQueue(unreachable, options), 'onErorr', 'onError'],
  ['createGenWorker', (options) => createGenWorker(unreachable, client, options), 'onComplete', 'onCompleted'],
  ['createGen', (options) => createGen(options), 'apikey', 'apiKey'],
  ['generate', (options) => durable.generate(engine, Object.assign({ ...run }, options)), 'timeout', 'timeoutMs'],
  ['createActivities', (options) => durable.createActivities(client, options), 'destinaton', 'destination'],
];

const failureOf = (call: () => unknown) => rejection((async () => call())());

describe.each(CALLS)('the options of %s', (name, call, typo, intended) => {
  it('are rejected with a suggestion if a name is unknown', async () => {
    const error = await failureOf(() => call({ [typo]: 5 } as never));
    expect(GenError.isInstance(error)).toBe(true);
    expect(String(error)).toContain(`${typo}"`);
    expect(String(error)).toContain(intended);
    expect(requests).toEqual([]);
  });

  it.skipIf(name === 'generate')("aren't shown if they are a string, because it may be a secret", async () => {
    const error = await failureOf(() => call(KEY as never));
    expect(error).toBeInstanceOf(GenError);
    expect(String(error) + JSON.stringify(error) + (error as Error).stack).not.toContain(KEY);
  });
});

const misplacedKey = KEY as never;
const circular: Record<string, unknown> = { prompt: 'x' };
circular.self = circular;
const throwError = () => {
  throw new Error('the vault is unavailable');
};
const newClient = (options: object) => new GenClient(options as never);
const create = (options: object) => stubbed(() => json({}), options as never).client.videos.create({ prompt });

describe('an invalid value is rejected with an explanation, and hidden if it may be a secret', () => {
  it.each<[string, () => unknown, RegExp]>([
    [
      'options',
      () => new GenClient(misplacedKey),
      /^GenClient: options must be an object such as { apiKey }, not a string\.$/,
    ],
    ['a number', () => new GenClient(5 as never), /^GenClient: options must be an object such as { apiKey }, not 5\.$/],
    ['null', () => new GenClient(null as never), /not null\.$/],
    ['null for a sandbox', () => createSandbox(null as never), /not null\.$/],
    ['null for an estimate', () => client.estimate(null as never), /\S/],
    ['headers', () => newClient({ headers: misplacedKey }), /^headers must be an object such as .*, not a string\.$/],
    ['headers as an array', () => newClient({ headers: ['x-key', KEY] }), /not an array\.$/],
    ['a Headers object', () => newClient({ headers: new Headers({ 'x-key': KEY }) }), /not an object\.$/],
    ["a call's headers", () => client.images.create({ prompt }, { headers: misplacedKey }), /^headers must be/],
    ['a header line as a name', () => newClient({ headers: { [`x-key: ${KEY}`]: '' } }), /^headers contains a name/],
    [
      'a header with a line break',
      () => newClient({ headers: { 'x-key': `${KEY}\n` } }),
      /^headers: x-key has a value that is invalid/,
    ],
    [
      'hooks',
      () => newClient({ hooks: misplacedKey }),
      /^hooks must be an object such as \{ onJob \}, not a string\.$/,
    ],
    ['fetch', () => newClient({ fetch: misplacedKey }), /^fetch must be a function, not a string\.$/],
    ['store', () => newClient({ store: misplacedKey }), /^store must be .*, not a string\.$/],
    ['budget', () => newClient({ budget: misplacedKey }), /createBudget\(\{ maxTokens \}\).*, not a string\.$/],
    ['limits', () => newClient({ limits: misplacedKey }), /^limits must be an object, not a string\.$/],
    ['apiKey', () => newClient({ apiKey: [KEY] }), /^apiKey must be/],
    ['webhookSecret', () => newClient({ webhookSecret: [KEY, 5] }), /^webhookSecret must be/],
    ['baseUrl', () => newClient({ baseUrl: `https://u:${KEY}@host.test` }), /^baseUrl must not contain credentials/],
    ['a value outside an enum', () => newClient({ logLevel: 'verbose' }), /"debug", not "verbose"\.$/],
    ['a Redis client', () => redisStore(`redis://:${KEY}@host` as never), /^client must be .*, not a string\.$/],
    ["s3's credentials", () => s3({ bucket: 'b', key: 'k', credentials: misplacedKey }), /^credentials must be/],
    ['a client', () => copyOutput(misplacedKey, 'job_1', {} as never), /must be a GenClient, not a string\.$/],
    ['destination', () => copyOutput(client, 'job_1', misplacedKey), /^destination must be .*, not a string\.$/],
    ['a handler', () => toNodeHandler(misplacedKey), /^handler must be a function .*, not a string\.$/],
    ["a sandbox's apiKey", () => createSandbox({ apiKey: `${KEY}\n` }), /visible ASCII characters\.$/],
    ['a BigInt', () => client.images.create({ prompt, n: 1n } as never), /\S/],
    ['circular params', () => client.images.create(circular as never), /\S/],
    ['a circular event', () => signWebhook(circular as never, { secret: 'whsec_test' }), /\S/],
    ['a range', () => client.jobs.output('job_1', { range: { start: Number.NaN } }), /range/],
    [
      'an apiKey that throws',
      () => create({ apiKey: throwError, maxRetries: 0 }),
      /^apiKey failed: the vault is unavailable$/,
    ],
    [
      'a price',
      () => create({ budget: createBudget({ maxTokens: 10, unknownPrice: throwError }) }),
      /^unknownPrice threw /,
    ],
    [
      'a fetch that returns undefined',
      () => create({ fetch: async () => undefined }),
      /^fetch must resolve with a Response/,
    ],
    ['a missing upload', () => client.uploads.put(null as never, blob), /\S/],
    ['a path', () => fromPath(5 as never), /\S/],
  ])('%s', async (_, call, message) => {
    const error = (await failureOf(call)) as Error;
    expect(`${error}`).toMatch(/^(GenError|PreflightError|ConnectionError|UploadError): \S/);
    expect(error.message).toMatch(message);
    expect(JSON.stringify(error) + error.message + error.stack).not.toContain(KEY);
  });
});
