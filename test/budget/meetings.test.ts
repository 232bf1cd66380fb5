// Where two capabilities meet: two budgets, two processes, a budget and resume, a store that hangs.
import { type ClientOptions, GenClient } from 'gen-client';
import { describe, expect, it } from 'vitest';
import { clientStore } from '../../src/ledger/client-ledger.js';
import { createStore } from '../../src/ledger/stores.js';
import { CLOCK } from '../../src/runtime/clock.js';
import { memoryStoreOn, type Store } from '../../src/store/store.js';
import { ownBudget } from '../support/own-budget.js';
import { BASE_URL, freshKey, json } from '../transport/support.js';
import { settle, virtualClock } from '../waiting/virtual-clock.js';
import { openService, quoted, VIDEO } from './service.js';

/** A database, a clock, a service, and as many processes as open it. */
function company(answers: Parameters<typeof openService>[0] = {}) {
  const clock = virtualClock();
  const shared = memoryStoreOn(clock);
  const service = openService({ final: () => ({ providerOutputUrl: `${BASE_URL}/output` }), ...answers });
  const apiKey = freshKey();
  const keys: (string | null)[] = [];
  const open = (options: ClientOptions = {}) => {
    const life = { isDead: false, isAway: false };
    const away = (): Promise<never> => Promise.reject(new Error('Socket closed unexpectedly'));
    const alive = <T>(work: Promise<T>): Promise<T> => (life.isDead ? new Promise<T>(() => {}) : work);
    const store: Store = clientStore({
      ...{ [CLOCK]: clock },
      read: async (group, names) => (life.isAway ? away() : alive(shared.read(group, names))),
      write: (group, version, changes) => (life.isAway ? away() : alive(shared.write(group, version, changes))),
    });
    const fetch = async (url: string, init: RequestInit) => {
      if (life.isDead) return new Promise<Response>(() => {});
      if (init.method === 'POST') keys.push(new Headers(init.headers).get('idempotency-key'));
      return alive(service.fetch(url, init));
    };
    const base = { apiKey, baseUrl: BASE_URL, fetch, store, rateLimit: 'off' as const, [CLOCK]: clock };
    const budgetOf = (scope: string, maxTokens = 1_000) => ownBudget({ scope, maxTokens, store });
    const kill = () => {
      life.isDead = true;
    };
    const breakFor = (ms: number) => {
      life.isAway = true;
      clock.after(ms, () => {
        life.isAway = false;
      });
    };
    return { client: new GenClient({ ...base, ...options }), store, budgetOf, kill, breakFor };
  };
  return { clock, service, keys, open };
}

async function resumed(client: GenClient, options: Parameters<GenClient['resume']>[0] = {}): Promise<string[]> {
  const keys: string[] = [];
  for await (const { job, idempotencyKey } of client.resume(options)) {
    keys.push(idempotencyKey);
    await client.markStored(job);
  }
  return keys;
}

describe('two budgets of one call', () => {
  it('are asked in one step, in whichever order they are given: no create waits for another', async () => {
    const { clock, open, service } = company();
    const { client, budgetOf } = open();
    const [day, tenant] = [budgetOf('day'), budgetOf('tenant')];
    const web = client.withOptions({ budget: day });
    const cron = client.withOptions({ budget: tenant });
    await clock.until(
      Promise.all([web.videos.create(VIDEO, { budget: tenant }), cron.videos.create(VIDEO, { budget: day })]),
    );
    expect(service.jobs.size).toBe(2);
    expect(await day.usage()).toMatchObject({ spentTokens: 24, reservedTokens: 0 });
  });

  it('let the create of a tenant go while another tenant waits for a price', async () => {
    const answers: (() => void)[] = [];
    const { clock, open, service } = company();
    const { client, budgetOf } = open({ budget: undefined });
    const slow = client.withOptions({
      fetch: (url, init) => new Promise((resolve) => answers.push(() => resolve(service.fetch(url, init)))),
    });
    const [full, other] = [budgetOf('full'), budgetOf('other')];
    const first = slow.videos.create(VIDEO, { budget: full });
    await clock.advance(10);
    const waiting = client.videos.create(VIDEO, { budget: full });
    await clock.advance(10);
    await clock.until(client.videos.create(VIDEO, { budget: other }));
    for (const answer of answers) answer();
    await clock.until(Promise.all([first, waiting]));
  });
});

describe('two processes on one store', () => {
  it('leave alone what the other one has in flight, and what they have in flight themselves', async () => {
    let answer = () => {};
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const { clock, open, service, keys } = company();
    const one = open();
    const slow = one.client.withOptions({
      fetch: async (url, init) => {
        if (init.method === 'POST') keys.push(new Headers(init.headers).get('idempotency-key'));
        await answered;
        return service.fetch(url, init);
      },
    });
    const call = slow.videos.createAndWait(VIDEO, { idempotencyKey: 'order-1' });
    await clock.advance(10);
    expect(await clock.until(resumed(open().client))).toEqual([]);
    expect(await clock.until(resumed(one.client))).toEqual([]);
    answer();
    await clock.until(call);
    expect(keys).toEqual(['order-1']);
  });

  it('take up what the other one has left, once its hold has ended', async () => {
    const { clock, open, keys } = company();
    const one = open();
    const lost = one.client.withOptions({ fetch: () => new Promise<Response>(() => {}) });
    lost.videos.create(VIDEO, { idempotencyKey: 'order-1' }).catch(() => {});
    await clock.advance(10);
    one.kill();
    const two = open();
    expect(await clock.until(resumed(two.client))).toEqual([]);
    await clock.advance(31_000);
    expect(await clock.until(resumed(two.client))).toEqual(['order-1']);
    expect(keys).toEqual(['order-1']);
  });
});

describe('a create of unknown price whose process has died', () => {
  it('is sent again under its key at once, although another create waits for its price', async () => {
    const { clock, open } = company();
    const one = open();
    const lost = one.client.withOptions({ fetch: () => new Promise<Response>(() => {}) });
    lost.videos.create(VIDEO, { budget: one.budgetOf('team'), idempotencyKey: 'order-1' }).catch(() => {});
    await clock.advance(10);
    one.kill();
    const two = open();
    const startMs = clock.now();
    const waiting = two.client.videos.create(VIDEO, { budget: two.budgetOf('team') });
    const again = two.client.videos.create(VIDEO, { budget: two.budgetOf('team'), idempotencyKey: 'order-1' });
    // The clock jumps to its next timer, so all that needs no time comes first.
    for (let turn = 0; turn < 20; turn++) await settle();
    await clock.until(Promise.all([waiting, again]));
    expect(clock.now() - startMs).toBeLessThan(2_000);
    expect(await two.budgetOf('team').usage()).toMatchObject({ spentTokens: 24, reservedTokens: 0 });
  });
});

it('an accepted job that the service no longer knows is thrown once by resume, with its id and key, after the others', async () => {
  const { clock, open } = company();
  const one = open();
  await clock.until(one.client.videos.create(VIDEO, { idempotencyKey: 'order-1' }));
  await clock.until(one.client.videos.create(VIDEO, { idempotencyKey: 'order-2' }));
  const forgotten = one.client.withOptions({
    fetch: async (url) => {
      if (url.endsWith('job_1')) return json({ error: { code: 'job_not_found' } }, { status: 404 });
      return json({
        success: true,
        data: { job: { id: 'job_2', status: 'completed', providerOutputUrl: 'https://x.test/f' } },
      });
    },
  });
  const seen: string[] = [];
  const loop = async () => {
    for await (const { job } of forgotten.resume()) {
      seen.push(job.id);
      await forgotten.markStored(job);
    }
  };
  const error = await clock.until(loop().catch((thrown: unknown) => thrown));
  expect(error).toMatchObject({ name: 'NotFoundError', jobId: 'job_1', idempotencyKey: 'order-1' });
  expect(seen).toEqual(['job_2']);
  await clock.until(loop());
});

it('a failure is noted as told after its call has rejected: a program that dies in between gets it again', async () => {
  const final = () => ({ status: 'failed', errorCode: 'generation_rejected' });
  const { clock, open } = company({ final });
  const one = open();
  let isTold = false;
  let writes = 0;
  const store: Store = {
    ...one.store,
    write: (...given) => {
      writes += Number(isTold);
      return one.store.write(...given);
    },
  };
  const client = one.client.withOptions({ store });
  const call = client.videos.createAndWait(VIDEO).catch(() => {
    isTold = true;
  });
  await clock.until(call);
  await clock.advance(100);
  expect([isTold, writes > 0]).toEqual([true, true]);
  for await (const create of client.unfinishedCreates()) expect(create).toBeUndefined();
});

it.each([1_000, 3_000, 6_000, 12_000, 25_000])(
  'what the store has missed for %i ms is told in its order: the price of a job, and then its refund',
  async (awayMs) => {
    let isAway = false;
    const final = () => ({ status: 'failed', errorCode: 'generation_rejected', finalTokenCost: 0 });
    const answer = (job: Parameters<typeof quoted>[0]) => {
      isAway = true;
      return quoted(job);
    };
    const { clock, open } = company({ final, answer });
    const { client, store } = open();
    const failing: Store = {
      ...store,
      read: (...given) => (isAway ? Promise.reject(new Error('away')) : store.read(...given)),
    };
    const budget = ownBudget({ maxTokens: 100, scope: 'team', store: failing });
    const spender = client.withOptions({ store: failing, budget });
    const { job } = await clock.until(spender.videos.create(VIDEO));
    await clock.until(spender.jobs.get(job.id));
    await clock.advance(awayMs);
    isAway = false;
    await clock.advance(20_000);
    expect(await clock.until(budget.usage())).toMatchObject({ spentTokens: 0, reservedTokens: 0 });
  },
);

it('creates of one moment share their steps at the store', async () => {
  const { clock, open, service } = company();
  const { client, store } = open();
  let asked = 0;
  const counted: Store = {
    ...store,
    read: (...given) => {
      asked += 1;
      return store.read(...given);
    },
  };
  const budget = ownBudget({ maxTokens: 1e6, scope: 'crowd', store: counted, unknownPrice: () => 12 });
  const crowd = client.withOptions({ store: counted, budget });
  await clock.until(crowd.videos.create(VIDEO));
  asked = 0;
  await clock.until(Promise.all(Array.from({ length: 200 }, () => crowd.videos.create(VIDEO))));
  expect(service.jobs.size).toBe(201);
  expect(asked).toBeLessThan(60);
});

it('a store that hangs after an answer holds up the whole call for two seconds together (real time)', async () => {
  let hangs = false;
  const { open } = company();
  const { store } = open();
  const hanging = createStore({
    read: (...given) => (hangs ? new Promise(() => {}) : store.read(...given)),
    write: (...given) => (hangs ? new Promise(() => {}) : store.write(...given)),
  });
  const service = openService({
    answer: (job) => {
      hangs = true;
      return quoted({ ...job });
    },
    final: () => ({ providerOutputUrl: `${BASE_URL}/output`, finalTokenCost: 12 }),
  });
  const budget = ownBudget({ maxTokens: 100, store: hanging });
  const options = { apiKey: freshKey(), baseUrl: BASE_URL, fetch: service.fetch, rateLimit: 'off' as const };
  const client = new GenClient({ ...options, store: hanging, budget });
  const startMs = performance.now();
  await client.videos.createAndWait(VIDEO, { pollIntervalMs: 50 });
  const tookMs = performance.now() - startMs;
  expect(tookMs).toBeGreaterThan(1_900);
  expect(tookMs).toBeLessThan(3_500);
}, 30_000);

describe('a connection to the store that breaks', () => {
  it('for a moment refuses none of the creates that wait for a budget', async () => {
    const { clock, open, service } = company();
    const { client, budgetOf, breakFor } = open();
    const budget = budgetOf('team', 10_000);
    await clock.until(client.videos.create(VIDEO, { budget }));
    const calls = Promise.allSettled(Array.from({ length: 60 }, () => client.videos.create(VIDEO, { budget })));
    breakFor(50);
    expect((await clock.until(calls)).filter(({ status }) => status === 'rejected')).toEqual([]);
    expect(service.jobs.size).toBe(61);
  });
});

describe('resume on a store that does not answer', () => {
  const hanging = () => {
    const { clock, open } = company();
    const { client, kill } = open();
    kill();
    return { clock, client };
  };

  it('ends with its signal', async () => {
    const { clock, client } = hanging();
    const controller = new AbortController();
    const ended = resumed(client, { signal: controller.signal }).catch((error) => error);
    const startMs = clock.now();
    clock.after(100, () => controller.abort(new Error('enough')));
    expect(await clock.until(ended)).toMatchObject({ message: 'enough' });
    expect(clock.now() - startMs).toBeLessThan(200);
  });

  it('ends with its time', async () => {
    const { clock, client } = hanging();
    const startMs = clock.now();
    const ended = resumed(client, { timeoutMs: 500 }).catch((error) => error);
    expect(await clock.until(ended)).toMatchObject({ name: 'TimeoutError', timeoutMs: 500 });
    expect(clock.now() - startMs).toBeLessThanOrEqual(501);
  });
});
