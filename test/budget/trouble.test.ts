// A budget, step by step, on a held clock and a store that a test can hold up or fail.
import { describe, expect, test } from 'vitest';
import { ConnectionError, createBudget, RateLimitError } from '../../src/index.js';
import { CLOCK } from '../../src/runtime/clock.js';
import type { BudgetOrder } from '../../src/schemas/budget.js';
import { memoryStoreOn, type Store } from '../../src/store/store.js';
import { HeldClock, turn } from './held-clock.js';

const START = Date.UTC(2026, 0, 1);
const FULL = {
  status: 429,
  code: 'rate_limited',
  recovery: 'wait_and_retry',
  method: 'POST',
  url: '/v1/videos',
} as const;

/** A store on a held clock, and what becomes of its calls. */
function openStore() {
  const clock = new HeldClock(START);
  const kept = memoryStoreOn(clock);
  const calls: { readonly at: number; readonly what: 'read' | 'write'; readonly group: string }[] = [];
  const store = {
    /** Decides what a call comes to. `work` is the call itself. */
    answers: async <T>(_what: 'read' | 'write', _group: string, work: () => Promise<T>): Promise<T> => work(),
  };
  const ask = <T>(what: 'read' | 'write', group: string, work: () => Promise<T>): Promise<T> => {
    calls.push({ at: clock.now() - START, what, group });
    return store.answers(what, group, work);
  };
  const shared: Store = {
    ...{ [CLOCK]: clock },
    read: (group, keys) => ask('read', group, () => kept.read(group, keys)),
    write: (group, version, changes) => ask('write', group, () => kept.write(group, version, changes)),
  };
  const budget = createBudget({ maxTokens: 1_000, store: shared });
  const order = (key: string, more: Partial<BudgetOrder> = {}): BudgetOrder => ({
    job: { call: 'videos' },
    priceClass: 'video',
    isFixedPrice: true,
    learnedTokens: 10,
    idempotencyKey: key,
    clock,
    ...more,
  });
  /** What a promise comes to while time passes. */
  const during = async <T>(ms: number, promise: Promise<T>) => {
    const settled = promise.then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    await clock.advance(ms);
    return Promise.race([settled, turn().then(() => 'pending' as const)]);
  };
  const usage = async () => {
    const { spentTokens, reservedTokens, unresolved } = await budget.usage();
    return { spentTokens, reservedTokens, unresolved };
  };
  return { clock, calls, held: store, store: shared, budget, order, during, usage };
}

const answer = { jobId: 'job_1', quotedTokens: 10, balanceTokens: undefined, isUncharged: false };

describe('a call that is aborted', () => {
  test('before it asks, leaves the store alone', async () => {
    const { budget, order, calls } = openStore();
    const reason = new Error('changed my mind');
    await expect(budget.reserve(order('a', { signal: AbortSignal.abort(reason) }))).rejects.toBe(reason);
    expect(calls).toEqual([]);
  });

  test('while the store reserves for it, gives that back', async () => {
    const { budget, order, held, during, usage } = openStore();
    let release = () => {};
    held.answers = async (what, _, work) => {
      const result = await work();
      if (what === 'write') await new Promise<void>((resolve) => (release = resolve));
      return result;
    };
    const controller = new AbortController();
    const reserved = budget.reserve(order('a', { signal: controller.signal }));
    await turn();
    controller.abort(new Error('changed my mind'));
    expect(await during(0, reserved)).toMatchObject({ error: { message: 'changed my mind' } });
    held.answers = async (_what, _group, work) => work();
    release();
    await during(1_000, Promise.resolve());
    expect(await usage()).toEqual({ spentTokens: 0, reservedTokens: 0, unresolved: 0 });
  });

  test('while it waits behind another one, leaves the line to those after it', async () => {
    const { budget, order, during, usage } = openStore();
    const unknown = { learnedTokens: undefined };
    const first = await budget.reserve(order('a', unknown));
    const controller = new AbortController();
    const second = budget.reserve(order('b', { ...unknown, signal: controller.signal }));
    const third = budget.reserve(order('c', unknown));
    await during(1_300, Promise.resolve());
    controller.abort(new Error('changed my mind'));
    expect(await during(0, second)).toMatchObject({ error: { message: 'changed my mind' } });
    expect(await during(1_300, third)).toBe('pending');
    await first.answered(answer);
    expect(await during(1_300, third)).toHaveProperty('value');
    expect(await usage()).toEqual({ spentTokens: 10, reservedTokens: 10, unresolved: 0 });
  });
});

describe('creates that wait', () => {
  test('are not overtaken by one that would fit', async () => {
    const { order, during, store: shared } = openStore();
    const budget = createBudget({ maxTokens: 1_000, store: shared, unknownPrice: () => 10 });
    const unsure = { learnedTokens: undefined, priceClass: 'new' };
    const first = await budget.reserve(order('a', unsure));
    const second = budget.reserve(order('b', unsure));
    const third = budget.reserve(order('c', { learnedTokens: 1, priceClass: 'known' }));
    expect(await during(3_000, second)).toBe('pending');
    expect(await during(0, third)).toBe('pending');
    await first.answered(answer);
    expect(await during(1_000, Promise.all([second, third]))).toHaveProperty('value');
  });

  test('have the store asked every 600 ms, and no more once they have their turn', async () => {
    const { budget, order, during, calls } = openStore();
    const unknown = { learnedTokens: undefined };
    const first = await budget.reserve(order('a', unknown));
    const waiting = budget.reserve(order('b', unknown));
    await turn();
    calls.length = 0;
    await during(3_000, Promise.resolve());
    expect(calls.filter(({ what }) => what === 'read').map(({ at }) => at)).toEqual([600, 1_200, 1_800, 2_400, 3_000]);
    await first.answered(answer);
    const second = await waiting;
    await second.answered({ ...answer, jobId: 'job_2' });
    calls.length = 0;
    await during(60_000, Promise.resolve());
    expect(calls).toEqual([]);
  });
});

describe('a store that fails', () => {
  test('before it is written to, refuses the create, and there is nothing to give back', async () => {
    const { budget, order, held, during, calls } = openStore();
    held.answers = () => Promise.reject(new TypeError('fetch failed'));
    const { error } = (await during(0, budget.reserve(order('a')))) as { error: unknown };
    expect(ConnectionError.isInstance(error)).toBe(true);
    expect(error).toMatchObject({ attempts: 0, idempotencyKey: 'a', message: expect.stringMatching(/fetch failed/) });
    await during(120_000, Promise.resolve());
    expect(calls).toHaveLength(1);
  });

  test('after it has reserved, is told so once it is back', async () => {
    const { budget, order, held, during, usage } = openStore();
    held.answers = async (what, _, work) => {
      const result = await work();
      if (what === 'write') throw new TypeError('terminated');
      return result;
    };
    expect(await during(0, budget.reserve(order('a')))).toHaveProperty('error');
    held.answers = async (_what, _group, work) => work();
    await during(250, Promise.resolve());
    expect(await usage()).toEqual({ spentTokens: 0, reservedTokens: 0, unresolved: 0 });
  });

  test('is asked again after pauses that double, until it has what it missed', async () => {
    const { budget, order, held, during, usage, calls } = openStore();
    const reserved = await budget.reserve(order('a'));
    calls.length = 0;
    held.answers = () => Promise.reject(new TypeError('fetch failed'));
    const answered = reserved.answered(answer);
    expect(await during(1_499, answered)).toBe('pending');
    expect(await during(1, answered)).toHaveProperty('value');
    await during(6_500, Promise.resolve());
    const at = (group: RegExp) => calls.filter((call) => group.test(call.group)).map((call) => call.at);
    expect(at(/^budget\//)).toEqual([0, 250, 750, 1_750, 3_750, 7_750]);
    expect(at(/^budget-job\//)).toEqual([0, 250, 750, 1_750, 3_750, 7_750]);
    held.answers = async (_what, _group, work) => work();
    await during(8_000, Promise.resolve());
    expect(await usage()).toEqual({ spentTokens: 10, reservedTokens: 0, unresolved: 0 });
  });

  test('and has not noted whose budget a job is, hides no refund from the process that has made the job', async () => {
    const { budget, order, held, during, usage } = openStore();
    const reserved = await budget.reserve(order('a'));
    held.answers = (what, group, work) =>
      what === 'write' && group.startsWith('budget-job/') ? Promise.reject(new TypeError('fetch failed')) : work();
    await during(1_500, reserved.answered(answer));
    expect(await usage()).toMatchObject({ spentTokens: 10 });
    await during(1_500, budget.refund('job_1', 0));
    expect(await usage()).toEqual({ spentTokens: 0, reservedTokens: 0, unresolved: 0 });
  });
});

describe('a rerun of a create that lost its answer', () => {
  test.each([
    ['finds the rate limit full', new RateLimitError('slow down', FULL)],
    [
      'cannot connect',
      new ConnectionError('fetch failed', { cause: Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }) }),
    ],
  ])('and %s leaves it reserved', async (_, error) => {
    const { budget, order, usage } = openStore();
    const lost = { error: new ConnectionError('terminated'), wasSent: true };
    await (await budget.reserve(order('a'))).failed(lost);
    await (await budget.reserve(order('a'))).failed({ error, wasSent: true });
    expect(await usage()).toEqual({ spentTokens: 0, reservedTokens: 10, unresolved: 1 });
  });
});

describe('unknownPrice', () => {
  const estimated = (tokens: unknown) => {
    const { order } = openStore();
    const budget = createBudget({ maxTokens: 10, per: 'day', unknownPrice: () => tokens as number });
    return budget.reserve(order('a', { learnedTokens: undefined }));
  };

  test.each([-1, Number.NaN, Number.POSITIVE_INFINITY, '5', null])(
    'that gives %j rejects the create',
    async (tokens) => {
      await expect(estimated(tokens)).rejects.toThrow(
        'unknownPrice() must be a number of tokens, 0 or more, or undefined',
      );
    },
  );

  test.each([0, 10, undefined])('that gives %j lets it through', async (tokens) => {
    await expect(estimated(tokens)).resolves.toHaveProperty('answered');
  });

  test('that gives more than is left refuses it, and says when the next period begins', async () => {
    await expect(estimated(11)).rejects.toThrow('The next period begins at 2026-01-02T00:00:00.000Z.');
  });
});

test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])('a period of %d ms is refused', (per) => {
  expect(() => createBudget({ maxTokens: 1, per })).toThrow('per must be');
});

test('an unknownPrice that is neither a word nor a function is refused', () => {
  expect(() => createBudget({ maxTokens: 1, unknownPrice: 'ask' as never })).toThrow(
    "unknownPrice must be 'one-at-a-time', 'refuse' or a function that estimates",
  );
});

test('a step that comes at any moment of an update is taken by it or by the next', async () => {
  for (let moment = 0; moment < 60; moment++) {
    const budget = createBudget({ maxTokens: 10 });
    const answered: string[] = [];
    void budget.usage().then(() => answered.push('first'));
    for (let at = 0; at < moment; at++) await undefined;
    void budget.usage().then(() => answered.push('second'));
    await turn();
    await turn();
    expect([moment, answered]).toEqual([moment, ['first', 'second']]);
  }
});

test('a release rejects where the store is away, as usage does, and is made when it is back', async () => {
  const { held, budget, order, during, usage } = openStore();
  const reservation = await budget.reserve(order('lost'));
  await reservation.failed({ error: new ConnectionError('cut', { ...FULL, attempts: 1 } as never), wasSent: true });
  expect(await usage()).toMatchObject({ reservedTokens: 10, unresolved: 1 });
  const { answers } = held;
  held.answers = async () => {
    throw new Error('ECONNREFUSED');
  };
  expect(await during(10_000, budget.release('lost'))).toMatchObject({
    error: { message: expect.stringContaining('ECONNREFUSED') },
  });
  held.answers = answers;
  await budget.release('lost');
  expect(await usage()).toMatchObject({ reservedTokens: 0, unresolved: 0 });
});
