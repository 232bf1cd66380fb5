// Run by kill.test.ts in a process of its own, and killed there at a random point.
import { GenClient } from '../../src/client.js';

const [, , baseUrl, apiKey, idempotencyKey, reference] = process.argv;
const client = new GenClient({ baseUrl: baseUrl!, apiKey: apiKey!, rateLimit: 'off' });
process.stdout.write('up\n');
const job = await client.videos.createAndWait(
  { prompt: idempotencyKey!, ...(reference && { reference_image_urls: [reference] }) },
  { idempotencyKey: idempotencyKey!, pollIntervalMs: 15 },
);
process.stdout.write(`${job.id}\n`);
