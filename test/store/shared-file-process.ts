// Resumes other processes' creates, then creates videos with a shared file store until it is killed. Prints `job <id>` for
// each job. With the argument `resume`, it only resumes.

import { fileStore } from '../../src/adapters/node/index.js';
import { BudgetExceededError, createBudget, GenClient } from '../../src/index.js';

const [path = '', baseUrl = '', apiKey = '', task = ''] = process.argv.slice(2);
const store = fileStore(path);
const budget = createBudget({ maxTokens: 1_000_000, per: 'total', scope: 'all', store });
const client = new GenClient({ apiKey, baseUrl, store, budget, rateLimit: 'off' });
const print = (line: string) => new Promise<void>((resolve) => process.stdout.write(`${line}\n`, () => resolve()));

async function resumeAll(): Promise<void> {
  for await (const { job } of client.resume({ pollIntervalMs: 50 })) {
    await print(`job ${job.id}`);
    await client.markStored(job);
  }
}

/** Swallows the error of a budget that a crashed create of unknown price blocks. resumeAll() unblocks the budget. */
function ignoreUnresolved(error: unknown): undefined {
  if (!BudgetExceededError.isInstance(error) || error.reason !== 'unresolved') throw error;
}

async function createOne(): Promise<void> {
  const params = { prompt: 'a fox', model: 'svc-video-fast', duration: 5 } as const;
  const job = await client.videos.createAndWait(params, { pollIntervalMs: 50 }).catch(ignoreUnresolved);
  if (!job) return;
  await print(`job ${job.id}`);
  await client.markStored(job);
}

await resumeAll();
while (task !== 'resume') await Promise.all([createOne(), createOne(), resumeAll()]);
const { spentTokens, reservedTokens } = await budget.usage();
await print(`usage ${spentTokens} ${reservedTokens}`);
