import { vi } from 'vitest';
import { clientStore } from '../../src/ledger/client-ledger.js';
import { memoryStore } from '../../src/ledger/stores.js';
import type { WebhookHandlerOptions } from '../../src/webhooks/handler.js';
import { createWebhookHandler, signWebhook } from '../../src/webhooks/index.js';
import { completedEvent } from '../support/completed-event.js';

/** The secret of the receivers here. */
export const SECRET = 'whsec_test';
/** The time at which webhooks are signed and verified here. */
export const NOW_MS = 1_767_323_045_000;
/** An event as the service sends it. */
export const event = completedEvent('job_1', 'https://gen.test', '2026-01-02T03:04:05.000Z');

const now = () => NOW_MS;

/** A receiver with a stopped clock and its own memory. */
export function handlerOf(options: WebhookHandlerOptions) {
  const { store = memoryStore() } = options;
  return createWebhookHandler({ secret: SECRET, now, ...options, store: clientStore(store) });
}

/** A webhook request, signed under `secret`. */
export async function delivery(sent: object | string = event, secret = SECRET): Promise<Request> {
  const { body, headers } = await signWebhook(sent, { secret, now });
  return new Request('https://me.test/hook', { method: 'POST', body, headers });
}

/** Work that a test ends when it likes, or never. */
export function heldWork() {
  let end = () => {};
  const promise = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { run: vi.fn(() => promise), succeed: () => end() };
}
