// A web application with a budget per tenant and a total budget. All processes share them.
import { BudgetExceededError, createBudget, GenClient } from 'gen-client';
import { redisStore } from 'gen-client/redis';
import { Redis } from 'ioredis';

const redis = new Redis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379');
const store = redisStore(redis);
const client = new GenClient({
  store,
  budget: createBudget({ maxTokens: 50_000, per: 'month', scope: 'all', store }),
});

export async function POST(request: Request): Promise<Response> {
  // Your authentication.
  const tenant = request.headers.get('x-tenant') ?? 'nobody';
  const { prompt } = (await request.json()) as { prompt: string };
  const budget = createBudget({ maxTokens: 100, per: 'day', scope: `tenant-${tenant}`, store });
  try {
    const { job } = await client.videos.create({ prompt, duration: 5 }, { budget });
    return Response.json({ jobId: job.id, ...(await budget.usage()) }, { status: 202 });
  } catch (error) {
    if (!BudgetExceededError.isInstance(error)) throw error;
    const { code, reason, leftTokens, resetsAt } = error;
    return Response.json({ code, reason, leftTokens, resetsAt }, { status: reason === 'spent' ? 402 : 503 });
  }
}

export const close = () => redis.quit();
