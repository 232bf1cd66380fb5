import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { memoryStore } from '../../src/ledger/stores.js';
import { memoryStoreOn, STORE, type Store } from '../../src/store/store.js';
import type { WebhookHandlerOptions } from '../../src/webhooks/handler.js';
import { createWebhookHandler } from '../../src/webhooks/index.js';
import { PATIENCE_MS } from '../support/patience.js';
import { quiet } from '../support/quiet.js';
import { never } from '../transport/support.js';
import { claimElsewhere, delivery, event, handlerOf, NOW_MS, pendingWork, SECRET } from './deliver.js';

beforeAll(quiet);

describe.each(['before', 'after'] as const)('duplicates, acknowledged %s the work', (ack) => {
  test.each([1, 5])('are handled once, even if fifty reach %i processes', async (processes) => {
    const work = pendingWork();
    const shared = memoryStore();
    const options = { ack, store: shared, on: { '*': work.run } };
    const handlers = Array.from({ length: processes }, () => handlerOf(options));
    const requests = await Promise.all(Array.from({ length: 50 }, () => delivery()));
    const responses = requests.map((request, at) => handlers[at % processes]?.(request));
    await vi.waitFor(() => expect(work.run).toHaveBeenCalled(), PATIENCE_MS);
    work.succeed();
    const statuses = new Set((await Promise.all(responses)).map((response) => response?.status));
    if (processes > 1 && ack === 'after') statuses.delete(503);
    expect([...statuses]).toEqual([200]);
    expect(work.run).toHaveBeenCalledOnce();
  });

  test('are handled after the lease if the process that owned the event crashed', async () => {
    let time = NOW_MS;
    const shared = memoryStoreOn({ now: () => time, after: () => () => {} });
    await claimElsewhere(shared, 60_000);
    const listener = vi.fn();
    const handler = handlerOf({ ack, store: shared, on: { '*': listener } });
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
/** Time that a duplicate waits for the outcome of the first delivery, plus a tolerance for timers. */
const DUPLICATE_WAIT_MS = 1100;

/** Creates a memory store with overrides for reads and for the nth write. The first write claims the event. */
function storeWith({ read, writes = [] }: { read?: () => unknown; writes?: readonly (() => unknown)[] }): Store {
  const store = memoryStore();
  let writeCount = 0;
  return {
    async read(...args) {
      await read?.();
      return store.read(...args);
    },
    async write(...args) {
      const fault = writes[writeCount];
      writeCount += 1;
      await fault?.();
      return store.write(...args);
    },
  };
}

/** Creates a handler that acknowledges after the work, with functions that send it deliveries. */
function createReceiver(options: WebhookHandlerOptions) {
  const onError = vi.fn();
  const handler = handlerOf({ ack: 'after', leaseMs: LEASE_MS, onError, ...options });
  const send = async () => handler(await delivery());
  const statusAfter = async (ms: number) => {
    const response = send();
    await advance(ms);
    return settledStatus(response);
  };
  const reports = () => onError.mock.calls.map(([error]) => (error instanceof Error ? error.message : error));
  return { handler, send, statusAfter, onError, reports };
}

/** Advances time, and runs all pending work before and after. */
async function advance(ms: number): Promise<void> {
  const settle = async () => {
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  await settle();
  await vi.advanceTimersByTimeAsync(ms);
  await settle();
}

/** Returns the status of a response, or 'no response' if it hasn't arrived. */
async function settledStatus(response: Promise<Response>): Promise<number | 'no response'> {
  const none = new Promise<'no response'>((resolve) => setImmediate(() => resolve('no response')));
  return Promise.race([response.then(({ status }) => status), none]);
}

describe('on a manual clock', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
  });
  afterEach(() => {
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
  });

  test('a duplicate of an event in progress elsewhere waits a second, then gets a 503 with the lease as Retry-After', async () => {
    const shared = memoryStore();
    await claimElsewhere(shared, LEASE_MS);
    const read = vi.spyOn(shared, 'read');
    const { send } = createReceiver({ store: shared, leaseMs: 45_000 });
    const sent = send();
    await advance(900);
    expect(await settledStatus(sent)).toBe('no response');
    await advance(DUPLICATE_WAIT_MS - 900);
    const response = await sent;
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '45']);
    expect(read).toHaveBeenCalledTimes(7);
  });

  test('a duplicate is handled if the listener fails for the first delivery', async () => {
    const listener = vi.fn().mockImplementationOnce(async () => {
      await new Promise((resolve) => setTimeout(resolve, 200));
      throw new Error('disk full');
    });
    const { send, statusAfter } = createReceiver({ on: { '*': listener } });
    const first = send();
    await advance(100);
    expect(await statusAfter(DUPLICATE_WAIT_MS)).toBe(200);
    expect((await first).status).toBe(500);
    expect(listener).toHaveBeenCalledTimes(2);
  });

  test('a listener that never settles owns an event only until its lease expires', async () => {
    const listener = vi.fn().mockImplementationOnce(never);
    const { send, statusAfter, reports } = createReceiver({ on: { '*': listener } });
    const first = send();
    await advance(0);
    expect(await statusAfter(DUPLICATE_WAIT_MS)).toBe(503);
    await advance(LEASE_MS);
    expect((await first).status).toBe(500);
    expect(reports()).toEqual([
      'The listener did not finish within 60000 ms (leaseMs). Another delivery may handle the event again.',
    ]);
    expect(await statusAfter(0)).toBe(200);
    expect(listener).toHaveBeenCalledTimes(2);
  });

  test("a listener that fails after its lease doesn't release a duplicate's claim", async () => {
    const lateWork = pendingWork();
    const nextWork = pendingWork();
    const listener = vi
      .fn()
      .mockImplementationOnce(() => lateWork.run().then(() => Promise.reject(new Error('late'))))
      .mockImplementationOnce(nextWork.run);
    const shared = memoryStore();
    const { send, reports } = createReceiver({ store: shared, on: { '*': listener } });
    const first = send();
    await advance(LEASE_MS + 10);
    expect((await first).status).toBe(500);
    const second = send();
    await advance(0);
    lateWork.succeed();
    await advance(0);
    expect(reports()).toEqual([expect.stringContaining('did not finish'), 'late']);
    expect((await shared.read(`events/${event.id}`, ['state'])).values.state).toContain('busy');
    nextWork.succeed();
    expect((await second).status).toBe(200);
  });

  test('a listener that succeeds after its lease is recorded, and later duplicates are acknowledged', async () => {
    const late = pendingWork();
    const { send, statusAfter } = createReceiver({ on: { '*': late.run } });
    const first = send();
    await advance(LEASE_MS + 10);
    expect((await first).status).toBe(500);
    late.succeed();
    await advance(0);
    expect(await statusAfter(0)).toBe(200);
    expect(late.run).toHaveBeenCalledOnce();
  });

  test('the lease starts before the store call, so it never expires earlier in the store', async () => {
    const delayWrite = () => new Promise((resolve) => setTimeout(resolve, 1_500));
    const { statusAfter, reports } = createReceiver({ store: storeWith({ writes: [delayWrite] }), on: { '*': never } });
    expect(await statusAfter(LEASE_MS + 10)).toBe(500);
    expect(reports()).toEqual([expect.stringContaining('The listener did not finish')]);
  });

  test.each(['before', 'after'] as const)(
    'a store that never responds to a claim times out after two seconds (ack: %s)',
    async (ack) => {
      const listener = vi.fn();
      const { statusAfter, reports } = createReceiver({
        ack,
        store: storeWith({ read: never }),
        on: { '*': listener },
      });
      expect(await statusAfter(1_990)).toBe('no response');
      await advance(20);
      expect(reports()).toEqual([
        'The store did not respond within 2000 ms (timeoutMs). Check the connection, or raise timeoutMs.',
      ]);
      expect(await statusAfter(2_010)).toBe(500);
      expect(listener).not.toHaveBeenCalled();
    },
  );

  test.each([
    ['completed', async () => {}, 200, []],
    ['failed', () => Promise.reject(new Error('disk full')), 500, ['disk full']],
  ])('%s work determines the response even if the store never records it', async (_, work, status, errors) => {
    const { statusAfter, reports } = createReceiver({
      store: storeWith({ writes: [() => {}, never] }),
      on: { '*': work },
    });
    expect(await statusAfter(LEASE_MS + 10)).toBe(status);
    expect(reports()).toEqual([...errors, expect.stringContaining('The store did not respond')]);
  });
});

describe('a store', () => {
  const unavailable = () => Promise.reject(new Error('connection lost'));
  const storeError = expect.objectContaining({ name: 'ConnectionError', cause: new Error('connection lost') });

  test.each(['before', 'after'] as const)(
    'that fails before an event is claimed is reported and causes a 500 (ack: %s)',
    async (ack) => {
      for (const shared of [storeWith({ read: unavailable }), storeWith({ writes: [unavailable] })]) {
        const listener = vi.fn();
        const { send, onError } = createReceiver({ ack, store: shared, on: { '*': listener } });
        expect((await send()).status).toBe(500);
        expect(onError).toHaveBeenCalledExactlyOnceWith(storeError, event);
        expect(listener).not.toHaveBeenCalled();
      }
    },
  );

  test("that fails after the work doesn't undo it", async () => {
    const { send, onError } = createReceiver({ store: storeWith({ writes: [() => {}, unavailable] }) });
    expect((await send()).status).toBe(200);
    expect(onError).toHaveBeenCalledExactlyOnceWith(storeError, event);
  });

  test('receives the lease and the retention as TTLs', async () => {
    const shared = memoryStore();
    const write = vi.spyOn(shared, 'write');
    const ttls = () => write.mock.calls.map(([, , { state }]) => state?.ttlMs);
    expect((await createReceiver({ store: shared, leaseMs: 7000 }).send()).status).toBe(200);
    expect(ttls()).toEqual([7000, 3 * 86_400_000]);
    write.mockClear();
    await handlerOf({ store: shared, ack: 'after' })(await delivery({ ...event, id: 'evt_other' }));
    expect(ttls()).toEqual([60_000, 3 * 86_400_000]);
  });

  test("defaults to the client's, even if each request creates a handler", async () => {
    const shared = memoryStore();
    const client = { notify() {}, [STORE]: shared };
    const listener = vi.fn();
    for (let request = 0; request < 2; request++) {
      const handler = createWebhookHandler({ secret: SECRET, now: () => NOW_MS, client, on: { '*': listener } });
      expect((await handler(await delivery(event))).status).toBe(200);
    }
    expect(listener).toHaveBeenCalledOnce();
    expect((await shared.read(`events/${event.id}`, ['state'])).values.state).toBe('done');
  });
});
