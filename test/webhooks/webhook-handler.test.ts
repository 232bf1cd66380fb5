import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, test, vi } from 'vitest';
import { GenError } from '../../src/errors/index.js';
import { memoryStore } from '../../src/store/store.js';
import { signWebhook, WebhookVerificationError } from '../../src/webhooks/index.js';
import { PATIENCE_MS } from '../support/patience.js';
import { delivery, event, handlerOf, heldWork, NOW_MS, SECRET } from './deliver.js';

const quiet = { onError: () => {} };

describe('what is answered', () => {
  test('200 for an event, with or without a listener for it', async () => {
    const listener = vi.fn();
    const handler = handlerOf({ on: { 'job.completed': listener } });
    expect((await handler(await delivery())).status).toBe(200);
    expect(listener.mock.calls).toEqual([[event]]);
    expect((await handler(await delivery({ ...event, id: 'evt_2', type: 'job.failed' }))).status).toBe(200);
    expect(listener).toHaveBeenCalledOnce();
  });

  test.each(['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS'])('405 for %s, with what is allowed', async (method) => {
    const response = await handlerOf({})(new Request('https://me.test/hook', { method }));
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe('POST');
  });

  test('400 with the reason and no more for a forged, a stale and an unsigned one', async () => {
    const errors: unknown[] = [];
    const onError = (...told: unknown[]) => errors.push(told);
    const forged = await handlerOf({ onError })(await delivery(event, 'whsec_other'));
    expect([forged.status, await forged.text()]).toEqual([400, 'signature_mismatch']);
    const stale = await handlerOf({ onError, now: () => NOW_MS + 300_000 })(await delivery());
    expect([stale.status, await stale.text()]).toEqual([400, 'timestamp_out_of_tolerance']);
    const bare = await handlerOf({ onError })(new Request('https://me.test/hook', { method: 'POST', body: '{}' }));
    expect([bare.status, await bare.text()]).toEqual([400, 'signature_missing']);
    const none = await handlerOf({ onError })(await delivery('{"id":1}'));
    expect([none.status, await none.text()]).toEqual([400, 'event_malformed']);
    const reasons = ['signature_mismatch', 'timestamp_out_of_tolerance', 'signature_missing', 'event_malformed'];
    expect(errors).toEqual(reasons.map((reason) => [expect.objectContaining({ reason }), undefined]));
  });

  test('500 for a mistake of the receiver, so that the service sends again', async () => {
    const missing = await handlerOf({ secret: undefined, ...quiet })(await delivery());
    expect([missing.status, await missing.text()]).toEqual([500, 'secret_missing']);
    const used = await delivery();
    await used.text();
    const response = await handlerOf(quiet)(used);
    expect([response.status, await response.text()]).toEqual([500, 'body_unavailable']);
  });

  test('500 without a word about it when something else breaks', async () => {
    const onError = vi.fn();
    const now = () => {
      throw new TypeError('no clock');
    };
    const response = await handlerOf({ now, onError })(await delivery());
    expect([response.status, await response.text()]).toEqual([500, '']);
    expect(onError).toHaveBeenCalledExactlyOnceWith(new TypeError('no clock'), undefined);
  });

  test('200 whatever onError and notify do', async () => {
    const fails = [
      () => {
        throw new Error('no waits');
      },
      () => Promise.reject(new Error('no waits')),
    ];
    for (const notify of fails) {
      const onError = vi.fn(() => Promise.reject(new Error('onError failed')));
      expect((await handlerOf({ client: { notify }, onError })(await delivery())).status).toBe(200);
      await vi.waitFor(() => expect(onError).toHaveBeenCalledWith(new Error('no waits'), event), PATIENCE_MS);
    }
  });
});

describe('the body', () => {
  test('is held to a size, and a larger one is answered 413', async () => {
    const { headers } = await signWebhook(event, { secret: SECRET, now: () => NOW_MS });
    let pulled = 0;
    const cancel = vi.fn();
    const endless = new ReadableStream({
      pull(controller) {
        pulled++;
        controller.enqueue(new Uint8Array(40));
      },
      cancel,
    });
    const init = { method: 'POST', body: endless, headers, duplex: 'half' };
    const response = await handlerOf({ maxBodyBytes: 100, ...quiet })(new Request('https://me.test/hook', init));
    expect([response.status, await response.text()]).toEqual([413, 'body_too_large']);
    expect(pulled).toBeLessThan(6);
    expect(cancel).toHaveBeenCalledOnce();
  });

  test('of a stranger is not asked for: a flood of them takes no memory', async () => {
    let pulled = 0;
    const handler = handlerOf(quiet);
    const flood = Array.from({ length: 400 }, () => {
      const pull = (controller: ReadableStreamDefaultController) => {
        pulled++;
        controller.enqueue(new Uint8Array(1_048_576));
      };
      const body = new ReadableStream({ pull }, { highWaterMark: 0 });
      const init = { method: 'POST', body, duplex: 'half' };
      return handler(new Request('https://me.test/hook', init));
    });
    const statuses = (await Promise.all(flood)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([400]));
    expect(pulled).toBe(0);
  });

  test('may come in any number of pieces', async () => {
    const { body, headers } = await signWebhook(event, { secret: SECRET, now: () => NOW_MS });
    const pieces = new ReadableStream({
      start(controller) {
        for (const char of body) controller.enqueue(new TextEncoder().encode(char));
        controller.close();
      },
    });
    const init = { method: 'POST', body: pieces, headers, duplex: 'half' };
    expect((await handlerOf({})(new Request('https://me.test/hook', init))).status).toBe(200);
  });
});

describe('listeners', () => {
  test('"*" takes what has no listener of its own, also types that the documentation does not list', async () => {
    const own = vi.fn();
    const rest = vi.fn();
    const handler = handlerOf({ on: { 'job.completed': own, '*': rest } });
    const later = { ...event, id: 'evt_2', type: 'job.archived' };
    const trap = { ...event, id: 'evt_3', type: 'constructor' };
    for (const sent of [event, later, trap]) await handler(await delivery(sent));
    expect(own.mock.calls).toEqual([[event]]);
    expect(rest.mock.calls).toEqual([[later], [trap]]);
  });

  test('without "*" an event of another type is acknowledged', async () => {
    const handler = handlerOf({ on: { 'job.completed': undefined } });
    expect((await handler(await delivery({ ...event, type: 'toString' }))).status).toBe(200);
  });

  test('a client hears of every copy, the listener of one', async () => {
    const client = { notify: vi.fn() };
    const listener = vi.fn();
    const handler = handlerOf({ client, on: { '*': listener } });
    await handler(await delivery());
    await handler(await delivery());
    expect(client.notify.mock.calls).toEqual([[event], [event]]);
    expect(listener).toHaveBeenCalledOnce();
  });

  test.each(['before', 'after'] as const)(
    'run in the async context of their own request, acknowledged %s',
    async (ack) => {
      const tenant = new AsyncLocalStorage<string>();
      const seen: unknown[] = [];
      const fail = async (event: { id: string }) => {
        await new Promise((resolve) => setTimeout(resolve, 1));
        seen.push(['listener', event.id, tenant.getStore()]);
        throw new Error('seen');
      };
      const onError = (_: unknown, event?: { id: string }) => seen.push(['onError', event?.id, tenant.getStore()]);
      const handler = handlerOf({ ack, on: { '*': fail }, onError });
      const send = async (id: string) => {
        const request = await delivery({ ...event, id });
        return tenant.run(`tenant of ${id}`, () => handler(request));
      };
      await Promise.all(['evt_a', 'evt_b', 'evt_c'].map(send));
      await vi.waitFor(() => expect(seen).toHaveLength(6), PATIENCE_MS);
      for (const [, id, store] of seen as string[][]) expect(store).toBe(`tenant of ${id}`);
    },
  );

  test.each([undefined, null, 'text', 0])('that throw %j are reported with their event', async (thrown) => {
    const onError = vi.fn();
    const on = {
      '*': () => {
        throw thrown;
      },
    };
    expect((await handlerOf({ ack: 'after', on, onError })(await delivery())).status).toBe(500);
    expect(onError.mock.calls).toEqual([[thrown, event]]);
  });
});

describe('acknowledged before the work', () => {
  test('the answer does not wait, and the runtime is asked to', async () => {
    const work = heldWork();
    const waitUntil = vi.fn();
    const response = await handlerOf({ on: { '*': work.run } })(await delivery(), { waitUntil });
    expect(response.status).toBe(200);
    const [promise] = waitUntil.mock.calls[0] ?? [];
    const settled = vi.fn();
    promise.then(settled);
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(settled).not.toHaveBeenCalled();
    work.succeed();
    await promise;
    expect(settled).toHaveBeenCalledOnce();
  });

  test('the runtime is asked to wait for a notice that is on its way, too', async () => {
    const notice = heldWork();
    const waitUntil = vi.fn();
    const response = await handlerOf({ client: { notify: notice.run } })(await delivery(), { waitUntil });
    expect(response.status).toBe(200);
    const settled = vi.fn();
    const waited = waitUntil.mock.calls[0]?.[0].then(settled);
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(settled).not.toHaveBeenCalled();
    notice.succeed();
    await waited;
  });

  test('waitUntil is called on the context that owns it, else the given one is used', async () => {
    class Context {
      readonly #work: Promise<unknown>[] = [];
      waitUntil(work: Promise<unknown>) {
        this.#work.push(work);
      }
      get count() {
        return this.#work.length;
      }
    }
    const context = new Context();
    const waitUntil = vi.fn();
    const onError = vi.fn();
    const handler = handlerOf({ waitUntil, onError });
    await handler(await delivery(), context);
    expect([context.count, waitUntil.mock.calls.length]).toEqual([1, 0]);
    await handler(await delivery({ ...event, id: 'evt_2' }), { params: Promise.resolve({}) });
    expect(waitUntil).toHaveBeenCalledOnce();
    await handler(await delivery({ ...event, id: 'evt_3' }));
    expect(waitUntil).toHaveBeenCalledTimes(2);
    expect((await handler(await delivery({ ...event, id: 'evt_4' }), { waitUntil: undefined })).status).toBe(200);
    expect(onError).not.toHaveBeenCalled();
  });

  test('a waitUntil that throws is reported, and changes nothing', async () => {
    const onError = vi.fn();
    const waitUntil = () => {
      throw new TypeError('Illegal invocation');
    };
    expect((await handlerOf({ onError, waitUntil })(await delivery())).status).toBe(200);
    expect(onError).toHaveBeenCalledExactlyOnceWith(new TypeError('Illegal invocation'), event);
  });

  test('a failing listener goes to onError and not to the runtime, and a later copy is handled', async () => {
    const listener = vi.fn().mockRejectedValueOnce(new Error('disk full'));
    const onError = vi.fn();
    const waitUntil = vi.fn();
    const handler = handlerOf({ on: { '*': listener }, onError });
    expect((await handler(await delivery(), { waitUntil })).status).toBe(200);
    await waitUntil.mock.calls[0]?.[0];
    expect(onError.mock.calls).toEqual([[new Error('disk full'), event]]);
    expect((await handler(await delivery())).status).toBe(200);
    expect(listener).toHaveBeenCalledTimes(2);
  });

  test('a copy that another process works on is acknowledged', async () => {
    const shared = memoryStore();
    const state = { value: 'busy elsewhere', ttlMs: 60_000 };
    await shared.write(`events/${event.id}`, (await shared.read(`events/${event.id}`, [])).version, { state });
    const read = vi.spyOn(shared, 'read');
    const listener = vi.fn();
    const response = await handlerOf({ store: shared, on: { '*': listener } })(await delivery());
    expect([response.status, response.headers.get('retry-after')]).toEqual([200, null]);
    expect(listener).not.toHaveBeenCalled();
    // At once: nothing that it could wait for would change the answer.
    expect(read).toHaveBeenCalledOnce();
  });
});

describe('acknowledged after the work', () => {
  test('the answer says how it ended, and a failed event is handled when it comes again', async () => {
    const listener = vi.fn().mockRejectedValueOnce(new Error('disk full'));
    const handler = handlerOf({ ack: 'after', on: { '*': listener }, ...quiet });
    const failed = await handler(await delivery());
    expect([failed.status, failed.headers.get('retry-after')]).toEqual([500, null]);
    expect((await handler(await delivery())).status).toBe(200);
    expect((await handler(await delivery())).status).toBe(200);
    expect(listener).toHaveBeenCalledTimes(2);
  });

  test('the runtime is asked to wait, so that a sender who hangs up does not stop the work', async () => {
    const work = heldWork();
    const waitUntil = vi.fn();
    const answer = handlerOf({ ack: 'after', on: { '*': work.run } })(await delivery(), { waitUntil });
    await vi.waitFor(() => expect(waitUntil).toHaveBeenCalledOnce(), PATIENCE_MS);
    work.succeed();
    expect((await answer).status).toBe(200);
  });
});

describe('called with something that is not a web Request', () => {
  test('the handler reports what to do', async () => {
    const onError = vi.fn();
    const handler = handlerOf({ onError });
    for (const request of [undefined, {}, { headers: {}, method: 'POST' }]) {
      // @ts-expect-error what other servers pass
      const response = await handler(request);
      expect([response.status, await response.text()]).toEqual([
        500,
        expect.stringContaining('toNodeHandler(handler)'),
      ]);
    }
    expect(onError).toHaveBeenCalledTimes(3);
    const [error] = onError.mock.calls[0] ?? [];
    expect(GenError.isInstance(error)).toBe(true);
    expect(WebhookVerificationError.isInstance(error)).toBe(false);
  });
});
