// Resumes other processes' creates, then creates videos with a shared Redis until it is killed. Prints `job <id>` for each
// job. With the argument `resume`, it resumes until no create is unfinished.
import { Redis } from 'ioredis';
import { redisStore } from '../../src/adapters/redis/index.js';
import { createBudget, GenClient, GenError } from '../../src/index.js';

const [port = '', baseUrl = '', apiKey = '', batch = '', limit = '', windowMs = '', task = ''] = process.argv.slice(2);
const redis = new Redis({ port: Number(port), host: '127.0.0.1', retryStrategy: () => 100 });
redis.on('error', () => {});
const store = redisStore(redis);
const budget = createBudget({ maxTokens: 1_000_000, per: 'total', store });
const limits = { 'videos.create': { limit: Number(limit), windowMs: Number(windowMs) } };
const client = new GenClient({ apiKey, baseUrl, store, budget, limits });
const print = (line: string) => new Promise<void>((resolve) => process.stdout.write(`${line}\n`, () => resolve()));
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Ignores outages, and budgets blocked by a crashed create. */
function ignoreTemporary(error: unknown): undefined {
  const errors: unknown[] = error instanceof AggregateError ? error.errors : [error];
  if (!errors.every((cause) => GenError.isInstance(cause) && /retry|wait/.test(cause.recovery))) throw error;
}

async function resumeAll(): Promise<void> {
  for await (const { job } of client.resume()) {
    await print(`job ${job.id}`);
    await client.markStored(job);
  }
}

async function createOne(): Promise<void> {
  const job = await client.videos.createAndWait({ prompt: 'a fox', model: 'svc-video-fast', duration: 5 });
  await print(`job ${job.id}`);
  await client.markStored(job);
}

async function countUnfinished(): Promise<number> {
  let unfinished = 0;
  for await (const _ of client.unfinishedCreates()) unfinished += 1;
  return unfinished;
}

if (task === 'resume') {
  do {
    await resumeAll().catch(ignoreTemporary);
    await pause(1_000);
  } while ((await countUnfinished()) > 0);
  const { spentTokens, reservedTokens } = await budget.usage();
  await print(`usage ${spentTokens} ${reservedTokens}`);
  process.exit(0);
}
for (;;) {
  await resumeAll().catch(ignoreTemporary);
  await Promise.all(Array.from({ length: Number(batch) }, () => createOne().catch(ignoreTemporary)));
}
