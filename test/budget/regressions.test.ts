// Defects that charged more than the budget counted, or blocked creates without a reason.

import type { BudgetExceededError } from 'gen-client';
import { describe, expect, it } from 'vitest';
import { errorResponse, order, PRICE, simulate, unfinishedKeys, VIDEO } from '../store/simulation.js';
import { scopedBudget } from '../support/scoped-budget.js';
import { json } from '../transport/support.js';
import { settle } from '../waiting/virtual-clock.js';

const failed = { status: 'failed', errorCode: 'generation_failed' };

it("a run continues in its budget after another wait has thrown the failure of the run's job", async () => {
  const { clock, state, open } = simulate();
  const { client, budget } = open({ budget: { maxTokens: 15 } });
  state.outcomes = [failed];
  const options = { recover: { generation_failed: 1 } } as const;
  const others: Promise<unknown>[] = [];
  const onCreated = ({ job }: { job: { id: string } }) =>
    void others.push(client.waitForJob(job.id, { pollIntervalMs: 1 }).catch(() => {}));
  const reserved: number[] = [];
  state.respond = (key) => {
    if (key.endsWith(':r2')) budget.usage().then(({ reservedTokens }) => reserved.push(reservedTokens));
    return 'created';
  };
  await clock.until(client.videos.createAndWait(VIDEO, { ...options, onCreated }));
  await clock.until(Promise.all(others));
  expect(reserved).toEqual([PRICE]);
  expect(await budget.usage()).toMatchObject({ spentTokens: PRICE, reservedTokens: 0 });
});

it("a repeated run's second create reserves tokens, although its first job failed in an earlier call", async () => {
  const { clock, state, open, charged } = simulate();
  const { client } = open({ budget: { maxTokens: 15 } });
  const keys = ['k1', 'k2', 'k3'];
  state.outcomes = keys.map(() => failed);
  for (const idempotencyKey of keys)
    await clock.until(client.videos.createAndWait(VIDEO, { idempotencyKey }).catch(() => {}));
  await clock.advance(10);
  const repeated = keys.map((idempotencyKey) =>
    client.videos.createAndWait(VIDEO, { idempotencyKey, recover: { generation_failed: 1 } }),
  );
  await clock.until(Promise.allSettled(repeated));
  expect(charged()).toBe(PRICE);
});

it('a run whose second create fails permanently ends when its call rejects', async () => {
  const { clock, state, open } = simulate();
  const { client, budget } = open();
  state.outcomes = [failed];
  state.respond = (key) => (key.endsWith(':r2') ? errorResponse(402, 'insufficient_balance') : 'created');
  const call = client.videos.createAndWait(VIDEO, { recover: { generation_failed: 2 } });
  await expect(clock.until(call)).rejects.toMatchObject({
    name: 'JobFailedError',
    cause: { code: 'insufficient_balance' },
  });
  // The entry ends once the program has received the outcome.
  await clock.advance(10);
  expect([await unfinishedKeys(client), await budget.usage()]).toMatchObject([
    [],
    { spentTokens: 0, reservedTokens: 0 },
  ]);
});

it('release has no effect once the create has a response', async () => {
  const { clock, open } = simulate();
  const { client, budget } = open();
  const { job } = await clock.until(client.videos.create(VIDEO, { idempotencyKey: 'k' }));
  await budget.release('k');
  await clock.until(client.jobs.get(job.id));
  await clock.advance(10);
  expect(await budget.usage()).toMatchObject({ spentTokens: PRICE, reservedTokens: 0 });
});

describe('a create whose response was lost or has no price', () => {
  it('expires at the end of the next period, however many others are lost later', async () => {
    const { clock, state, open } = simulate();
    const { client, budget } = open({ budget: { per: 1_000, unknownPrice: () => PRICE }, timeoutMs: 10 });
    await clock.until(client.videos.create(VIDEO));
    state.respond = () => 'lost';
    for (let times = 0; times < 30; times++) {
      await clock.until(client.videos.create(VIDEO).catch(() => {}));
      await clock.advance(900);
      expect((await budget.usage()).reservedTokens).toBeLessThanOrEqual(4 * PRICE);
    }
    await clock.advance(3_000);
    expect(await budget.usage()).toMatchObject({ reservedTokens: 0, unresolved: [] });
  });

  it.each(['lost', 'unpriced'] as const)(
    'counts at a price learned later from another create (%s)',
    async (response) => {
      const { clock, state, open } = simulate();
      const { client, budget, store } = open({ timeoutMs: 10 });
      const unpriced = { success: true, data: { job: { id: 'job_unpriced', status: 'processing' } } };
      state.respond = () => (response === 'lost' ? 'lost' : json(unpriced));
      await clock.until(client.videos.create(VIDEO, { idempotencyKey: 'k' }).catch(() => {}));
      state.respond = () => 'created';
      const other = scopedBudget({ maxTokens: 100, scope: 'other', store });
      await clock.until(client.withOptions({ budget: other }).videos.create(VIDEO));
      await clock.until(client.videos.create(VIDEO));
      const expected =
        response === 'lost'
          ? { spentTokens: PRICE, reservedTokens: PRICE, unresolved: ['k'] }
          : { spentTokens: 2 * PRICE, reservedTokens: 0, unresolved: [] };
      expect(await budget.usage()).toMatchObject(expected);
    },
  );
});

it('a create in flight counts until it ends, across periods', async () => {
  const { clock, state, open } = simulate();
  const { client, budget } = open({ budget: { per: 500, unknownPrice: () => PRICE } });
  state.respond = () => 'never';
  client.videos.create(VIDEO).catch(() => {});
  await clock.advance(20_000);
  expect(await budget.usage()).toMatchObject({ reservedTokens: PRICE, unresolved: [] });
});

it('two budgets with the same scope and period share their tokens, but each enforces its own limit', async () => {
  const { clock, open } = simulate();
  const { client, budget, store } = open();
  const same = scopedBudget({ scope: 'team', per: 'month', maxTokens: 15, store });
  await clock.until(client.videos.create(VIDEO, { budget: same }));
  expect(await budget.usage()).toMatchObject({ spentTokens: PRICE, reservedTokens: 0 });
  const second = client.videos.create(VIDEO, { budget: same });
  await expect(clock.until(second)).rejects.toMatchObject({ code: 'budget_exceeded' });
});

it.each(['create', 'createAndWait'] as const)(
  "a failed second %s with the same key doesn't affect the first call in flight",
  async (method) => {
    const { clock, state, open } = simulate();
    const { client, budget } = open({ budget: { maxTokens: 15, unknownPrice: () => PRICE } });
    state.respond = () => 'lost';
    order(client, method, 'k').catch(() => {});
    await clock.advance(10);
    state.respond = () => errorResponse(402, 'insufficient_balance');
    await clock.until(order(client, method, 'k').catch(() => {}));
    expect([await unfinishedKeys(client), await budget.usage()]).toMatchObject([['k'], { reservedTokens: PRICE }]);
  },
);

it("a client's tenants have separate keys", async () => {
  const { clock, open, jobs } = simulate();
  let tenant = 'a';
  const { client } = open({ apiKey: () => `key-of-${tenant}` });
  await clock.until(client.videos.create(VIDEO, { idempotencyKey: 'order-1' }));
  tenant = 'b';
  jobs.clear();
  await clock.until(client.videos.create({ prompt: 'another film' }, { idempotencyKey: 'order-1' }));
  tenant = 'a';
  const reused = client.videos.create({ prompt: 'a third film' }, { idempotencyKey: 'order-1' });
  await expect(clock.until(reused)).rejects.toMatchObject({ code: 'idempotency_key_reused' });
});

it('a run of two jobs counts once if it is repeated with its key', async () => {
  const { clock, state, open, charged } = simulate();
  const { client, budget } = open();
  state.outcomes = [failed, failed];
  const options = { idempotencyKey: 'k', recover: { generation_failed: 2 } } as const;
  for (let times = 0; times < 3; times++) {
    const job = await clock.until(client.videos.createAndWait(VIDEO, options));
    if (times > 0) await client.markStored(job);
    await clock.advance(10);
    expect([charged(), await budget.usage()]).toMatchObject([PRICE, { spentTokens: PRICE, reservedTokens: 0 }]);
  }
});

it.each([
  ['raised', 20, 60],
  ['lowered', 60, 20],
])('creates that wait while the limit of their budget is %s use their original limit', async (_, before, after) => {
  const { clock, posted, state, jobs, open, charged } = simulate();
  state.outcomes = Array.from({ length: 20 }, () => ({ status: 'processing' }));
  const limits = { before, after };
  const clients = {
    before: open({ budget: { maxTokens: before, unknownPrice: () => PRICE } }),
    after: open({ budget: { maxTokens: after, unknownPrice: () => PRICE } }),
  };
  const calls: Promise<unknown>[] = [];
  const createSix = (when: 'before' | 'after') => {
    for (let at = 0; at < 6; at++) {
      const create = clients[when].client.videos.create(VIDEO, { idempotencyKey: `${when}-${at}` });
      calls.push(
        create.then(
          () => 'sent',
          (error: BudgetExceededError) => error.reason,
        ),
      );
    }
  };
  createSix('before');
  await settle();
  createSix('after');
  const outcomes = await clock.until(Promise.all(calls));
  expect(['sent', 'spent', 'unresolved']).toEqual(expect.arrayContaining(outcomes));
  // Each create was sent only while its own limit also covered all earlier creates.
  const overLimit = posted.filter(
    (key, at) => (at + 1) * PRICE > limits[key.startsWith('before') ? 'before' : 'after'],
  );
  expect(overLimit).toEqual([]);
  expect(posted.length).toBeGreaterThanOrEqual(2);
  for (const job of jobs.values()) job.status = 'completed';
  for (const { id } of jobs.values()) await clock.until(clients.after.client.jobs.get(id));
  expect(await clients.after.budget.usage()).toMatchObject({ spentTokens: charged(), reservedTokens: 0 });
});
