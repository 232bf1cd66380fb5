// A call that survives its process, on BullMQ. Needs GEN_API_KEY, GEN_BASE_URL and a Redis at REDIS_URL.
import { GenClient } from 'gen-client';
import { createGenQueue, createGenWorker } from 'gen-client/bullmq';
import { redisLimiter } from 'gen-client/redis';
import { Redis } from 'ioredis';

const redis = new Redis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379', { maxRetriesPerRequest: null });
const queue = createGenQueue(redis);
await queue.images.create({ prompt: 'A paper boat in the rain' }, { jobId: 'order-17' });

const worker = createGenWorker(redis, new GenClient({ limiter: redisLimiter(redis) }), {
  onCompleted: async (job, { id }) => {
    console.log(`${id} is ${job.status}: ${job.finalTokenCost} tokens`);
    setImmediate(async () => {
      await worker.close();
      await queue.close();
      await redis.quit();
    });
  },
});
