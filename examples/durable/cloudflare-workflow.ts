// A video in a Cloudflare Workflow. POST /?order=17 starts it, the service's webhook wakes it, and it survives the rest.
import { WorkflowEntrypoint, type WorkflowEvent, type WorkflowStep } from 'cloudflare:workers';
import { NonRetryableError } from 'cloudflare:workflows';
import { GenClient } from 'gen-client';
import { cloudflareEngine, createActivities, generate } from 'gen-client/durable';
import { verifyWebhook } from 'gen-client/webhooks';

export class Video extends WorkflowEntrypoint<Env, { prompt: string }> {
  override async run({ instanceId, payload }: WorkflowEvent<{ prompt: string }>, step: WorkflowStep) {
    const client = new GenClient({ apiKey: this.env.GEN_API_KEY, baseUrl: this.env.GEN_BASE_URL });
    const engine = cloudflareEngine(step, createActivities(client), { NonRetryableError });
    const params = { ...payload, webhook_url: `${this.env.ORIGIN}/hook?run=${instanceId}` };
    return generate(engine, { call: 'videos', params, key: instanceId });
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === '/hook') {
      const event = await verifyWebhook(request, { secret: env.GEN_WEBHOOK_SECRET });
      const run = await env.VIDEOS.get(searchParams.get('run') ?? '');
      await run.sendEvent({ type: 'gen-client-job', payload: event });
      return new Response(null, { status: 204 });
    }
    const { id } = await env.VIDEOS.create({ id: `order-${searchParams.get('order')}`, params: await request.json() });
    return Response.json({ id });
  },
};

interface Env {
  readonly GEN_API_KEY: string;
  readonly GEN_BASE_URL: string;
  readonly GEN_WEBHOOK_SECRET: string;
  readonly ORIGIN: string;
  readonly VIDEOS: Workflow<{ prompt: string }>;
}
