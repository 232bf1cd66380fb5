// One of several processes that create videos with a shared rate limit.
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { redisStore } from '../../src/adapters/redis/index.js';
import { GenClient } from '../../src/index.js';

const [, , baseUrl = '', port = '', windowMs = '', count = '', kind = ''] = process.argv;
const url = `redis://127.0.0.1:${port}`;
const ioredis = kind === 'ioredis' ? new Redis(url) : undefined;
const nodeRedis = kind === 'ioredis' ? undefined : createClient({ url });
await nodeRedis?.connect();
const redis = ioredis ?? nodeRedis;
if (!redis) throw new Error('no client');

const client = new GenClient({
  apiKey: 'key',
  baseUrl,
  store: redisStore(redis),
  limits: { 'videos.create': { limit: 20, windowMs: Number(windowMs) } },
});
process.send?.('ready');
await new Promise((resolve) => process.once('message', resolve));

const created = await Promise.all(
  Array.from({ length: Number(count) }, () => client.videos.create({ prompt: 'A fox.' })),
);
process.send?.(created.length);
// Don't exit, because an exited process's slots are in use until its lease expires.
await new Promise((resolve) => process.once('message', resolve));
await ioredis?.quit();
await nodeRedis?.close();
process.disconnect();
