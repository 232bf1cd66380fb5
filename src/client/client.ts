import { type JobRef, jobIdOf } from '../downloading/output.js';
import { atCaller, GenError } from '../errors/gen-error.js';
import { verificationError } from '../errors/webhook-error.js';
import { DEFAULT_WAIT_MS } from '../rules/limits.js';
import { checkOptions, type RequestOptions } from '../rules/options.js';
import { CLOCK, type Clock } from '../runtime/clock.js';
import type { Budget, CostEstimate, PricedCall } from '../schemas/budget.js';
import { isFields } from '../schemas/envelope.js';
import { invalidValueMessage } from '../schemas/format-value.js';
import type { CompletedJob, Job } from '../schemas/job.js';
import type { WebhookEvent } from '../schemas/webhook-event.js';
import type { RateLimits } from '../store/rate-limits.js';
import { STORE, type Store } from '../store/store.js';
import type { ResumedJob, UnfinishedCreate } from '../transport/create-run.js';
import { type ClientTransport, createTransport } from '../transport/create-transport.js';
import type { RequestPromise } from '../transport/transport.js';
import { type JobUpdate, waitForJobs, watchJob } from '../waiting/job-iterables.js';
import { createJobWaits, type JobWaits } from '../waiting/job-waits.js';
import type { JobNotice } from '../waiting/notifications.js';
import { NO_LIMITS } from '../waiting/poll-queue.js';
import { PollScheduler } from '../waiting/scheduler.js';
import { WAIT_OPTIONS, type WaitOptions } from '../waiting/wait-options.js';
import { type ReceivedWebhook, type VerifyWebhookOptions, verifyWebhook } from '../webhooks/verify.js';
import { type Characters, createCharactersResource } from './characters.js';
import { type ClientOptions, checkClientOptions } from './client-options.js';
import { readConfig } from './config.js';
import { createNamespace, type Images, type VideoEdits, type Videos } from './create.js';
import { type CreateDependencies, createRequest, type RawRequest, rawRequest } from './endpoint.js';
import { executeRun } from './execute-run.js';
import { Jobs } from './jobs.js';
import { Models, Voices } from './models.js';
import type { ResumeOptions } from './resume-options.js';
import { Uploads, uploadSteps } from './uploads.js';

const INSPECT: unique symbol = Symbol.for('nodejs.util.inspect.custom');

/**
 * Client of the generation service.
 *
 * @example
 * const client = new GenClient({ apiKey, baseUrl });
 * const job = await client.videos.createAndWait({ prompt: 'a fox at dawn' });
 */
export class GenClient {
  /** Image jobs. */
  readonly images: Images;
  /** Registered characters, and one-off character images. */
  readonly characters: Characters;
  /** Video jobs. */
  readonly videos: Videos;
  /** Edits of existing videos: transform, restyle, or extend. */
  readonly videoEdits: VideoEdits;
  /** Files that are used as references and sources. */
  readonly uploads: Uploads;
  /** Jobs and their finished files. */
  readonly jobs: Jobs;
  /** Models of the service. */
  readonly models: Models;
  /** Voices for speech. */
  readonly voices: Voices;

  readonly #options: ClientOptions;
  readonly #secrets: () => readonly string[];
  readonly #baseUrl: () => string | undefined;
  readonly #transport: ClientTransport;
  readonly #jobWaits: JobWaits;
  readonly #dependencies: CreateDependencies;
  readonly #clock: Clock;

  /** Creates a client without sending a request. Throws a GenError for an invalid option. */
  constructor(options: ClientOptions = {}) {
    const config = readConfig(options);
    const transport = createTransport(config);
    const jobs = new Jobs(transport);
    const jobWaits = createJobWaits({
      config,
      transport,
      pollJob: (id, signal) => jobs.pollOnce(id, signal),
      async scheduling(signal) {
        const account = await transport.account(signal);
        const createScheduler = () => new PollScheduler(config.clock, undefined, account.learned.durations);
        const limits = config.rateLimit === 'off' ? NO_LIMITS : transport.limitsOf(account);
        return { id: account.id, scheduler: account.shared('poll-scheduler', createScheduler), limits };
      },
    });
    this.#options = { ...options };
    this.#secrets = config.webhookSecrets;
    this.#baseUrl = config.knownBaseUrl;
    this.#transport = transport;
    this.#jobWaits = jobWaits;
    this.#clock = config.clock.wall;
    this.uploads = new Uploads(transport);
    const dependencies = { transport, jobWaits, uploads: uploadSteps(this.uploads, transport) };
    this.#dependencies = dependencies;
    this.images = createNamespace(dependencies, 'images');
    this.characters = createCharactersResource(dependencies);
    this.videos = createNamespace(dependencies, 'videos');
    this.videoEdits = createNamespace(dependencies, 'videoEdits');
    this.jobs = jobs;
    this.models = new Models(transport);
    this.voices = new Voices(transport);
  }

  /**
   * Returns a copy of this client with some options changed. If the account is the same, both share rate limits and waits.
   *
   * @example
   * const patient = client.withOptions({ timeoutMs: 120_000, maxRetries: 6 });
   */
  withOptions(overrides: ClientOptions): GenClient {
    checkClientOptions(overrides);
    return new GenClient({ ...this.#options, ...overrides });
  }

  /** Returns this client's budget with another scope. @internal */
  budgetOf(scope: string): Budget | undefined {
    return this.#options.budget?.scoped(scope);
  }

  /**
   * Calls an endpoint that has no method, and returns its `data`. Retries, timeouts, and errors work as for other calls, and
   * a POST sends an Idempotency-Key. The response isn't validated against `Data`.
   *
   * @example
   * const { voices } = await client.request<{ voices: object[] }>({ method: 'GET', path: '/v1/voices' });
   */
  request<Data = unknown>(request: RawRequest, options?: RequestOptions): RequestPromise<Data> {
    return this.#transport.send(rawRequest<Data>(request ?? {}), options);
  }

  /**
   * Waits for a job. Throws a JobError if it doesn't complete, and a WaitTimeoutError after `timeoutMs`.
   *
   * @example
   * const video = await client.waitForJob(job.id, { onUpdate: ({ status }) => console.log(status) });
   */
  waitForJob(job: Job | string, options: WaitOptions & { readonly throwOnFailure: false }): Promise<Job>;
  waitForJob(job: Job | string, options?: WaitOptions): Promise<CompletedJob>;
  waitForJob(job: Job | string, options?: WaitOptions): Promise<CompletedJob> {
    return atCaller(this.#jobWaits.waitForJob(job, options));
  }

  /**
   * Yields the job after each poll, with its estimated progress, and the final job last. Throws what `waitForJob`
   * throws. Leaving the loop ends the wait, not the job.
   *
   * @example
   * for await (const { job: current, progress = 0, etaMs } of client.watchJob(job.id)) {
   *   console.log(current.status, `${Math.round(progress * 100)}%`, etaMs);
   * }
   */
  watchJob(job: Job | string, options?: WaitOptions): AsyncGenerator<JobUpdate, void, undefined> {
    return watchJob(job, this.#jobWaits, options);
  }

  /**
   * Yields the jobs in completion order. If waits fail, throws their errors after the last job.
   *
   * @example
   * for await (const finished of client.waitForJobs([first.id, second.id])) {
   *   if (isCompleted(finished)) await saveOutput(client, finished, 'videos/');
   * }
   */
  waitForJobs(
    jobs: Iterable<Job | string> & { readonly charAt?: never },
    options?: WaitOptions,
  ): AsyncGenerator<Job, void, undefined> {
    return waitForJobs(jobs, this.#jobWaits, options);
  }

  /**
   * Resumes creates that a crashed process left unfinished, and yields their jobs in completion order. A completed job
   * is yielded by each `resume` until its file is stored by `saveOutput`, `copyOutput`, or `markStored`. Throws a
   * GenError without a persistent store, and the errors of creates that can't be resumed after the last job.
   *
   * @example
   * const client = new GenClient({ apiKey, baseUrl, store: fileStore('gen.store') });
   * for await (const { job, label } of client.resume()) {
   *   if (isCompleted(job)) await saveOutput(client, job, `videos/${label}.mp4`);
   * }
   */
  async *resume(options: ResumeOptions = {}): AsyncGenerator<ResumedJob, void, undefined> {
    checkOptions('resume', WAIT_OPTIONS, options);
    const { signal, timeoutMs = DEFAULT_WAIT_MS } = options;
    const { ledger, account } = await this.#persistentLedger('resume', signal);
    // The params were validated when the create was first sent.
    const runOptions = { ...options, timeoutMs, preflight: false, throwOnFailure: false };
    const execute: Parameters<typeof ledger.resume>[1] = ({ call, params, label, run, state }, runSignal) =>
      executeRun(this.#dependencies, { ...createRequest(call, params), run }, state, {
        ...runOptions,
        label,
        signal: runSignal,
      });
    yield* ledger.resume(account, execute, { signal, timeoutMs });
  }

  /**
   * Lists the account's unfinished creates, without sending anything. Throws a GenError without a persistent store.
   *
   * @example
   * const client = new GenClient({ apiKey, baseUrl, store: fileStore('gen.store') });
   * for await (const { idempotencyKey, label, phase } of client.unfinishedCreates()) console.log(idempotencyKey, label, phase);
   */
  async *unfinishedCreates(): AsyncGenerator<UnfinishedCreate, void, undefined> {
    const { ledger, account } = await this.#persistentLedger('unfinishedCreates');
    yield* ledger.unfinished(account);
  }

  /**
   * Marks the job's file as stored, so that `resume` doesn't yield it again. `saveOutput` and `copyOutput` do this
   * automatically. Throws a GenError without a persistent store.
   *
   * @example
   * const client = new GenClient({ apiKey, baseUrl, store: fileStore('gen.store') });
   * for await (const { job } of client.resume()) await client.markStored(job);
   */
  async markStored(job: JobRef): Promise<void> {
    await this.#persistentLedger('markStored');
    await this.#transport.jobs.reportStored(jobIdOf(job));
  }

  /** Identifies the account in stores and queues. Doesn't reveal the key. @internal */
  async accountId(): Promise<string> {
    return (await this.#transport.account()).id;
  }

  async #persistentLedger(call: string, signal?: AbortSignal) {
    const ledger = this.#transport.ledger();
    if (!ledger?.isPersistent) throw noStore(call);
    return { ledger, account: (await this.#transport.account(signal)).id };
  }

  /**
   * Notifies the waits for the event's job in this process and, with a `store`, in other processes. The waits poll
   * the job immediately. Unless a poll returns the final job within two seconds, a verified event of a completed job ends them.
   *
   * @example
   * client.notify(await client.verifyWebhook(request));
   */
  notify(event: JobNotice): void {
    this.#jobWaits.notify(event);
  }

  /**
   * Verifies a webhook with `webhookSecret`. Throws a WebhookVerificationError with the `reason`.
   *
   * @example
   * const event = await client.verifyWebhook(request);
   * if (event.type === 'job.completed') await db.save(event.data.job.id);
   */
  async verifyWebhook(
    received: Request | ReceivedWebhook,
    options: Partial<VerifyWebhookOptions> = {},
  ): Promise<WebhookEvent> {
    if (typeof options === 'string') return verifyWebhook(received, options);
    const secret = options.secret ?? this.#secrets();
    if (options.secret === undefined && secret.length === 0)
      throw verificationError(
        'secret_missing',
        'webhookSecret is missing. Pass { webhookSecret }, or set GEN_WEBHOOK_SECRET.',
      );
    return verifyWebhook(received, { ...options, secret });
  }

  /**
   * Returns the state of each rate limit by name. Empty until a key function has returned a key.
   *
   * @example
   * const free = client.limits()['videos.create']?.free;
   */
  limits(): ReturnType<RateLimits['snapshot']> {
    return this.#transport.limits()?.snapshot() ?? {};
  }

  /**
   * Estimates the cost of a create: the last quote in this process for the same call, model, duration, resolution, and
   * audio. Unknown until the first such job, because the service quotes only created jobs. Sends no request.
   *
   * @example
   * const { tokens } = client.estimate({ call: 'videos', model: 'svc-video-pro', duration: 6 });
   */
  estimate(job: PricedCall): CostEstimate {
    if (!isFields(job))
      throw new GenError(invalidValueMessage('estimate: job', 'an object such as { call: "videos" }', job));
    const tokens = this.#transport.jobs.priceOf(job);
    const durationMs = this.#transport.jobs.durationOf(job);
    return { tokens, basis: tokens === undefined ? 'unknown' : 'learned', durationMs };
  }

  /** @internal */
  get [CLOCK](): Clock {
    return this.#clock;
  }

  /** @internal Store of handled events, for a webhook handler. */
  get [STORE](): Store | undefined {
    return this.#options.store;
  }

  /** Returns the client as JSON, without its key and secrets. */
  toJSON(): Record<string, unknown> {
    return { baseUrl: this.#baseUrl(), apiKey: '[redacted]' };
  }

  /** @internal */
  [INSPECT](): string {
    return `GenClient { baseUrl: '${this.#baseUrl()}', apiKey: '[redacted]' }`;
  }
}

function noStore(call: string): GenError {
  return new GenError(
    `${call}: a persistent store is missing. Pass fileStore(path) of gen-client/node or redisStore(redis) of gen-client/redis as the store of new GenClient().`,
  );
}
