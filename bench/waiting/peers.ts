import { type Metrics, metricsOf } from './measure.js';
import { RateLimited, type SimulatedJob, simulatedService } from './simulation.js';

/** Another SDK's polling policy, from its published source. */
export interface Policy {
  readonly name: string;
  /** Time between two polls, plus up to `jitterMs`. */
  readonly intervalMs: number;
  readonly jitterMs: number;
  /** Number of retries of a rejected poll before the wait fails. */
  readonly retries: number;
  /** If true, respects Retry-After. Otherwise, a rejected poll is retried immediately. */
  readonly obeysRetryAfter: boolean;
  /** Timeout, or `Infinity` for none. */
  readonly timeoutMs: number;
}

const NONE = Number.POSITIVE_INFINITY;
/** openai 7.55, `files.poll` and similar: every 5 s, two retries that respect Retry-After. */
export const OPENAI: Policy = {
  name: 'openai',
  intervalMs: 5000,
  jitterMs: 0,
  retries: 2,
  obeysRetryAfter: true,
  timeoutMs: NONE,
};
/** @runwayml/sdk 4.20, `lib/polling.js`: 6 s plus or minus 1.5, at most ten minutes, two retries that respect Retry-After. */
export const RUNWAY: Policy = {
  name: '@runwayml/sdk',
  intervalMs: 4500,
  jitterMs: 3000,
  retries: 2,
  obeysRetryAfter: true,
  timeoutMs: 600_000,
};
/** replicate 1.4, `wait`: every 500 ms; `lib/util.js` retries five times, without sleeping the delay that it computes. */
export const REPLICATE: Policy = {
  name: 'replicate',
  intervalMs: 500,
  jitterMs: 0,
  retries: 5,
  obeysRetryAfter: false,
  timeoutMs: NONE,
};

/** Runs the load of `measure` with this policy, which polls each job separately. */
export async function peer(count: number, policy: Policy, seed = 1): Promise<Metrics> {
  const service = simulatedService(count, { seed });
  const { clock, random } = service;
  const delaysMs: number[] = [];
  const pause = (ms: number) => new Promise<void>((resolve) => void clock.after(ms, resolve));
  async function poll(job: SimulatedJob) {
    for (let attempt = 0; ; attempt++) {
      try {
        return await service.poll(job.id);
      } catch (error) {
        if (!(error instanceof RateLimited) || attempt === policy.retries) throw error;
        if (policy.obeysRetryAfter) await pause(Math.ceil(error.retryAfterMs / 1000) * 1000);
      }
    }
  }
  async function wait(job: SimulatedJob) {
    const deadline = clock.now() + policy.timeoutMs;
    for (;;) {
      if (clock.now() > deadline) throw new Error('timeout');
      const { status } = await poll(job);
      if (status === 'completed') break;
      await pause(policy.intervalMs + random() * policy.jitterMs);
    }
    delaysMs.push(clock.now() - job.endMs);
  }
  await clock.until(Promise.allSettled(service.jobs.map(wait)));
  return metricsOf(service, delaysMs);
}
