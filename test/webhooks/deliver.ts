import { vi } from 'vitest';
import { clientStore } from '../../src/ledger/client-ledger.js';
import { memoryStore } from '../../src/ledger/stores.js';
import type { WebhookHandlerOptions } from '../../src/webhooks/handler.js';
import { createWebhookHandler, signWebhook } from '../../src/webhooks/index.js';
import { completedEvent } from '../support/completed-event.js';

export const SECRET = 'whsec_test';
/** The time at which the tests sign and verify webhooks. */
export const NOW_MS = 1_767_323_045_000;
export const event = completedEvent('job_1', 'https://gen.test', '2026-01-02T03:04:05.000Z');

const now = () => NOW_MS;

/** Creates a handler with a fixed clock and its own memory store. */
export function handlerOf(options: WebhookHandlerOptions) {
  const { store = memoryStore() } = options;
  return createWebhookHandler({ secret: SECRET, now, ...options, store: clientStore(store) });
}

/** Creates a webhook request signed with `secret`. */
export async function delivery(sent: object | string = event, secret = SECRET): Promise<Request> {
  const { body, headers } = await signWebhook(sent, { secret, now });
  return new Request('https://me.test/hook', { method: 'POST', body, headers });
}

/** Creates work that lasts until the test ends it. */
export function heldWork() {
  let end = () => {};
  const promise = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { run: vi.fn(() => promise), succeed: () => end() };
}
