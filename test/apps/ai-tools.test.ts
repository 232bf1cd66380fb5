// The tools of examples/apps/ai-tools.ts in the AI SDK, with a mock model.
import { generateText, isStepCount } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { serveApps, stopServing } from './service.js';

let sandbox = serveApps();

beforeEach(() => {
  sandbox = serveApps({ jobDurationMs: 0 });
});
afterEach(() => {
  vi.resetModules();
  stopServing();
});

const FOX = { prompt: 'a fox at dawn', duration: 5 };
const TOKENS = { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0, text: 1, reasoning: 0 };
type ToolCall = readonly [toolName: string, args: object];

/** Returns the results of these tool calls, which the model makes in order. */
async function runTools(userId: string, chatId: string, calls: readonly ToolCall[]): Promise<unknown[]> {
  const { videoTools } = await import('../../examples/apps/ai-tools.js');
  let index = 0;
  const model = new MockLanguageModelV4({
    doGenerate: async () => {
      const [toolName = '', args] = calls[index++] ?? [];
      return {
        content: [{ type: 'tool-call', toolCallId: `call-${index}`, toolName, input: JSON.stringify(args) }],
        finishReason: { unified: 'tool-calls', raw: undefined },
        usage: { inputTokens: TOKENS, outputTokens: TOKENS },
        warnings: [],
      };
    },
  });
  const tools = videoTools(userId, chatId);
  const { steps } = await generateText({ model, tools, prompt: 'make it', stopWhen: isStepCount(calls.length) });
  return steps.flatMap(({ content }) =>
    content.flatMap((part) => {
      if (part.type === 'tool-result') return [part.output];
      return part.type === 'tool-error' ? [String(part.error)] : [];
    }),
  );
}

test('a model that requests a video three times pays once, and gets its ID each time', async () => {
  const [{ id }] = (await runTools('ann', 'chat-1', [['makeVideo', FOX]])) as [{ readonly id: string }];
  expect(id).toBe(sandbox.jobs[0]?.id);
  const results = await runTools('ann', 'chat-1', [
    ['makeVideo', { duration: 5, prompt: FOX.prompt }],
    ['makeVideo', FOX],
    ['videoStatus', { id }],
  ]);
  expect(results).toMatchObject([{ id }, { id }, { id, status: 'completed' }]);
  expect(sandbox.jobs).toHaveLength(1);
  await runTools('ann', 'chat-2', [['makeVideo', FOX]]);
  expect(sandbox.jobs).toHaveLength(2);
});

test("a user can't see another user's video, and can't exceed the budget", async () => {
  await runTools('ann', 'chat-1', [['makeVideo', FOX]]);
  const id = sandbox.jobs[0]?.id;
  expect(await runTools('bob', 'chat-2', [['videoStatus', { id }]])).toEqual([`Error: There is no video ${id}.`]);
  const calls = Array.from({ length: 12 }, (_, index): ToolCall => {
    return ['makeVideo', { ...FOX, duration: 10, prompt: `fox ${index}` }];
  });
  const results = await runTools('bob', 'chat-2', calls);
  expect(results.at(-1)).toMatch(/^BudgetExceededError: /);
  const quoted = sandbox.jobs.slice(1).reduce((sum, job) => sum + Number(job.quotedTokenCost), 0);
  expect(quoted).toBeLessThanOrEqual(300);
  expect(await runTools('ann', 'chat-1', [['makeVideo', { ...FOX, prompt: 'a hare' }]])).toMatchObject([{}]);
});
