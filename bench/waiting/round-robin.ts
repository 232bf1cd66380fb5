import { DOCUMENTED_LIMITS, POLL_SHARE } from '../../src/rules/limits.js';
import { timingOf } from '../../src/rules/polling.js';
import { type Load, type Metrics, metricsOf } from './measure.js';
import { type SimulatedJob, simulatedService } from './simulation.js';

/** Polls per minute, the same as the SDK's. */
const PER_MINUTE = POLL_SHARE * DOCUMENTED_LIMITS['jobs.get'].limit;

/** Runs the load of `measure` with round robin: jobs in turn, each at most once per interval, at the same rate. */
export async function roundRobin(
  count: number,
  load: Omit<Load, 'webhooks' | 'earlierJobCount'> = {},
): Promise<Metrics> {
  const service = simulatedService(count, load);
  const { clock, random } = service;
  const delaysMs: number[] = [];
  const queue: { readonly job: SimulatedJob; dueMs: number }[] = [];
  const pause = (ms: number) => new Promise<void>((resolve) => void clock.after(ms, resolve));
  let left = count;
  const enqueue = (job: SimulatedJob) => {
    const { firstMs } = timingOf(service.record(job));
    queue.push({ job, dueMs: clock.now() + firstMs });
  };
  const poll = async (job: SimulatedJob) => {
    const { status } = await service.poll(job.id);
    if (status === 'completed') {
      delaysMs.push(clock.now() - job.endMs);
      left--;
      return;
    }
    const { intervalMs } = timingOf(service.record(job));
    queue.push({ job, dueMs: clock.now() + intervalMs * (1 + random() / 5) });
  };
  for (const job of service.jobs) clock.after(job.startMs - clock.now(), () => enqueue(job));
  const pollInTurn = async () => {
    while (left > 0) {
      const index = queue.findIndex(({ dueMs }) => dueMs <= clock.now());
      const [next] = index === -1 ? [] : queue.splice(index, 1);
      if (next) void poll(next.job);
      await pause(next ? 60_000 / PER_MINUTE : 50);
    }
  };
  await clock.until(pollInTurn());
  return metricsOf(service, delaysMs);
}
