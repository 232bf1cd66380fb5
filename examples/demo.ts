// `npm run demo`: creates a video from a local image, with a webhook, on a local sandbox.
import { createServer } from 'node:http';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GenClient, verifyWebhook, type WebhookEvent } from 'gen-client';
import { fromPath, saveOutput } from 'gen-client/node';
import { createSandbox } from 'gen-client/sandbox';

const USD_PER_TOKEN = 0.05;
const demoStartMs = Date.now();

const sandbox = createSandbox({ jobDurationMs: 6_000 });
const service = await sandbox.listen({ port: 0 });
say(`Sandbox      ${service.url}`);

const client = new GenClient({ apiKey: sandbox.apiKey, baseUrl: service.url, webhookSecret: sandbox.webhookSecret });
const receiver = await receiveWebhooks();

const image = await fromPath(fileURLToPath(new URL('fox.png', import.meta.url)));
const { upload_id } = await client.uploads.upload(image);
say(`Uploaded     fox.png as ${upload_id}`);

const created = await client.videos.create({
  prompt: 'A fox trots through fresh snow at dawn, slow pan, warm light',
  reference_image_upload_ids: [upload_id],
  duration: 5,
  aspect_ratio: '16:9',
  webhook_url: receiver.url,
});
say(`Accepted     ${created.job.id}, ${created.quoted_token_cost} tokens reserved`);

const progress = showProgress();
const job = await client.waitForJob(created.job, {
  pollIntervalMs: 1_000,
  onUpdate: ({ status }) => progress.update(status),
});
progress.end();

const event = await receiver.event;
say(`Webhook      ${event.id}, signature verified`);

const file = await saveOutput(client, job, 'demo.mp4', { overwrite: true });
const cost = job.finalTokenCost ?? 0;
say(`Saved        ${resolve('demo.mp4')} (${Math.ceil(file.sizeBytes / 1000)} kB)`);
say(`Cost         ${cost} tokens (${(cost * USD_PER_TOKEN).toFixed(2)} USD), balance ${created.balance_tokens} tokens`);
say(`Took         ${((Date.now() - demoStartMs) / 1000).toFixed(1)} s`);

receiver.close();
await service.close();

/** Starts an HTTP server that verifies webhooks, as a backend does. */
async function receiveWebhooks() {
  const server = createServer();
  const event = new Promise<WebhookEvent>((resolveEvent) => {
    server.on('request', async (request, response) => {
      const chunks: Uint8Array[] = [];
      for await (const chunk of request) chunks.push(chunk);
      try {
        const verified = await verifyWebhook(
          { body: Buffer.concat(chunks), headers: request.headers },
          { secret: sandbox.webhookSecret },
        );
        response.writeHead(204).end();
        client.notify(verified);
        resolveEvent(verified);
      } catch {
        response.writeHead(400).end();
      }
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  return { url: `http://127.0.0.1:${port}/webhooks`, event, close: () => server.close() };
}

/** Updates one line on a terminal. Otherwise, prints a line per change. */
function showProgress() {
  const startMs = Date.now();
  let status = created.job.status;
  const line = () => `Waiting      ${status}, ${((Date.now() - startMs) / 1000).toFixed(0)} s`;
  const timer = process.stdout.isTTY ? setInterval(() => process.stdout.write(`\r\x1b[K${line()}`), 200) : undefined;
  return {
    update(newStatus: string) {
      status = newStatus;
      if (!timer) say(line());
    },
    end() {
      clearInterval(timer);
      if (timer) process.stdout.write('\r\x1b[K');
      say(`Finished     after ${((Date.now() - startMs) / 1000).toFixed(1)} s`);
    },
  };
}

function say(line: string) {
  process.stdout.write(`${line}\n`);
}
