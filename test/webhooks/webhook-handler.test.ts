import { describe, expect, test, vi } from 'vitest';
import {
  createWebhookHandler,
  memoryStore,
  signWebhook,
  type WebhookHandlerOptions,
  type WebhookStore,
  WebhookVerificationError,
} from '../../src/webhooks/index.js';

const secret = 'whsec_test';
const now = () => 1_767_323_045_000;
const event = { id: 'evt_job_1_completed', type: 'job.completed', data: { job: { id: 'job_1', status: 'completed' } } };

function handlerOf(options: Partial<WebhookHandlerOptions>) {
  return createWebhookHandler({ secret, now, ...options });
}

async function delivery(sent: object | string = event, key = secret): Promise<Request> {
  const { body, headers } = await signWebhook(sent, { secret: key, now });
  return new Request('https://me.test/hook', { method: 'POST', body, headers });
}

/** Work that a test ends when it likes. */
function heldWork() {
  let end = () => {};
  const promise = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { run: vi.fn(() => promise), succeed: () => end() };
}

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
    const onError = (error: unknown) => errors.push(error);
    const forged = await handlerOf({ onError })(await delivery(event, 'whsec_other'));
    expect([forged.status, await forged.text()]).toEqual([400, 'signature_mismatch']);
    const stale = await handlerOf({ onError, now: () => now() + 300_000 })(await delivery());
    expect([stale.status, await stale.text()]).toEqual([400, 'timestamp_out_of_tolerance']);
    const bare = await handlerOf({ onError })(new Request('https://me.test/hook', { method: 'POST', body: '{}' }));
    expect([bare.status, await bare.text()]).toEqual([400, 'signature_missing']);
    expect(errors).toHaveLength(3);
    expect(errors.every((error) => WebhookVerificationError.isInstance(error))).toBe(true);
  });

  test('500 for a mistake of the receiver, so that the service sends again', async () => {
    expect((await handlerOf({ secret: undefined })(await delivery())).status).toBe(500);
    const used = await delivery();
    await used.text();
    const response = await handlerOf({})(used);
    expect([response.status, await response.text()]).toEqual([500, 'body_unavailable']);
  });

  test('500 when the store cannot be asked', async () => {
    const onError = vi.fn();
    const store = { ...memoryStore(), claim: () => Promise.reject(new Error('store away')) };
    for (const ack of ['before', 'after'] as const) {
      expect((await handlerOf({ store, onError, ack })(await delivery())).status).toBe(500);
    }
    expect(onError).toHaveBeenCalledWith(new Error('store away'), event);
  });

  test('200 whatever onError and notify do', async () => {
    const client = {
      notify() {
        throw new Error('no waits');
      },
    };
    const onError = vi.fn(() => Promise.reject(new Error('onError failed')));
    expect((await handlerOf({ client, onError })(await delivery())).status).toBe(200);
    expect(onError).toHaveBeenCalledWith(new Error('no waits'), event);
  });
});

describe('the body', () => {
  test('is held to a size by its length and by its bytes', async () => {
    const handler = handlerOf({ maxBodyBytes: 100 });
    const { headers } = await signWebhook(event, { secret, now });
    const declared = new Request('https://me.test/hook', {
      method: 'POST',
      body: 'x'.repeat(101),
      headers: { ...headers, 'content-length': '101' },
    });
    expect((await handler(declared)).status).toBe(413);
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
    const response = await handler(new Request('https://me.test/hook', init));
    expect([response.status, await response.text()]).toEqual([413, 'body_too_large']);
    expect(pulled).toBeLessThan(6);
    expect(cancel).toHaveBeenCalledOnce();
  });

  test('may come in any number of pieces', async () => {
    const { body, headers } = await signWebhook(event, { secret, now });
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
  test('"*" takes what has no listener of its own, types to come included', async () => {
    const own = vi.fn();
    const rest = vi.fn();
    const handler = handlerOf({ on: { 'job.completed': own, '*': rest } });
    const later = { ...event, id: 'evt_2', type: 'job.archived' };
    const trap = { ...event, id: 'evt_3', type: 'constructor' };
    for (const sent of [event, later, trap]) await handler(await delivery(sent));
    expect(own.mock.calls).toEqual([[event]]);
    expect(rest.mock.calls).toEqual([[later], [trap]]);
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
    await Promise.resolve();
    expect(settled).not.toHaveBeenCalled();
    work.succeed();
    await promise;
    expect(settled).toHaveBeenCalledOnce();
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
    const handler = handlerOf({ waitUntil });
    await handler(await delivery(), context);
    expect([context.count, waitUntil.mock.calls.length]).toEqual([1, 0]);
    await handler(await delivery({ ...event, id: 'evt_2' }), { params: Promise.resolve({}) });
    expect(waitUntil).toHaveBeenCalledOnce();
  });

  test('a failing listener goes to onError, and a later copy is handled', async () => {
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

  test('without onError the runtime that waits hears of the failure', async () => {
    const fail = () => {
      throw new Error('disk full');
    };
    const waitUntil = vi.fn();
    await handlerOf({ on: { '*': fail } })(await delivery(), { waitUntil });
    await expect(waitUntil.mock.calls[0]?.[0]).rejects.toThrow('disk full');
  });

  test('a copy that another process works on is acknowledged', async () => {
    const store: WebhookStore = { ...memoryStore(), claim: async () => 'busy' };
    expect((await handlerOf({ store })(await delivery())).status).toBe(200);
  });
});

describe('acknowledged after the work', () => {
  test('the answer says how it ended, and a failed event is handled when it comes again', async () => {
    const listener = vi.fn().mockRejectedValueOnce(new Error('disk full'));
    const handler = handlerOf({ ack: 'after', on: { '*': listener } });
    expect((await handler(await delivery())).status).toBe(500);
    expect((await handler(await delivery())).status).toBe(200);
    expect((await handler(await delivery())).status).toBe(200);
    expect(listener).toHaveBeenCalledTimes(2);
  });

  test('a copy that another process works on is sent again after the lease', async () => {
    const store: WebhookStore = { ...memoryStore(), claim: async () => 'busy' };
    const response = await handlerOf({ ack: 'after', store, leaseMs: 45_000 })(await delivery());
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '45']);
  });

  test('work that is done stays done when the store cannot note it', async () => {
    const onError = vi.fn();
    const store = { ...memoryStore(), complete: () => Promise.reject(new Error('store away')) };
    const handler = handlerOf({ ack: 'after', store, onError });
    expect((await handler(await delivery())).status).toBe(200);
    expect(onError).toHaveBeenCalledWith(new Error('store away'), event);
  });
});

describe.each(['before', 'after'] as const)('copies, acknowledged %s the work', (ack) => {
  test('fifty at once are all answered 200 and handled once', async () => {
    const work = heldWork();
    const store = memoryStore({ now });
    const claim = vi.spyOn(store, 'claim');
    const handler = handlerOf({ ack, store, on: { '*': work.run } });
    const requests = await Promise.all(Array.from({ length: 50 }, () => delivery()));
    const answers = requests.map((request) => handler(request));
    await vi.waitFor(() => expect(work.run).toHaveBeenCalled());
    work.succeed();
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array(50).fill(200));
    expect(work.run).toHaveBeenCalledOnce();
    expect(claim).toHaveBeenCalledOnce();
  });

  test('fifty at once over five processes are handled once', async () => {
    const work = heldWork();
    const store = memoryStore({ now });
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
    let time = now();
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
