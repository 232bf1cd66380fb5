import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { redisStore } from '../../src/adapters/redis/index.js';
import { GenError } from '../../src/errors/index.js';
import { memoryStore } from '../../src/store/store.js';
import { createWebhookHandler, signWebhook, WebhookVerificationError } from '../../src/webhooks/index.js';
import { PATIENCE_MS } from '../support/patience.js';
import { delivery, event, handlerOf, SECRET } from './deliver.js';

/** The message of the GenError that `make` throws. */
function refusalBy(make: () => unknown): string {
  try {
    make();
  } catch (error) {
    if (GenError.isInstance(error)) return error.message;
    throw error;
  }
  return 'nothing was thrown';
}

describe('createWebhookHandler', () => {
  test.each([
    [{ ack: 'afterwards' }, 'ack must be one of "before", "after", not "afterwards".'],
    [{ leaseMs: -1 }, 'leaseMs must be a finite number of milliseconds above 0, not -1.'],
    [{ leaseMs: 0 }, 'leaseMs must be a finite number of milliseconds above 0, not 0.'],
    [{ leaseMs: Number.POSITIVE_INFINITY }, 'leaseMs must be a finite number of milliseconds above 0, not Infinity.'],
    [{ leaseMs: '60s' }, 'leaseMs must be a finite number of milliseconds above 0, not "60s".'],
    [{ leaseMs: '60000' }, 'leaseMs must be a finite number of milliseconds above 0, not "60000".'],
    [{ rememberMs: Number.NaN }, 'rememberMs must be a finite number of milliseconds above 0, not NaN.'],
    [{ maxBodyBytes: 0 }, 'maxBodyBytes must be a whole number of bytes above 0, not 0.'],
    [{ maxBodyBytes: 1.5 }, 'maxBodyBytes must be a whole number of bytes above 0, not 1.5.'],
    [{ toleranceSeconds: 0 }, 'toleranceSeconds must be a finite number of seconds above 0, not 0.'],
    [
      { toleranceSeconds: Number.POSITIVE_INFINITY },
      'toleranceSeconds must be a finite number of seconds above 0, not Infinity.',
    ],
    [{ store: new Map() }, 'store must be an object with the methods read, write, not an object.'],
    [{ store: null }, 'store must be an object with the methods read, write, not null.'],
    [{ store: 'redis' }, 'store must be an object with the methods read, write, not a string.'],
    [{ store: { read() {} } }, expect.stringContaining('read, write, not an object.')],
    [{ client: {} }, 'client must be an object with the method notify, not an object.'],
    [{ waitUntil: true }, 'waitUntil must be a function, not true.'],
    [{ onError: 'log' }, 'onError must be a function, not a string.'],
    [{ now: 5 }, 'now must be a function, not 5.'],
    [{ on: () => {} }, 'on must be an object of listeners, not a function.'],
    [{ on: { 'job.failed': 'log' } }, 'on["job.failed"] must be a function, not a string.'],
    [{ on: { 'job.complete': () => {} } }, 'on has no event "job.complete". Did you mean "job.completed"?'],
    [
      { on: { ready: () => {} } },
      'on has no event "ready". Use one of job.completed, job.failed, job.canceled, job.blocked, *.',
    ],
    [{ onEror: () => {} }, 'createWebhookHandler has no option "onEror". Did you mean "onError"?'],
    [{ lease_ms: 5 }, 'createWebhookHandler has no option "lease_ms". Did you mean "leaseMs"?'],
    [{ toString: undefined }, expect.stringContaining('createWebhookHandler has no option "toString".')],
    [{ __proto__: null, sercet: 'x' }, expect.stringContaining('Did you mean "secret"?')],
  ])('refuses %j by name', (options, message) => {
    // @ts-expect-error JavaScript callers misspell.
    expect(refusalBy(() => createWebhookHandler({ secret: SECRET, ...options }))).toEqual(message);
  });

  test.each(['whsec_test', null, 7, () => {}])('refuses %j in place of its options', (given) => {
    // @ts-expect-error JavaScript callers pass the secret alone.
    expect(refusalBy(() => createWebhookHandler(given))).toMatch(
      /^createWebhookHandler: options must be an object such as \{ secret \}, not /,
    );
  });

  const noSecrets = ['', ' ', '\n', [], [''], [SECRET, ''], null, 7, {}, [7]].map((secret) => ({ secret }));
  test.each(noSecrets)('refuses at once $secret as the secret, and does not show it', ({ secret }) => {
    // @ts-expect-error only strings are secrets
    const message = refusalBy(() => createWebhookHandler({ secret }));
    expect(message).toBe('secret is missing or blank. The console shows it under Webhooks.');
  });

  test('takes every option, and those that are undefined', () => {
    const callback = () => {};
    const options = {
      secret: [SECRET, 'whsec_before'],
      on: { 'job.completed': callback, 'job.failed': undefined, '*': callback },
      ack: 'after',
      store: memoryStore(),
      leaseMs: 1,
      rememberMs: 1,
      maxBodyBytes: Number.POSITIVE_INFINITY,
      toleranceSeconds: 0.5,
      client: { notify: callback },
      waitUntil: callback,
      onError: callback,
      now: Date.now,
    } as const;
    expect(createWebhookHandler(options)).toBeTypeOf('function');
    const none = Object.fromEntries(Object.keys(options).map((name) => [name, undefined]));
    expect(createWebhookHandler(none)).toBeTypeOf('function');
    expect(createWebhookHandler()).toBeTypeOf('function');
  });
});

describe('the other makers', () => {
  test.each([
    [() => redisStore(fakeRedis, { prefx: 'x' } as object), 'redisStore has no option "prefx". Did you mean "prefix"?'],
    [() => redisStore(fakeRedis, { prefix: 5 } as object), 'prefix must be a non-empty string, not 5.'],
  ])('refuse options that cannot be right (%#)', (make, message) => {
    expect(refusalBy(make)).toBe(message);
  });

  test.each([
    [{ secrets: 'x' }, 'signWebhook has no option "secrets". Did you mean "secret"?'],
    [{ timestamp: 1.5 }, 'timestamp must be a whole number of unix seconds, not 1.5.'],
    [{ now: 5 }, 'now must be a function, not 5.'],
  ])('signWebhook refuses %j by name', async (options, message) => {
    await expect(signWebhook(event, { secret: SECRET, ...options } as { secret: string })).rejects.toThrow(message);
  });

  test('signWebhook gives the documented headers, those of the event where there is one', async () => {
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

  test.each([undefined, null, 7])('signWebhook refuses %j as an event', async (none) => {
    // @ts-expect-error JavaScript callers forget it.
    const refused = signWebhook(none, { secret: SECRET });
    await expect(refused).rejects.toThrow('event must be an object or a string');
  });
});

const fakeRedis = { eval: async () => 'new', evalSha: async () => 'new' };

describe('without onError, the console', () => {
  const printed = vi.fn();
  beforeEach(() => {
    vi.spyOn(console, 'error').mockImplementation(printed);
  });
  afterEach(() => {
    vi.restoreAllMocks();
    printed.mockReset();
  });

  test.each(['before', 'after'] as const)(
    'is told of a listener that throws, with its event, acknowledged %s',
    async (ack) => {
      const fail = () => Promise.reject(new Error('disk full'));
      await handlerOf({ ack, on: { '*': fail } })(await delivery());
      await vi.waitFor(() => expect(printed.mock.calls).toEqual([[new Error('disk full'), event]]), PATIENCE_MS);
    },
  );

  test('is told of a listener that fails at a webhook of its own', async () => {
    const error = new WebhookVerificationError('forged', { reason: 'signature_mismatch' });
    await handlerOf({ on: { '*': () => Promise.reject(error) } })(await delivery());
    await vi.waitFor(() => expect(printed.mock.calls).toEqual([[error, event]]), PATIENCE_MS);
  });

  test('is told of a store that fails', async () => {
    const shared = { ...memoryStore(), read: () => Promise.reject(new Error('store away')) };
    expect((await handlerOf({ store: shared })(await delivery())).status).toBe(500);
    const error = expect.objectContaining({ name: 'ConnectionError', cause: new Error('store away') });
    expect(printed.mock.calls).toEqual([[error, event]]);
  });

  test('is told of a missing secret with each event; making the handler needs none', async () => {
    const handler = createWebhookHandler({ secret: undefined });
    expect(printed).not.toHaveBeenCalled();
    const response = await handler(await delivery());
    expect([response.status, await response.text()]).toEqual([500, 'secret_missing']);
    expect(printed.mock.calls).toEqual([[expect.objectContaining({ reason: 'secret_missing' })]]);
  });

  test('is told of a body that something read before', async () => {
    const request = await delivery();
    await request.text();
    await handlerOf({})(request);
    expect(printed.mock.calls).toEqual([[expect.objectContaining({ reason: 'body_unavailable' })]]);
  });

  test('is told of a call that is no web request', async () => {
    // @ts-expect-error what http.createServer(handler) passes
    await handlerOf({})({ method: 'POST', headers: {} }, {});
    expect(printed.mock.calls).toEqual([
      [expect.objectContaining({ message: expect.stringContaining('toNodeHandler') })],
    ]);
  });

  test('is told nothing of what strangers send, or they could fill the log', async () => {
    const signed = await delivery();
    const cut = new ReadableStream({ pull: (controller) => controller.error(new Error('reset')) });
    const requests = [
      await delivery(event, 'whsec_forger'),
      await delivery('{'),
      new Request('https://me.test/hook', { method: 'POST', body: '{}' }),
      new Request('https://me.test/hook', { method: 'GET' }),
      new Request(signed, { body: 'x'.repeat(2_000_000) }),
      new Request('https://me.test/hook', {
        method: 'POST',
        headers: signed.headers,
        body: cut,
        duplex: 'half',
      } as RequestInit),
    ];
    const statuses = [];
    for (const request of requests) statuses.push((await handlerOf({})(request)).status);
    expect(statuses).toEqual([400, 400, 400, 405, 413, 500]);
    expect((await handlerOf({ now: () => Date.now() })(signed)).status).toBe(400);
    expect(printed).not.toHaveBeenCalled();
  });
});
