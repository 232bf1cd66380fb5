// One of several processes that wait for jobs whose webhooks land elsewhere. It is told what to wait for, and says how it went.
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { GenClient } from '../../src/index.js';
import { redisWake } from '../../src/redis/index.js';

const [, , baseUrl = '', port = '', kind = ''] = process.argv;
const url = `redis://127.0.0.1:${port}`;
const ioredis = new Redis(url, { retryStrategy: () => 50, lazyConnect: true });
const nodeRedis = createClient({ url, socket: { reconnectStrategy: 50 } });
for (const redis of [ioredis, nodeRedis]) redis.on('error', () => {});
const redis = kind === 'ioredis' ? ioredis : nodeRedis;
await redis.connect();
const client = new GenClient({ apiKey: `key-${kind}`, baseUrl, wake: redisWake(redis) });

process.on('message', async (id: string) => {
  if (id !== 'end') return process.send?.((await client.waitForJob(id)).status);
  if (kind === 'ioredis') ioredis.disconnect();
  else nodeRedis.destroy();
  process.disconnect();
});
process.send?.('ready');
