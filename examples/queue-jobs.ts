// Queues a call on BullMQ, so that it survives a crash. Needs GEN_API_KEY, GEN_BASE_URL, and a Redis at REDIS_URL. Run it again to
// see the same job. Another ID creates another job.
import { GenClient } from 'gen-client';
import { createGenQueue, createGenWorker } from 'gen-client/bullmq';
import { redisStore } from 'gen-client/redis';
import { Redis } from 'ioredis';

const redis = new Redis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379', { maxRetriesPerRequest: null });
const queue = createGenQueue(redis);
const worker = createGenWorker(redis, new GenClient({ store: redisStore(redis) }), {
  onCompleted: (job, { id }) => console.log(`${id} is ${job.status}: ${job.finalTokenCost} tokens`),
});

const existing = await queue.queue.getJob('order-17');
const hasEnded = existing?.finishedOn !== undefined;
if (hasEnded) console.log(`order-17 has ended: ${existing.failedReason || existing.returnvalue.status}`);
else await queue.images.create({ prompt: 'A paper boat in the rain' }, { jobId: 'order-17' });

if (!hasEnded) await new Promise((resolve) => worker.worker.once('completed', resolve).once('failed', resolve));
await worker.close();
await queue.close();
await redis.quit();
