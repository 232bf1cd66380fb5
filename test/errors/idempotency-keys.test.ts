// Every error from a create includes its idempotency key, because repeating the call with that key never creates a second job.
import { describe, expect, it } from 'vitest';
import { type ClientOptions, createBudget, type GenClient, GenError } from '../../src/index.js';
import { createStore } from '../../src/ledger/stores.js';
import { json, rejection, stubbed } from '../transport/support.js';
import { virtualClock } from '../waiting/virtual-clock.js';

const PROMPT = { prompt: 'a fox at dawn' };
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const reject = (status: number, code: string, headers?: Record<string, string>) => () =>
  json({ error: { code, message: 'no' } }, { status, ...(headers && { headers }) });
const job = (fields: object) => json({ success: true, data: { job: { id: 'job_1', mediaType: 'video', ...fields } } });
const running = () => job({ status: 'processing' });
const failToConnect = (): never => {
  throw new TypeError('fetch failed');
};

function setUp(steps: (() => Response | Promise<Response>) | readonly (() => Response)[], options: ClientOptions = {}) {
  const clock = virtualClock();
  const { client, requests } = stubbed(steps, { [Symbol.for('gen-client.clock')]: clock, ...options });
  return { client, requests, errorOf: async (call: Promise<unknown>) => clock.until(rejection(call)) };
}

const tooSmallBudget = createBudget({ maxTokens: 1, per: 'total', unknownPrice: () => 2 });
const unavailable = async () => Promise.reject(new Error('disk full'));
const failingStore = createStore({ read: unavailable, write: unavailable, timeoutMs: 10 });

const failures: Record<
  string,
  { steps: () => Response | Promise<Response>; options?: ClientOptions; params?: object }
> = {
  'failed validation': { steps: running, params: { prompt: '' } },
  "a budget that can't cover the create": { steps: running, options: { budget: tooSmallBudget } },
  'a failing store': { steps: running, options: { store: failingStore } },
  'a failing API key function': {
    steps: running,
    options: { apiKey: () => Promise.reject(new Error('vault')), maxRetries: 0 },
  },
  'a rejected file': { steps: running, params: { ...PROMPT, first_frame_upload_id: new Blob(['text']) } },
  'a rate limit': { steps: reject(429, 'rate_limited', { 'retry-after': '3600' }) },
  'a rejected API key': { steps: reject(401, 'invalid_api_key') },
  'a rejected body': { steps: reject(400, 'prompt_required') },
  'an unavailable service': { steps: reject(503, 'unavailable') },
  'no connection': { steps: failToConnect },
  'a timeout': { steps: () => new Promise<Response>(() => {}), options: { maxRetries: 0 } },
  'a response that is not JSON': { steps: () => new Response('<html>') },
  'a response without a job': { steps: () => json({ success: true, data: {} }) },
};

const calls: Record<
  string,
  (client: GenClient, params: object, options?: { idempotencyKey: string }) => Promise<unknown>
> = {
  create: ({ videos }, params, options) => videos.create(params as typeof PROMPT, options),
  createAndWait: ({ videos }, params, options) => videos.createAndWait(params as typeof PROMPT, options),
};

describe.each(Object.entries(failures))('after %s', (_, { steps, options, params = PROMPT }) => {
  it.each(Object.entries(calls))('the error of %s contains its idempotency key', async (__, call) => {
    const { client, errorOf } = setUp(steps, options);
    const generatedKeyError = await errorOf(call(client, params));
    expect(generatedKeyError).toBeInstanceOf(GenError);
    expect((generatedKeyError as GenError).idempotencyKey).toMatch(UUID);
    const explicitKeyError = await errorOf(call(client, params, { idempotencyKey: 'order-1' }));
    expect(explicitKeyError).toMatchObject({ idempotencyKey: 'order-1' });
    expect((explicitKeyError as GenError).toJSON()).toMatchObject({ idempotencyKey: 'order-1' });
  });
});

describe('during a wait', () => {
  const waits: Record<string, readonly (() => Response)[]> = {
    'a revoked API key': [running, running, reject(401, 'invalid_api_key')],
    'a missing job': [running, reject(404, 'job_not_found')],
    'a failed job': [running, () => job({ status: 'failed', errorCode: 'generation_rejected' })],
    'a job that never ends': [running],
  };

  it.each(Object.entries(waits))("createAndWait's error contains its idempotency key after %s", async (_, steps) => {
    const { client, requests, errorOf } = setUp(steps);
    const error = (await errorOf(client.videos.createAndWait(PROMPT))) as GenError;
    expect(error).toBeInstanceOf(GenError);
    expect(error.idempotencyKey).toBe(requests[0]?.headers['idempotency-key']);
    expect(error.idempotencyKey).toMatch(UUID);
  });

  it("waitForJob's error contains no idempotency key", async () => {
    const { client, errorOf } = setUp(reject(401, 'invalid_api_key'));
    expect(await errorOf(client.waitForJob('job_1'))).not.toHaveProperty('idempotencyKey', expect.any(String));
  });
});
