// A video in a Restate workflow: POST /video/order-17/run with { order, prompt } to Restate starts it, and the service's webhook
// wakes it.
import { createServer } from 'node:http';
import * as restate from '@restatedev/restate-sdk';
import { GenClient, verifyWebhook } from 'gen-client';
import { createActivities, generate, restateEngine } from 'gen-client/durable';

const { RESTATE_URL, ORIGIN, PORT, HOOK_PORT, GEN_WEBHOOK_SECRET = '' } = process.env;
const activities = createActivities(new GenClient());

const video = restate.workflow({
  name: 'video',
  handlers: {
    async run(ctx: restate.WorkflowContext, { order, prompt }: { order: string; prompt: string }) {
      const params = { prompt, webhook_url: `${ORIGIN}/hook?run=${order}` };
      return generate(restateEngine(ctx, activities, restate), { call: 'videos', params, key: order });
    },
    async wake(ctx: restate.WorkflowSharedContext, jobId: string) {
      await ctx.promise(jobId).resolve(null);
    },
  },
});
restate.serve({ services: [video], port: Number(PORT) });

createServer(async (request, response) => {
  try {
    const body = Buffer.concat(await Array.fromAsync(request));
    const event = await verifyWebhook({ body, headers: request.headers }, { secret: GEN_WEBHOOK_SECRET });
    const { job } = event.data as { job: { id: string } };
    const run = new URL(request.url ?? '', ORIGIN).searchParams.get('run');
    const call = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(job.id),
    };
    await fetch(`${RESTATE_URL}/video/${run}/wake/send`, call);
    response.writeHead(204).end();
  } catch {
    response.writeHead(400).end();
  }
}).listen(Number(HOOK_PORT));
