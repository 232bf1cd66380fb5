// Many processes, one limit: each starts this with prompts of its own, and together they stay within what the account
// may do. Needs GEN_API_KEY, GEN_BASE_URL and REDIS_URL.
import { GenClient } from 'gen-client';
import { redisStore } from 'gen-client/redis';
import { Redis } from 'ioredis';

const redis = new Redis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379');
const client = new GenClient({
  store: redisStore(redis),
  logger: console, // without Redis each process keeps the limits by itself, and the logger gets a warning
  logLevel: 'warn',
});

const prompts = process.argv.slice(2);
const created = await Promise.all(prompts.map((prompt) => client.videos.create({ prompt })));
for (const { job } of created) console.log(job.id);
redis.disconnect(); // in place of quit(): the answers of the last calls may still be on their way to Redis
