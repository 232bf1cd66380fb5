// A budget's ledger during and after outages, aborts, and disconnections.
import type { GenClient } from 'gen-client';
import { beforeEach, expect, it, vi } from 'vitest';
import { ledgerOf } from '../../src/ledger/ledger.js';
import { LedgerTransaction } from '../../src/rules/ledger-transaction.js';
import { nextTurn } from '../../src/runtime/clock.js';
import { PRICE, resumeAll, simulate, unfinishedKeys, VIDEO } from '../store/simulation.js';
import { startFastTime } from '../support/fast-time.js';
import { settle } from '../waiting/virtual-clock.js';

const priced = { unknownPrice: () => PRICE };
const slowLimits = { rateLimit: 'wait', limits: { 'videos.create': { limit: 1, windowMs: 60_000 } } } as const;

// After a response, calls wait up to two seconds of real time for the store.
beforeEach(() => startFastTime(50));

/** Tracks a call's state: `pending`, `sent`, or its error's name. */
function track(call: Promise<unknown>): { state: string } {
  const tracked = { state: 'pending' };
  call.then(
    () => Object.assign(tracked, { state: 'sent' }),
    (error: Error) => Object.assign(tracked, { state: error.name }),
  );
  return tracked;
}

/** Finishes all work that needs no timer. */
async function settleAll(): Promise<void> {
  for (let turn = 0; turn < 60; turn++) await settle();
}

it('the outcomes of 600 jobs are recorded after a store outage of 20 s', async () => {
  const { clock, jobs, posted, state, open, charged } = simulate();
  const { client, budget, life } = open({ budget: { maxTokens: 1e6, ...priced } });
  await clock.until(client.videos.create(VIDEO));
  state.outcomes = Array.from({ length: 600 }, () => ({ status: 'processing' }));
  const calls = Array.from({ length: 600 }, () =>
    client.videos.createAndWait(VIDEO, { pollIntervalMs: 5_000 }).then((job) => client.markStored(job)),
  );
  const settled = Promise.allSettled(calls);
  for (let turn = 0; turn < 500 && jobs.size < 601; turn++) await clock.advance(1);
  expect(jobs.size).toBe(601);
  await settleAll();
  life.isDisconnected = true;
  let failed = 0;
  for (const job of jobs.values()) {
    if (job.status === 'processing') job.status = failed++ % 2 ? 'completed' : 'failed';
  }
  for (let second = 0; second < 20; second++) {
    await clock.advance(1_000);
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  life.isDisconnected = false;
  await clock.until(settled);
  await clock.until(client.jobs.get('job_1'));
  await clock.advance(15_000);
  expect(new Set(posted).size).toBe(posted.length);
  expect(await budget.usage()).toMatchObject({ spentTokens: charged(), reservedTokens: 0, unresolved: [] });
  // Only the first job's file isn't stored. The failures were delivered.
  expect(await unfinishedKeys(client)).toHaveLength(1);
});

it.each([
  ['a server', false],
  ['Workers', true],
])(
  'polls of the same job in an outage share their pending write (%s)',
  async (_, perRequest) => {
    const { clock, open, jobs } = simulate({ perRequest });
    const { client, budget, life } = open({ budget: priced });
    await clock.until(client.videos.create(VIDEO));
    await clock.until(client.videos.create(VIDEO));
    life.isDisconnected = true;
    const polls = Promise.all(Array.from({ length: 1_000 }, (_, at) => client.jobs.get(`job_${1 + (at % 2)}`)));
    await settleAll();
    await clock.advance(10_000);
    await polls;
    const rules = vi.spyOn(LedgerTransaction.prototype, 'jobEntry');
    life.isDisconnected = false;
    await clock.advance(15_000);
    await settleAll();
    // A rule runs several times until the step has read its keys and, on Workers, again when a request retries it.
    expect(rules.mock.calls.length).toBeLessThan(30);
    rules.mockRestore();
    expect(await clock.until(budget.usage())).toMatchObject({ spentTokens: jobs.size * PRICE, reservedTokens: 0 });
  },
  30_000,
);

it('all creates and the latest 10,000 outcomes are retained in an outage', async () => {
  const { clock, open } = simulate();
  const { store, life } = open();
  const ledger = ledgerOf(store, clock);
  const written = new Set<string>();
  life.isDisconnected = true;
  const record = (what: string, name?: string) => ledger.record(() => void written.add(what), [], name).catch(() => {});
  void record('create');
  for (let job = 0; job < 10_100; job++) void record(`outcome ${job}`, `outcome ${job}`);
  // Each step has a timeout on the clock, and yields in real time.
  for (let step = 0; step < 200; step++) {
    await clock.advance(3_000);
    await nextTurn();
  }
  expect(written.size).toBe(0);
  life.isDisconnected = false;
  await clock.advance(15_000);
  await record('done');
  expect(written.size).toBe(10_002);
  expect([...written].slice(0, 2)).toEqual(['create', 'outcome 100']);
});

it('a create reserves its price again before it is sent if its process was disconnected for over 30 s', async () => {
  const { clock, open, posted } = simulate();
  const budget = { maxTokens: 15, ...priced };
  const slow = open({ budget, ...slowLimits });
  const quick = open({ budget });
  await clock.until(slow.client.withOptions({ budget: undefined }).videos.create(VIDEO));
  const slowCreate = track(slow.client.videos.create(VIDEO, { idempotencyKey: 'slow' }));
  await clock.advance(1_000);
  slow.life.isDisconnected = true;
  await clock.advance(40_000);
  await clock.until(quick.client.videos.create(VIDEO, { idempotencyKey: 'quick' }));
  slow.life.isDisconnected = false;
  await clock.advance(40_000);
  expect([slowCreate.state, posted.includes('slow')]).toEqual(['BudgetExceededError', false]);
  expect(await quick.budget.usage()).toMatchObject({ spentTokens: PRICE, reservedTokens: 0 });
});

it('a create reserves its price again before it is sent if a crashed process had also started it', async () => {
  const { clock, open, posted } = simulate();
  const budget = { maxTokens: 15, ...priced };
  const [first, second, third] = [open({ budget, ...slowLimits }), open({ budget, ...slowLimits }), open({ budget })];
  await clock.until(first.client.withOptions({ budget: undefined }).videos.create(VIDEO));
  const order = track(first.client.videos.create(VIDEO, { idempotencyKey: 'order' }));
  await clock.advance(1_000);
  void second.client.videos.create(VIDEO, { idempotencyKey: 'order' }).catch(() => {});
  await clock.advance(1_000);
  second.life.isDead = true;
  await clock.advance(35_000);
  await Promise.race([third.client.videos.create(VIDEO).catch(() => {}), clock.advance(1_000)]);
  await clock.advance(60_000);
  expect(posted).toHaveLength(2);
  expect(order.state).not.toBe('pending');
});

it("an unsent second call doesn't affect the create that a crashed call sent with the same key", async () => {
  const { clock, state, open, jobs } = simulate();
  const budget = { maxTokens: 100, ...priced };
  const [sender, waiter] = [open({ budget }), open({ budget, ...slowLimits })];
  await clock.until(waiter.client.videos.create(VIDEO));
  state.respond = () => 'lost';
  void sender.client.videos.create(VIDEO, { idempotencyKey: 'order' }).catch(() => {});
  await clock.advance(1_000);
  sender.life.isDead = true;
  const stop = new AbortController();
  const second = track(waiter.client.videos.create(VIDEO, { idempotencyKey: 'order', signal: stop.signal }));
  await clock.advance(35_000);
  stop.abort();
  await clock.advance(1_000);
  expect([second.state, jobs.size]).toEqual(['AbortError', 2]);
  expect(await unfinishedKeys(waiter.client)).toContain('order');
  expect(await waiter.budget.usage()).toMatchObject({ reservedTokens: PRICE, unresolved: ['order'] });
});

it('a create that waits for its rate limit reserves only its price', async () => {
  const { clock, open, posted } = simulate();
  const { client } = open({ budget: { maxTokens: 35, ...priced }, ...slowLimits });
  await clock.until(client.videos.create(VIDEO));
  const waiting = client.videos.create(VIDEO, { idempotencyKey: 'video' });
  await clock.advance(1_000);
  void client.images.create(VIDEO, { idempotencyKey: 'image' });
  await clock.advance(1_000);
  expect(posted.slice(1)).toEqual(['image']);
  await clock.until(waiting);
});

it('onWait reports a wait for a budget', async () => {
  const { clock, state, open } = simulate();
  const waits: unknown[] = [];
  const { client } = open({ hooks: { onWait: ({ reason }) => void waits.push(reason) } });
  state.respond = () => 'never';
  const calls = [1, 2].map(() => client.videos.create(VIDEO, { timeoutMs: 1_000 }));
  const settled = Promise.allSettled(calls);
  await clock.advance(500);
  expect(waits).toEqual(['budget']);
  await clock.until(settled);
});

it('a resume() that times out releases the creates that it has claimed', async () => {
  const { clock, state, open } = simulate();
  const old = open();
  for (const idempotencyKey of ['a', 'b', 'c']) await clock.until(old.client.videos.create(VIDEO, { idempotencyKey }));
  const [slow, other] = [open(), open()];
  slow.life.delayMs = 400;
  const keys = await clock.until(resumeWith(slow.client, { timeoutMs: 1_000 }));
  expect(keys.length).toBeLessThan(3);
  slow.life.delayMs = 0;
  // The process and its lease stay alive.
  state.respond = () => 'never';
  void slow.client.images.create(VIDEO, { timeoutMs: 0 }).catch(() => {});
  await clock.advance(20_000);
  expect((await clock.until(resumeAll(other.client))).keys.toSorted()).toEqual(['a', 'b', 'c']);
});

it.each(['fails', 'hangs'] as const)('an abort ends resume() immediately while the store %s', async (failure) => {
  const { clock, state, open, crash } = simulate();
  const old = open();
  state.outcomes = [1, 2].map(() => ({ status: 'failed', errorCode: 'generation_failed' }));
  for (const idempotencyKey of ['a', 'b']) await clock.until(old.client.videos.create(VIDEO, { idempotencyKey }));
  await crash(old);
  const { client, life } = open();
  const stop = new AbortController();
  let yieldedCount = 0;
  const disrupt = () => {
    yieldedCount += 1;
    Object.assign(life, failure === 'fails' ? { isDisconnected: true } : { isDead: true });
  };
  const loop = track(resumeWith(client, { signal: stop.signal }, disrupt));
  while (yieldedCount === 0) await clock.advance(100);
  await settleAll();
  expect([yieldedCount, loop.state]).toEqual([1, 'pending']);
  stop.abort();
  await settleAll();
  expect(loop.state).not.toBe('pending');
});

it('marking a file as stored in another process completes the create, even if its job was never polled', async () => {
  const { clock, state, open } = simulate();
  const [first, second] = [open(), open()];
  state.outcomes = [{ status: 'processing' }];
  const { job } = await clock.until(first.client.videos.create(VIDEO));
  expect(await unfinishedKeys(second.client)).toHaveLength(1);
  await clock.until(second.client.markStored(job));
  expect(await unfinishedKeys(second.client)).toEqual([]);
});

it('a client warns once about the unfinished creates of other accounts', async () => {
  const { clock, open } = simulate();
  const old = open({ account: 'old' });
  for (let create = 0; create < 3; create++) await clock.until(old.client.videos.create(VIDEO));
  const warnings: string[] = [];
  const logger = { warn: (text: string) => void warnings.push(text), error() {}, info() {}, debug() {} };
  const { client } = open({ account: 'main', logger, logLevel: 'warn' });
  expect(await clock.until(unfinishedKeys(client))).toEqual([]);
  await clock.until(resumeAll(client));
  expect(warnings).toEqual([expect.stringMatching(/3 unfinished creates of other accounts.*account/)]);
});

/** Iterates over resume(). Resolves with the keys, even after an error. */
async function resumeWith(
  client: GenClient,
  options: Parameters<GenClient['resume']>[0],
  onYield = () => {},
): Promise<string[]> {
  const keys: string[] = [];
  try {
    for await (const { idempotencyKey } of client.resume(options)) {
      keys.push(idempotencyKey);
      onYield();
    }
  } catch {
    // Only the completion of resume() matters.
  }
  return keys;
}
