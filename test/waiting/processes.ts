// Waits of one process on a manual clock, and the webhooks that end them.
import { DOCUMENTED_LIMITS } from '../../src/rules/limits.js';
import { type Clock, steady } from '../../src/runtime/clock.js';
import type { Job } from '../../src/schemas/job.js';
import type { WebhookEvent } from '../../src/schemas/webhook-event.js';
import type { JobDurations } from '../../src/store/learned-values.js';
import { createJobWaits, type JobWaitsPorts } from '../../src/waiting/job-waits.js';
import type { PollLimits } from '../../src/waiting/poll-queue.js';
import { PollScheduler } from '../../src/waiting/scheduler.js';
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
/** An unverified notification. */
export const hint = (id: string) => ({ data: { job: { id } } });

/** Returns the documented poll limit with these changes. */
export const pollLimits = (numbers: Partial<ReturnType<PollLimits['peek']>> = {}): PollLimits => ({
  peek: () => ({ ...DOCUMENTED_LIMITS['jobs.get'], nextFreeMs: 0, ...numbers }),
});

/** Returns a poll limit whose next slot is free after this time. */
export const noSlotFor = (ms: () => number): PollLimits => ({
  peek: () => pollLimits({ nextFreeMs: ms() }).peek('jobs.get'),
});

export interface ProcessOptions extends Partial<JobWaitsPorts['config'] & Pick<JobWaitsPorts, 'scheduling'>> {
  readonly jobs?: Partial<JobWaitsPorts['transport']['jobs']>;
  readonly warn?: ((message: string) => void) | undefined;
  readonly limits?: PollLimits;
  readonly durations?: JobDurations;
  /** Shared by several clients in one process. */
  readonly scheduler?: PollScheduler;
}

/** Creates a transport without a store or hooks. */
export function stubTransport(
  jobs: ProcessOptions['jobs'] = {},
  warn: ProcessOptions['warn'] = () => {},
): JobWaitsPorts['transport'] {
  const neededMethods = { own: () => undefined, acknowledge: async () => {}, announce() {}, isWatched: () => false };
  const unusedMethods = {
    reportJob: async () => {},
    trackCreate() {},
    reportStored: async () => {},
    priceOf: () => undefined,
    durationOf: () => undefined,
  };
  return { jobs: { ...neededMethods, ...unusedMethods, ...jobs }, warn, waits: () => undefined };
}

/** Returns the default client config. */
export const waitConfig = (clock: Clock): JobWaitsPorts['config'] => ({
  clock: steady(clock),
  store: undefined,
  webhookSecrets: () => [],
  knownBaseUrl: () => undefined,
  needsLogin: false,
  maxRetryAfterMs: 120_000,
});

/** Starts a process's waits. `read` polls a job and receives the elapsed time. */
export function startProcess(
  read: (id: string, atMs: number, signal: AbortSignal) => Job | Promise<Job>,
  setting: ProcessOptions = {},
  clock = virtualClock(),
) {
  const {
    limits = pollLimits(),
    durations,
    scheduler = new PollScheduler(clock, () => 0.5, durations),
    ...more
  } = setting;
  const { scheduling = async () => ({ id: 'account', scheduler, limits }), jobs, warn, ...options } = more;
  const startMs = clock.now();
  const elapsed = () => clock.now() - startMs;
  /** The polled jobs, with their times and signals. */
  const [polledIds, pollTimes, signals]: [string[], number[], AbortSignal[]] = [[], [], []];
  const jobWaits = createJobWaits({
    config: { ...waitConfig(clock), knownBaseUrl: () => BASE_URL, webhookSecrets: () => [SECRET], ...options },
    transport: stubTransport(jobs, warn),
    scheduling,
    async pollJob(id, signal) {
      polledIds.push(id);
      pollTimes.push(elapsed());
      signals.push(signal);
      return read(id, elapsed(), signal);
    },
  });
  return { clock, jobWaits, scheduler, polledIds, pollTimes, signals, elapsed };
}

/** Signs an event, and returns the result of `verifyWebhook`. */
export async function verified(event: object, clock: VirtualClock, secret = SECRET): Promise<WebhookEvent> {
  const timestamp = Math.floor(clock.now() / 1000);
  const webhook = await signWebhook(event as never, { secret, timestamp });
  return verifyWebhook(webhook, { secret, now: clock.now });
}
