// A Cloudflare Worker that creates videos, copies each to R2 when its webhook arrives, and serves them to authorized users.
import { GenClient } from 'gen-client';
import { copyOutput, createOutputHandler, type R2BucketLike, r2 } from 'gen-client/storage';
import { createWebhookHandler } from 'gen-client/webhooks';

interface Env extends Record<'GEN_API_KEY' | 'GEN_BASE_URL' | 'GEN_WEBHOOK_SECRET' | 'APP_TOKEN', string> {
  readonly VIDEOS: R2BucketLike;
}

const fileOf = (env: Env, jobId: string) => r2(env.VIDEOS, `videos/${jobId}.mp4`);
const isUser = (env: Env, request: Request) => request.headers.get('authorization') === `Bearer ${env.APP_TOKEN}`;

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const client = new GenClient({ apiKey: env.GEN_API_KEY, baseUrl: env.GEN_BASE_URL });
    const url = new URL(request.url);
    if (url.pathname === '/webhook') {
      const receive = createWebhookHandler({
        secret: env.GEN_WEBHOOK_SECRET,
        on: {
          'job.completed': async ({ data }) => {
            await copyOutput(client, data.job, fileOf(env, data.job.id));
          },
        },
      });
      return receive(request);
    }
    if (url.pathname === '/videos' && request.method === 'POST' && isUser(env, request)) {
      const { prompt } = (await request.json()) as { prompt: string };
      const { job } = await client.videos.create({ prompt, webhook_url: `${url.origin}/webhook` });
      return Response.json({ video: `/videos/${job.id}` }, { status: 202 });
    }
    const serve = createOutputHandler({
      client,
      authorize: () => isUser(env, request),
      source: (jobId) => fileOf(env, jobId), // the service serves the file until the copy exists
    });
    return serve(request);
  },
};
