import type { WebhookEvent } from '../../src/schemas/webhook-event.js';
import { RateLimits } from '../../src/store/rate-limits.js';
import { createJobWaits } from '../../src/waiting/job-waits.js';
import { PollScheduler } from '../../src/waiting/scheduler.js';
import { markVerified } from '../../src/webhooks/verify.js';
import { stubTransport, waitConfig } from '../../test/waiting/processes.js';
import { type Arrivals, type SimulatedJob, simulatedService } from './simulation.js';

export interface Metrics {
  readonly count: number;
  readonly polls: number;
  readonly rejected: number;
  readonly meanDelayMs: number;
  readonly p95DelayMs: number;
  readonly worstDelayMs: number;
  readonly failed: number;
}

export interface Load extends Pick<Arrivals, 'seed' | 'earlierJobCount' | 'perMinute' | 'durationFactor' | 'kinds'> {
  /** Fraction of jobs with a webhook. @default 0 */
  readonly webhooks?: number;
  /** If true, webhooks are verified, so they can end waits. Otherwise, they are hints. @default true */
  readonly verified?: boolean;
  /** Delay of a webhook in milliseconds. @default 200 to 1,000 */
  readonly deliveryMs?: number;
}

/** Runs a user's `Promise.all(jobs.map((job) => client.waitForJob(job)))` on a manual clock. */
export async function measure(
  count: number,
  { webhooks = 0, verified = true, deliveryMs, earlierJobCount = 0, ...arrivals }: Load = {},
): Promise<Metrics> {
  const service = simulatedService(count, { ...arrivals, earlierJobCount });
  const { clock, random } = service;
  const source = { next: random, uuid: () => 'process' };
  const limits = new RateLimits({ limits: {}, shared: undefined, clock, random: source, backends: new Map() });
  const scheduler = new PollScheduler(clock, random);
  const jobWaits = createJobWaits({
    config: { ...waitConfig(clock), knownBaseUrl: () => 'https://x' },
    transport: stubTransport(),
    scheduling: async () => ({ id: 'account', scheduler, limits }),
    async pollJob(id, signal) {
      const release = await limits.acquire('jobs.get', { signal, warn: () => {} });
      try {
        return await service.poll(id, signal);
      } finally {
        release();
      }
    },
  });
  for (const job of service.jobs)
    if (random() < webhooks)
      clock.after(job.endMs - clock.now() + (deliveryMs ?? 200 + random() * 800), () =>
        jobWaits.notify(verified ? verifiedEvent(job.id) : { data: { job } }),
      );
  const earlierWaits = service.earlierJobs.map((job) => jobWaits.waitForJob(service.record(job), { timeoutMs: false }));
  await clock.until(Promise.all(earlierWaits));
  if (earlierJobCount > 0) await clock.advance(Math.max(120_000, (service.jobs[0]?.startMs ?? 0) - clock.now()));
  const pollsBefore = service.polls;
  const delaysMs: number[] = [];
  const wait = async (job: SimulatedJob) => {
    await new Promise<void>((resolve) => clock.after(job.startMs - clock.now(), resolve));
    await jobWaits.waitForJob(service.record(job), { timeoutMs: false });
    delaysMs.push(clock.now() - job.endMs);
  };
  await clock.until(Promise.all(service.jobs.map(wait)));
  return { ...metricsOf(service, delaysMs), polls: service.polls - pollsBefore };
}

/** Returns the event of a completed job, as `verifyWebhook` would. */
function verifiedEvent(id: string) {
  const job = { id, status: 'completed', providerOutputUrl: 'https://x/output' };
  const event: WebhookEvent = { id: `evt_${id}_completed`, type: 'job.completed', data: { job } };
  return markVerified(event, JSON.stringify(event), '');
}

export function metricsOf(service: ReturnType<typeof simulatedService>, delaysMs: readonly number[]): Metrics {
  return {
    count: service.jobs.length,
    polls: service.polls,
    rejected: service.rejected,
    meanDelayMs: delaysMs.reduce((sum, ms) => sum + ms, 0) / delaysMs.length,
    p95DelayMs: [...delaysMs].sort((a, b) => a - b)[Math.floor(delaysMs.length * 0.95)] ?? 0,
    worstDelayMs: Math.max(...delaysMs),
    failed: service.jobs.length - delaysMs.length,
  };
}
