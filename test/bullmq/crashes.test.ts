import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { verifyWebhook, type WebhookEvent } from 'gen-client';
import { createGenQueue, type GenQueue } from 'gen-client/bullmq';
import { createSandbox } from 'gen-client/sandbox';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startRedis } from '../redis/real-redis.js';
import { bundleProgram, receiveMessage } from '../support/program.js';
import { seeded } from '../support/seeded.js';
import { describeWithRedis } from './queue-on-sandbox.js';

/** `npm run campaign -- queue` runs the full size. CI runs a tenth. */
const SCALE = process.env.CAMPAIGN === 'full' ? 1 : 0.1;
const JOBS = 200 * SCALE;
const WORKERS = 3;
const KILLS = 50 * SCALE;
const STOPS = 10 * SCALE;
const RESTARTS = Math.ceil(3 * SCALE);
/** Calls whose first job fails because of a pending review or a timeout. */
const PENDING = 20 * SCALE;
const TIMED_OUT = 20 * SCALE;
const SPEED = 60;
const SEED = 20_261_121;

describeWithRedis('a queue', () => {
  let program: Awaited<ReturnType<typeof bundleProgram>>;
  beforeAll(async () => {
    program = await bundleProgram(new URL('worker-process.ts', import.meta.url));
  });
  afterAll(() => program.remove());

  it(`charges each of ${JOBS} calls once despite ${KILLS} kills, ${STOPS} frozen workers, ${RESTARTS} Redis restarts, and lost, duplicate, and early webhooks`, async () => {
    const chance = seeded(SEED);
    const redis = await startRedis({ isPersistent: true });
    const sandbox = createSandbox({ speed: SPEED, jobDurationMs: [0, 90_000], seed: SEED, balanceTokens: 1_000_000 });
    const service = await sandbox.listen({ port: 0 });
    const connection = { host: '127.0.0.1', port: redis.port, retryStrategy: () => 100 };
    const queue = createGenQueue(connection, { name: 'crashes' });
    const receiver = await startReceiver(sandbox.webhookSecret, (event) => deliver(queue, event, chance));
    const env = { REDIS_PORT: String(redis.port), BASE_URL: service.url, API_KEY: sandbox.apiKey, QUEUE: 'crashes' };
    const completedIds = new Set<string>();
    const startWorker = async () => {
      const worker = program.start([], { ...env, SPEED: String(SPEED) });
      worker.on('message', (message: { completed?: string } | 'ready') => {
        if (typeof message === 'object' && message.completed) completedIds.add(message.completed);
      });
      await receiveMessage(worker);
      return worker;
    };
    const workers = await Promise.all(Array.from({ length: WORKERS }, startWorker));
    for (let at = 0; at < PENDING; at++) {
      const errorData = { retry_after: 1 };
      sandbox.outcomes.next({ status: 'failed', errorCode: 'reference_asset_pending', errorData });
    }
    for (let at = 0; at < TIMED_OUT; at++) sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_timeout' });
    try {
      const ids = Array.from({ length: JOBS }, (_, at) => `order-${at}-of-${SEED}`);
      const webhook_url = receiver.url;
      await Promise.all(ids.map((jobId) => queue.videos.create({ prompt: `fox ${jobId}`, webhook_url }, { jobId })));
      const kill = async () => {
        const at = Math.floor(chance() * WORKERS);
        workers[at]?.kill('SIGKILL');
        workers[at] = await startWorker();
      };
      const freeze = async () => {
        const worker = workers[Math.floor(chance() * WORKERS)];
        worker?.kill('SIGSTOP');
        // Longer than the lock, so another worker continues the calls.
        await pause(1200 + chance() * 1000);
        worker?.kill('SIGCONT');
      };
      const faults = shuffle(
        [...Array(KILLS).fill(kill), ...Array(STOPS).fill(freeze), ...Array(RESTARTS).fill(redis.restart)],
        chance,
      );
      for (const fault of faults) {
        await pause(50 + chance() * 250);
        await fault();
      }
      const ended = () => queue.queue.getJobCountByTypes('completed', 'failed');
      await expect.poll(ended, { timeout: 90_000, interval: 500 }).toBe(JOBS);
      expect((await queue.queue.getFailed()).map(({ failedReason }) => failedReason)).toEqual([]);
      expect([...completedIds].sort()).toEqual([...ids].sort());
      const { entries } = sandbox.ledger();
      expect(entries.filter((entry) => entry.type === 'charge')).toHaveLength(JOBS);
      expect(sandbox.jobs).toHaveLength(JOBS + PENDING + TIMED_OUT);
      for (const job of await queue.queue.getCompleted(0, JOBS)) expect(job.data.jobId).toBe(job.returnvalue.id);
    } finally {
      for (const worker of workers) worker.kill('SIGKILL');
      await queue.close();
      await receiver.close();
      await service.close();
      await redis.close();
    }
  }, 240_000);
});

function shuffle<T>(list: readonly T[], chance: () => number): T[] {
  return list
    .map((value) => ({ value, rank: chance() }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ value }) => value);
}

/** Delivers webhooks to the queue, but loses about 30% of them and delivers about 20% twice. */
async function deliver(queue: GenQueue, event: WebhookEvent, chance: () => number): Promise<void> {
  const roll = chance();
  if (roll < 0.3) return;
  await queue.wake(event);
  if (roll > 0.8) await queue.wake(event);
}

async function startReceiver(secret: string, handle: (event: WebhookEvent) => Promise<void>) {
  const server: Server = createServer(async (request, response) => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const event = await verifyWebhook({ body: Buffer.concat(chunks), headers: request.headers }, { secret });
    await handle(event);
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}
