import { DOCUMENTED_LIMITS } from '../../src/rules/limits.js';
import type { Job } from '../../src/schemas/job.js';
import { seeded } from '../../test/support/seeded.js';
import { type VirtualClock, virtualClock } from '../../test/waiting/virtual-clock.js';

/** A kind of job and its duration, uniformly distributed between two bounds. */
export interface Kind {
  readonly modelId: string;
  readonly mediaType: string;
  readonly share: number;
  readonly fromMs: number;
  readonly toMs: number;
}

/** The simulations' mixed load. Durations aren't documented, so these are plausible values. */
export const KINDS: readonly Kind[] = [
  { modelId: 'svc-image-fast', mediaType: 'image', share: 0.2, fromMs: 3_000, toMs: 9_000 },
  { modelId: 'svc-video-fast', mediaType: 'video', share: 0.4, fromMs: 25_000, toMs: 70_000 },
  { modelId: 'svc-video-pro', mediaType: 'video', share: 0.3, fromMs: 60_000, toMs: 240_000 },
  { modelId: 'svc-video-gen-2-5', mediaType: 'video', share: 0.1, fromMs: 120_000, toMs: 600_000 },
];

export interface SimulatedJob {
  readonly kind: Kind;
  readonly id: string;
  readonly startMs: number;
  readonly endMs: number;
}

/** A service with jobs that end on time, a network delay, and a limit of polls per minute. */
export interface SimulatedService {
  readonly clock: VirtualClock;
  readonly random: () => number;
  readonly jobs: readonly SimulatedJob[];
  /** Jobs that ended long before the others were accepted. */
  readonly earlierJobs: readonly SimulatedJob[];
  readonly polls: number;
  readonly rejected: number;
  record(job: SimulatedJob): Job;
  /** Polls a job. Rejects with {@link RateLimited} above the limit. */
  poll(id: string, signal?: AbortSignal): Promise<Job>;
}

export const LATENCY_MS = { from: 50, to: 250 } as const;

/** Arrivals and durations of jobs. */
export interface Arrivals {
  readonly seed?: number;
  /** Polls per minute that the service accepts. @default the documented limit */
  readonly limit?: number;
  /** Number of earlier jobs of the same kinds. @default 0 */
  readonly earlierJobCount?: number;
  /** Jobs accepted per minute, or `Infinity` for all at once, as after a restart. @default Infinity */
  readonly perMinute?: number;
  /** Factor for the duration of every job. @default 1 */
  readonly durationFactor?: number;
  /** The kinds of jobs. @default KINDS */
  readonly kinds?: readonly Kind[];
}

/** Creates a service with `count` jobs. Without `perMinute`, all are accepted at the same time, like a batch of images. */
export function simulatedService(
  count: number,
  {
    seed = 1,
    limit = DOCUMENTED_LIMITS['jobs.get'].limit,
    earlierJobCount = 0,
    perMinute = Number.POSITIVE_INFINITY,
    durationFactor = 1,
    kinds = KINDS,
  }: Arrivals = {},
): SimulatedService {
  const clock = virtualClock();
  const random = seeded(seed);
  const startMs = clock.now();
  const batch = (size: number, name: string, from: number) =>
    Array.from({ length: size }, (_, index): SimulatedJob => {
      // Steady traffic mixes the kinds. In a batch, their order doesn't matter.
      const share = perMinute < Number.POSITIVE_INFINITY ? random() : size === 1 ? 0.5 : (index + 0.5) / size;
      const kind = pick(kinds, share);
      const durationMs = durationFactor * (kind.fromMs + random() * (kind.toMs - kind.fromMs));
      const startMs = from + (index * 60_000) / perMinute;
      return { kind, id: `${name}_${index}`, startMs, endMs: startMs + durationMs };
    });
  const earlierJobs = batch(earlierJobCount, 'earlier', startMs);
  const jobs = batch(count, 'job', earlierJobCount > 0 ? startMs + 3_600_000 : startMs);
  const byId = new Map([...earlierJobs, ...jobs].map((job) => [job.id, job]));
  const pollTimesMs: number[] = [];
  let firstInWindow = 0;
  let rejected = 0;
  const delay = () => (LATENCY_MS.from + random() * (LATENCY_MS.to - LATENCY_MS.from)) / 2;
  const pause = (ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const cancel = clock.after(ms, resolve);
      signal?.addEventListener('abort', () => {
        cancel();
        reject(signal.reason);
      });
    });
  const record = ({ id, kind, startMs, endMs }: SimulatedJob): Job => ({
    ...{ id, modelId: kind.modelId, mediaType: kind.mediaType, createdAt: new Date(startMs).toISOString() },
    ...(clock.now() < endMs
      ? { status: 'processing', completedAt: null }
      : { status: 'completed', completedAt: new Date(endMs).toISOString(), providerOutputUrl: 'https://x/output' }),
  });
  return {
    clock,
    random,
    jobs,
    earlierJobs,
    record,
    get polls() {
      return pollTimesMs.length;
    },
    get rejected() {
      return rejected;
    },
    async poll(id, signal) {
      await pause(delay(), signal);
      const now = clock.now();
      while ((pollTimesMs[firstInWindow] ?? now) <= now - 60_000) firstInWindow++;
      if (pollTimesMs.length - firstInWindow >= limit) {
        rejected++;
        await pause(delay(), signal);
        throw new RateLimited(60_000 - (now - (pollTimesMs[firstInWindow] ?? now)));
      }
      pollTimesMs.push(now);
      const job = byId.get(id);
      if (!job) throw new Error(`no job ${id}`);
      const response = record(job);
      await pause(delay(), signal);
      return response;
    },
  };
}

/** The simulated service's 429. */
export class RateLimited extends Error {
  readonly retryAfterMs: number;

  constructor(retryAfterMs: number) {
    super('429 rate_limited');
    this.retryAfterMs = retryAfterMs;
  }
}

function pick(kinds: readonly Kind[], share: number): Kind {
  let sum = 0;
  for (const kind of kinds) {
    sum += kind.share;
    if (share < sum) return kind;
  }
  throw new Error('shares must add up to 1');
}
