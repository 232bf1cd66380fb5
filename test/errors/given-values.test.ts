import { describe, expect, it } from 'vitest';
import { createGen } from '../../src/adapters/ai-sdk/index.js';
import { saveOutput, toNodeHandler } from '../../src/adapters/node/index.js';
import { createGenProxy } from '../../src/adapters/proxy/index.js';
import { redisStore } from '../../src/adapters/redis/index.js';
import { copyOutput, createOutputHandler, s3 } from '../../src/adapters/storage/index.js';
import { createBudget, GenClient, GenError, verifyWebhook } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { createWebhookHandler, signWebhook } from '../../src/webhooks/index.js';
import { rejection, stubbed } from '../transport/support.js';

const SECRET = 'sk_live_51H8abcdefghijk';
/** The types refuse all of these; a program in JavaScript passes them. */
const given = SECRET as never;

const { client } = stubbed([]);
const request = () => new Request('https://app.test/webhooks', { method: 'POST', body: '{}' });

describe('a text in the place of something else is not shown, because it may be a secret:', () => {
  it.each<[string, () => unknown, RegExp | string]>([
    ['GenClient', () => new GenClient(given), 'GenClient: options must be an object such as { apiKey }, not a string.'],
    ['createBudget', () => createBudget(given), /^createBudget: options must be an object such as \{ maxTokens \}/],
    ['createWebhookHandler', () => createWebhookHandler(given), /^createWebhookHandler: options must be an object/],
    ['signWebhook', () => signWebhook({}, given), /^signWebhook: options must be an object such as \{ secret \}/],
    ['verifyWebhook', () => verifyWebhook(request(), given), /^verifyWebhook has no option/],
    ['client.verifyWebhook', () => client.verifyWebhook(request(), given), /^The signing secret is missing/],
    ['request', () => client.request(given), /^request: options must be an object such as \{ method \}/],
    ['withOptions', () => client.withOptions(given), /^GenClient: options must be an object such as \{ apiKey \}/],
    ['images.create', () => client.images.create({ prompt: 'a fox' }, given), /^images\.create: options must be/],
    ['createAndWait', () => client.videos.createAndWait({ prompt: 'a fox' }, given), /: options must be an object/],
    ['waitForJob', () => client.waitForJob('job_1', given), /^waitForJob: options must be an object/],
    ['uploads.upload', () => client.uploads.upload(new Blob(['x']), given), /^uploads\.upload: options must be/],
    [
      'headers',
      () => new GenClient({ headers: given }),
      "headers must be an object such as { 'x-team': 'film' }, not a string.",
    ],
    ['headers as a list', () => new GenClient({ headers: ['x-key', SECRET] as never }), /not an array\.$/],
    [
      'a Headers object',
      () => new GenClient({ headers: new Headers({ 'x-key': SECRET }) as never }),
      /not an object\.$/,
    ],
    ['headers of a call', () => client.images.create({ prompt: 'a fox' }, { headers: given }), /^headers must be/],
    ['a header as a line', () => new GenClient({ headers: { [`x-key: ${SECRET}`]: '' } }), /^headers has a name/],
    ['a header in two lines', () => new GenClient({ headers: { 'x-key': `${SECRET}\n` } }), /^headers must give x-key/],
    ['hooks', () => new GenClient({ hooks: given }), /^hooks must be an object with hooks, not a string\.$/],
    ['fetch', () => new GenClient({ fetch: given }), /^fetch must be a function, not a string\.$/],
    ['store', () => new GenClient({ store: given }), /^store must be .*, not a string\.$/],
    ['budget', () => new GenClient({ budget: given }), /createBudget\(\{ maxTokens \}\).*, not a string\.$/],
    ['limits', () => new GenClient({ limits: given }), /^limits must be an object, not a string\.$/],
    ['apiKey', () => new GenClient({ apiKey: [SECRET] as never }), /^apiKey must be/],
    ['webhookSecret', () => new GenClient({ webhookSecret: [SECRET, 5] as never }), /^webhookSecret must be/],
    ['baseUrl', () => new GenClient({ baseUrl: `https://u:${SECRET}@host.test` }), /^baseUrl must have no credentials/],
    ['redisStore', () => redisStore(`redis://:${SECRET}@host` as never), /^client must be .*, not a string\.$/],
    [
      'options of redisStore',
      () => redisStore({ eval: () => {}, evalsha: () => {} } as never, given),
      /options must be/,
    ],
    ['s3', () => s3(given), /^s3: options must be an object such as \{ bucket \}/],
    ['credentials of s3', () => s3({ bucket: 'b', key: 'k', credentials: given }), /^credentials must be/],
    ['copyOutput', () => copyOutput(given, 'job_1', {} as never), /must be a GenClient, not a string\.$/],
    ['destination', () => copyOutput(client, 'job_1', given), /^destination must be .*, not a string\.$/],
    ['saveOutput', () => saveOutput(client, 'job_1', 'x', given), /^saveOutput: options must be an object/],
    ['createOutputHandler', () => createOutputHandler(given), /^createOutputHandler: options must be an object/],
    ['toNodeHandler', () => toNodeHandler(given), /^handler must be a function .*, not a string\.$/],
    ['createGenProxy', () => createGenProxy(given), /^createGenProxy: options must be an object such as \{ client \}/],
    ['createGen', () => createGen(given), /^GenClient: options must be an object|^createGen: options/],
    ['createSandbox', () => createSandbox(given), /^createSandbox: options must be an object/],
    ['apiKey of a sandbox', () => createSandbox({ apiKey: `${SECRET}\n` }), /visible ASCII characters\.$/],
  ])('%s', async (_where, call, message) => {
    const error = await rejection(Promise.resolve().then(call));
    expect(error).toBeInstanceOf(GenError);
    expect((error as Error).message).toMatch(message);
    expect(JSON.stringify(error) + (error as Error).message + (error as Error).stack).not.toContain(SECRET);
  });
});

describe('what cannot be a secret is shown:', () => {
  it.each<[string, () => unknown, string]>([
    ['a number', () => new GenClient(5 as never), 'GenClient: options must be an object such as { apiKey }, not 5.'],
    ['a word of a list', () => new GenClient({ logLevel: 'verbose' as never }), '"debug", not "verbose".'],
    [
      'a budget of tokens',
      () => client.images.create({ prompt: 'x' }, { budget: 100 as never }),
      'createBudget({ maxTokens })',
    ],
  ])('%s', async (_what, call, message) => {
    expect(((await rejection(Promise.resolve().then(call))) as Error).message).toContain(message);
  });
});
