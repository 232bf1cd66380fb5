// A video in a Restate workflow. POST { prompt } to /video/order-17/run on Restate starts it. The service sends the webhook to
// Restate, which wakes it.
import * as restate from '@restatedev/restate-sdk';
import { GenClient } from 'gen-client';
import { createActivities, generate, restateEngine } from 'gen-client/durable';

const { ORIGIN, PORT } = process.env;
const client = new GenClient();
const activities = createActivities(client);

const video = restate.workflow({
  name: 'video',
  handlers: {
    async run(ctx: restate.WorkflowContext, { prompt }: { prompt: string }) {
      const params = { prompt, webhook_url: `${ORIGIN}/video/${ctx.key}/hook` };
      return generate(restateEngine(ctx, activities, restate), { call: 'videos', params, key: ctx.key });
    },
    hook: restate.handlers.workflow.shared({ input: restate.serde.binary, accept: '*/*' }, async (ctx, body) => {
      const headers = Object.fromEntries(ctx.request().headers);
      const event = await client.verifyWebhook({ body, headers }).catch(({ message }) => {
        throw new restate.TerminalError(message, { errorCode: 400 });
      });
      await ctx.promise((event.data as { job: { id: string } }).job.id).resolve(null);
    }),
  },
});
restate.serve({ services: [video], port: Number(PORT) });
