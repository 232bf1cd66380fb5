// A video in a Cloudflare Workflow. POST /?order=17 starts it, and the service's webhook wakes it. Needs nodejs_compat, URL (of
// this Worker), GEN_API_KEY, GEN_BASE_URL, and GEN_WEBHOOK_SECRET.
import { WorkflowEntrypoint, type WorkflowEvent, type WorkflowStep } from 'cloudflare:workers';
import { NonRetryableError } from 'cloudflare:workflows';
import { GenClient } from 'gen-client';
import { cloudflareEngine, createActivities, generate } from 'gen-client/durable';

type Order = { readonly key: string; readonly prompt: string };
type Env = { readonly URL: string; readonly VIDEOS: Workflow<Order> };

export class Video extends WorkflowEntrypoint<Env, Order> {
  override run({ payload: { key, prompt } }: WorkflowEvent<Order>, step: WorkflowStep) {
    const engine = cloudflareEngine(step, createActivities(new GenClient()), { NonRetryableError });
    return generate(engine, { call: 'videos', params: { prompt, webhook_url: `${this.env.URL}?run=${key}` }, key });
  }
}

export default {
  async fetch(request, env) {
    const { order = '', run } = Object.fromEntries(new URL(request.url).searchParams);
    if (run !== undefined) {
      const payload = await new GenClient().verifyWebhook(request);
      await (await env.VIDEOS.get(run)).sendEvent({ type: 'gen-client-job', payload });
    } else await env.VIDEOS.create({ id: order, params: { key: order, prompt: await request.text() } });
    return new Response();
  },
} satisfies ExportedHandler<Env>;
