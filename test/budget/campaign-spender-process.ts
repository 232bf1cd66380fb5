// One of several processes that spend one budget in Redis, through a network that loses requests and answers. It is killed
// and started again, and then begins from its first order: the keys are the same.
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { BudgetExceededError, createBudget, GenClient, GenError, idempotencyKeyFrom } from '../../src/index.js';
import { redisBudget } from '../../src/redis/index.js';
import { seeded } from '../support/seeded.js';

const [, , text = '{}'] = process.argv;
const { id, orders, atOnce, baseUrl, apiKey, port, maxTokens, seed } = JSON.parse(text);

const redis =
  id % 2 === 0
    ? new Redis({ port, host: '127.0.0.1', retryStrategy: () => 50 }).on('error', () => {})
    : createClient({ url: `redis://127.0.0.1:${port}`, socket: { reconnectStrategy: 50 } }).on('error', () => {});
if ('connect' in redis && id % 2 !== 0) await redis.connect();

let offsetMs = 0;
const clock = { now: () => Date.now() + offsetMs, after: () => () => {} };
const store = redisBudget(redis as Redis, { [Symbol.for('gen-client.clock')]: clock } as object);
const budget = createBudget({ maxTokens, per: 'day', scope: 'campaign', store });

const random = seeded(seed);
/** Some requests never leave, and some answers never arrive. */
const lossy: typeof fetch = async (input, init) => {
  const fate = random();
  if (fate < 0.04) throw new TypeError('fetch failed');
  const response = await fetch(input, init);
  if (fate > 0.95) {
    await response.body?.cancel();
    throw new TypeError('terminated');
  }
  return fate > 0.92 ? new Response('{}', { status: 502 }) : response;
};
const client = new GenClient({ apiKey, baseUrl, budget, fetch: lossy, rateLimit: 'off', maxRetries: 1 });

const SHAPES = [
  { model: 'svc-video-fast', duration: 4 },
  { model: 'svc-video-fast', duration: 8 },
  { model: 'svc-video-pro', duration: 5, resolution: '1080p' },
  { model: 'svc-video-mini', duration: 6, generate_audio: true },
] as const;
const ENDS = ['', '', '', '', '[fail:generation_failed]', '', '', 'refused'];

const counts = { made: 0, refused: 0, overBudget: 0, lost: 0 };

/** Repeats an order under its key until it is made or refused, as a program does that must not pay twice. */
async function place(order: number): Promise<void> {
  const end = ENDS[order % ENDS.length];
  const shape = SHAPES[order % SHAPES.length] ?? SHAPES[0];
  const params = { ...shape, prompt: `A fox ${end}`, ...(end === 'refused' && { model: 'svc-video-none' }) };
  const idempotencyKey = idempotencyKeyFrom('campaign', id, order);
  for (;;) {
    try {
      const { job } = await client.videos.create(params as never, { idempotencyKey, preflight: false });
      counts.made++;
      await client.jobs.get(job.id).catch(() => {});
      return;
    } catch (error) {
      if (BudgetExceededError.isInstance(error)) counts.overBudget++;
      else if (GenError.isInstance(error) && 'status' in error && error.status === 400) counts.refused++;
      else {
        counts.lost++;
        await new Promise((resolve) => setTimeout(resolve, 5 + random() * 20));
        continue;
      }
      return;
    }
  }
}

process.on('message', (message: { offsetMs: number }) => {
  offsetMs = message.offsetMs;
});
process.send?.({ ready: true });
await new Promise((resolve) => process.once('message', resolve));
let next = 0;
const place1 = async () => {
  while (next < orders) await place(next++);
};
await Promise.all(Array.from({ length: atOnce }, place1));
// Makes up for what Redis has missed.
await budget.usage();
process.send?.({ done: counts });
await redis.quit();
process.disconnect();
