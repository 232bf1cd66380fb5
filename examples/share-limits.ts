// Processes that share rate limits through Redis. Run `node share-limits.ts <prompt…>` in several terminals. Needs GEN_API_KEY,
// GEN_BASE_URL, and REDIS_URL.
import { GenClient } from 'gen-client';
import { redisStore } from 'gen-client/redis';
import { Redis } from 'ioredis';

const redis = new Redis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379');
const client = new GenClient({
  store: redisStore(redis),
  logger: console, // if Redis is unavailable, each process enforces the limits separately and logs a warning
  logLevel: 'warn',
});

const prompts = process.argv.slice(2);
const created = await Promise.all(prompts.map((prompt) => client.videos.create({ prompt })));
for (const { job } of created) console.log(job.id);
redis.disconnect(); // instead of quit(), because the last writes to Redis may still be in flight
