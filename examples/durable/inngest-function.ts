// A video in an Inngest function. The event videos/requested starts it, and the service's webhook wakes it.
import { createServer } from 'node:http';
import { GenClient } from 'gen-client';
import { createActivities, generate, inngestEngine } from 'gen-client/durable';
import { toNodeHandler } from 'gen-client/node';
import { createWebhookHandler } from 'gen-client/webhooks';
import { Inngest, NonRetriableError } from 'inngest';
import { serve } from 'inngest/node';

const { ORIGIN = '', PORT } = process.env;
const inngest = new Inngest({ id: 'videos' });
const client = new GenClient();
const activities = createActivities(client);

const video = inngest.createFunction(
  { id: 'video', triggers: { event: 'videos/requested' } },
  async ({ event, step }) => {
    const { order: key, prompt } = event.data as { order: string; prompt: string };
    const engine = inngestEngine(step, activities, { NonRetriableError });
    return generate(engine, { call: 'videos', params: { prompt, webhook_url: `${ORIGIN}/hook` }, key });
  },
);
const functions = serve({ client: inngest, functions: [video] });

const on = { '*': (event: object) => inngest.send({ name: 'gen-client/job', data: event }) };
const hook = toNodeHandler(createWebhookHandler({ client, on }));
createServer((request, response) => {
  (request.url?.startsWith('/hook') ? hook : functions)(request, response);
}).listen(Number(PORT));
