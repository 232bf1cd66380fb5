// Former defects of budgets: each of these charged more than it counted, or blocked it for no reason.

import type { BudgetExceededError } from 'gen-client';
import { describe, expect, it } from 'vitest';
import { company, openKeys, order, PRICE, refusal, VIDEO } from '../store/company.js';
import { ownBudget } from '../support/own-budget.js';
import { json } from '../transport/support.js';
import { settle } from '../waiting/virtual-clock.js';

const failed = { status: 'failed', errorCode: 'generation_failed' };

it("a run continues in its budget after another wait has thrown its job's failure", async () => {
  const { clock, state, open } = company();
  const { client, budget } = open({ budget: { maxTokens: 15 } });
  state.outcomes = [failed];
  const options = { recover: { generation_failed: 1 } } as const;
  const others: Promise<unknown>[] = [];
  const onCreated = ({ job }: { job: { id: string } }) =>
    void others.push(client.waitForJob(job.id, { pollIntervalMs: 1 }).catch(() => {}));
  const seen: unknown[] = [];
  state.answer = (key) => {
    if (key.endsWith(':r2')) budget.usage().then(({ reservedTokens }) => seen.push(reservedTokens));
    return 'made';
  };
  await clock.until(client.videos.createAndWait(VIDEO, { ...options, onCreated }));
  await clock.until(Promise.all(others));
  expect(seen).toEqual([PRICE]);
  expect(await budget.usage()).toMatchObject({ spentTokens: PRICE, reservedTokens: 0 });
});

it('the second create of a run reserves tokens even though the first key is done', async () => {
  const { clock, state, open, charged } = company();
  const { client } = open({ budget: { maxTokens: 15 } });
  const keys = ['k1', 'k2', 'k3'];
  state.outcomes = keys.map(() => failed);
  for (const idempotencyKey of keys)
    await clock.until(client.videos.createAndWait(VIDEO, { idempotencyKey }).catch(() => {}));
  await clock.advance(10);
  const again = keys.map((idempotencyKey) =>
    client.videos.createAndWait(VIDEO, { idempotencyKey, recover: { generation_failed: 1 } }),
  );
  await clock.until(Promise.allSettled(again));
  expect(charged()).toBe(PRICE);
});

it('a run whose second create is rejected for good ends when its call has rejected', async () => {
  const { clock, state, open } = company();
  const { client, budget } = open();
  state.outcomes = [failed];
  state.answer = (key) => (key.endsWith(':r2') ? refusal(402, 'insufficient_balance') : 'made');
  const call = client.videos.createAndWait(VIDEO, { recover: { generation_failed: 2 } });
  await expect(clock.until(call)).rejects.toMatchObject({
    name: 'JobFailedError',
    cause: { code: 'insufficient_balance' },
  });
  // The entry ends once the program has the outcome.
  await clock.advance(10);
  expect([await openKeys(client), await budget.usage()]).toMatchObject([[], { spentTokens: 0, reservedTokens: 0 }]);
});

it('releasing a create that has a response by now has no effect', async () => {
  const { clock, open } = company();
  const { client, budget } = open();
  const { job } = await clock.until(client.videos.create(VIDEO, { idempotencyKey: 'k' }));
  await budget.release('k');
  await clock.until(client.jobs.get(job.id));
  await clock.advance(10);
  expect(await budget.usage()).toMatchObject({ spentTokens: PRICE, reservedTokens: 0 });
});

describe('a create whose response was lost', () => {
  it('expires at the end of its next period, however many others are lost after it', async () => {
    const { clock, state, open } = company();
    const { client, budget } = open({ budget: { per: 1_000, unknownPrice: () => PRICE }, timeoutMs: 10 });
    await clock.until(client.videos.create(VIDEO));
    state.answer = () => 'lost';
    for (let times = 0; times < 30; times++) {
      await clock.until(client.videos.create(VIDEO).catch(() => {}));
      await clock.advance(900);
      expect((await budget.usage()).reservedTokens).toBeLessThanOrEqual(4 * PRICE);
    }
    await clock.advance(3_000);
    expect(await budget.usage()).toMatchObject({ reservedTokens: 0, unresolved: [] });
  });

  it.each(['lost', 'unpriced'] as const)(
    'counts at the price that another create has learned since (%s)',
    async (answer) => {
      const { clock, state, open } = company();
      const { client, budget, store } = open({ timeoutMs: 10 });
      const unpriced = { success: true, data: { job: { id: 'job_unpriced', status: 'processing' } } };
      state.answer = () => (answer === 'lost' ? 'lost' : json(unpriced));
      await clock.until(client.videos.create(VIDEO, { idempotencyKey: 'k' }).catch(() => {}));
      state.answer = () => 'made';
      const other = ownBudget({ maxTokens: 100, scope: 'other', store });
      await clock.until(client.withOptions({ budget: other }).videos.create(VIDEO));
      await clock.until(client.videos.create(VIDEO));
      const filled =
        answer === 'lost'
          ? { spentTokens: PRICE, reservedTokens: PRICE, unresolved: ['k'] }
          : { spentTokens: 2 * PRICE, reservedTokens: 0, unresolved: [] };
      expect(await budget.usage()).toMatchObject(filled);
    },
  );
});

it('a create in flight counts until it ends, whatever the period', async () => {
  const { clock, state, open } = company();
  const { client, budget } = open({ budget: { per: 500, unknownPrice: () => PRICE } });
  state.answer = () => 'never';
  client.videos.create(VIDEO).catch(() => {});
  await clock.advance(20_000);
  expect(await budget.usage()).toMatchObject({ reservedTokens: PRICE, unresolved: [] });
});

it('two budgets with the same scope and period share one sum with two limits', async () => {
  const { clock, open } = company();
  const { client, budget, store } = open();
  const same = ownBudget({ scope: 'team', per: 'month', maxTokens: 15, store });
  await clock.until(client.videos.create(VIDEO, { budget: same }));
  expect(await budget.usage()).toMatchObject({ spentTokens: PRICE, reservedTokens: 0 });
  const second = client.videos.create(VIDEO, { budget: same });
  await expect(clock.until(second)).rejects.toMatchObject({ code: 'budget_exceeded' });
});

it.each(['create', 'createAndWait'] as const)(
  'a second %s under a key that fails leaves the first one in flight alone',
  async (method) => {
    const { clock, state, open } = company();
    const { client, budget } = open({ budget: { maxTokens: 15, unknownPrice: () => PRICE } });
    state.answer = () => 'lost';
    order(client, method, 'k').catch(() => {});
    await clock.advance(10);
    state.answer = () => refusal(402, 'insufficient_balance');
    await clock.until(order(client, method, 'k').catch(() => {}));
    expect([await openKeys(client), await budget.usage()]).toMatchObject([['k'], { reservedTokens: PRICE }]);
  },
);

it('tenants of one client have separate keys, whoever calls last', async () => {
  const { clock, open, jobs } = company();
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

it('a run of two jobs that is repeated under its key counts once', async () => {
  const { clock, state, open, charged } = company();
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
])('a budget that is %s while creates wait for it limits each create by its own limit', async (_, before, after) => {
  const { clock, posted, state, jobs, open, charged } = company();
  state.outcomes = Array.from({ length: 20 }, () => ({ status: 'processing' }));
  const limits = { before, after };
  const clients = {
    before: open({ budget: { maxTokens: before, unknownPrice: () => PRICE } }),
    after: open({ budget: { maxTokens: after, unknownPrice: () => PRICE } }),
  };
  const calls: Promise<unknown>[] = [];
  const order = (which: 'before' | 'after') => {
    for (let at = 0; at < 6; at++) {
      const create = clients[which].client.videos.create(VIDEO, { idempotencyKey: `${which}-${at}` });
      calls.push(
        create.then(
          () => 'sent',
          (error: BudgetExceededError) => error.reason,
        ),
      );
    }
  };
  order('before');
  await settle();
  order('after');
  const ends = await clock.until(Promise.all(calls));
  expect(ends.filter((end) => !['sent', 'spent', 'unresolved'].includes(String(end)))).toEqual([]);
  // Each was sent only while its own limit had room beside all that were sent before it.
  const over = posted.filter((key, at) => (at + 1) * PRICE > limits[key.startsWith('before') ? 'before' : 'after']);
  expect(over).toEqual([]);
  expect(posted.length).toBeGreaterThanOrEqual(2);
  for (const job of jobs.values()) job.status = 'completed';
  for (const { id } of jobs.values()) await clock.until(clients.after.client.jobs.get(id));
  expect(await clients.after.budget.usage()).toMatchObject({ spentTokens: charged(), reservedTokens: 0 });
});
