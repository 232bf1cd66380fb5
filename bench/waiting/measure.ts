import type { WebhookEvent } from '../../src/schemas/webhook-event.js';
import { RateLimits } from '../../src/store/rate-limits.js';
import { createJobWaits } from '../../src/waiting/job-waits.js';
import { PollScheduler } from '../../src/waiting/scheduler.js';
import { markVerified } from '../../src/webhooks/verify.js';
import { stubTransport, waitConfig } from '../../test/waiting/processes.js';
import { type Arrivals, type SimulatedJob, simulatedService } from './simulation.js';

export interface Figures {
  readonly count: number;
  readonly polls: number;
  readonly rejected: number;
  readonly meanLateMs: number;
  readonly p95LateMs: number;
  readonly worstLateMs: number;
  readonly failed: number;
}

export interface Load extends Pick<Arrivals, 'seed' | 'before' | 'perMinute' | 'longer' | 'kinds'> {
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
  { webhooks = 0, verified = true, deliveryMs, before = 0, ...arrivals }: Load = {},
): Promise<Figures> {
  const service = simulatedService(count, { ...arrivals, before });
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
  const earlier = service.earlier.map((job) => jobWaits.waitForJob(service.record(job), { timeoutMs: false }));
  await clock.until(Promise.all(earlier));
  if (before > 0) await clock.advance(Math.max(120_000, (service.jobs[0]?.startMs ?? 0) - clock.now()));
  const pollsBefore = service.polls;
  const late: number[] = [];
  const wait = async (job: SimulatedJob) => {
    await new Promise<void>((resolve) => clock.after(job.startMs - clock.now(), resolve));
    await jobWaits.waitForJob(service.record(job), { timeoutMs: false });
    late.push(clock.now() - job.endMs);
  };
  await clock.until(Promise.all(service.jobs.map(wait)));
  return { ...figures(service, late), polls: service.polls - pollsBefore };
}

/** Returns a completed job's event, like `verifyWebhook`. */
function verifiedEvent(id: string) {
  const job = { id, status: 'completed', providerOutputUrl: 'https://x/output' };
  const event: WebhookEvent = { id: `evt_${id}_completed`, type: 'job.completed', data: { job } };
  return markVerified(event, JSON.stringify(event), '');
}

export function figures(service: ReturnType<typeof simulatedService>, late: readonly number[]): Figures {
  return {
    count: service.jobs.length,
    polls: service.polls,
    rejected: service.rejected,
    meanLateMs: late.reduce((sum, ms) => sum + ms, 0) / late.length,
    p95LateMs: [...late].sort((a, b) => a - b)[Math.floor(late.length * 0.95)] ?? 0,
    worstLateMs: Math.max(...late),
    failed: service.jobs.length - late.length,
  };
}
