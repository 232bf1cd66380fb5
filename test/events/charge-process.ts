// One replica of an app. It creates videos, waits for the specified jobs, receives webhooks, and sends the charges that its
// hook receives to the parent.
import { createServer } from 'node:http';
import { fileStore, toNodeHandler } from '../../src/adapters/node/index.js';
import { GenClient } from '../../src/index.js';
import { createWebhookHandler } from '../../src/webhooks/handler.js';

const [path = '', baseUrl = '', apiKey = '', webhookSecret = ''] = process.argv.slice(2);
const client = new GenClient({
  apiKey,
  baseUrl,
  webhookSecret,
  rateLimit: 'off',
  ...(path && { store: fileStore(path) }),
  hooks: {
    onJob: ({ phase, jobId, chargedTokens }) => {
      if (phase === 'final' && chargedTokens !== undefined) process.send?.({ charged: jobId, tokens: chargedTokens });
    },
  },
});
const server = createServer(toNodeHandler(createWebhookHandler({ client })));
server.listen(0, '127.0.0.1', () => process.send?.({ hook: (server.address() as { port: number }).port }));

interface Task {
  /** Prompts of the videos to create. */
  readonly create?: readonly string[];
  /** Jobs to wait for. */
  readonly wait?: readonly string[];
  readonly webhookUrl?: string;
}

process.on('message', async ({ create = [], wait = [], webhookUrl }: Task) => {
  const created = create.map((prompt) =>
    client.videos.create({ prompt, ...(webhookUrl && { webhook_url: webhookUrl }) }),
  );
  const jobs = (await Promise.all(created)).map(({ job }) => job.id);
  await Promise.all(wait.map((id) => client.waitForJob(id, { pollIntervalMs: 50, throwOnFailure: false })));
  process.send?.({ jobs });
});
