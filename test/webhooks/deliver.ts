import { vi } from 'vitest';
import { clientStore } from '../../src/ledger/client-ledger.js';
import { memoryStore } from '../../src/ledger/stores.js';
import type { Store } from '../../src/store/store.js';
import type { WebhookHandlerOptions } from '../../src/webhooks/handler.js';
import { createWebhookHandler, signWebhook } from '../../src/webhooks/index.js';
import { completedEvent } from '../support/completed-event.js';

export const SECRET = 'whsec_test';
export const HOOK = 'https://me.test/hook';
/** The time at which the tests sign and verify webhooks. */
export const NOW_MS = 1_767_323_045_000;
export const event = completedEvent('job_1', 'https://gen.test', '2026-01-02T03:04:05.000Z');

export const now = () => NOW_MS;

/** Creates a handler with a fixed clock and its own memory store. */
export function handlerOf(options: WebhookHandlerOptions) {
  const { store = memoryStore() } = options;
  return createWebhookHandler({ secret: SECRET, now, ...options, store: clientStore(store) });
}

/** Creates a webhook request signed with `secret`. */
export async function delivery(payload: object | string = event, secret = SECRET): Promise<Request> {
  const { body, headers } = await signWebhook(payload, { secret, now });
  return new Request(HOOK, { method: 'POST', body, headers });
}

/** Creates work that lasts until the test calls `succeed`. */
export function pendingWork() {
  let succeed = () => {};
  const promise = new Promise<void>((resolve) => {
    succeed = resolve;
  });
  return { run: vi.fn(() => promise), succeed: () => succeed() };
}

/** Claims the event as another process would. */
export async function claimElsewhere(store: Store, ttlMs: number): Promise<void> {
  const group = `events/${event.id}`;
  const { version } = await store.read(group, []);
  await store.write(group, version, { state: { value: 'busy elsewhere', ttlMs } });
}
