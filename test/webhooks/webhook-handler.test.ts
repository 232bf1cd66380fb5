import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { memoryStore } from '../../src/ledger/stores.js';
import { createWebhookHandler, signWebhook } from '../../src/webhooks/index.js';
import { PATIENCE_MS } from '../support/patience.js';
import { claimElsewhere, delivery, event, HOOK, handlerOf, NOW_MS, pendingWork, SECRET } from './deliver.js';

describe('responds', () => {
  test('200 for an event with or without a listener', async () => {
    const listener = vi.fn();
    const handler = handlerOf({ on: { 'job.completed': listener } });
    expect((await handler(await delivery())).status).toBe(200);
    expect(listener.mock.calls).toEqual([[event]]);
    expect((await handler(await delivery({ ...event, id: 'evt_2', type: 'job.failed' }))).status).toBe(200);
    expect(listener).toHaveBeenCalledOnce();
  });

  test.each(['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS'])('405 for %s, and lists the allowed method', async (method) => {
    const response = await handlerOf({})(new Request(HOOK, { method }));
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe('POST');
  });

  test.each<[string, () => Promise<Request>, nowMs?: number]>([
    ['signature_mismatch', () => delivery(event, 'whsec_other')],
    ['timestamp_out_of_tolerance', () => delivery(), NOW_MS + 300_000],
    ['signature_missing', async () => new Request(HOOK, { method: 'POST', body: '{}' })],
    ['event_malformed', () => delivery('{"id":1}')],
  ])('400 with only the reason for an invalid event: %s', async (reason, send, nowMs = NOW_MS) => {
    const onError = vi.fn();
    const response = await handlerOf({ onError, now: () => nowMs })(await send());
    expect([response.status, await response.text()]).toEqual([400, reason]);
    expect(onError).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ reason }), undefined);
  });

  test('500 without details if something else fails', async () => {
    const onError = vi.fn();
    const now = () => {
      throw new TypeError('no clock');
    };
    const response = await handlerOf({ now, onError })(await delivery());
    expect([response.status, await response.text()]).toEqual([500, '']);
    expect(onError).toHaveBeenCalledExactlyOnceWith(new TypeError('no clock'), undefined);
  });

  test('200 even if onError and notify throw', async () => {
    const fail = () => {
      throw new Error('no waits');
    };
    for (const notify of [fail, async () => fail()]) {
      const onError = vi.fn(() => Promise.reject(new Error('onError failed')));
      expect((await handlerOf({ client: { notify }, onError })(await delivery())).status).toBe(200);
      await vi.waitFor(() => expect(onError).toHaveBeenCalledWith(new Error('no waits'), event), PATIENCE_MS);
    }
  });
});

describe('listeners', () => {
  test('"*" receives events without a specific listener, including undocumented types', async () => {
    const completedListener = vi.fn();
    const otherListener = vi.fn();
    const handler = handlerOf({ on: { 'job.completed': completedListener, '*': otherListener } });
    const archived = { ...event, id: 'evt_2', type: 'job.archived' };
    const inherited = { ...event, id: 'evt_3', type: 'constructor' };
    for (const sent of [event, archived, inherited]) await handler(await delivery(sent));
    expect(completedListener.mock.calls).toEqual([[event]]);
    expect(otherListener.mock.calls).toEqual([[archived], [inherited]]);
  });

  test('run once per event, but the client is notified of every duplicate', async () => {
    const client = { notify: vi.fn() };
    const listener = vi.fn();
    const handler = handlerOf({ client, on: { '*': listener } });
    await handler(await delivery());
    await handler(await delivery());
    expect(client.notify.mock.calls).toEqual([[event], [event]]);
    expect(listener).toHaveBeenCalledOnce();
  });

  test.each(['before', 'after'] as const)("run in their own request's async context (ack: %s)", async (ack) => {
    const tenant = new AsyncLocalStorage<string>();
    const calls: unknown[] = [];
    const fail = async (event: { id: string }) => {
      await new Promise((resolve) => setTimeout(resolve, 1));
      calls.push(['listener', event.id, tenant.getStore()]);
      throw new Error('disk full');
    };
    const onError = (_: unknown, event?: { id: string }) => calls.push(['onError', event?.id, tenant.getStore()]);
    const handler = handlerOf({ ack, on: { '*': fail }, onError });
    const send = async (id: string) => {
      const request = await delivery({ ...event, id });
      return tenant.run(`tenant of ${id}`, () => handler(request));
    };
    await Promise.all(['evt_a', 'evt_b', 'evt_c'].map(send));
    await vi.waitFor(() => expect(calls).toHaveLength(6), PATIENCE_MS);
    for (const [, id, store] of calls as string[][]) expect(store).toBe(`tenant of ${id}`);
  });

  test.each([undefined, null, 'text', 0])('that throw %j report it with the event', async (thrown) => {
    const onError = vi.fn();
    const fail = () => {
      throw thrown;
    };
    expect((await handlerOf({ ack: 'after', on: { '*': fail }, onError })(await delivery())).status).toBe(500);
    expect(onError.mock.calls).toEqual([[thrown, event]]);
  });
});

describe("ack: 'before'", () => {
  test("responds immediately, and calls the runtime's waitUntil", async () => {
    const work = pendingWork();
    const waitUntil = vi.fn();
    const response = await handlerOf({ ack: 'before', on: { '*': work.run } })(await delivery(), { waitUntil });
    expect(response.status).toBe(200);
    const settled = vi.fn();
    const promise = waitUntil.mock.calls[0]?.[0].then(settled);
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(settled).not.toHaveBeenCalled();
    work.succeed();
    await promise;
    expect(settled).toHaveBeenCalledOnce();
  });

  test("calls the context's waitUntil as a method, and otherwise the option", async () => {
    const context = {
      work: [] as unknown[],
      waitUntil(work: Promise<unknown>) {
        this.work.push(work);
      },
    };
    const waitUntil = vi.fn();
    const onError = vi.fn();
    const handler = handlerOf({ waitUntil, onError });
    await handler(await delivery(), context);
    expect([context.work.length, waitUntil.mock.calls.length]).toEqual([1, 0]);
    await handler(await delivery({ ...event, id: 'evt_2' }), { params: Promise.resolve({}) });
    expect(waitUntil).toHaveBeenCalledOnce();
    await handler(await delivery({ ...event, id: 'evt_3' }));
    expect(waitUntil).toHaveBeenCalledTimes(2);
    expect((await handler(await delivery({ ...event, id: 'evt_4' }), { waitUntil: undefined })).status).toBe(200);
    expect(onError).not.toHaveBeenCalled();
  });

  test('reports a waitUntil that throws, and still acknowledges the event', async () => {
    const onError = vi.fn();
    const waitUntil = () => {
      throw new TypeError('Illegal invocation');
    };
    expect((await handlerOf({ onError, waitUntil })(await delivery())).status).toBe(200);
    expect(onError).toHaveBeenCalledExactlyOnceWith(new TypeError('Illegal invocation'), event);
  });

  test('reports a failing listener to onError, not the runtime, and handles a later duplicate', async () => {
    const listener = vi.fn().mockRejectedValueOnce(new Error('disk full'));
    const onError = vi.fn();
    const waitUntil = vi.fn();
    const handler = handlerOf({ ack: 'before', on: { '*': listener }, onError });
    expect((await handler(await delivery(), { waitUntil })).status).toBe(200);
    await waitUntil.mock.calls[0]?.[0];
    expect(onError.mock.calls).toEqual([[new Error('disk full'), event]]);
    expect((await handler(await delivery())).status).toBe(200);
    expect(listener).toHaveBeenCalledTimes(2);
  });

  test('acknowledges a duplicate of an event in progress elsewhere', async () => {
    const shared = memoryStore();
    await claimElsewhere(shared, 60_000);
    const read = vi.spyOn(shared, 'read');
    const listener = vi.fn();
    const response = await handlerOf({ ack: 'before', store: shared, on: { '*': listener } })(await delivery());
    expect([response.status, response.headers.get('retry-after')]).toEqual([200, null]);
    expect(listener).not.toHaveBeenCalled();
    // Waiting wouldn't change the response.
    expect(read).toHaveBeenCalledOnce();
  });
});

describe("ack: 'after'", () => {
  test('responds with the result, and handles a failed event when it is retried', async () => {
    const listener = vi.fn().mockRejectedValueOnce(new Error('disk full'));
    const handler = handlerOf({ ack: 'after', on: { '*': listener }, onError: () => {} });
    const failed = await handler(await delivery());
    expect([failed.status, failed.headers.get('retry-after')]).toEqual([500, null]);
    expect((await handler(await delivery())).status).toBe(200);
    expect((await handler(await delivery())).status).toBe(200);
    expect(listener).toHaveBeenCalledTimes(2);
  });

  test("calls waitUntil, so a disconnected sender doesn't stop the work", async () => {
    const work = pendingWork();
    const waitUntil = vi.fn();
    const response = handlerOf({ ack: 'after', on: { '*': work.run } })(await delivery(), { waitUntil });
    await vi.waitFor(() => expect(waitUntil).toHaveBeenCalledOnce(), PATIENCE_MS);
    work.succeed();
    expect((await response).status).toBe(200);
  });
});

describe('createWebhookHandler', () => {
  const genError = (message: unknown) => expect.objectContaining({ name: 'GenError', message });

  test.each([
    [{ ack: 'afterwards' }, 'ack must be one of "before", "after", not "afterwards".'],
    [{ leaseMs: Number.NaN }, 'leaseMs must be a finite number of milliseconds above 0, not NaN.'],
    [{ maxBodyBytes: 1.5 }, 'maxBodyBytes must be a whole number of bytes above 0, not 1.5.'],
    [
      { toleranceSeconds: Number.POSITIVE_INFINITY },
      'toleranceSeconds must be a finite number of seconds above 0, not Infinity.',
    ],
    [{ store: new Map() }, expect.stringContaining('createStore({ read, write })')],
    [{ waitUntil: true }, 'waitUntil must be a function, not true.'],
    [{ on: { 'job.failed': 'log' } }, 'on["job.failed"] must be a function, not a string.'],
    [{ on: { 'job.complete': () => {} } }, 'on has no event "job.complete". Did you mean "job.completed"?'],
    [{ __proto__: null, sercet: 'x' }, expect.stringContaining('Did you mean "secret"?')],
  ])('throws for %j with the name of the option', (options, message) => {
    // @ts-expect-error: JavaScript callers may misspell options.
    expect(() => createWebhookHandler({ secret: SECRET, ...options })).toThrow(genError(message));
  });

  test.each(['whsec_test', null, 7, () => {}])('throws for %j instead of options', (options) => {
    const message = expect.stringMatching(
      /^createWebhookHandler: options must be an object such as \{ secret \}, not /,
    );
    // @ts-expect-error: JavaScript callers may pass only the secret.
    expect(() => createWebhookHandler(options)).toThrow(genError(message));
  });

  test('throws for a blank secret, without the other secrets in the message', () => {
    const message = 'secret is missing or blank. Pass { secret }, for example process.env.GEN_WEBHOOK_SECRET.';
    const error = expect.objectContaining({ name: 'WebhookVerificationError', message });
    expect(() => createWebhookHandler({ secret: [SECRET, ''] })).toThrow(error);
  });

  test('accepts undefined options and no options', () => {
    expect(createWebhookHandler({ secret: undefined, on: { 'job.failed': undefined } })).toBeTypeOf('function');
    expect(createWebhookHandler()).toBeTypeOf('function');
  });
});

describe('signWebhook', () => {
  test("returns the documented headers, including the event's ID if present", async () => {
    const { headers } = await signWebhook(event, { secret: [SECRET, 'whsec_next'], timestamp: 1_767_323_045 });
    expect(headers).toEqual({
      'Content-Type': 'application/json',
      'X-Service-Event-Id': event.id,
      'X-Service-Event-Type': event.type,
      'X-Service-Job-Id': 'job_1',
      'X-Service-Timestamp': '1767323045',
      'X-Service-Signature': expect.stringMatching(/^t=1767323045(,v1=[\da-f]{64}){2}$/),
    });
    const bare = await signWebhook('{', { secret: SECRET });
    expect(bare.body).toBe('{');
    expect(Object.keys(bare.headers)).toEqual(['Content-Type', 'X-Service-Timestamp', 'X-Service-Signature']);
  });

  test.each([undefined, null, 7])('rejects %j as an event', async (invalid) => {
    // @ts-expect-error: JavaScript callers may forget the event.
    const rejected = signWebhook(invalid, { secret: SECRET });
    await expect(rejected).rejects.toThrow('event must be an object or a string');
  });
});

describe('without onError, the console', () => {
  const consoleError = vi.fn();
  beforeEach(() => {
    vi.spyOn(console, 'error').mockImplementation(consoleError);
  });
  afterEach(() => {
    vi.restoreAllMocks();
    consoleError.mockReset();
  });

  test.each(['before', 'after'] as const)("receives a listener's error with its event (ack: %s)", async (ack) => {
    const fail = () => Promise.reject(new Error('disk full'));
    await handlerOf({ ack, on: { '*': fail } })(await delivery());
    await vi.waitFor(() => expect(consoleError.mock.calls).toEqual([[new Error('disk full'), event]]), PATIENCE_MS);
  });

  test("receives a failing store's error", async () => {
    const shared = { ...memoryStore(), read: () => Promise.reject(new Error('connection lost')) };
    expect((await handlerOf({ store: shared })(await delivery())).status).toBe(500);
    const error = expect.objectContaining({ name: 'ConnectionError', cause: new Error('connection lost') });
    expect(consoleError.mock.calls).toEqual([[error, event]]);
  });

  test('receives the error for a missing secret with each event, not when the handler is created', async () => {
    const handler = createWebhookHandler({ secret: undefined });
    expect(consoleError).not.toHaveBeenCalled();
    const response = await handler(await delivery());
    expect([response.status, await response.text()]).toEqual([500, 'secret_missing']);
    expect(consoleError.mock.calls).toEqual([[expect.objectContaining({ reason: 'secret_missing' })]]);
  });

  test('receives nothing about forged requests, which could fill the log', async () => {
    const signed = await delivery();
    const body = new ReadableStream({ pull: (controller) => controller.error(new Error('reset')) });
    const { headers } = signed;
    const requests = [
      await delivery(event, 'whsec_forger'),
      await delivery('{'),
      new Request(HOOK, { method: 'POST', body: '{}' }),
      new Request(HOOK, { method: 'GET' }),
      new Request(signed, { body: 'x'.repeat(2_000_000) }),
      new Request(HOOK, { method: 'POST', headers, body, duplex: 'half' } as RequestInit),
    ];
    const statuses = [];
    for (const request of requests) statuses.push((await handlerOf({})(request)).status);
    expect(statuses).toEqual([400, 400, 400, 405, 413, 500]);
    expect((await handlerOf({ now: () => Date.now() })(signed)).status).toBe(400);
    expect(consoleError).not.toHaveBeenCalled();
  });
});
