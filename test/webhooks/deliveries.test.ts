import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { GenError } from '../../src/errors/index.js';
import { memoryStore, type WebhookHandlerOptions, type WebhookStore } from '../../src/webhooks/index.js';
import { delivery, event, handlerOf, heldWork, NOW_MS } from './deliver.js';

describe.each(['before', 'after'] as const)('copies, acknowledged %s the work', (ack) => {
  test('fifty at once are all answered 200 and handled once', async () => {
    const work = heldWork();
    const handler = handlerOf({ ack, on: { '*': work.run } });
    const requests = await Promise.all(Array.from({ length: 50 }, () => delivery()));
    const answers = requests.map((request) => handler(request));
    await vi.waitFor(() => expect(work.run).toHaveBeenCalled());
    work.succeed();
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array(50).fill(200));
    expect(work.run).toHaveBeenCalledOnce();
  });

  test('fifty at once over five processes are handled once', async () => {
    const work = heldWork();
    const store = memoryStore();
    const handlers = Array.from({ length: 5 }, () => handlerOf({ ack, store, on: { '*': work.run } }));
    const requests = await Promise.all(Array.from({ length: 50 }, () => delivery()));
    const answers = requests.map((request, at) => handlers[at % 5]?.(request));
    await vi.waitFor(() => expect(work.run).toHaveBeenCalled());
    work.succeed();
    const statuses = (await Promise.all(answers)).map((response) => response?.status);
    expect(statuses.every((status) => status === 200 || (ack === 'after' && status === 503))).toBe(true);
    expect(work.run).toHaveBeenCalledOnce();
  });

  test('one that died with its process is handled after the lease', async () => {
    let time = NOW_MS;
    const store = memoryStore({ now: () => time });
    await store.claim(event.id, 60_000);
    const listener = vi.fn();
    const handler = handlerOf({ ack, store, on: { '*': listener } });
    await handler(await delivery());
    time += 59_999;
    await handler(await delivery());
    expect(listener).not.toHaveBeenCalled();
    time += 1;
    expect((await handler(await delivery())).status).toBe(200);
    expect(listener).toHaveBeenCalledOnce();
  });
});

const LEASE_MS = 60_000;
/** How long a copy waits for the outcome of the one that is being handled, with what timers add to it. */
const PATIENCE_MS = 1100;

/** A store whose methods can be replaced; the rest is in memory. */
function storeWith(methods: Partial<Record<keyof WebhookStore, (...given: never[]) => unknown>>): WebhookStore {
  return { ...memoryStore(), ...methods } as WebhookStore;
}

/** What a receiver does that works before it answers, with time in the test's hands. */
function receiver(options: WebhookHandlerOptions) {
  const onError = vi.fn();
  const handler = handlerOf({ ack: 'after', leaseMs: LEASE_MS, onError, ...options });
  const send = async () => handler(await delivery());
  const statusAfter = async (ms: number) => {
    const answer = send();
    await pass(ms);
    return settledStatus(answer);
  };
  const reports = () => onError.mock.calls.map(([error]) => (error instanceof Error ? error.message : error));
  return { handler, send, statusAfter, onError, reports };
}

/** Lets time pass, before and after which everything happens that needs none: a request is read, a promise settles. */
async function pass(ms: number): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  await vi.advanceTimersByTimeAsync(ms);
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** The status of an answer that has come by now. */
async function settledStatus(answer: Promise<Response>): Promise<number | 'no answer'> {
  const none = new Promise<'no answer'>((resolve) => setImmediate(() => resolve('no answer')));
  return Promise.race([answer.then(({ status }) => status), none]);
}

const forEver = () => new Promise<never>(() => {});

describe('with time held', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
  });
  afterEach(() => {
    // Whatever the outcome, no timer stays behind.
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
  });

  test('a copy that another process works on waits a second, and is then sent again after the lease', async () => {
    const claim = vi.fn(async () => 'busy');
    const { send } = receiver({ store: storeWith({ claim }), leaseMs: 45_000 });
    const answer = send();
    await pass(900);
    expect(await settledStatus(answer)).toBe('no answer');
    await pass(PATIENCE_MS - 900);
    const response = await answer;
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '45']);
    expect(claim).toHaveBeenCalledTimes(7);
  });

  test('a copy takes the work over when the one that it waits for fails', async () => {
    const fails = vi.fn(async () => {
      await new Promise((resolve) => setTimeout(resolve, 200));
      throw new Error('disk full');
    });
    const listener = vi.fn().mockImplementationOnce(fails);
    const { send, statusAfter } = receiver({ on: { '*': listener } });
    const first = send();
    await pass(100);
    expect(await statusAfter(PATIENCE_MS)).toBe(200);
    expect((await first).status).toBe(500);
    expect(listener).toHaveBeenCalledTimes(2);
  });

  test('a listener that never settles holds an event for the lease and no longer', async () => {
    const listener = vi.fn().mockImplementationOnce(forEver);
    const { send, statusAfter, reports } = receiver({ on: { '*': listener } });
    const first = send();
    await pass(0);
    expect(await statusAfter(PATIENCE_MS)).toBe(503);
    await pass(LEASE_MS);
    expect((await first).status).toBe(500);
    expect(reports()).toEqual([
      'The listener did not finish within 60000 ms (leaseMs). Another copy of the event can be handled now.',
    ]);
    expect(await statusAfter(0)).toBe(200);
    expect(listener).toHaveBeenCalledTimes(2);
  });

  test('a listener that never settles is reported, too, when the answer has gone out', async () => {
    const waitUntil = vi.fn();
    const { send, reports } = receiver({ ack: 'before', waitUntil, on: { '*': forEver } });
    expect((await send()).status).toBe(200);
    await pass(LEASE_MS + 10);
    await waitUntil.mock.calls[0]?.[0];
    expect(reports()).toEqual([expect.stringContaining('The listener did not finish')]);
  });

  test('a listener that fails after the lease does not give away the claim of the next copy', async () => {
    const late = heldWork();
    const next = heldWork();
    const listener = vi
      .fn()
      .mockImplementationOnce(() => late.run().then(() => Promise.reject(new Error('late'))))
      .mockImplementationOnce(next.run);
    const store = memoryStore();
    const release = vi.spyOn(store, 'release');
    const { send, reports } = receiver({ store, on: { '*': listener } });
    const first = send();
    await pass(LEASE_MS + 10);
    expect((await first).status).toBe(500);
    const second = send();
    await pass(0);
    late.succeed();
    await pass(0);
    expect(reports()).toEqual([expect.stringContaining('did not finish'), 'late']);
    expect(release).not.toHaveBeenCalled();
    expect(await store.claim(event.id, 1)).toBe('busy');
    next.succeed();
    expect((await second).status).toBe(200);
  });

  test('a listener that succeeds after the lease is noted, and later copies are acknowledged', async () => {
    const late = heldWork();
    const { send, statusAfter } = receiver({ on: { '*': late.run } });
    const first = send();
    await pass(LEASE_MS + 10);
    expect((await first).status).toBe(500);
    late.succeed();
    await pass(0);
    expect(await statusAfter(0)).toBe(200);
    expect(late.run).toHaveBeenCalledOnce();
  });

  test('the lease begins before the store is asked, so the store never ends it first', async () => {
    const slowly = async () => {
      await new Promise((resolve) => setTimeout(resolve, LEASE_MS / 2));
      return 'new';
    };
    const { statusAfter, reports } = receiver({ store: storeWith({ claim: slowly }), on: { '*': forEver } });
    expect(await statusAfter(LEASE_MS + 10)).toBe(500);
    expect(reports()).toEqual([expect.stringContaining('The listener did not finish')]);
  });

  test.each(['before', 'after'] as const)(
    'a store that never says whether an event is new is answered for, acknowledged %s',
    async (ack) => {
      const listener = vi.fn();
      const { statusAfter, reports } = receiver({ ack, store: storeWith({ claim: forEver }), on: { '*': listener } });
      expect(await statusAfter(LEASE_MS - 10)).toBe('no answer');
      await pass(20);
      expect(reports()).toEqual(['The store did not answer within 60000 ms (leaseMs).']);
      expect(await statusAfter(LEASE_MS + 10)).toBe(500);
      expect(listener).not.toHaveBeenCalled();
    },
  );

  test('a store that fails leaves no timer', async () => {
    const { statusAfter } = receiver({ store: storeWith({ claim: () => Promise.reject(new Error('store away')) }) });
    expect(await statusAfter(0)).toBe(500);
  });

  test('what a store claims too late is given back', async () => {
    const late = heldWork();
    const release = vi.fn(async () => {});
    const claim = vi.fn(() => late.run().then(() => 'new'));
    const { statusAfter } = receiver({ store: storeWith({ claim, release }) });
    expect(await statusAfter(LEASE_MS + 10)).toBe(500);
    expect(release).not.toHaveBeenCalled();
    late.succeed();
    await pass(0);
    expect(release).toHaveBeenCalledExactlyOnceWith(event.id);
  });

  test('what a store finds too late to be busy is left to its owner', async () => {
    const late = heldWork();
    const release = vi.fn(async () => {});
    const { statusAfter } = receiver({ store: storeWith({ claim: () => late.run().then(() => 'busy'), release }) });
    expect(await statusAfter(LEASE_MS + 10)).toBe(500);
    late.succeed();
    await pass(0);
    expect(release).not.toHaveBeenCalled();
  });

  test('work that is done stays done when the store never notes it', async () => {
    const { statusAfter, reports } = receiver({ store: storeWith({ complete: forEver }) });
    expect(await statusAfter(LEASE_MS + 10)).toBe(200);
    expect(reports()).toEqual([expect.stringContaining('The store did not answer within 60000 ms')]);
  });

  test('work that failed stays failed when the store never gives it back', async () => {
    const fail = () => Promise.reject(new Error('disk full'));
    const { statusAfter, reports } = receiver({ store: storeWith({ release: forEver }), on: { '*': fail } });
    expect(await statusAfter(LEASE_MS + 10)).toBe(500);
    expect(reports()).toEqual(['disk full', expect.stringContaining('The store did not answer')]);
  });
});

describe('a store', () => {
  test('may answer without promises', async () => {
    const handled = new Set<string>();
    const store = storeWith({
      claim: (id: string) => (handled.has(id) ? 'done' : 'new'),
      complete: (id: string) => void handled.add(id),
      release: () => undefined,
    });
    const listener = vi.fn().mockRejectedValueOnce(new Error('disk full'));
    const { send, reports } = receiver({ store, on: { '*': listener } });
    expect([(await send()).status, (await send()).status, (await send()).status]).toEqual([500, 200, 200]);
    expect(listener).toHaveBeenCalledTimes(2);
    expect(reports()).toEqual(['disk full']);
  });

  const fails = {
    'throws at once': () => {
      throw new Error('store away');
    },
    rejects: () => Promise.reject(new Error('store away')),
  };

  test.each(Object.entries(fails))(
    'whose claim %s is reported and answered 500, however it is acknowledged',
    async (_, claim) => {
      for (const ack of ['before', 'after'] as const) {
        const listener = vi.fn();
        const { send, onError } = receiver({ ack, store: storeWith({ claim }), on: { '*': listener } });
        expect((await send()).status).toBe(500);
        expect(onError).toHaveBeenCalledExactlyOnceWith(new Error('store away'), event);
        expect(listener).not.toHaveBeenCalled();
      }
    },
  );

  test.each(Object.entries(fails))('whose complete %s does not undo the work', async (_, complete) => {
    const { send, onError } = receiver({ store: storeWith({ complete }) });
    expect((await send()).status).toBe(200);
    expect(onError).toHaveBeenCalledExactlyOnceWith(new Error('store away'), event);
  });

  test.each(Object.entries(fails))('whose release %s does not hide why the work failed', async (_, release) => {
    const fail = () => Promise.reject(new Error('disk full'));
    const { send, reports } = receiver({ store: storeWith({ release }), on: { '*': fail } });
    expect((await send()).status).toBe(500);
    expect(reports()).toEqual(['disk full', 'store away']);
  });

  test.each([
    [undefined, 'undefined'],
    [true, 'true'],
    ['NEW', '"NEW"'],
  ])('that claims with %j is told what to give', async (odd, shown) => {
    const { send, onError } = receiver({ store: storeWith({ claim: () => odd }) });
    expect((await send()).status).toBe(500);
    const [error] = onError.mock.calls[0] ?? [];
    expect(GenError.isInstance(error)).toBe(true);
    expect(error.message).toBe(`store.claim must give "new", "busy" or "done", not ${shown}.`);
  });

  test('is given the lease and the time to remember', async () => {
    const store = memoryStore();
    const [claim, complete] = [vi.spyOn(store, 'claim'), vi.spyOn(store, 'complete')];
    expect((await receiver({ store, leaseMs: 7000, rememberMs: 9000 }).send()).status).toBe(200);
    expect(claim.mock.calls).toEqual([[event.id, 7000]]);
    expect(complete.mock.calls).toEqual([[event.id, 9000]]);
    const bare = storeWith({ complete: vi.fn() });
    const claimed = vi.spyOn(bare, 'claim');
    await handlerOf({ store: bare })(await delivery());
    expect(claimed.mock.calls).toEqual([[event.id, 60_000]]);
    expect(bare.complete).toHaveBeenCalledExactlyOnceWith(event.id, 3 * 86_400_000);
  });
});
