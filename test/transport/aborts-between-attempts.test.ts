// Creates aborted in a pause between two attempts. The result depends on what was sent.
import { type ClientOptions, createBudget, GenClient } from 'gen-client';
import { describe, expect, it, vi } from 'vitest';
import { openService, VIDEO } from '../budget/service.js';
import { fakeTimers } from '../support/fake-timers.js';
import { persistentStore } from '../support/persistent-store.js';
import { BASE_URL, freshKey, json } from './support.js';

const rateLimited = (seconds: number) => () =>
  json({ error: { code: 'rate_limited' } }, { status: 429, headers: { 'retry-after': `${seconds}` } } as never);
const refusedConnection = () => {
  throw Object.assign(new TypeError('fetch failed'), {
    cause: Object.assign(new Error(), { code: 'ECONNREFUSED', syscall: 'connect' }),
  });
};
const lostResponse = () => {
  throw new TypeError('terminated');
};

fakeTimers();

/** Creates a client with a budget and a store. The service starts with these responses. */
function createProgram(firstResponses: readonly (() => Response)[], options: ClientOptions = {}) {
  const service = openService({ polledFields: () => ({ providerOutputUrl: `${BASE_URL}/output` }) });
  const store = persistentStore();
  const budget = createBudget({ maxTokens: 1_000, store, unknownPrice: () => 12 });
  const responses = [...firstResponses];
  const keys: (string | null)[] = [];
  const fetch = async (url: string, init: RequestInit) => {
    if (init.method === 'POST') keys.push(new Headers(init.headers).get('idempotency-key'));
    return responses.shift()?.() ?? service.fetch(url, init);
  };
  const base = { apiKey: freshKey(), baseUrl: BASE_URL, budget, store, fetch };
  return { client: new GenClient({ ...base, ...options }), budget, keys, service };
}

/** Aborts in the first pause or later, then resumes from the store. */
async function abortAndResume({ client, budget }: ReturnType<typeof createProgram>, afterMs = 100) {
  const abort = new AbortController();
  const reason = new Error('the user left');
  const created = client.videos.create(VIDEO, { signal: abort.signal, idempotencyKey: 'order-1' });
  const rejected = expect(created).rejects.toBe(reason);
  await vi.advanceTimersByTimeAsync(afterMs);
  abort.abort(reason);
  await rejected;
  const usage = await budget.usage();
  const resumed = (async () => {
    const ids: string[] = [];
    for await (const { job } of client.resume()) ids.push(job.id);
    return ids;
  })();
  await vi.advanceTimersByTimeAsync(60_000);
  return { usage, resumed: await resumed };
}

describe('a create whose caller aborts in a pause', () => {
  it.each([
    ['after a 429 with a rate limit', rateLimited(30), 'wait'],
    ["after a 429 with rateLimit: 'off'", rateLimited(30), 'off'],
    ['after a refused connection', refusedConnection, 'wait'],
  ] as const)('%s created no job: nothing is reserved or resumed', async (_, response, rateLimit) => {
    const program = createProgram([response, response], { rateLimit });
    const { usage, resumed } = await abortAndResume(program);
    expect(usage).toMatchObject({ spentTokens: 0, reservedTokens: 0, unresolved: [] });
    expect(resumed).toEqual([]);
    expect(program.service.jobs.size).toBe(0);
  });

  it('after a lost response may have created one: its tokens stay reserved, and resume uses its key', async () => {
    const program = createProgram([lostResponse, rateLimited(30)]);
    const { usage, resumed } = await abortAndResume(program, 1_000);
    expect(usage).toMatchObject({ spentTokens: 0, reservedTokens: 12, unresolved: ['order-1'] });
    expect(resumed).toEqual(['job_1']);
    expect(new Set(program.keys)).toEqual(new Set(['order-1']));
  });
});

describe('a run aborted in the pause before its second job', () => {
  it('is resumed: `resume` creates and yields the second job', async () => {
    const service = openService({ polledFields: () => ({ providerOutputUrl: `${BASE_URL}/output` }) });
    const failed = { id: 'job_1', status: 'failed', errorCode: 'generation_timeout' };
    const limit = rateLimited(30);
    let isLimited = true;
    const fetch = async (url: string, init: RequestInit) => {
      if (init.method === 'GET' && url.endsWith('job_1')) return json({ success: true, data: { job: failed } });
      return init.method === 'POST' && service.jobs.size === 1 && isLimited ? limit() : service.fetch(url, init);
    };
    const client = new GenClient({ apiKey: freshKey(), baseUrl: BASE_URL, store: persistentStore(), fetch });
    const abort = new AbortController();
    const reason = new Error('the user left');
    const call = client.videos.createAndWait(VIDEO, { signal: abort.signal, recover: { generation_timeout: 1 } });
    const rejected = expect(call).rejects.toBe(reason);
    await vi.advanceTimersByTimeAsync(20_000);
    abort.abort(reason);
    await rejected;
    expect(service.jobs.size).toBe(1);
    isLimited = false;
    const jobs: string[] = [];
    const resumed = (async () => {
      for await (const { job } of client.resume()) jobs.push(job.id);
    })();
    await vi.advanceTimersByTimeAsync(120_000);
    await resumed;
    expect(jobs).toEqual(['job_2']);
  });
});

describe('creates queued in a budget behind one that waits after a 429', () => {
  it('are sent after its wait', async () => {
    const { client, service } = createProgram([rateLimited(90)], { store: undefined });
    const creates = Promise.all([1, 2, 3].map(() => client.videos.create(VIDEO)));
    await vi.advanceTimersByTimeAsync(120_000);
    await creates;
    expect(service.jobs.size).toBe(3);
  });
});
