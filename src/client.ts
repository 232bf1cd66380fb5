import { type ClientOptions, readConfig } from './config.js';
import { refusal } from './errors/webhook-error.js';
import type { LaneSnapshot } from './limits/rate-limiter.js';
import { createWaiter, type JobNotice, type Waiter } from './polling/wait-for-job.js';
import { waitForJobs } from './polling/wait-for-jobs.js';
import type { WaitOptions } from './polling/wait-options.js';
import { type Characters, createCharactersResource } from './resources/characters.js';
import { createImagesResource, type Images } from './resources/images.js';
import { Jobs } from './resources/jobs.js';
import { Models } from './resources/models.js';
import { type RawRequest, rawRequest } from './resources/raw-request.js';
import { Uploads, uploadSteps } from './resources/uploads.js';
import { createVideoEditsResource, type VideoEdits } from './resources/video-edits.js';
import { createVideosResource, type Videos } from './resources/videos.js';
import { Voices } from './resources/voices.js';
import type { CostEstimate, PricedCall } from './schemas/budget.js';
import type { CompletedJob, Job } from './schemas/job.js';
import type { RequestOptions } from './schemas/request-options.js';
import type { WebhookEvent } from './schemas/webhook-event.js';
import { createTransport, type LimitedTransport } from './transport/create-transport.js';
import type { RequestPromise } from './transport/request-promise.js';
import { type ReceivedWebhook, type VerifyWebhookOptions, verifyWebhook } from './webhooks/verify.js';

const INSPECT: unique symbol = Symbol.for('nodejs.util.inspect.custom');

/**
 * The client of the generation service.
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
  /** Transform, restyle or extend a source video. */
  readonly videoEdits: VideoEdits;
  /** Files for use as references and sources. */
  readonly uploads: Uploads;
  /** Jobs and their finished files. */
  readonly jobs: Jobs;
  /** What the service's models can do. */
  readonly models: Models;
  /** Voices usable for speech. */
  readonly voices: Voices;

  readonly #options: ClientOptions;
  readonly #secrets: () => readonly string[];
  readonly #baseUrl: () => string | undefined;
  readonly #transport: LimitedTransport;
  readonly #waiter: Waiter;

  /** Calls nothing. Throws a GenError that names the option and the fix. */
  constructor(options: ClientOptions = {}) {
    const config = readConfig(options);
    const transport = createTransport(config);
    const jobs = new Jobs(transport);
    const waiter = createWaiter({
      // The scheduler repeats a read that failed, with all that wait in view.
      readJob: (id, signal) => jobs.get(id, { signal, maxRetries: 0 }),
      account: transport.account,
      limiter: () => (config.rateLimit === 'off' ? 'off' : (transport.limiter() ?? 'documented')),
      maxRetryAfterMs: config.maxRetryAfterMs,
      clock: config.clock,
      wake: config.wake,
      warn: transport.warn,
      waits: transport.waits,
      announced: transport.jobs.announced,
    });
    this.#options = { ...options };
    this.#secrets = config.webhookSecrets;
    this.#baseUrl = config.knownBaseUrl;
    this.#transport = transport;
    this.#waiter = waiter;
    this.uploads = new Uploads(transport);
    const maker = { transport, waiter, uploads: uploadSteps(this.uploads, transport) };
    this.images = createImagesResource(maker);
    this.characters = createCharactersResource(maker);
    this.videos = createVideosResource(maker);
    this.videoEdits = createVideoEditsResource(maker);
    this.jobs = jobs;
    this.models = new Models(transport);
    this.voices = new Voices(transport);
  }

  /**
   * A client with some options changed. It shares limits and waits with this one while the account is the same.
   *
   * @example
   * const patient = client.withOptions({ timeoutMs: 120_000, maxRetries: 6 });
   */
  withOptions(overrides: ClientOptions): GenClient {
    return new GenClient({ ...this.#options, ...overrides });
  }

  /**
   * A client of the same account for engines that wait by themselves: where this one would wait, because a rate limit is
   * full or the service asks for it, that one rejects with the time to come back. `rateLimit: 'off'` stays off.
   * @internal
   */
  withoutQueue(overrides: ClientOptions = {}): GenClient {
    const unqueued =
      this.#options.rateLimit === 'off' ? { maxRetryAfterMs: 0 } : ({ rateLimit: 'throw' } satisfies ClientOptions);
    return this.withOptions({ ...overrides, ...unqueued });
  }

  /**
   * Calls an endpoint without a method here; `data` comes unwrapped. Key, retries, deadlines and errors are the same as
   * everywhere, and a POST carries an Idempotency-Key. The answer is not checked: `T` is the caller's word.
   */
  request<T = unknown>(request: RawRequest, options?: RequestOptions): RequestPromise<T> {
    return this.#transport.send(rawRequest<T>(request ?? {}), options);
  }

  /**
   * Waits for a job. Throws a JobError when it does not complete, a WaitTimeoutError after `timeoutMs`.
   *
   * @example
   * const video = await client.waitForJob(job.id, { onUpdate: ({ status }) => console.log(status) });
   */
  waitForJob(job: Job | string, options: WaitOptions & { readonly throwOnFailure: false }): Promise<Job>;
  waitForJob(job: Job | string, options?: WaitOptions): Promise<CompletedJob>;
  waitForJob(job: Job | string, options?: WaitOptions): Promise<CompletedJob> {
    return this.#waiter.waitForJob(job, options);
  }

  /**
   * The jobs in the order in which they end. Throws at the end for those that could not be waited for.
   *
   * @example
   * for await (const finished of client.waitForJobs([first.id, second.id])) {
   *   if (isCompleted(finished)) await saveOutput(client, finished, 'videos/');
   * }
   */
  waitForJobs(jobs: Iterable<Job | string>, options?: WaitOptions): AsyncGenerator<Job, void, undefined> {
    return waitForJobs(jobs, this.#waiter, options);
  }

  /**
   * Wakes the waits on a verified event's job at once; so in every client of the account in this process, and with the
   * `wake` option in other processes.
   *
   * @example
   * client.notify(await client.verifyWebhook(request));
   */
  notify(event: JobNotice): void {
    this.#waiter.notify(event);
  }

  /**
   * Verifies a webhook with `webhookSecret` (spec: Events). Throws a WebhookVerificationError with its `reason`.
   *
   * @example
   * const event = await client.verifyWebhook(request);
   * if (event.type === 'job.completed') await db.save(event.data.job.id);
   */
  async verifyWebhook(
    received: Request | ReceivedWebhook,
    options: Partial<VerifyWebhookOptions> = {},
  ): Promise<WebhookEvent> {
    const secret = options.secret ?? this.#secrets();
    if (options.secret === undefined && secret.length === 0)
      throw refusal('secret_missing', 'The signing secret is missing. Pass webhookSecret, or set GEN_WEBHOOK_SECRET.');
    return verifyWebhook(received, { ...options, secret });
  }

  /**
   * How each limit stands, by lane (spec: Limits). Empty before a key function was asked for the first time, and with a
   * limiter of your own that cannot tell.
   */
  limits(): Record<string, LaneSnapshot> {
    return this.#transport.limiter()?.snapshot?.() ?? {};
  }

  /**
   * What a create would cost: the last quote that this process has seen for the same call, model, duration, resolution
   * and audio. The service tells prices only with a created job, so the first of a kind is unknown. It calls nothing.
   */
  estimate(job: PricedCall): CostEstimate {
    const tokens = this.#transport.jobs.priceOf(job);
    return { tokens, basis: tokens === undefined ? 'unknown' : 'learned' };
  }

  /** What may be seen of a client; never its key or its secrets. */
  toJSON(): Record<string, unknown> {
    return { baseUrl: this.#baseUrl(), apiKey: '[redacted]' };
  }

  /** @internal */
  [INSPECT](): string {
    return `GenClient { baseUrl: '${this.#baseUrl()}', apiKey: '[redacted]' }`;
  }
}
