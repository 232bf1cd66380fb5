import { type ChildProcess, fork } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { verifyWebhook, type WebhookEvent } from 'gen-client';
import { createGenQueue, type GenQueue } from 'gen-client/bullmq';
import { createSandbox } from 'gen-client/sandbox';
import { describe, expect, it } from 'vitest';
import { startRedis, whyNoRedis } from '../redis/real-redis.js';
import { seeded } from '../support/seeded.js';

const JOBS = 200;
const WORKERS = 3;
const KILLS = 30;
const SPEED = 60;
const SEED = 20_261_121;
const reason = whyNoRedis();

describe.skipIf(reason !== undefined)('workers that are killed', () => {
  it('end every one of 200 calls once, over 30 kills and webhooks lost, doubled and early', async () => {
    const chance = seeded(SEED);
    const redis = await startRedis();
    const sandbox = createSandbox({ speed: SPEED, jobDurationMs: [0, 90_000], seed: SEED, balanceTokens: 1_000_000 });
    const service = await sandbox.listen({ port: 0 });
    const queue = createGenQueue({ host: '127.0.0.1', port: redis.port }, { name: 'crashes' });
    const receiver = await receive(sandbox.webhookSecret, (event) => deliver(queue, event, chance));
    const env = { REDIS_PORT: String(redis.port), BASE_URL: service.url, API_KEY: sandbox.apiKey, QUEUE: 'crashes' };
    const crew = await Promise.all(Array.from({ length: WORKERS }, () => startWorker(env)));
    try {
      const ids = Array.from({ length: JOBS }, (_, at) => `order-${at}-of-${SEED}`);
      const webhook_url = receiver.url;
      await Promise.all(ids.map((jobId) => queue.videos.create({ prompt: `fox ${jobId}`, webhook_url }, { jobId })));
      for (let kill = 0; kill < KILLS; kill++) {
        await new Promise((resolve) => setTimeout(resolve, 50 + chance() * 250));
        const at = Math.floor(chance() * WORKERS);
        crew[at]?.kill('SIGKILL');
        crew[at] = await startWorker(env);
      }
      await expect.poll(() => queue.queue.getJobCountByTypes('completed', 'failed'), { timeout: 60_000 }).toBe(JOBS);
      expect(await queue.queue.getCompletedCount()).toBe(JOBS);
      expect(sandbox.jobs).toHaveLength(JOBS);
      const { entries } = sandbox.ledger();
      expect(entries.filter((entry) => entry.type === 'charge')).toHaveLength(JOBS);
      expect(sandbox.requests.filter((request) => request.status === 429)).toHaveLength(0);
    } finally {
      for (const worker of crew) worker.kill('SIGKILL');
      await queue.close();
      await receiver.close();
      await service.close();
      await redis.close();
    }
  }, 150_000);
});

/** Of ten webhooks about three are lost and two come twice. */
async function deliver(queue: GenQueue, event: WebhookEvent, chance: () => number): Promise<void> {
  const luck = chance();
  if (luck < 0.3) return;
  await queue.wake(event);
  if (luck > 0.8) await queue.wake(event);
}

function startWorker(env: Record<string, string>): Promise<ChildProcess> {
  const script = fileURLToPath(new URL('./worker-process.ts', import.meta.url));
  const loader = fileURLToPath(new URL('../../scripts/typescript.mjs', import.meta.url));
  const worker = fork(script, [], {
    execArgv: ['--import', loader, '--no-warnings'],
    env: { ...process.env, ...env, SPEED: String(SPEED) },
  });
  return new Promise((resolve, reject) => {
    worker.once('message', () => resolve(worker));
    worker.once('exit', (code) => reject(new Error(`the worker ended with ${code} before it was ready`)));
  });
}

async function receive(secret: string, handle: (event: WebhookEvent) => Promise<void>) {
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
