import { type ClientOptions, GenClient, type GenError } from 'gen-client';
import {
  createGenQueue,
  createGenWorker,
  type GenQueue,
  type GenQueueJob,
  type GenWorker,
  type GenWorkerOptions,
} from 'gen-client/bullmq';
import { redisStore } from 'gen-client/redis';
import { createSandbox, type Sandbox, type SandboxOptions } from 'gen-client/sandbox';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect } from 'vitest';
import { type RealRedis, startRedis, whyNoRedis } from '../redis/real-redis.js';

type Fetch = typeof globalThis.fetch;

/** Options for a test queue and its sandbox. */
export interface QueueSetup extends SandboxOptions {
  readonly client?: ClientOptions;
  /** The sandbox of another queue, to share its account. */
  readonly sandbox?: Sandbox;
  /** Wraps the fetch of the client. */
  readonly wrap?: (fetch: Fetch) => Fetch;
}

/** A queue on a real Redis whose calls use a sandbox. */
export interface QueueOnSandbox {
  readonly sandbox: Sandbox;
  readonly client: GenClient;
  readonly queue: GenQueue;
  readonly name: string;
  readonly connection: { readonly host: string; readonly port: number };
  /** Starts a worker, which closes after the test. Adds the errors of calls to `failures`. */
  readonly startWorker: (options?: GenWorkerOptions, client?: GenClient) => GenWorker;
  /** Errors of the failed calls. */
  readonly failures: readonly GenError[];
  /** Resolves when this many calls sleep. */
  readonly untilAsleep: (count?: number) => Promise<void>;
  /** Resolves when this many calls have ended. */
  readonly untilEnded: (count?: number) => Promise<void>;
  /** Returns a call's record. */
  readonly record: (id: string) => Promise<GenQueueJob>;
  /** Returns the idempotency keys of the creates, in order. */
  readonly keys: () => (string | undefined)[];
}

/** A suite that is skipped without Redis. */
export const describeWithRedis = describe.skipIf(whyNoRedis() !== undefined);

/** Starts one Redis per suite, and opens queues and stores for each test. */
export function queuesOnSandboxes() {
  let redis: RealRedis;
  const resources: { close(): Promise<void> }[] = [];
  let names = 0;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterEach(async () => {
    await Promise.all(resources.splice(0).map((resource) => resource.close()));
  });
  afterAll(() => redis.close());

  return {
    /** Returns a store with a separate connection. */
    store() {
      const connection = new Redis({ host: '127.0.0.1', port: redis.port });
      resources.push({ close: async () => connection.disconnect() });
      return redisStore(connection);
    },
    open(setup: QueueSetup = {}): QueueOnSandbox {
      const { client: clientOptions, wrap = (fetch) => fetch, sandbox: sharedSandbox, ...options } = setup;
      names += 1;
      const connection = { host: '127.0.0.1', port: redis.port };
      const name = `calls-${names}`;
      const sandbox = sharedSandbox ?? createSandbox({ jobDurationMs: 30, limits: 'off', ...options });
      const { apiKey, baseUrl } = sandbox;
      const fetch = wrap(sandbox.fetch);
      const client = new GenClient({ apiKey, baseUrl, fetch, rateLimit: 'off', ...clientOptions });
      const queue = createGenQueue(connection, { name });
      const failures: GenError[] = [];
      resources.push(queue);
      return {
        sandbox,
        client,
        queue,
        name,
        connection,
        failures,
        untilAsleep: (count = 1) => expect.poll(() => queue.queue.getDelayedCount()).toBe(count),
        startWorker(workerOptions = {}, workerClient = client) {
          const onFailed = (error: GenError) => void failures.push(error);
          const worker = createGenWorker(connection, workerClient, {
            name,
            pollIntervalMs: 40,
            onFailed,
            ...workerOptions,
          });
          resources.push(worker);
          return worker;
        },
        untilEnded: (count = 1) => expect.poll(() => queue.queue.getJobCountByTypes('completed', 'failed')).toBe(count),
        async record(id) {
          const job = await queue.queue.getJob(id);
          if (!job) throw new Error(`${id} is not in the queue`);
          return job;
        },
        keys: () =>
          sandbox.requests.filter(({ method }) => method === 'POST').map(({ headers }) => headers['idempotency-key']),
      };
    },
  };
}

/** Returns the webhook event of a sandbox job. */
export function eventOf(sandbox: Sandbox, at = 0) {
  const job = sandbox.jobs[at];
  return {
    object: 'developer.webhook_event',
    id: `evt_${job?.id}_completed`,
    type: 'job.completed',
    created: new Date(0).toISOString(),
    data: { job: { id: job?.id ?? '', status: 'completed', providerOutputUrl: String(job?.providerOutputUrl) } },
  } as const;
}

/** Returns true if a request creates a job. */
export function isCreate(input: Parameters<Fetch>[0], init?: RequestInit): boolean {
  return (init?.method ?? (input instanceof Request ? input.method : 'GET')) === 'POST';
}

export const PNG = new Blob([new Uint8Array([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10])], { type: 'image/png' });
