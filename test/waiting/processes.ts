// Waits on a held clock, as one process of an account has them, and the webhooks that end them.
import type { Job } from '../../src/schemas/job.js';
import type { WebhookEvent } from '../../src/schemas/webhook-event.js';
import { createWaiter, type WaiterContext } from '../../src/waiting/wait-for-job.js';
import { JobWatcher } from '../../src/waiting/watcher.js';
import { signWebhook } from '../../src/webhooks/sign.js';
import { verifyWebhook } from '../../src/webhooks/verify.js';
import { type VirtualClock, virtualClock } from './virtual-clock.js';

export const BASE_URL = 'https://service.test/prefix';
export const SECRET = 'whsec_of_these_tests';
export const running = (id: string): Job => ({ id, status: 'processing', mediaType: 'video', finalTokenCost: null });
export const done = (id: string): Job => ({
  ...running(id),
  status: 'completed',
  providerOutputUrl: `${BASE_URL}/v1/jobs/${id}/output`,
  providerOutputExpiresAt: '2026-01-02T00:00:00Z',
  finalTokenCost: 4,
});

/** A rate limit of reads that is full for so long. */
export const fullFor = (ms: () => number): WaiterContext['limits'] => {
  const limits = { look: () => ({ limit: 120, windowMs: 60_000, nextFreeMs: ms() }) };
  return () => limits;
};

/** The waits of one process. */
export function startProcess(
  read: (id: string) => Job | Promise<Job>,
  more: Partial<WaiterContext> = {},
  clock = virtualClock(),
) {
  const watcher = new JobWatcher(clock, () => 0.5);
  const reads: string[] = [];
  const waiter = createWaiter({
    clock,
    baseUrl: () => BASE_URL,
    secrets: () => [SECRET],
    account: async () => ({
      shared: <T extends object>(name: string, make: () => T) => (name === 'waits' ? watcher : make()) as T,
    }),
    async readJob(id) {
      reads.push(id);
      return read(id);
    },
    ...more,
  });
  return { clock, waiter, watcher, reads };
}

/** What the service signs, as `verifyWebhook` gives it. */
export async function verified(event: object, clock: VirtualClock, secret = SECRET): Promise<WebhookEvent> {
  const timestamp = Math.floor(clock.now() / 1000);
  const webhook = await signWebhook(event as never, { secret, timestamp });
  return verifyWebhook(webhook, { secret, now: clock.now });
}
