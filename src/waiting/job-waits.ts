import { GenError } from '../errors/index.js';
import { DEFAULT_WAIT_MS } from '../rules/limits.js';
import { checkOptions } from '../rules/options.js';
import { type Clock, nextTurn } from '../runtime/clock.js';
import { setAndEvict } from '../runtime/set-and-evict.js';
import { isFields } from '../schemas/envelope.js';
import { type CompletedJob, isSettled, type Job } from '../schemas/job.js';
import { jobIn } from '../schemas/webhook-event.js';
import type { Config } from '../transport/config.js';
import type { ClientTransport } from '../transport/create-transport.js';
import { traced, type WaitTrace } from '../transport/events.js';
import { type JobNotice, notificationOf, sharedNotifications } from './notifications.js';
import type { PollScheduler } from './scheduler.js';
import { followJob, learnCharge, outcomeOf, type Scheduling, type WaitTarget } from './wait.js';
import { WAIT_OPTIONS, type WaitOptions } from './wait-options.js';

export interface JobWaitsPorts {
  readonly config: Pick<
    Config,
    'clock' | 'store' | 'webhookSecrets' | 'knownBaseUrl' | 'needsLogin' | 'maxRetryAfterMs'
  >;
  readonly transport: Pick<ClientTransport, 'jobs' | 'warn' | 'waits'>;
  /** Polls the job once. The scheduler retries. */
  readonly pollJob: (id: string, signal: AbortSignal) => Promise<Job>;
  /** Returns the account's `id` and the scheduler that all its clients share. Rejects if the API key can't be loaded. */
  readonly scheduling: (signal?: AbortSignal) => Promise<Scheduling & { readonly id: string }>;
}

/** Waits for jobs. All waits under one account share one scheduler. */
export interface JobWaits {
  /** Resolves with the final job; see {@link WaitOptions}. */
  waitForJob(job: Job | string, options: WaitOptions & { readonly throwOnFailure: false }): Promise<Job>;
  waitForJob(job: Job | string, options?: WaitOptions): Promise<CompletedJob>;
  /** Like `waitForJob`, for a loop that calls `markDelivered` itself. Resolves with the final job. */
  waitInLoop(job: Job | string, options: WaitOptions): Promise<Job>;
  markDelivered(job: Job): void;
  /** Waits as part of a longer call, which has validated the options. Resolves with the final job, whatever its status. */
  follow(target: WaitTarget): Promise<Job>;
  notify(event: JobNotice): void;
  /** Clock for delays between calls. */
  readonly clock: Clock;
}

/** Maximum number of accounts that one client notifies. A key function may return a different key for each tenant. */
const MAX_ACCOUNTS = 1_000;

export function createJobWaits({ config, transport, pollJob, scheduling: schedulingOf }: JobWaitsPorts): JobWaits {
  const { clock, store, knownBaseUrl, maxRetryAfterMs } = config;
  const { jobs, warn } = transport;
  const schedulers = new Map<string, PollScheduler>();
  const scheduling = async (signal?: AbortSignal) => {
    const { id, scheduler, limits } = await schedulingOf(signal);
    setAndEvict(schedulers, id, scheduler, MAX_ACCOUNTS);
    return { scheduler, limits };
  };
  // Events don't identify the account, so notify every scheduler. Returns true if the job has a wait.
  const deliver = (notification: Parameters<PollScheduler['notify']>[0]) =>
    [...schedulers.values()].map((scheduler) => scheduler.notify(notification)).includes(true);
  const notifications = store && sharedNotifications({ store, config, warn, deliver });
  const context = {
    jobs,
    warn,
    clock,
    maxRetryAfterMs,
    pollJob,
    scheduling,
    listen: notifications?.listen,
  };
  const follow = (target: WaitTarget) => {
    const trace: WaitTrace = { jobId: target.id };
    return traced(transport.waits(), trace, () => followJob(context, target));
  };
  // Record delivery on the next tick. If the program crashes first, it gets the outcome again.
  const markDelivered = ({ id, status }: Job) => {
    if (status !== 'completed') void nextTurn().then(() => jobs.acknowledge(id));
  };
  const wait = (job: Job | string, options: WaitOptions) => startWait(job, options, { jobs, follow });
  return {
    clock,
    follow,
    markDelivered,
    waitInLoop: wait,
    waitForJob: (job: Job | string, options: WaitOptions = {}): Promise<CompletedJob> =>
      wait(job, options).then((finalJob) => {
        markDelivered(finalJob);
        return outcomeOf(finalJob, options.throwOnFailure);
      }),
    notify(event) {
      const notification = notificationOf(event, knownBaseUrl());
      if (!notification) return;
      notifications?.publish(event);
      const job = jobIn(event);
      Promise.resolve(config.needsLogin ? undefined : scheduling()).then(
        (pollScheduling) => {
          if (deliver(notification) || !job) return;
          const { id, status } = job;
          if (pollScheduling && notification.isVerified) void learnCharge(context, pollScheduling, { id, status });
          else jobs.announce({ id, status }, notification.isVerified === true);
        },
        // Without an API key, there are no waits to notify.
        () => {},
      );
    },
  };
}

/** Validates the options and waits. Not async, because an async function's frame costs 0.5 kB for each wait. */
function startWait(
  job: Job | string,
  options: WaitOptions,
  { jobs, follow }: Pick<JobWaits, 'follow'> & Pick<ClientTransport, 'jobs'>,
): Promise<Job> {
  try {
    const target = targetOf(job);
    checkOptions('waitForJob', WAIT_OPTIONS, options);
    const { timeoutMs = DEFAULT_WAIT_MS, signal } = options;
    signal?.throwIfAborted();
    if (target.job && isSettled(target.job)) return Promise.resolve(target.job);
    const leftMs = timeoutMs === false ? Number.POSITIVE_INFINITY : timeoutMs;
    const release = jobs.own(target.id);
    const finalJob = follow({ ...target, options, leftMs, timeoutMs: leftMs });
    if (release) finalJob.then(release, release);
    return finalJob;
  } catch (error) {
    return Promise.reject(error);
  }
}

function targetOf(target: unknown): Pick<WaitTarget, 'id' | 'job'> {
  if (typeof target === 'string' && target) return { id: target, job: undefined };
  const { id, status, job, then } = isFields(target) ? target : {};
  if (typeof id === 'string' && id) return { id, job: typeof status === 'string' ? (target as Job) : undefined };
  const isPromise = then !== undefined;
  const hint = isPromise ? ' Await the create first.' : '';
  const fix =
    isPromise || job !== undefined ? " Pass the `job` property of create's result: waitForJob(created.job)." : '';
  throw new GenError(`waitForJob accepts a job or its ID.${hint}${fix}`);
}
