// The process that created a job reports its charge once, whether it learns the outcome from a poll or a webhook.
import { describe, expect, it } from 'vitest';
import { type ClientOptions, createBudget, type JobEvent, memoryStore } from '../../src/index.js';
import { createSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { createWebhookHandler } from '../../src/webhooks/handler.js';
import { deferred } from '../support/deferred.js';

const PARAMS = { prompt: 'a fox at dawn', webhook_url: 'https://app.example/hooks' };

/** Opens an app: a sandbox, a client whose job events are recorded, and a webhook handler. */
function openApp({ polls: pollsInListener = false, optionsFor = (_sandbox: Sandbox): ClientOptions => ({}) } = {}) {
  let handler: (request: Request) => Promise<Response> = async () => new Response();
  const sandbox = createSandbox({
    clock: 'manual',
    prices: 10,
    webhookFetch: (input, init) => handler(new Request(input, init)),
  });
  const events: JobEvent[] = [];
  const onJob = (event: JobEvent) => void events.push(event);
  const client = sandbox.client({ hooks: { onJob }, ...optionsFor(sandbox) });
  const poll = async ({ data }: { readonly data: { readonly job: { readonly id: string } } }) => {
    if (pollsInListener) await client.jobs.get(data.job.id);
  };
  handler = createWebhookHandler({ client, on: { 'job.completed': poll } });
  return { sandbox, client, events, finalEvents: () => events.filter(({ phase }) => phase === 'final') };
}

describe("a job's charge", () => {
  it.each([
    ['polls the job', true],
    ['does nothing', false],
  ])('is reported once, after at most two polls, if a webhook ends the job and its listener %s', async (_, polls) => {
    const { sandbox, client, finalEvents } = openApp({ polls });
    await client.videos.create(PARAMS);
    await sandbox.advance(600_000);
    await sandbox.settled();
    await expect.poll(finalEvents).toHaveLength(1);
    await sandbox.advance(60_000);
    expect(finalEvents()).toEqual([expect.objectContaining({ status: 'completed', chargedTokens: 10 })]);
    expect(sandbox.requests.filter(({ method }) => method === 'GET').length).toBeLessThanOrEqual(2);
  });

  it("isn't reported by a process that only polls the job", async () => {
    const { sandbox, client, finalEvents } = openApp();
    const { job } = await client.videos.create({ prompt: 'a fox' });
    await sandbox.advance(600_000);
    const events: JobEvent[] = [];
    const onJob = (event: JobEvent) => void events.push(event);
    await sandbox.client({ account: 'of another process', hooks: { onJob } }).jobs.get(job.id);
    expect(events).toHaveLength(1);
    expect(events[0]).not.toHaveProperty('chargedTokens');
    await client.jobs.get(job.id);
    await client.jobs.get(job.id);
    expect(finalEvents().map(({ chargedTokens }) => chargedTokens)).toEqual([10]);
  });

  it.each([
    ['completed', '', 10],
    ['failed', ' [fail:generation_failed]', 0],
  ])("is reported even if the webhook arrives before the create's response (%s)", async (status, fail, tokens) => {
    const { promise: delivered, resolve: deliver } = deferred();
    const budget = createBudget({ maxTokens: 100, store: memoryStore() });
    const { sandbox, client, events, finalEvents } = openApp({
      optionsFor: ({ fetch }) => ({
        budget,
        fetch: async (input, init) => {
          const response = await fetch(new Request(input, init));
          if (init.method === 'POST') await delivered;
          return response;
        },
      }),
    });
    const created = client.videos.create({ ...PARAMS, prompt: `a fox${fail}` });
    await sandbox.advance(50_000);
    await sandbox.settled();
    deliver();
    await created;
    await sandbox.advance(60_000);
    await sandbox.settled();
    await expect.poll(() => finalEvents().length).toBeGreaterThan(0);
    expect(events.filter(({ chargedTokens }) => chargedTokens !== undefined)).toMatchObject([
      { phase: 'final', status, chargedTokens: tokens },
    ]);
    expect(await budget.usage()).toMatchObject({ spentTokens: tokens, reservedTokens: 0 });
  });
});
