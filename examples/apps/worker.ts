// A Worker that creates a video, copies its file to R2 when the webhook arrives, and serves it. Make it your module's default export.
import { GenClient } from 'gen-client';
import { copyOutput, createOutputHandler, type R2BucketLike, r2 } from 'gen-client/storage';
import { createWebhookHandler } from 'gen-client/webhooks';

interface Env extends Record<'GEN_API_KEY' | 'GEN_BASE_URL' | 'GEN_WEBHOOK_SECRET', string> {
  readonly VIDEOS: R2BucketLike;
}

// Use your database instead.
const owners = new Map<string, string>();
let app: ReturnType<typeof createApp> | undefined;

/** Creates the client and the handlers, once per isolate. */
function createApp({ GEN_API_KEY: apiKey, GEN_BASE_URL: baseUrl, GEN_WEBHOOK_SECRET: webhookSecret, VIDEOS }: Env) {
  const client = new GenClient({ apiKey, baseUrl, webhookSecret });
  const fileOf = (jobId: string) => r2(VIDEOS, `videos/${jobId}.mp4`);
  const authorize = (request: Request, jobId: string) => request.headers.get('x-user') === owners.get(jobId);
  const webhook = createWebhookHandler({
    client,
    on: { 'job.completed': ({ data }) => copyOutput(client, data.job.id, fileOf(data.job.id)) },
  });
  return { client, webhook, file: createOutputHandler({ client, authorize, source: fileOf }) };
}

export const worker = {
  async fetch(request: Request, env: Env): Promise<Response> {
    app ??= createApp(env);
    const { client, webhook, file } = app;
    const { origin, pathname } = new URL(request.url);
    if (pathname === '/webhook') return webhook(request);
    if (request.method !== 'POST') return file(request);
    const { job } = await client.videos.create({ prompt: await request.text(), webhook_url: `${origin}/webhook` });
    owners.set(job.id, request.headers.get('x-user') ?? '');
    return Response.json({ video: `/videos/${job.id}` }, { status: 202 });
  },
};
