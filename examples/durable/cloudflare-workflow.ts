// A video in a Cloudflare Workflow: POST /?order=17 starts it, and the service's webhook wakes it. It survives the rest.
// The Worker needs nodejs_compat, its own URL, GEN_API_KEY, GEN_BASE_URL and GEN_WEBHOOK_SECRET.
import { WorkflowEntrypoint, type WorkflowEvent, type WorkflowStep } from 'cloudflare:workers';
import { NonRetryableError } from 'cloudflare:workflows';
import { GenClient } from 'gen-client';
import { cloudflareEngine, createActivities, generate } from 'gen-client/durable';

export class Video extends WorkflowEntrypoint<Env, Order> {
  override run({ payload: { key, ...body } }: WorkflowEvent<Order>, step: WorkflowStep) {
    const engine = cloudflareEngine(step, createActivities(new GenClient()), { NonRetryableError });
    return generate(engine, { call: 'videos', key, params: { ...body, webhook_url: `${this.env.URL}?run=${key}` } });
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { order = '', run } = Object.fromEntries(new URL(request.url).searchParams);
    const params = async () => ({ ...(await request.json<{ prompt: string }>()), key: order });
    if (!run) return Response.json(await env.VIDEOS.create({ id: order, params: await params() }));
    const event = await new GenClient().verifyWebhook(request);
    await (await env.VIDEOS.get(run)).sendEvent({ type: 'gen-client-job', payload: event });
    return new Response();
  },
};

interface Env {
  readonly URL: string;
  readonly VIDEOS: Workflow<Order>;
}

interface Order {
  readonly key: string;
  readonly prompt: string;
}
