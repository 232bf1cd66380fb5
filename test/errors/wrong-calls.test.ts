import { expect, it } from 'vitest';
import { fromPath } from '../../src/adapters/node/index.js';
import { createBudget, GenClient } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { signWebhook } from '../../src/webhooks/index.js';
import { BASE_URL, created, freshKey, json, rejection } from '../transport/support.js';

const circular: Record<string, unknown> = { prompt: 'x' };
circular.self = circular;
const vault = new Error('the vault is away');
const failing = () => {
  throw vault;
};

/** A client whose types do not stop a wrong call. */
function client(options: object = {}) {
  const fetch = async () => json(created());
  return new GenClient({ apiKey: freshKey(), baseUrl: BASE_URL, fetch, maxRetries: 0, ...options });
}

/** Whatever a program without types may pass. */
const wrong = (value: unknown) => value as never;
const params = { prompt: 'a fox' };

const calls: Readonly<Record<string, () => unknown>> = {
  'params with a BigInt': () => client().images.create(wrong({ prompt: 'x', n: 1n })),
  'circular params': () => client().images.create(wrong(circular)),
  'a range that is not a number': () => client().jobs.output('job_1', { range: { start: Number.NaN } }),
  'one id as the list of waitForJobs': () => client().waitForJobs(wrong('job_1')).next(),
  'an apiKey function that throws': () => client({ apiKey: failing }).videos.create(params),
  'an apiKey function that rejects': () => client({ apiKey: () => Promise.reject(vault) }).videos.create(params),
  'an unknownPrice that throws': () =>
    client({ budget: createBudget({ maxTokens: 10, unknownPrice: failing }) }).videos.create(params),
  'a fetch that gives no Response': () => client({ fetch: async () => undefined }).videos.create(params),
  'no upload': () => client().uploads.put(wrong(null), new Blob(['x'])),
  'jobs that are not iterable': () => client().waitForJobs(wrong(5)).next(),
  'null as the options of a client': () => new GenClient(wrong(null)),
  'null as the options of a sandbox': () => createSandbox(wrong(null)),
  'null as the options of a create': () => client().videos.create(params, wrong(null)),
  'null as the options of createAndWait': () => client().videos.createAndWait(params, wrong(null)),
  'null as the job to estimate': () => client().estimate(wrong(null)),
  'a path that is a number': () => fromPath(wrong(5)),
  'a circular event to sign': () => signWebhook(wrong(circular), { secret: 'whsec_test' }),
};

it.each(Object.entries(calls))('%s: a GenError that says what to pass', async (_name, call) => {
  const error = await rejection((async () => call())());
  expect(error).toBeInstanceOf(Error);
  expect(GenErrorNames.test(`${error}`), `${error}`).toBe(true);
});

const GenErrorNames = /^(GenError|PreflightError|ConnectionError|UploadError): \S/;
