import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  BudgetExceededError,
  type BudgetOptions,
  createBudget,
  GenClient,
  GenError,
  InsufficientBalanceError,
} from '../../src/index.js';
import { createStore, memoryStore } from '../../src/ledger/stores.js';
import { createSandbox, type SandboxOptions } from '../../src/sandbox/index.js';
import { errorOf } from '../support/rejection.js';
import { scopedBudget } from '../support/scoped-budget.js';
import { json, stubbed } from '../transport/support.js';
import { VIDEO } from './service.js';

/** Opens a sandbox whose jobs cost ten tokens, and a client with a budget. */
function openClient(options: Partial<BudgetOptions> = {}, sandboxOptions: Partial<SandboxOptions> = {}) {
  const sandbox = createSandbox({ balanceTokens: 10_000, prices: 10, limits: 'off', ...sandboxOptions });
  const budget = scopedBudget({ maxTokens: 35, ...options });
  return { sandbox, budget, client: sandbox.client({ budget, maxRetries: 0 }) };
}

describe('a budget', () => {
  test('allows creates that fit, and rejects the others before sending anything', async () => {
    const { sandbox, client, budget } = openClient();
    const calls = await Promise.allSettled(Array.from({ length: 10 }, () => client.videos.create(VIDEO)));
    expect(calls.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
    expect(sandbox.requests).toHaveLength(3);
    const error = await errorOf(client.videos.create(VIDEO));
    expect(BudgetExceededError.isInstance(error)).toBe(true);
    expect(GenError.isInstance(error)).toBe(true);
    expect(error).toMatchObject({
      name: 'BudgetExceededError',
      message: expect.stringMatching(/has 5 of 35 tokens left while running jobs may still release tokens, so/),
      reason: 'unresolved',
      code: 'budget_exceeded',
      estimateTokens: 10,
      leftTokens: 5,
      resetsAt: null,
      recovery: 'retry_later',
    });
    expect(await budget.usage()).toEqual({
      spentTokens: 30,
      reservedTokens: 0,
      leftTokens: 5,
      unresolved: [],
      resetsAt: null,
    });
  });

  test('releases the reservation of a rejected create', async () => {
    const opened = openClient({}, { balanceTokens: 5 });
    const error = await errorOf(opened.client.videos.create(VIDEO));
    expect(InsufficientBalanceError.isInstance(error)).toBe(true);
    expect(await opened.budget.usage()).toMatchObject({ spentTokens: 0, reservedTokens: 0 });
  });

  test('releases the cost of a job that ended without a charge', async () => {
    const opened = openClient();
    opened.sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_failed' });
    const job = await opened.client.videos.createAndWait(VIDEO, { throwOnFailure: false });
    expect(job.status).toBe('failed');
    expect(await opened.budget.usage()).toMatchObject({ spentTokens: 0, reservedTokens: 0 });
  });

  test('releases the cost of a failed job that a webhook reports to another process', async () => {
    const { sandbox, budget, client } = openClient();
    const { job } = await client.videos.create(VIDEO);
    expect(await budget.usage()).toMatchObject({ spentTokens: 10, reservedTokens: 0 });
    // A separate account state, as in another process.
    const other = new GenClient({ apiKey: 'sk-other', baseUrl: sandbox.baseUrl, budget });
    other.notify({ data: { job: { id: job.id, status: 'failed' } } } as never);
    await expect.poll(() => budget.usage()).toMatchObject({ spentTokens: 0, reservedTokens: 0 });
  });

  test('keeps the tokens of a lost create after a 401 to its retry, and releases them after a 400', async () => {
    const responses = [
      () => json({ success: true, data: { job: { id: 'job_0', status: 'processing' }, quoted_token_cost: 10 } }),
      () => Promise.reject(new TypeError('socket closed')),
      () => json({ error: { code: 'invalid_api_key' } }, { status: 401 }),
      () => json({ error: { code: 'model_not_found' } }, { status: 400 }),
    ];
    const budget = scopedBudget({ maxTokens: 100 });
    const { client } = stubbed(responses, { budget, maxRetries: 0 });
    await client.videos.create(VIDEO);
    for (const reservedTokens of [10, 10, 0]) {
      await errorOf(client.videos.create(VIDEO, { idempotencyKey: 'lost-2' }));
      expect(await budget.usage()).toMatchObject({ spentTokens: 10, reservedTokens });
    }
  });

  test('counts a create at its actual quote, and learns that quote', async () => {
    let price = 10;
    const opened = openClient({ maxTokens: 100 }, { prices: () => price });
    await opened.client.videos.create(VIDEO);
    price = 25;
    await opened.client.videos.create(VIDEO);
    expect(await opened.budget.usage()).toMatchObject({ spentTokens: 35, reservedTokens: 0 });
    expect(opened.client.estimate({ call: 'videos', duration: 4 })).toEqual({ tokens: 25, basis: 'learned' });
  });

  test.each([20, 35, 400])(
    'exceeds its limit by at most one job if the price rises to %i before a burst',
    async (newPrice) => {
      let price = 10;
      const { sandbox, client, budget } = openClient({ maxTokens: 200 }, { prices: () => price });
      await client.videos.create(VIDEO);
      price = newPrice;
      await Promise.allSettled(Array.from({ length: 40 }, () => client.videos.create(VIDEO)));
      const total = sandbox.jobs.reduce((sum, job) => sum + (job.quotedTokenCost ?? 0), 0);
      expect((await budget.usage()).spentTokens).toBe(total);
      expect(total).toBeLessThanOrEqual(200 + newPrice);
    },
  );

  test('passed to the client applies in addition to one passed to a call', async () => {
    const { sandbox, client, budget } = openClient({ maxTokens: 1_000 });
    const tenant = scopedBudget({ maxTokens: 10, scope: 'tenant-7' });
    await client.videos.create(VIDEO, { budget: tenant });
    const rejected = client.videos.create(VIDEO, { budget: tenant });
    await expect(rejected).rejects.toMatchObject({ code: 'budget_exceeded', scope: 'tenant-7' });
    expect(sandbox.requests).toHaveLength(1);
    // The rejected create also released its reservation in the client's budget.
    expect(await budget.usage()).toMatchObject({ spentTokens: 10, reservedTokens: 0 });
    // A create counts once toward a budget that is passed twice.
    await client.images.create({ prompt: 'a fox' }, { budget });
    expect(await budget.usage()).toMatchObject({ spentTokens: 20, reservedTokens: 0 });
  });

  test('covers every job of createAndWait', async () => {
    const { sandbox, client, budget } = openClient({ maxTokens: 15 });
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_timeout' });
    const job = await client.videos.createAndWait(VIDEO, { recover: { generation_timeout: 1 } });
    expect(job.tries).toHaveLength(2);
    expect(await budget.usage()).toMatchObject({ spentTokens: 10, reservedTokens: 0 });
    const error = await errorOf(client.videos.createAndWait(VIDEO));
    expect(error).toMatchObject({ code: 'budget_exceeded', leftTokens: 5 });
  });

  test('has the full limit in each scope, and its errors identify the scope', async () => {
    const { sandbox } = openClient();
    const budget = scopedBudget({ maxTokens: 10 });
    const create = (name: string) => sandbox.client().videos.create(VIDEO, { budget: budget.scoped(name) });
    await create('ann');
    expect(await errorOf(create('ann'))).toMatchObject({
      code: 'budget_exceeded',
      message: expect.stringContaining('The budget "ann" has 0 of 10 tokens left'),
    });
    await create('bob');
    expect(await budget.usage()).toMatchObject({ spentTokens: 0, reservedTokens: 0 });
  });

  test('rejects before uploading files', async () => {
    const { sandbox, client } = openClient({ maxTokens: 0 });
    const file = new Blob(['\x89PNG\r\n\x1a\n'], { type: 'image/png' });
    const error = await errorOf(client.videos.create({ ...VIDEO, first_frame_upload_id: file }));
    expect(error).toMatchObject({ code: 'budget_exceeded' });
    expect(sandbox.requests).toHaveLength(0);
  });

  test('sends nothing if its store is unavailable', async () => {
    const unavailable = () => Promise.reject(new Error('connection refused'));
    const { sandbox, client } = openClient({ store: createStore({ read: unavailable, write: unavailable }) });
    const error = await errorOf(client.videos.create(VIDEO));
    expect(error).toMatchObject({
      name: 'ConnectionError',
      message: expect.stringContaining(
        'videos.create was not sent: the store could not record it (connection refused).',
      ),
      attempts: 0,
    });
    expect(sandbox.requests).toHaveLength(0);
  });
});

describe('an unknown price', () => {
  test('allows one create at a time, so that the limit is exceeded by at most one job', async () => {
    const { sandbox, client, budget } = openClient({ maxTokens: 12 }, { prices: 50 });
    const calls = await Promise.allSettled(Array.from({ length: 20 }, () => client.videos.create(VIDEO)));
    expect(calls.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(sandbox.jobs).toHaveLength(1);
    expect(await budget.usage()).toMatchObject({ spentTokens: 50, reservedTokens: 0 });
  });

  test("rejects the create if unknownPrice is 'refuse'", async () => {
    const { sandbox, client } = openClient({ unknownPrice: 'refuse' });
    const error = await errorOf(client.videos.create(VIDEO));
    expect(error).toMatchObject({ code: 'budget_exceeded', estimateTokens: undefined, leftTokens: 35 });
    expect((error as Error).message).toContain(
      `has 35 of 35 tokens left and rejects unknown prices, so a create of unknown price was not sent. Let unknownPrice estimate, or set it to 'one-at-a-time'.`,
    );
    expect(sandbox.requests).toHaveLength(0);
  });

  test('is estimated by a function, which may return undefined', async () => {
    const priced: unknown[] = [];
    const unknownPrice: BudgetOptions['unknownPrice'] = (job) => {
      priced.push(job);
      return job.call === 'videos' ? 36 : undefined;
    };
    const { client } = openClient({ unknownPrice });
    expect(await errorOf(client.videos.create(VIDEO))).toMatchObject({ code: 'budget_exceeded', estimateTokens: 36 });
    expect(priced[0]).toEqual({ call: 'videos', duration: 4 });
    await client.images.create({ prompt: 'a fox' });
  });

  test.each([-1, Number.POSITIVE_INFINITY, '5', null])('fails the create if unknownPrice returns %j', async (price) => {
    const { sandbox, client } = openClient({ unknownPrice: () => price as never });
    expect(await errorOf(client.videos.create(VIDEO))).toMatchObject({
      message: expect.stringMatching(/^unknownPrice must return a number of tokens, 0 or more, or undefined, not /),
    });
    expect(sandbox.requests).toEqual([]);
  });
});

describe('a period', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2026-01-31T23:59:50Z') });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test.each([
    ['day', '2026-02-01T00:00:00.000Z'],
    ['month', '2026-02-01T00:00:00.000Z'],
    [30_000, '2026-02-01T00:00:20.000Z'],
  ] as const)('of %s ends on time, and the next one starts with all tokens', async (per, resetsAt) => {
    const { client, budget } = openClient({ per, maxTokens: 10 });
    await client.videos.create(VIDEO);
    const error = await errorOf(client.videos.create(VIDEO));
    expect(error).toMatchObject({ code: 'budget_exceeded', leftTokens: 0, resetsAt });
    vi.setSystemTime(Date.parse(resetsAt) - 1);
    expect(await errorOf(client.videos.create(VIDEO))).toMatchObject({ code: 'budget_exceeded' });
    vi.setSystemTime(Date.parse(resetsAt));
    await client.videos.create(VIDEO);
    expect(await budget.usage()).toMatchObject({ spentTokens: 10, reservedTokens: 0 });
  });

  test("doesn't restart if the clock is set back", async () => {
    vi.setSystemTime(Date.parse('2026-02-01T00:00:05Z'));
    const { client } = openClient({ per: 'day', maxTokens: 10 });
    await client.videos.create(VIDEO);
    vi.setSystemTime(Date.parse('2026-01-31T23:59:55Z'));
    expect(await errorOf(client.videos.create(VIDEO))).toMatchObject({ code: 'budget_exceeded' });
  });
});

describe('createBudget', () => {
  test.each([
    ...[undefined, -1, Number.POSITIVE_INFINITY].map((maxTokens): [object, string] => [
      { maxTokens },
      `maxTokens must be a number of tokens, 0 or more, not ${maxTokens}.`,
    ]),
    ...['week', 0, Number.POSITIVE_INFINITY, '5', [5], ['day'], Object.create(null)].map((per): [object, string] => [
      { maxTokens: 1, per },
      "per must be 'day', 'month', 'total', or a number of milliseconds above 0, not ",
    ]),
    [{ maxTokens: 1, per: 'week' }, ', not "week".'],
    [
      { maxTokens: 1, store: {} },
      'store must be the result of fileStore(path), redisStore(redis), or createStore({ read, write }), not an object.',
    ],
    [{ maxToken: 1 }, 'maxTokens'],
  ])('rejects %j', (options, message) => {
    expect(() => scopedBudget(options as never)).toThrow(message);
    expect(() => scopedBudget(options as never)).toThrow(GenError);
  });

  test("is required by the client's budget option", () => {
    expect(() => new GenClient({ budget: {} as never })).toThrow(
      'budget must be the result of createBudget({ maxTokens }), not an object.',
    );
  });

  test('suggests the correct option for a store or a budget passed to the wrong one', () => {
    const [store, budget] = [memoryStore(), createBudget({ maxTokens: 1 })];
    const toStore = /^store must be the result of fileStore.*, not an object\. Pass the budget as budget\.$/;
    const toBudget =
      'budget must be the result of createBudget({ maxTokens }), not an object. Pass the store as store.';
    expect(() => new GenClient({ store: budget as never })).toThrow(toStore);
    expect(() => createBudget({ maxTokens: 1, store: budget as never })).toThrow(toStore);
    expect(() => new GenClient({ budget: store as never })).toThrow(toBudget);
  });

  test('throws immediately if reading an option throws', () => {
    const options = {
      maxTokens: 5,
      get per(): 'day' {
        throw new Error('read');
      },
    };
    expect(() => createBudget(options)).toThrow('a value threw when it was read');
  });

  test('calls onLow once when the balance falls below a limit, and again after it has recovered', async () => {
    const low: number[] = [];
    let price = 10;
    const { sandbox, client } = openClient(
      {
        maxTokens: 1_000,
        lowBalanceTokens: 60,
        onLow: async ({ balanceTokens }) => {
          low.push(balanceTokens);
          throw new Error('the pager is offline');
        },
      },
      { balanceTokens: 80, prices: () => price },
    );
    for (let count = 0; count < 4; count++) await client.videos.create(VIDEO);
    expect(low).toEqual([50]);
    sandbox.topUp(20);
    await client.videos.create(VIDEO);
    expect(low).toEqual([50]);
    price = 400;
    await client.videos.create(VIDEO);
    expect(low).toEqual([50, 30]);
  });
});
