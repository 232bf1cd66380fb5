import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { GenClient, type Job } from '../src/index.js';
import { collectGarbage } from './frame.js';

/** The cost of many waits without a rate limit. */
export interface UnlimitedWaits {
  readonly pollsPerS: number;
  readonly cpuPerPollMs: number;
  /** The longest time that the event loop was blocked. */
  readonly stallMs: number;
  /** Heap bytes per wait, before the first poll. */
  readonly bytes: number;
}

/** Measures waits on running jobs, with a fetch in this process that responds immediately. */
export async function measureUnlimited(count: number): Promise<UnlimitedWaits> {
  let polls = 0;
  const client = new GenClient({
    apiKey: `sk-unlimited-${count}`,
    baseUrl: 'https://service.test',
    rateLimit: 'off',
    async fetch(url) {
      polls++;
      return Response.json({ success: true, data: { job: runningJob(url.slice(url.lastIndexOf('/') + 1)) } });
    },
  });
  await pause(100);
  const stop = new AbortController();
  const jobs = Array.from({ length: count }, (_, index) => runningJob(`job_${index}`));
  const heap = usedHeap();
  const waits = jobs.map((job) => client.waitForJob(job, { signal: stop.signal }));
  for (const wait of waits) wait.catch(() => {});
  await pause(1_000);
  const bytes = (usedHeap() - heap) / count;
  // After the first round, the polls are spread out.
  await pause(11_500);
  const delay = monitorEventLoopDelay({ resolution: 5 });
  delay.enable();
  const [pollsBefore, cpu, startMs] = [polls, process.cpuUsage(), performance.now()];
  await pause(22_000);
  const seconds = (performance.now() - startMs) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  delay.disable();
  const pollCount = polls - pollsBefore;
  stop.abort();
  await Promise.allSettled(waits);
  return {
    pollsPerS: pollCount / seconds,
    cpuPerPollMs: (user + system) / 1000 / pollCount,
    stallMs: delay.max / 1e6,
    bytes,
  };
}

function runningJob(id: string): Job {
  return {
    id,
    status: 'processing',
    mediaType: 'video',
    modelId: 'svc-video-fast',
    createdAt: new Date().toISOString(),
    providerOutputUrl: null,
  };
}

function usedHeap(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}
