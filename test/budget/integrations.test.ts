// A client's budget also applies in the AI SDK and durable runs. For the queue, see test/bullmq/budgets.
import { experimental_generateVideo as generateVideo } from 'ai';
import { expect, test } from 'vitest';
import { createGen } from '../../src/adapters/ai-sdk/index.js';
import { createActivities, type DurableEngine, generate } from '../../src/adapters/durable/index.js';
import { BudgetExceededError } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { errorOf } from '../support/rejection.js';
import { scopedBudget } from '../support/scoped-budget.js';
import { VIDEO } from './service.js';

function openClient() {
  const sandbox = createSandbox({ prices: 10, jobDurationMs: 0, limits: 'off' });
  const budget = scopedBudget({ maxTokens: 25 });
  return { sandbox, budget, client: sandbox.client({ budget, rateLimit: 'off' }) };
}

test("an AI SDK model that would exceed the budget rejects with the budget's error", async () => {
  const { sandbox, client } = openClient();
  const model = createGen({ client }).video('svc-video-fast');
  const providerOptions = { gen: { pollIntervalMs: 5 } };
  const generateOne = () => generateVideo({ model, prompt: 'a fox', duration: 4, maxRetries: 0, providerOptions });
  await generateOne();
  await generateOne();
  const error = await errorOf(generateOne());
  const causes = [error, error instanceof Error ? error.cause : undefined];
  expect(causes.some((thrown) => BudgetExceededError.isInstance(thrown))).toBe(true);
  expect(sandbox.jobs).toHaveLength(2);
});

test('a durable run that would exceed the budget fails permanently, and a repeated run counts toward it once', async () => {
  const { sandbox, budget, client } = openClient();
  const activities = createActivities(client);
  const engine: DurableEngine = {
    call: (_step, activity, input) => activities[activity](input),
    wait: async () => false,
    fail(error) {
      throw Object.assign(new Error(error.message), error);
    },
  };
  const run = (key: string) => generate(engine, { call: 'videos', params: VIDEO, key });
  await run('order-1');
  await run('order-1');
  await run('order-2');
  await expect(run('order-3')).rejects.toMatchObject({
    name: 'BudgetExceededError',
    code: 'budget_exceeded',
    recovery: 'top_up',
  });
  expect(sandbox.jobs).toHaveLength(2);
  expect(await budget.usage()).toMatchObject({ spentTokens: 20, reservedTokens: 0 });
});
