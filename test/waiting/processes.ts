// Waits on a held clock, as one process of an account has them, and the webhooks that end them.
import { DOCUMENTED_LIMITS } from '../../src/rules/limits.js';
import type { Job } from '../../src/schemas/job.js';
import type { WebhookEvent } from '../../src/schemas/webhook-event.js';
import type { JobDurations } from '../../src/store/learned-values.js';
import type { ReadLimits } from '../../src/waiting/read-queue.js';
import { ReadScheduler } from '../../src/waiting/scheduler.js';
import { createWaiter, type WaiterContext } from '../../src/waiting/waiter.js';
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
/** A notice that is not verified. */
export const hint = (id: string) => ({ data: { job: { id } } });

/** A rate limit of reads: the documented one, or with other numbers. */
export const readLimits = (numbers: Partial<ReturnType<ReadLimits['look']>> = {}): ReadLimits => ({
  look: () => ({ ...DOCUMENTED_LIMITS['jobs.get'], nextFreeMs: 0, ...numbers }),
});

/** A rate limit of reads that is full for so long. */
export const fullFor = (ms: () => number): ReadLimits => ({
  look: () => readLimits({ nextFreeMs: ms() }).look('jobs.get'),
});

/** What a test may set of a process. */
export interface Setting extends Partial<WaiterContext> {
  readonly limits?: ReadLimits;
  readonly lengths?: JobDurations;
  /** Where several clients share one. */
  readonly scheduler?: ReadScheduler;
}

/** The waits of one process: jobs are read by a function, which is told how long the process has run. */
export function startProcess(
  read: (id: string, atMs: number, signal: AbortSignal) => Job | Promise<Job>,
  setting: Setting = {},
  clock = virtualClock(),
) {
  const { limits = readLimits(), lengths, scheduler = new ReadScheduler(clock, () => 0.5, lengths), ...more } = setting;
  const startMs = clock.now();
  const elapsed = () => clock.now() - startMs;
  /** The jobs that were read, when, and with which signal. */
  const [reads, at, signals]: [string[], number[], AbortSignal[]] = [[], [], []];
  const waiter = createWaiter({
    clock,
    baseUrl: () => BASE_URL,
    secrets: () => [SECRET],
    scheduling: async () => ({ id: 'account', scheduler, limits }),
    async readJob(id, signal) {
      reads.push(id);
      at.push(elapsed());
      signals.push(signal);
      return read(id, elapsed(), signal);
    },
    ...more,
  });
  return { clock, waiter, scheduler, reads, at, signals, elapsed };
}

/** What the service signs, as `verifyWebhook` gives it. */
export async function verified(event: object, clock: VirtualClock, secret = SECRET): Promise<WebhookEvent> {
  const timestamp = Math.floor(clock.now() / 1000);
  const webhook = await signWebhook(event as never, { secret, timestamp });
  return verifyWebhook(webhook, { secret, now: clock.now });
}
