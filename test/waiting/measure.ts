import { InProcessLimiter } from '../../src/limits/in-process-limiter.js';
import { JobWatcher } from '../../src/polling/job-watcher.js';
import { createWaiter } from '../../src/polling/wait-for-job.js';
import { type SimulatedJob, simulatedService } from './simulation.js';

export interface Figures {
  readonly count: number;
  readonly polls: number;
  readonly refused: number;
  readonly meanLateMs: number;
  readonly worstLateMs: number;
  readonly failed: number;
}

export interface Load {
  readonly seed?: number;
  /** The share of completions that a webhook announces. @default 0 */
  readonly webhooks?: number;
  /** Jobs that were waited for before, by which the watcher has learned how long each kind takes. @default 0 */
  readonly before?: number;
}

/** The same waits as a user's `Promise.all(jobs.map((job) => client.waitForJob(job)))`, on a held clock. */
export async function measure(count: number, { seed = 1, webhooks = 0, before = 0 }: Load = {}): Promise<Figures> {
  const service = simulatedService(count, { seed, before });
  const { clock, random } = service;
  const limiter = new InProcessLimiter({}, clock);
  const watcher = new JobWatcher(clock, random);
  const waiter = createWaiter({
    clock,
    account: async () => ({ shared: <T extends object>(_name: string, _make: () => T) => watcher as object as T }),
    async readJob(id, signal) {
      const release = await limiter.acquire('jobs.get', signal);
      try {
        return await service.read(id, signal);
      } finally {
        release();
      }
    },
  });
  for (const job of service.jobs)
    if (random() < webhooks)
      clock.after(job.endMs - clock.now() + 200 + random() * 800, () => waiter.notify({ data: { job } }));
  const earlier = service.earlier.map((job) => waiter.waitForJob(service.record(job), { timeoutMs: false }));
  await clock.until(Promise.all(earlier));
  if (before > 0) await clock.advance(Math.max(120_000, service.jobs[0]!.startMs - clock.now()));
  const readsBefore = service.reads;
  const late: number[] = [];
  const wait = async (job: SimulatedJob) => {
    await waiter.waitForJob(service.record(job), { timeoutMs: false });
    late.push(clock.now() - job.endMs);
  };
  await clock.until(Promise.all(service.jobs.map(wait)));
  return { ...figures(service, late), polls: service.reads - readsBefore };
}

export function figures(service: ReturnType<typeof simulatedService>, late: readonly number[]): Figures {
  return {
    count: service.jobs.length,
    polls: service.reads,
    refused: service.refused,
    meanLateMs: late.reduce((sum, ms) => sum + ms, 0) / late.length,
    worstLateMs: Math.max(...late),
    failed: service.jobs.length - late.length,
  };
}
