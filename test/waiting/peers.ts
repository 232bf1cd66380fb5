import { type Figures, figures } from './measure.js';
import { type SimulatedJob, simulatedService, TooMany } from './simulation.js';

/** How another SDK waits, read from its published source. */
export interface Policy {
  readonly name: string;
  /** Between two reads, plus up to `jitterMs`. */
  readonly intervalMs: number;
  readonly jitterMs: number;
  /** How often a refused read is repeated before the wait fails. */
  readonly retries: number;
  /** Whether Retry-After (up to a minute) is obeyed; else half a second, doubled up to eight. */
  readonly obeys: boolean;
}

/** openai 7: `pollIntervalMs` 5000, two retries, Retry-After up to 60 s. */
export const OPENAI: Policy = { name: 'openai', intervalMs: 5000, jitterMs: 0, retries: 2, obeys: true };
/** @runwayml/sdk 4: every 6 s plus up to 4 s of jitter, two retries, Retry-After up to 60 s. */
export const RUNWAY: Policy = { name: '@runwayml/sdk', intervalMs: 6000, jitterMs: 4000, retries: 2, obeys: true };
/** replicate 1: every 500 ms; its retries back off for no time (see its backoff), so a refusal ends the wait. */
export const REPLICATE: Policy = { name: 'replicate', intervalMs: 500, jitterMs: 0, retries: 5, obeys: false };

/** The same load as `measure`, waited for by that policy: each job for itself, as those SDKs do. */
export async function peer(count: number, policy: Policy, seed = 1): Promise<Figures> {
  const service = simulatedService(count, { seed });
  const { clock, random } = service;
  const late: number[] = [];
  const pause = (ms: number) => new Promise<void>((resolve) => void clock.after(ms, resolve));
  async function read(job: SimulatedJob) {
    for (let attempt = 0; ; attempt++) {
      try {
        return await service.read(job.id);
      } catch (error) {
        if (!(error instanceof TooMany) || attempt === policy.retries) throw error;
        if (policy.obeys) await pause(Math.ceil(error.retryAfterMs / 1000) * 1000);
      }
    }
  }
  async function wait(job: SimulatedJob) {
    for (;;) {
      const { status } = await read(job);
      if (status === 'completed') break;
      await pause(policy.intervalMs + random() * policy.jitterMs);
    }
    late.push(clock.now() - job.endMs);
  }
  await clock.until(Promise.allSettled(service.jobs.map(wait)));
  return figures(service, late);
}
