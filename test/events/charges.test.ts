// What a job has cost is reported once: by the process that created it, however its end becomes known.
import { describe, expect, it, vi } from 'vitest';
import type { JobEvent } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { createWebhookHandler } from '../../src/webhooks/handler.js';

const PARAMS = { prompt: 'a fox at dawn', webhook_url: 'https://app.example/hooks' };

/** A client whose jobs end by webhooks, and what its hook is told of their ends. */
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

describe('the charge of a job', () => {
  it.each(['reads the job', 'does nothing'] as const)(
    'that only a webhook ends is polled once (%s)',
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

  it('is not reported where a job is only read', async () => {
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
});
