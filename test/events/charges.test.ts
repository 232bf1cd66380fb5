// The process that created a job reports its charge once, however the job's end becomes known.
import { describe, expect, it, vi } from 'vitest';
import { createBudget, type JobEvent, memoryStore } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { createWebhookHandler } from '../../src/webhooks/handler.js';

const PARAMS = { prompt: 'a fox at dawn', webhook_url: 'https://app.example/hooks' };

/** Creates a client whose jobs end with webhooks, and records its hook's final events. */
function ending(listener: 'reads the job' | 'does nothing') {
  let handler: (request: Request) => Promise<Response> = async () => new Response();
  const sandbox = createSandbox({
    clock: 'manual',
    prices: 10,
    webhookFetch: (input, init) => handler(new Request(input, init)),
  });
  const ends: JobEvent[] = [];
  const onJob = (event: JobEvent) => void (event.phase === 'final' && ends.push(event));
  const client = sandbox.client({ hooks: { onJob } });
  handler = createWebhookHandler({
    client,
    on: {
      'job.completed': async ({ data }) => {
        if (listener === 'reads the job') await client.jobs.get(data.job.id);
      },
    },
  });
  return { sandbox, client, ends };
}

describe("a job's charge", () => {
  it.each(['reads the job', 'does nothing'] as const)(
    'is known after one poll if a webhook ends the job (%s)',
    async (listener) => {
      const { sandbox, client, ends } = ending(listener);
      await client.videos.create(PARAMS);
      await sandbox.advance(600_000);
      await sandbox.settled();
      await vi.waitFor(() => expect(ends).toHaveLength(1));
      await sandbox.advance(60_000);
      expect(ends).toEqual([expect.objectContaining({ status: 'completed', chargedTokens: 10 })]);
      expect(sandbox.requests.filter(({ method }) => method === 'GET').length).toBeLessThanOrEqual(2);
    },
  );

  it("isn't reported by a process that only polls the job", async () => {
    const { sandbox, client, ends } = ending('does nothing');
    const { job } = await client.videos.create({ prompt: 'a fox' });
    await sandbox.advance(600_000);
    const events: JobEvent[] = [];
    const reader = sandbox.client({
      account: 'of another process',
      hooks: { onJob: (event) => void events.push(event) },
    });
    await reader.jobs.get(job.id);
    expect(events).toHaveLength(1);
    expect(events[0]).not.toHaveProperty('chargedTokens');
    await client.jobs.get(job.id);
    await client.jobs.get(job.id);
    expect(ends.map(({ chargedTokens }) => chargedTokens)).toEqual([10]);
  });

  it.each([
    ['completed', '', 10],
    ['failed', ' [fail:generation_failed]', 0],
  ])("is known even if the webhook arrives before the create's response (%s)", async (status, fail, tokens) => {
    let handler: (request: Request) => Promise<Response> = async () => new Response();
    const sandbox = createSandbox({
      clock: 'manual',
      prices: 10,
      webhookFetch: (input, init) => handler(new Request(input, init)),
    });
    let deliver = () => {};
    const delivered = new Promise<void>((resolve) => {
      deliver = resolve;
    });
    const events: JobEvent[] = [];
    const budget = createBudget({ maxTokens: 100, store: memoryStore() });
    const client = sandbox.client({
      budget,
      hooks: { onJob: (event) => void events.push(event) },
      fetch: async (input: string, init?: RequestInit) => {
        const response = await sandbox.fetch(new Request(input, init));
        if (init?.method === 'POST') await delivered;
        return response;
      },
    });
    handler = createWebhookHandler({ client, on: {} });
    const created = client.videos.create({ ...PARAMS, prompt: `a fox${fail}` });
    created.catch(() => {});
    await sandbox.advance(50_000);
    await sandbox.settled();
    deliver();
    await created;
    await sandbox.advance(60_000);
    await sandbox.settled();
    await vi.waitFor(() => expect(events.map(({ phase }) => phase)).toContain('final'));
    expect(events.filter(({ chargedTokens }) => chargedTokens !== undefined)).toMatchObject([
      { phase: 'final', status, chargedTokens: tokens },
    ]);
    expect(await budget.usage()).toMatchObject({ spentTokens: tokens, reservedTokens: 0 });
  });
});
