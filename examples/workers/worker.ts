// Videos in a Cloudflare Worker. POST /?order=17 starts a Workflow, which survives restarts, and the service's webhook wakes it. The
// Workflow copies the file to R2, and GET /<job id> serves it. All isolates share rate limits and a daily budget, and handle each
// webhook once.
import { env, WorkflowEntrypoint, type WorkflowEvent, type WorkflowStep } from 'cloudflare:workers';
import { NonRetryableError } from 'cloudflare:workflows';
import { createBudget, GenClient } from 'gen-client';
import { durableObjectStore } from 'gen-client/cloudflare';
import { cloudflareEngine, createActivities, generate } from 'gen-client/durable';
import { copyOutput, createOutputHandler, r2 } from 'gen-client/storage';
import { createWebhookHandler, type WebhookEvent } from 'gen-client/webhooks';

export { GenAccount } from 'gen-client/cloudflare';

const store = durableObjectStore(env.ACCOUNT, 'main');
const client = new GenClient({ store, budget: createBudget({ maxTokens: 2_000, per: 'day', store }) });
const fileOf = (jobId: string) => r2(env.FILES, `videos/${jobId}.mp4`);
const isUser = (request: Request) => request.headers.get('authorization') === `Bearer ${env.APP_TOKEN}`;

export class Video extends WorkflowEntrypoint<Cloudflare.Env, Order> {
  override async run({ payload: { key, prompt } }: WorkflowEvent<Order>, step: WorkflowStep) {
    const engine = cloudflareEngine(step, createActivities(client), { NonRetryableError });
    const params = { prompt, webhook_url: `${env.URL}/webhook?run=${key}` };
    const job = await generate(engine, { call: 'videos', params, key });
    await step.do('store the file', async () => (await copyOutput(client, job, fileOf(job.id))).sizeBytes);
    return job;
  }
}

export default {
  async fetch(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === '/webhook') {
      const wake = async (payload: WebhookEvent) => {
        const run = await env.VIDEOS.get(searchParams.get('run') ?? '');
        await run.sendEvent({ type: 'gen-client-job', payload });
      };
      return createWebhookHandler({ client, on: { '*': wake } })(request);
    }
    if (request.method !== 'POST') return createOutputHandler({ client, authorize: isUser, source: fileOf })(request);
    if (!isUser(request)) return new Response(null, { status: 401 });
    const key = searchParams.get('order') ?? crypto.randomUUID();
    const { prompt } = await request.json<{ prompt: string }>();
    const run = await env.VIDEOS.create({ id: key, params: { key, prompt } });
    return Response.json({ run: run.id }, { status: 202 });
  },
};

interface Order {
  readonly key: string;
  readonly prompt: string;
}

declare global {
  namespace Cloudflare {
    interface Env extends Record<'APP_TOKEN' | 'URL', string> {
      readonly ACCOUNT: DurableObjectNamespace;
      readonly FILES: R2Bucket;
      readonly VIDEOS: Workflow<Order>;
    }
  }
}
