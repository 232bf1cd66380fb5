// A worker process of crashes.test.ts, which kills and freezes it.
import { Redis } from 'ioredis';
import { createGenWorker } from '../../src/adapters/bullmq/index.js';
import { redisStore } from '../../src/adapters/redis/index.js';
import { GenClient } from '../../src/index.js';

const { REDIS_PORT, BASE_URL, API_KEY, QUEUE, SPEED } = process.env;
const connection = { host: '127.0.0.1', port: Number(REDIS_PORT), retryStrategy: () => 100 };
const windowMs = 60_000 / Number(SPEED);
const redis = new Redis(connection);
redis.on('error', () => {});
const client = new GenClient({
  apiKey: String(API_KEY),
  baseUrl: String(BASE_URL),
  store: redisStore(redis),
  limits: { 'videos.create': { limit: 20, windowMs }, 'jobs.get': { limit: 120, windowMs } },
});
createGenWorker(connection, client, {
  name: String(QUEUE),
  pollIntervalMs: 700,
  retryDelayMs: 1000,
  concurrency: 20,
  recover: { generation_timeout: 10 },
  onCompleted: (_, { id }) => void process.send?.({ completed: id }),
  worker: { lockDuration: 1000, stalledInterval: 300, drainDelay: 1 },
});
process.send?.('ready');
