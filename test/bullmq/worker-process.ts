// One worker process of the crash test, killed at any moment.
import { Redis } from 'ioredis';
import { createGenWorker } from '../../src/bullmq/index.js';
import { GenClient } from '../../src/index.js';
import { redisLimiter } from '../../src/redis/index.js';

const { REDIS_PORT, BASE_URL, API_KEY, QUEUE, SPEED } = process.env;
const connection = { host: '127.0.0.1', port: Number(REDIS_PORT) };
const windowMs = 60_000 / Number(SPEED);
const client = new GenClient({
  apiKey: String(API_KEY),
  baseUrl: String(BASE_URL),
  limiter: redisLimiter(new Redis(connection), {
    limits: { 'videos.create': { limit: 20, windowMs }, 'jobs.get': { limit: 120, windowMs } },
  }),
});
createGenWorker(connection, client, {
  name: String(QUEUE),
  pollIntervalMs: 700,
  retryDelayMs: 100,
  concurrency: 20,
  worker: { lockDuration: 1000, stalledInterval: 300, drainDelay: 1 },
});
process.send?.('ready');
