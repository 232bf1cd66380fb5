// Every create counts in its budget, whatever the service's response.
import { afterEach, describe, expect, test, vi } from 'vitest';
import { BudgetExceededError, type GenClient, type Logger } from '../../src/index.js';
import { connectionRefused } from '../store/simulation.js';
import { persistentStore } from '../support/persistent-store.js';
import { json, rejection } from '../transport/support.js';
import { clientWithBudget, openService, quoted, runInSequence, VIDEO } from './service.js';

const LIMIT = 24;
const PRICE = 12;
const unpriced = ({ id }: { readonly id: string }) => json({ data: { job: { id, status: 'processing' } } });

afterEach(() => {
  vi.unstubAllEnvs();
});

const EDIT = { model: 'svc-video-fast', prompt: 'snow', source_video_url: 'https://x.test/a.mp4' } as const;

describe('creates of 12 tokens with a limit of 24 cost at most 36', () => {
  test.each([
    ['every response is cut off after the job is created', () => new TypeError('terminated')],
    ['the job has no status', ({ id }) => json({ success: true, data: { job: { id } } })],
    ['the body is not JSON', () => new Response('<html>', { headers: { 'content-type': 'text/html' } })],
    ['a proxy responds with 502', () => json('bad gateway', { status: 502 })],
    [
      'the cost is a string',
      ({ id }) => json({ data: { job: { id, status: 'processing' }, quoted_token_cost: '12' } }),
    ],
    ['the cost is null', ({ id }) => json({ data: { job: { id, status: 'processing' }, quoted_token_cost: null } })],
    ['the cost is missing', unpriced],
  ] as readonly (readonly [string, NonNullable<Parameters<typeof openService>[0]>['respond']])[])(
    'if %s',
    async (_case, response) => {
      for (const isConcurrent of [false, true]) {
        const service = openService({ respond: response ?? quoted });
        const { client } = clientWithBudget(service, { maxTokens: LIMIT });
        const create = () => client.videos.create(VIDEO);
        if (isConcurrent) await Promise.allSettled(Array.from({ length: 50 }, create));
        else await runInSequence(50, create);
        expect(service.chargedTokens()).toBeLessThanOrEqual(LIMIT + PRICE);
        expect(service.jobs.size).toBeGreaterThan(0);
      }
    },
  );

  test.each([
    ['images', (client: GenClient) => client.images.create({ prompt: 'a fox' })],
    ['characters', (client: GenClient) => client.characters.create({ name: 'Fox', prompt: 'a fox' })],
    ['edits', (client: GenClient) => client.videoEdits.create(EDIT)],
  ])('for %s without a cost', async (_name, create) => {
    const service = openService({ respond: unpriced });
    const { client } = clientWithBudget(service, { maxTokens: LIMIT }, { preflight: false });
    await runInSequence(50, () => create(client));
    expect(service.jobs.size).toBe(1);
  });

  test.each([
    '2026-11-22T03:24:11',
    '2026-11-22',
    '1970-01-01T00:00:00Z',
    new Date(Date.now() - 360_000).toISOString(),
  ])('if createdAt is %s', async (createdAt) => {
    vi.stubEnv('TZ', 'Asia/Tokyo');
    for (const per of ['day', 'total', 3_600_000] as const) {
      const service = openService({
        respond: ({ id }) => json({ data: { job: { id, status: 'processing', createdAt }, quoted_token_cost: PRICE } }),
      });
      const { client } = clientWithBudget(service, { maxTokens: LIMIT, per });
      await runInSequence(20, () => client.videos.create(VIDEO));
      expect(service.chargedTokens()).toBe(LIMIT);
    }
  });
});

describe('a price that is missing from the response', () => {
  test("is learned from the finished job's charge, and its absence is logged", async () => {
    const service = openService({ respond: unpriced, polledFields: (finalTokenCost) => ({ finalTokenCost }) });
    const warn = vi.fn();
    const logger: Logger = { error() {}, warn, info() {}, debug() {} };
    const { client, budget } = clientWithBudget(service, { maxTokens: LIMIT }, { logger });
    const outcomes = await runInSequence(50, async () => client.jobs.get((await client.videos.create(VIDEO)).job.id));
    expect(outcomes.slice(0, 3)).toEqual([undefined, undefined, expect.any(BudgetExceededError)]);
    expect(service.chargedTokens()).toBe(LIMIT);
    expect(await budget.usage()).toMatchObject({ spentTokens: LIMIT, reservedTokens: 0 });
    expect(warn.mock.calls[0]?.[0]).toContain('the create response of job job_1 has no price');
  });

  test('is learned from a poll that reports both quote and charge', async () => {
    const polledFields = (tokens: number) => ({ quotedTokenCost: tokens, finalTokenCost: tokens });
    const service = openService({ respond: unpriced, polledFields });
    // The estimate is far too low.
    const { client, budget } = clientWithBudget(service, { maxTokens: LIMIT, unknownPrice: () => 1 });
    await runInSequence(50, async () => client.jobs.get((await client.videos.create(VIDEO)).job.id));
    expect(service.chargedTokens()).toBe(LIMIT);
    expect(await budget.usage()).toMatchObject({ spentTokens: LIMIT, reservedTokens: 0 });
  });

  test("doesn't leave a create unfinished after its file is stored, if the job has no charge either", async () => {
    const service = openService({ respond: unpriced });
    const store = persistentStore();
    const { client, budget } = clientWithBudget(service, { maxTokens: LIMIT, store }, { store });
    const { job } = await client.videos.create(VIDEO);
    await client.markStored(await client.jobs.get(job.id));
    const unfinished: string[] = [];
    for await (const { idempotencyKey } of client.unfinishedCreates()) unfinished.push(idempotencyKey);
    expect(unfinished).toEqual([]);
    expect(await budget.usage()).toMatchObject({ spentTokens: 0, unresolved: [expect.any(String)] });
  });

  test('blocks creates of the same kind, but not creates with learned prices', async () => {
    const service = openService({ respond: (job) => (job.number === 2 ? unpriced(job) : quoted(job)) });
    const { client } = clientWithBudget(service, { maxTokens: 1_000 });
    await client.videos.create(VIDEO);
    await client.images.create({ prompt: 'a fox' });
    await client.videos.create(VIDEO);
    const rejected = await runInSequence(1, () => client.images.create({ prompt: 'a fox' }));
    expect(rejected).toEqual([expect.objectContaining({ code: 'budget_exceeded' })]);
    expect(String(rejected[0])).toContain('while creates have no response or no price yet');
    expect(service.jobs.size).toBe(3);
  });
});

test("a create's cost is corrected if its job's charge differs from the quote", async () => {
  const service = openService({ polledFields: (tokens) => ({ finalTokenCost: tokens / 2 }) });
  const { client, budget } = clientWithBudget(service, { maxTokens: LIMIT });
  await client.jobs.get((await client.videos.create(VIDEO)).job.id);
  expect(await budget.usage()).toMatchObject({ spentTokens: 6, leftTokens: 18 });
});

describe('creates with an unknown outcome', () => {
  test('count at the learned price once a create of the same kind has a response', async () => {
    let lostResponses = 1;
    const service = openService({
      respond: (job) => (lostResponses-- > 0 ? new TypeError('terminated') : quoted(job)),
    });
    const { client, budget } = clientWithBudget(service, { maxTokens: 100 });
    const outcomes = await runInSequence(20, (number) =>
      client.videos.create(VIDEO, { idempotencyKey: `order-${number}` }),
    );
    // A create without a price reserves all remaining tokens.
    expect(service.jobs.size).toBe(1);
    expect(String(outcomes[1])).toContain('Send them again under their keys, or call budget.release(key): order-0.');
    expect(await budget.usage()).toMatchObject({
      reservedTokens: 100,
      leftTokens: 0,
      unresolved: [expect.any(String)],
    });
    await client.videos.create(VIDEO, { idempotencyKey: 'order-0' });
    expect(await budget.usage()).toMatchObject({ spentTokens: 12, reservedTokens: 0, unresolved: [] });
    await runInSequence(20, () => client.videos.create(VIDEO));
    expect(service.chargedTokens()).toBe(96);
  });

  test('count at a price learned by another budget in the process', async () => {
    let lostResponses = 0;
    const service = openService({
      respond: (job) => (lostResponses-- > 0 ? new TypeError('terminated') : quoted(job)),
    });
    const { client, budget } = clientWithBudget(service, { maxTokens: 100 });
    await client.withOptions({ budget: undefined }).videos.create(VIDEO);
    lostResponses = 1;
    await runInSequence(1, () => client.videos.create(VIDEO));
    expect(await budget.usage()).toMatchObject({
      reservedTokens: 12,
      leftTokens: 88,
      unresolved: [expect.any(String)],
    });
  });

  test.each([409, 408, 425, 499])('stay reserved after a %i', async (status) => {
    const service = openService({
      respond: (job) => (job.number === 1 ? quoted(job) : json({ error: { code: 'conflict' } }, { status })),
    });
    const { client, budget } = clientWithBudget(service, { maxTokens: 100 });
    await client.videos.create(VIDEO);
    await runInSequence(1, () => client.videos.create(VIDEO));
    expect(await budget.usage()).toMatchObject({ reservedTokens: 12, unresolved: [expect.any(String)] });
  });
});

test('creates that are never sent use no tokens', async () => {
  const { client, budget } = clientWithBudget(openService(), { maxTokens: 1_000, per: 'day' });
  await client.videos.create(VIDEO);
  const offline = client.withOptions({ fetch: () => Promise.reject(connectionRefused()) });
  await Promise.allSettled(Array.from({ length: 82 }, () => offline.videos.create(VIDEO)));
  expect(await budget.usage()).toMatchObject({ spentTokens: 12, reservedTokens: 0, unresolved: [] });
});

test('edits, whose price depends on the source, exceed the limit by at most one job', async () => {
  const service = openService({ price: (number) => (number === 1 ? 2 : 60) });
  const { client } = clientWithBudget(service, { maxTokens: 100 }, { preflight: false });
  await client.videoEdits.create(EDIT);
  await Promise.allSettled(Array.from({ length: 40 }, () => client.videoEdits.create(EDIT)));
  expect(service.chargedTokens()).toBeLessThanOrEqual(160);
  expect(service.chargedTokens()).toBeGreaterThanOrEqual(100);
});

test('an idempotency key that two concurrent calls use counts once, even if one of them is rejected', async () => {
  let posts = 0;
  const service = openService();
  const { client, budget } = clientWithBudget(service, { maxTokens: 100 });
  await client.videos.create(VIDEO);
  const busy = client.withOptions({
    maxRetryAfterMs: 0,
    fetch: async (input, init) => {
      posts += 1;
      if (posts === 1) return json({ error: { code: 'rate_limited' } }, { status: 429 });
      await rejected;
      return service.fetch(input, init);
    },
  });
  const [first, second] = [1, 2].map(() => busy.videos.create(VIDEO, { idempotencyKey: 'twice' }));
  const rejected = rejection(Promise.resolve(first));
  await second;
  expect(service.chargedTokens()).toBe(24);
  expect(await budget.usage()).toMatchObject({ spentTokens: 24, reservedTokens: 0 });
});
